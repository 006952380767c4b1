"""The NDJSON door against a scripted kernel."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import trio
import trio.testing

from hosts.agents.agent_lines import LineRefused, Stamps, read_envelope
from hosts.agents.jsonl import MAX_LINE_BYTES, Door, DoorClosed
from hosts.homes import Home
from hosts.launch import Launcher
from hosts.lines import LineReader, LineWriter
from tests.hosts.scripted_kernel import CONVERSATION, ScriptedKernel

STAMPS = Stamps(new_message_id=lambda: "msg_made", now=lambda: "2026-11-30T12:00:00.000Z")


def envelope(type_: str, message_id: str, **payload: Any) -> dict[str, Any]:
    named = {"type": "lineup.v1." + type_, "message_id": message_id, "conversation_id": CONVERSATION}
    return named | {"created_at": "2026-11-30T12:00:00.000Z", "payload": payload}


def tool_call(call_id: str) -> dict[str, Any]:
    return envelope("tool.call", "msg_" + call_id, call_id=call_id, tool_id="runtime.status", inventory_revision="epoch.1", input={})


@dataclass
class Agent:
    """The test's end of the pipes."""

    to_door: int
    from_door: LineReader
    notes: LineReader
    is_ended: bool = False

    def write(self, line: bytes | dict[str, Any]) -> None:
        data = line if isinstance(line, bytes) else json.dumps(line).encode()
        os.write(self.to_door, data + b"\n")

    def end_input(self) -> None:
        os.close(self.to_door)
        self.to_door = -1

    async def read(self) -> dict[str, Any]:
        return await _read(self.from_door)

    async def note(self, word: str) -> dict[str, Any]:
        while (note := await _read(self.notes))["door"] != word:
            pass
        return note


async def _read(reader: LineReader) -> dict[str, Any]:
    line = await reader.read_line()
    assert isinstance(line, bytes)
    return json.loads(line)  # type: ignore[no-any-return]


@asynccontextmanager
async def open_door(launcher: Launcher, *, wait_for_results: bool = True) -> AsyncIterator[Agent]:
    ends = [os.pipe() for _ in range(3)]
    (in_read, in_write), (out_read, out_write), (notes_read, notes_write) = ends
    agent = Agent(in_write, LineReader(out_read, MAX_LINE_BYTES * 2), LineReader(notes_read, MAX_LINE_BYTES))
    door = Door(launcher, LineReader(in_read, MAX_LINE_BYTES), LineWriter(out_write), LineWriter(notes_write), STAMPS)

    async def run() -> None:
        await door.run(wait_for_results=wait_for_results)
        agent.is_ended = True

    try:
        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(run)
                yield agent
                if agent.to_door >= 0:
                    nursery.cancel_scope.cancel()
    finally:
        for fd in (in_read, out_read, out_write, notes_read, notes_write, *([agent.to_door] if agent.to_door >= 0 else [])):
            os.close(fd)


@pytest.mark.clause("11.1")
@pytest.mark.parametrize("line", [b"hello there", b'{"text": "no type"}', b"5", b'"quoted"', b'{"type": "lineup.v1.tool.call", '])
def test_a_line_without_an_envelope_is_plain_text_and_nothing_more(line: bytes) -> None:
    made, is_text = read_envelope(line, CONVERSATION, STAMPS)
    assert is_text
    assert made["type"] == "lineup.v1.message.text"
    assert made["payload"] == {"text": line.decode()}
    assert made["message_id"] == "msg_made"


@pytest.mark.clause("2.1")
@pytest.mark.parametrize(
    ("line", "pointer"),
    [
        (b"\xff", ""),
        (b'{"type": "a", "type": "b"}', ""),
        (b'{"type": "lineup.v1.tool.call", "payload": NaN}', ""),
        (b'{"type": "lineup.v1.message.text", "payload": {"text": "\\ud800"}}', ""),
        (b'{"type": 5, "message_id": "m"}', "/type"),
        (b'{"type": "lineup.v1.message.text"}', "/message_id"),
    ],
)
def test_an_envelope_that_breaks_a_rule_is_refused_and_never_read_as_text(line: bytes, pointer: str) -> None:
    with pytest.raises(LineRefused) as refused:
        read_envelope(line, CONVERSATION, STAMPS)
    assert (refused.value.code, refused.value.detail["pointer"]) == ("protocol_violation", pointer)


@pytest.mark.clause("11.4")
async def test_an_envelope_goes_in_as_it_is_and_its_receipt_comes_as_a_note(home: Home, kernel: ScriptedKernel) -> None:
    async with open_door(Launcher(home)) as agent:
        assert (await agent.note("open"))["conversation_id"] == CONVERSATION
        sent = envelope("message.text", "msg_1", text="hëllo")
        agent.write(sent)
        assert (await kernel.wait_received("envelope.submit"))["envelope"] == sent
        assert await agent.note("receipt") == {"door": "receipt", "message_id": "msg_1", "accepted": True}


@pytest.mark.clause("11.2")
async def test_a_refused_envelope_gives_code_and_detail(home: Home, kernel: ScriptedKernel) -> None:
    kernel.refuse["envelope.submit"] = {"code": "unsupported_type", "detail": {"pointer": "/type"}}
    async with open_door(Launcher(home)) as agent:
        agent.write(envelope("dance", "msg_1"))
        note = await agent.note("receipt")
    assert (note["accepted"], note["code"], note["detail"]) == (False, "unsupported_type", {"pointer": "/type"})


async def test_bad_lines_are_refused_by_number_and_the_door_goes_on(home: Home, kernel: ScriptedKernel) -> None:
    async with open_door(Launcher(home)) as agent:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, agent.write, b"x" * (MAX_LINE_BYTES + 1))
            assert (await agent.note("refused"))["code"] == "limit_exceeded"
        agent.write(b"")
        agent.write(b'{"type": "t", "type": "t"}')
        note = await agent.note("refused")
        assert (note["line"], note["detail"]["reason"]) == (3, "duplicate_key")
        agent.write(b"still here")
        assert (await agent.note("text"))["message_id"] == "msg_made"
        assert (await kernel.wait_received("envelope.submit"))["envelope"]["payload"] == {"text": "still here"}


@pytest.mark.clause("11.3")
async def test_a_row_is_acknowledged_only_after_its_line_was_written(home: Home, kernel: ScriptedKernel) -> None:
    large = envelope("message.text", "msg_large", text="x" * 300_000)  # more than a pipe holds
    async with open_door(Launcher(home)) as agent:
        await agent.note("open")
        kernel.send_row(large)
        await trio.testing.wait_all_tasks_blocked()
        assert [row["message_id"] for row in kernel.rows] == ["msg_large"]
        assert await agent.read() == large
        await kernel.wait_received("outbox.acknowledge")
        assert kernel.rows == []


@pytest.mark.clause("2.9")
async def test_after_a_kernel_death_the_door_attaches_again_and_resends_nothing(
    home: Home, kernel: ScriptedKernel, launcher_of: Callable[[str], Launcher], nursery: trio.Nursery
) -> None:
    row = envelope("message.text", "msg_9", text="again")
    async with open_door(launcher_of("locked")) as agent:
        await agent.note("open")
        agent.write(tool_call("call_1"))
        await agent.note("receipt")
        kernel.die()
        assert (await agent.note("lost"))["unanswered"] == []
        second = ScriptedKernel(home.folder)
        second.rows.append(row)
        await nursery.start(second.serve)
        await agent.note("open")
        assert await agent.read() == row
        await second.wait_received("outbox.acknowledge")
        assert [frame["type"] for _, frame in second.received] == ["outbox.acknowledge"]


@pytest.mark.clause("11.4")
async def test_at_the_end_of_input_the_door_waits_for_the_result_of_every_call(home: Home, kernel: ScriptedKernel) -> None:
    async with open_door(Launcher(home)) as agent:
        agent.write(tool_call("call_1"))
        agent.write(tool_call("call_2"))
        agent.end_input()
        await kernel.wait_received("envelope.submit", 2)
        kernel.send_row(envelope("tool.result", "msg_r1", call_id="call_1", status="completed", result={}))
        await agent.read()
        await trio.testing.wait_all_tasks_blocked()
        assert not agent.is_ended
        kernel.send_row(envelope("tool.result", "msg_r2", call_id="call_2", status="failed", code="tool_failed"))
        assert (await agent.read())["payload"]["call_id"] == "call_2"
    assert agent.is_ended
    await kernel.wait_received("outbox.acknowledge", 2)


async def test_without_waiting_the_door_ends_when_all_receipts_are_in(home: Home, kernel: ScriptedKernel) -> None:
    async with open_door(Launcher(home), wait_for_results=False) as agent:
        agent.write(tool_call("call_1"))
        agent.end_input()
    assert agent.is_ended
    assert await kernel.wait_received("envelope.submit")


@pytest.mark.clause("2.9")
async def test_a_kernel_that_is_stopped_ends_the_door_with_its_code(home: Home, kernel: ScriptedKernel) -> None:
    with pytest.RaisesGroup(DoorClosed, flatten_subgroups=True):
        async with open_door(Launcher(home)) as agent:
            await agent.note("open")
            kernel.stop("door_busy")
            assert (await agent.note("closed"))["code"] == "door_busy"
            await trio.sleep_forever()


class _HeldNotes(LineWriter):
    """Writes the note of a line only once its receipt came, and that receipt only when it is let go."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self.receipt_came = trio.Event()
        self.let_go = trio.Event()

    async def write_line(self, text: str) -> None:
        match json.loads(text)["door"]:
            case "text":
                await self.receipt_came.wait()
            case "receipt":
                self.receipt_came.set()
                await self.let_go.wait()
        await super().write_line(text)


@pytest.mark.clause("11.2")
async def test_the_door_does_not_end_before_the_last_receipt_is_written(home: Home, kernel: ScriptedKernel) -> None:
    in_read, in_write = os.pipe()
    notes_read, notes_write = os.pipe()
    os.write(in_write, b"hello\n")
    os.close(in_write)
    notes, is_ended = _HeldNotes(notes_write), trio.Event()
    door = Door(Launcher(home), LineReader(in_read, MAX_LINE_BYTES), LineWriter(notes_write), notes, STAMPS)

    async def run() -> None:
        await door.run()
        is_ended.set()

    try:
        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(run)
                await notes.receipt_came.wait()
                await trio.testing.wait_all_tasks_blocked(0.05)
                assert not is_ended.is_set()
                notes.let_go.set()
        reader = LineReader(notes_read, MAX_LINE_BYTES)
        assert [(await _read(reader))["door"] for _ in range(3)] == ["open", "text", "receipt"]
    finally:
        for fd in (in_read, notes_read, notes_write):
            os.close(fd)
