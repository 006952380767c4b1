"""Looking after a running kernel: backup and restore, parked messages, the audit as it grows, and why things are as they are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from kernel import audit
from kernel.protocol.host import CallCancel, CallInvoke, KernelStop, MessageSend
from kernel.protocol.host_upkeep import AuditTail, BackupMake, Explain, InboxDrop, InboxParked, InboxRetry
from lineup_sdk.protocol.messages import JsonObject
from tests import invariants
from tests.processes.conftest import Starter
from tests.processes.kernel_under_test import ROOT, KernelUnderTest, opened_copy
from tests.processes.peers import Agent, Person


def offline(*arguments: str) -> tuple[int, JsonObject]:
    """A command of the kernel's own program; its exit code and the JSON it said, on either stream."""
    done = subprocess.run([sys.executable, "-m", "kernel", *arguments], cwd=ROOT, capture_output=True, timeout=60, check=False)
    said: JsonObject = json.loads((done.stdout or done.stderr).splitlines()[-1])
    return done.returncode, said


async def made_backup(person: Person, target: Path) -> JsonObject:
    assert (await person.ask(BackupMake(path=str(target))))["accepted"]
    return (await person.until(lambda: person.of_type("backup.made")))[-1]


async def explained(person: Person, what: str) -> JsonObject:
    """An explanation whose every citation is a row that is there."""
    said = await person.ask(Explain(what=what))
    cited = {seq for sentence in said["sentences"] for seq in sentence["seqs"]}
    for seq in cited:
        [row] = (await person.ask(AuditTail(after=seq - 1, limit=1)))["rows"]
        assert row["seq"] == seq
    assert cited >= {row["seq"] for row in said["audit"]}
    assert len(said["sentences"]) > 1
    return said


@pytest.mark.clause("4.6")
@pytest.mark.clause("12")
async def test_a_backup_of_a_busy_kernel_comes_back_whole_and_nothing_of_it_runs_twice(
    start: Starter, nursery: trio.Nursery, tmp_path: Path
) -> None:
    kernel = start()
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    open_call = await agent.invoke("fixture.slow", {"key": "never"})
    await person.status(open_call, "running")
    target = tmp_path / "backup"
    async with trio.open_nursery() as busy:
        busy.start_soon(_chat, agent)
        made = await made_backup(person, target)
        busy.cancel_scope.cancel()
    assert made["accepted"], made
    epoch = made["facts"]["epoch"]
    code, said = offline("restore", "--home", str(kernel.home), "--from", str(target))
    assert (code, said["code"]) == (8, "store_locked")
    later = await agent.send("message.text", {"text": "after the backup"})
    assert later["accepted"]
    await kernel.kill_all()

    code, said = offline("restore", "--home", str(kernel.home), "--from", str(target))
    assert (code, said["epoch"]) == (0, epoch)
    kernel = start()
    person = await kernel.first_view(nursery)
    assert person.of_type("welcome")[0]["epoch"] != epoch
    assert (person.calls[open_call]["status"], person.calls[open_call]["error_code"]) == ("failed", "interrupted")
    agent = await kernel.agent(nursery)
    assert (await agent.result(open_call))["code"] == "interrupted"
    assert agent.revision.partition(".")[0] != epoch
    new_call = await agent.invoke("fixture.report", {"percents": []})
    assert (await agent.result(new_call))["status"] == "completed"
    why = await explained(person, open_call)
    assert any("half done" in sentence["text"] for sentence in why["sentences"])
    await kernel.kill_all()
    with opened_copy(kernel.home) as db:
        assert invariants.check_all(db) == []
        assert db.execute("SELECT count(*) FROM timeline_message WHERE instr(body_cbor, CAST('after the backup' AS BLOB))").get == 0
    assert audit.verify(kernel.home / "kernel.db").ok
    start()  # and once more: not restored again
    assert not (kernel.home / "restore.mark").exists()


async def _chat(agent: Agent) -> None:
    while True:
        assert (await agent.send("message.text", {"text": "busy " * 100}))["accepted"]


@pytest.mark.clause("12")
async def test_a_half_backup_is_refused_and_the_home_starts_as_before(start: Starter, nursery: trio.Nursery, tmp_path: Path) -> None:
    kernel = start()
    person = await kernel.first_view(nursery)
    assert (await made_backup(person, tmp_path / "backup"))["accepted"]
    again = await person.ask(BackupMake(path=str(tmp_path / "backup")))
    assert again["accepted"]
    failed = await person.until(lambda: person.of_type("backup.made")[1:])
    assert (failed[0]["accepted"], failed[0]["code"], failed[0]["detail"]["pointer"]) == (False, "limit_exceeded", "/path")
    for path in ("/", "/" + "x" * 300):  # no path ends the kernel
        told = len(person.of_type("backup.made"))
        assert (await person.ask(BackupMake(path=path)))["accepted"]
        [failed] = await person.until(lambda told=told: person.of_type("backup.made")[told:])  # type: ignore[misc]
        assert failed["code"] == "limit_exceeded"
    await kernel.kill_all()
    (tmp_path / "backup" / "backup.json").unlink()
    code, said = offline("restore", "--home", str(kernel.home), "--from", str(tmp_path / "backup"))
    assert (code, said["code"]) == (1, "store_corrupt")
    epoch = person.of_type("welcome")[0]["epoch"]
    kernel = start()
    assert (await kernel.first_view(nursery)).of_type("welcome")[0]["epoch"] == epoch


@pytest.mark.clause("5.4")
async def test_a_message_that_kills_its_app_is_parked_and_the_person_sends_it_again_or_drops_it(
    start: Starter, nursery: trio.Nursery
) -> None:
    kernel = start()
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    await agent.result(await agent.invoke("fixture.report", {"percents": []}))
    receipt = await agent.send("app.message", {"topic": "fixture.poison", "body": {}}, app_scope="fixture")
    assert receipt["accepted"], receipt
    [row] = await _parked(person, 1)
    assert (row["app_scope"], row["topic"], row["crash_count"]) == ("fixture", "fixture.poison", 2)
    assert "body" not in row
    retried = await person.ask(InboxRetry(number=row["number"]))
    assert retried["instance_id"].startswith("ins_")
    [again] = await _parked(person, 1)
    assert again["number"] == row["number"]
    assert (await person.ask(InboxDrop(number=row["number"])))["accepted"]
    assert (await person.ask(InboxParked()))["rows"] == []
    assert (await person.ask(InboxRetry(number=row["number"])))["code"] == "call_not_found"
    why = await explained(person, str(row["number"]))
    events = [entry["event"] for entry in why["audit"]]
    assert events == ["inbox.stored", "inbox.parked", "inbox.retried", "inbox.parked", "inbox.dropped"]


async def _parked(person: Person, count: int) -> list[JsonObject]:
    """Wait until so many are parked: a crash shows as a change of the instance."""
    with trio.fail_after(60):
        while len(rows := (await person.ask(InboxParked()))["rows"]) != count:
            seen = len(person.frames)
            await person.until(lambda seen=seen: len(person.frames) > seen)  # type: ignore[misc]
    found: list[JsonObject] = rows
    return found


@pytest.mark.clause("17")
async def test_everything_that_has_an_id_is_explained_by_rows_that_are_there(start: Starter, nursery: trio.Nursery) -> None:
    kernel = start()
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    call_id = await agent.invoke("fixture.report", {"percents": [50]})
    await person.status(call_id, "completed")
    call = await explained(person, call_id)
    assert (call["kind"], call["state"]) == ("call", "completed")
    assert [row["event"] for row in call["audit"]][:2] == ["call.received", "call.routed"]
    instance_id = person.calls[call_id]["instance_id"]
    assert (await explained(person, instance_id))["kind"] == "instance"
    assert (await explained(person, str(person.calls[call_id]["number"])))["kind"] == "call"

    refused = await agent.invoke("fixture.nothing", {})
    assert (await explained(person, refused))["state"] == "rejected"
    asked = await agent.invoke("interaction.confirm", {"title": "Go?", "prompt": "Go on?"})
    question = await person.interaction(lambda one: one.get("call_id") == asked)
    assert (await explained(person, question["interaction_id"]))["kind"] == "interaction"
    assert (await explained(person, asked))["kind"] == "call"

    assert (await person.ask(CallCancel(call_id="nobody")))["code"] == "call_not_found"
    refusal = (await person.ask(AuditTail(limit=1)))["rows"][0]
    assert (refusal["event"], refusal["code"]) == ("command.refused", "call_not_found")
    why = await explained(person, f"audit:{refusal['seq']}")
    assert "nothing was changed" in why["sentences"][-1]["text"]
    for unknown in ("nobody", "audit:0", "audit:x", "999999999999", "²"):
        assert (await person.ask(Explain(what=unknown)))["code"] == "call_not_found"


@pytest.mark.clause("17")
async def test_the_audit_comes_in_pages_each_row_once(start: Starter, nursery: trio.Nursery) -> None:
    kernel = start()
    person = await kernel.first_view(nursery)
    await person.instance("chat", "foreground", "background")  # its start has rows of its own
    for _ in range(20):
        await person.ask(MessageSend(text="one row each"))
    newest = (await person.ask(AuditTail(limit=5)))["rows"]
    seen: list[int] = []
    while rows := (await person.ask(AuditTail(after=seen[-1] if seen else 0, limit=7)))["rows"]:
        assert len(rows) <= 7
        seen.extend(row["seq"] for row in rows)
    assert seen == list(range(1, len(seen) + 1))
    assert [row["seq"] for row in newest] == seen[-5:]
    assert all("text" not in row for row in newest)


@pytest.mark.clause("2.9")
async def test_a_kernel_that_is_stopped_says_so_to_everybody_who_is_attached(start: Starter, nursery: trio.Nursery) -> None:
    kernel = start()
    person = await kernel.first_view(nursery)
    view, admin, agent = await kernel.join(nursery), await kernel.join(nursery, "admin"), await kernel.agent(nursery)
    assert (await admin.ask(KernelStop()))["accepted"]
    for peer in (person, view, admin, agent):
        await peer.wait_closed()
        assert peer.goodbye == "unavailable"
        assert peer.of_type("goodbye")[0]["detail"] == {"hint": "the kernel was stopped"}
    assert await kernel.wait_exited() == 0


@pytest.mark.clause("2.8")
async def test_the_path_of_a_home_may_be_longer_than_the_name_of_a_socket(
    reaping: None, apps: list[Path], tmp_path: Path, nursery: trio.Nursery
) -> None:
    home = tmp_path / ("long" * 40) / "home"
    kernel = KernelUnderTest.start(home, tmp_path / "kernel.log", apps=apps)
    try:
        person = await kernel.first_view(nursery)
        assert not (await kernel.join(nursery)).is_closed
        assert (await person.ask(CallInvoke(tool_id="runtime.status", input={})))["call_id"]
        assert (Path("/proc") / str(kernel.pid) / "cwd").readlink() == Path("/")
    finally:
        kernel.close()
