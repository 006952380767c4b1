"""No word of anybody's reaches a log, an audit row or an error line (SPEC 17, INV-56).

One marker stands in everything that comes from outside: arguments, results, messages, titles, ids, progress, output, saved state, names
that do not exist, the path of the home. It may be in kernel.db, and nowhere else that the kernel writes.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from kernel.protocol.host import AppClose, AppDisable, AppEnable, CallCancel, CallInvoke, FocusRaise, HostHello, LogsRead, MessageSend
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import UNGRANTED_TYPES
from tests.faults import noting
from tests.faults.test_moments import program
from tests.processes.kernel_under_test import ROOT, KernelUnderTest
from tests.processes.peers import Agent, Peer, Person

MARK = "canary4e91"

# Not to be had from a kernel that runs; where the tree raises them, and which test has them instead.
ELSEWHERE = {
    Code.ANSWER_INVALID: "tests/processes/test_interactions.py",
    Code.ARTIFACT_NOT_FOUND: "tests/core/test_artifacts.py",
    Code.CAPABILITY_UNSUPPORTED: "tests/core/test_capabilities.py",
    Code.DIGEST_MISMATCH: "tests/processes/test_surfaces.py",
    Code.EXPIRED: "tests/core",
    Code.INTERRUPTED: "tests/processes/test_kill.py",
    Code.INTERACTION_ALREADY_FINAL: "tests/processes/test_interactions.py",
    Code.INTERACTION_NOT_FOUND: "tests/processes/test_interactions.py",
    Code.MODE_UNAVAILABLE: "tests/processes/test_interact.py",
    Code.MANIFEST_INVALID: "tests/processes/test_life.py",
    Code.SANDBOX_INCOMPLETE: "tests/processes/test_life.py",
    Code.SIZE_MISMATCH: "tests/processes/test_surfaces.py",
    Code.STALE_MOUNT: "tests/processes/test_surfaces.py",
    Code.STORE_CORRUPT: "tests/processes/test_life.py",
    Code.STORE_FOREIGN: "tests/processes/test_life.py",
    Code.STORE_FULL: "tests/faults/test_moments.py",
    Code.STORE_LOCKED: "tests/processes/test_life.py",
    Code.STORE_NEWER: "tests/processes/test_life.py",
    Code.SURFACE_UNAVAILABLE: "tests/core",
    Code.USE_DISMISS: "tests/processes/test_interactions.py",
    Code.VERSION_CONFLICT: "tests/processes/test_surfaces.py",
    Code.UNAVAILABLE: "tests/processes/test_upkeep.py",
    Code.UNKNOWN: "tests/faults/test_moments.py",
}


# The handlers that face what comes from outside: this run is worth nothing if it does not go through them.
FACING = {
    "kernel.__main__ _serve BaseException",
    "kernel.agent_port _command_of Invalid",
    "kernel.core.routing invoke Rejected",
    "kernel.host_port _take Rejected",
    "kernel.listener _read_hello (ProtocolViolation, Invalid)",
    "kernel.protocol.strict validate ValidationError",
    "kernel.turns _decide Rejected",
    "kernel.worker_port _read (ProtocolViolation, ChannelOverflow)",
    "kernel.worker_port _turns_of Denied",
}


def marked(folder: Path) -> Path:
    """A home whose own path holds the marker."""
    return folder / f"home-{MARK}"


async def say_everything(person: Person, agent: Agent) -> None:
    """The good ways, with the marker in every field that is somebody's."""
    await person.ask(MessageSend(text=MARK))
    await agent.send("message.text", {"text": MARK}, message_id=f"{MARK}-1")
    await agent.send("task.update", {"task_id": MARK, "title": MARK, "state": "running", "summary": MARK})
    for tool_id, given in (
        ("fixture.echo", {"text": MARK}),
        ("fixture.remember", {"value": MARK}),
        ("fixture.print", {"text": MARK}),
        ("fixture.fail", {"reason": "no", "message": MARK}),
        ("fixture.raise", {"text": MARK}),
        ("fixture.bad_output", {"mend": True}),
        ("fixture.bad_output", {"mend": False}),
        ("fixture.meddle", {"call_id": MARK, "how": "complete"}),
        ("fixture.ask", {"what": "close"}),
        ("fixture.ask", {"what": "foreground"}),
        ("fixture.report_fast", {"count": 9}),
        ("task-dashboard.open", {"task_id": MARK, "title": MARK}),
        ("task-dashboard.update", {"task_id": MARK, "state": "completed"}),
    ):
        call_id = await agent.invoke(tool_id, given, call_id=f"{MARK}-{tool_id}-{len(agent.frames)}")
        if tool_id != "task-dashboard.open":
            await agent.result(call_id)
    instance = await person.instance("fixture", "background")
    assert MARK in (await person.ask(LogsRead(instance_id=instance["instance_id"])))["text"]
    progress = [
        {"type": "tool.accept", "call_id": "THIS"},
        {"type": "tool.progress", "call_id": "THIS", "message": MARK, "data": {MARK: MARK}},
    ]
    denied = [
        {"type": "state.load", "owner": MARK},
        *({"type": kind, MARK: MARK} for kind in sorted(UNGRANTED_TYPES)),
        {"type": "inbox.acknowledge", "message_id": MARK},
    ]
    await agent.result(await agent.invoke("raw.send", {"json": json.dumps([*progress, *denied])}))


async def be_refused(person: Person, agent: Agent) -> None:
    """The bad ways of Agent and person."""
    for tool_id, given, more in (
        (f"{MARK}.{MARK}", {}, {}),
        ("fixture.echo", {MARK: MARK}, {}),
        ("fixture.echo", {"text": MARK * 4_000}, {}),
        ("fixture.crash", {"times": MARK}, {}),
        ("fixture.echo", {"text": MARK}, {"inventory_revision": MARK}),
        ("fixture.echo", {"text": MARK}, {"app_scope": MARK}),
        ("task-dashboard.update", {"task_id": MARK, "progress": 1}, {"instance_id": MARK}),
    ):
        outer = {key: value for key, value in more.items() if key != "inventory_revision"}
        payload = {"call_id": f"{MARK}-{len(agent.frames)}", "tool_id": tool_id, "inventory_revision": agent.revision, "input": given}
        payload |= {key: value for key, value in more.items() if key == "inventory_revision"}
        assert not (await agent.send("tool.call", payload, **outer))["accepted"]
    used = await agent.invoke("fixture.echo", {"text": "x"}, call_id=f"{MARK}-used")
    await agent.invoke("fixture.echo", {"text": MARK}, call_id=used)
    for kind, body, more in (
        (MARK, {MARK: MARK}, {}),
        ("message.text", {"text": MARK}, {"type": f"lineup.v9.{MARK.rstrip('0123456789e')}"}),
        ("message.text", {"text": MARK, MARK: MARK}, {}),
        ("message.text", {"text": MARK}, {MARK: MARK}),
        ("message.text", {"text": MARK}, {"conversation_id": MARK}),
        ("message.text", {"text": MARK}, {"created_at": MARK}),
        ("tool.cancel", {"call_id": MARK}, {}),
        ("tool.cancel", {"call_id": used}, {}),
        ("app.message", {"topic": MARK, "body": {MARK: MARK}}, {"app_scope": "fixture"}),
        ("app.message", {"topic": MARK, "body": {MARK: MARK}}, {"app_scope": MARK}),
        ("app.message", {"topic": "fixture.go", "body": {MARK: MARK * 6_000}}, {"app_scope": "fixture"}),
    ):
        assert not (await agent.send(kind, body, **more))["accepted"]
    instance = await person.instance("fixture", "background")
    waiting = await agent.invoke("fixture.slow", {"key": MARK})
    for message in (
        CallCancel(call_id=MARK),
        AppClose(instance_id=instance["instance_id"]),
        AppDisable(name=MARK),
        AppDisable(name="chat"),
        FocusRaise(instance_id=MARK),
        MessageSend(text=MARK * 4_000),
        CallInvoke(tool_id=MARK, input={MARK: MARK}),
        LogsRead(instance_id=MARK),
    ):
        assert "code" in await person.ask(message)
    await agent.send("tool.cancel", {"call_id": waiting})
    await agent.result(waiting)
    await person.ask(AppDisable(name="other"))
    await agent.until(lambda: agent.revision.endswith(".2"))
    await agent.invoke("other.heard", {"json": MARK})
    await person.ask(AppEnable(name="other"))
    await agent.until(lambda: agent.revision.endswith(".3"))


async def break_the_wire(kernel: KernelUnderTest, agent: Agent, nursery: trio.Nursery) -> list[Peer]:
    """Crashes, violations, wrong hellos."""
    await agent.result(await agent.invoke("fixture.crash", {"times": 100}))
    hexed = (b"\x00\x00\x00\x20" + MARK.encode() * 4).hex()
    await agent.result(await agent.invoke("rude.write", {"json": hexed}))
    await agent.result(await agent.invoke("raw.seal", {"json": MARK}))
    peers = []
    for hello in (
        HostHello(wire=1, role="view", pairing=MARK),
        HostHello(wire=9, role="view", pairing=kernel.pairing),
        HostHello(wire=1, role=MARK),
        HostHello(wire=1, role="agent"),
    ):
        peers.append(peer := Peer(kernel.connect()))
        nursery.start_soon(peer.run)
        peer.put(hello)
        await peer.wait_closed()
    return peers


def words_in(value: Any) -> set[str]:
    """Every text that was said in these frames."""
    if isinstance(value, dict):
        return set().union(*(words_in(member) for member in value.values()))
    if isinstance(value, list):
        return set().union(*(words_in(member) for member in value))
    return {value} if isinstance(value, str) else set()


def codes_in(value: Any) -> set[str]:
    """Every code that was said in these frames as one."""
    if isinstance(value, dict):
        own = {value[name] for name in ("code", "error_code", "error") if isinstance(value.get(name), str)}
        return own.union(*(codes_in(member) for member in value.values()))
    return set().union(*(codes_in(member) for member in value)) if isinstance(value, list) else set()


def details_in(value: Any) -> list[Any]:
    """Every detail, and every report's detail, that was said in these frames."""
    if isinstance(value, dict):
        own = [value["detail"]] if "detail" in value else []
        return own + [one for member in value.values() for one in details_in(member)]
    return [one for member in value for one in details_in(member)] if isinstance(value, list) else []


def said_offline(kernel: KernelUnderTest) -> bytes:
    """What the kernel's own commands write about this home."""
    said = b""
    for words in (("audit", "export"), ("audit", "verify"), ("serve", "--app-folder", str(kernel.home))):
        command = [sys.executable, "-m", "kernel", *words, "--home", str(kernel.home)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, timeout=60)
        said += done.stdout + done.stderr
    return said


@pytest.mark.clause("17")
@pytest.mark.invariant("56")
@pytest.mark.invariant("57")
async def test_no_word_of_anybody_is_in_what_the_kernel_writes(
    reaping: None, apps: list[Path], tmp_path: Path, nursery: trio.Nursery
) -> None:
    log = tmp_path / "kernel.log"
    notes = tmp_path / "notes"
    kernel = KernelUnderTest.start(marked(tmp_path), log, apps=apps, program=program("never", notes=str(notes)))
    try:
        person = await kernel.first_view(nursery)
        agent = await kernel.agent(nursery)
        await say_everything(person, agent)
        await be_refused(person, agent)
        peers = await break_the_wire(kernel, agent, nursery)
        await kernel.kill_all()
        kernel.close()
        for moment, command in (("broken", "ToolInvoke"), ("full", "message.send")):
            kernel = KernelUnderTest.start(kernel.home, log, apps=apps, program=program(moment, command, str(notes)))
            last = await kernel.first_view(nursery)
            door = await kernel.agent(nursery)
            door.submit(door.envelope("tool.call", {"call_id": MARK, "tool_id": MARK, "inventory_revision": MARK, "input": {MARK: MARK}}))
            if moment == "full":  # it waits for room; the person is refused
                assert (await last.ask(MessageSend(text=MARK)))["code"] == "store_full"
                kernel.kill()
            assert await kernel.wait_exited() == (1 if moment == "broken" else -signal.SIGKILL)
            kernel.close()
    finally:
        kernel.close()

    frames = [frame for peer in (person, agent, *peers) for frame in peer.frames]
    assert MARK in json.dumps(frames)
    # A pointer may name the property that its asker sent; what stood there is told by type and size.
    assert [detail for detail in details_in(frames) if MARK in json.dumps(detail | {"pointer": ""})] == []
    written = {path.name: path.read_bytes() for path in kernel.home.rglob("*") if path.is_file()} | {"log": log.read_bytes()}
    assert MARK.encode() in written["kernel.db"] + written["kernel.db-wal"]
    exported = said_offline(kernel)
    assert b"call.failed" in exported
    assert b"kernel.bug" in written["log"]
    for name, data in (written | {"exported": exported}).items():
        if not name.startswith("kernel.db"):
            assert MARK.encode() not in data, name
    codes = {one.value for one in Code}
    assert codes_in(frames) <= codes
    assert codes - words_in(frames) == {code.value for code in ELSEWHERE}
    entered = set(notes.read_text().splitlines())
    assert entered <= noting.handlers()
    assert FACING - entered == set()
