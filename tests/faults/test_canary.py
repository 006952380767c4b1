"""No word of anybody's reaches a log, an audit row or an error line (SPEC 17, INV-56).

One marker stands in everything that comes from outside: arguments, results, messages, titles, questions, answers, drafts, surfaces,
artifacts, consents, ids, progress, output, saved state, names that do not exist, the path of the home. It may be in kernel.db and in
artifacts, and nowhere else that the kernel writes. Every code there is is said in this run.
"""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import trio

from kernel.protocol.host import (
    AppClose,
    AppDisable,
    AppEnable,
    CallCancel,
    CallInvoke,
    FocusRaise,
    HostHello,
    KernelStop,
    LogsRead,
    MessageSend,
)
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import UNGRANTED_TYPES, JsonObject
from tests.faults.canary_acts import ACTS, Stage, canary_apps
from tests.faults.canary_judge import offline, telling_details, telling_files, telling_lines, words_in
from tests.faults.marked import MARK
from tests.faults.test_moments import program
from tests.processes.kernel_under_test import PROGRAM, KernelUnderTest
from tests.processes.peers import Agent, Peer, Person
from tests.processes.test_life import be_foreign, be_newer, flip_a_byte


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
    await person.instance("fixture", "background")
    waiting = await agent.invoke("fixture.slow", {"key": MARK})
    for message in (
        CallCancel(call_id=MARK),
        AppClose(instance_id=MARK),
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


def homes_in(folder: Path) -> list[Path]:
    """Every home that was begun there."""
    return [path.parent for path in folder.glob("*/kernel.lock")]


Start = Callable[..., KernelUnderTest]


async def start_in_vain(start: Start, nursery: trio.Nursery, home: Path) -> list[JsonObject]:
    """Every way in which a kernel may not start: what it said to its launcher."""
    frames: list[JsonObject] = []

    async def refused(at: Path, *, program: Sequence[str] = PROGRAM, apps: Sequence[Path] = ()) -> None:
        person = await start(at, program=program, apps=apps).first_view(nursery)
        await person.wait_closed()
        frames.extend(person.frames)

    running = start(home)
    person = await running.first_view(nursery)
    await refused(home)  # store_locked
    assert (await person.ask(KernelStop()))["accepted"]
    await person.wait_closed()
    frames += person.frames
    for damage in (flip_a_byte, be_newer, be_foreign):
        damaged = home.with_name(f"{damage.__name__}-{MARK}")
        shutil.copytree(home, damaged, ignore=shutil.ignore_patterns("*.sock"))
        damage(damaged / "kernel.db")
        await refused(damaged)
    bad = home.with_name(f"bad-{MARK}")
    bad.mkdir()
    (bad / "manifest.json").write_text(json.dumps({"app_scope": MARK, "title": MARK, MARK: MARK}))
    await refused(home.with_name(f"other-{MARK}"), apps=[bad])
    await refused(home.with_name(f"lame-{MARK}"), program=("-m", "tests.processes.lame_kernel"))
    return frames


async def break_and_fill(start: Start, nursery: trio.Nursery, home: Path) -> list[JsonObject]:
    """A turn that breaks with everything it wrote in the text of its exception, and a full disk."""
    for moment, command in (("broken", "ToolInvoke"), ("full", "message.send")):
        kernel = start(home, program=program(moment, command))
        last = await kernel.first_view(nursery)
        door = await kernel.agent(nursery)
        door.submit(door.envelope("tool.call", {"call_id": MARK, "tool_id": MARK, "inventory_revision": MARK, "input": {MARK: MARK}}))
        if moment == "full":  # it waits for room; the person is refused
            assert (await last.ask(MessageSend(text=MARK)))["code"] == "store_full"
            kernel.kill()
        assert await kernel.wait_exited() == (1 if moment == "broken" else -signal.SIGKILL)
        kernel.close()
    return last.frames


@pytest.mark.clause("17")
@pytest.mark.invariant("56")
@pytest.mark.invariant("57")
async def test_no_word_of_anybody_is_in_what_the_kernel_writes_and_every_code_is_said(
    reaping: None, tmp_path: Path, nursery: trio.Nursery
) -> None:
    home, log = tmp_path / f"home-{MARK}", tmp_path / "kernel.log"
    (tmp_path / "apps").mkdir()
    folders = canary_apps(tmp_path / "apps")
    started: list[KernelUnderTest] = []

    def start(at: Path, *, program: Sequence[str] = PROGRAM, apps: Sequence[Path] = folders) -> KernelUnderTest:
        started.append(KernelUnderTest.start(at, log, apps=apps, program=program))
        return started[-1]

    try:
        stage = Stage(start(home), nursery)
        stage.peers.append(person := await stage.kernel.first_view(nursery))
        agent = await stage.agent()
        await say_everything(person, agent)
        await be_refused(person, agent)
        stage.peers += await break_the_wire(stage.kernel, agent, nursery)
        agent.close()
        await agent.wait_closed()
        for act in ACTS:
            await act(stage)
        await stage.kernel.kill_all()
        frames = stage.frames + await break_and_fill(start, nursery, home) + await start_in_vain(start, nursery, home)
    finally:
        for kernel in started:
            kernel.close()

    assert MARK.encode() in (home / "kernel.db").read_bytes()
    assert MARK in json.dumps(frames, default=str)
    assert telling_details(frames) == []
    assert [name for folder in homes_in(tmp_path) for name in telling_files(folder)] == []
    said = [log.read_text(), *(offline(*words, "--home", str(home)).decode() for words in (("audit", "export"), ("audit", "verify")))]
    assert [line for text in said for line in telling_lines(text)] == []
    assert '"event": "call.failed"' in said[1]
    assert "kernel.bug" in said[0]
    lines = [json.loads(line) for text in said for line in text.splitlines()]
    assert {one.value for one in Code} - words_in([*frames, *lines]) == set()
