"""A kernel whose disk is full: reads on, refuses, waits, and goes on by itself when there is room (SPEC 12)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from kernel import audit
from kernel.protocol.host import CallsList, KernelStatus, MessageSend
from kernel.protocol.host_upkeep import AuditTail, BackupMake, Explain
from lineup_sdk.protocol.messages import JsonObject
from tests.processes.kernel_under_test import KernelUnderTest
from tests.processes.peers import Person
from tests.processes.small_disk import IS_ROOT, fill, make_room, small_disk
from tests.processes.test_upkeep import offline

pytestmark = pytest.mark.skipif(not IS_ROOT, reason="only root can mount a disk")
BIG = "x" * 40_000
FRAMES = 20_000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", size_kib=16 * 1024) as mounted:
        yield mounted


@pytest.fixture
def kernel(reaping: None, disk: Path, apps: list[Path], tmp_path: Path) -> Iterator[KernelUnderTest]:
    started = KernelUnderTest.start(disk / "home", tmp_path / "kernel.log", apps=apps)
    yield started
    started.close()


async def refused_by_the_disk(person: Person) -> None:
    """Say things until one does not fit."""
    for _ in range(100):
        receipt = await person.ask(MessageSend(text=BIG))
        if not receipt.get("accepted", True):
            assert receipt["code"] == "store_full"
            return
    raise AssertionError("the disk is not full")


@pytest.mark.clause("12")
@pytest.mark.invariant("60")
async def test_a_full_disk_is_read_on_and_waited_for_and_nobody_loses_more_than_time(
    kernel: KernelUnderTest, disk: Path, nursery: trio.Nursery
) -> None:
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    running = await agent.invoke("fixture.slow", {"key": "k"})
    await person.status(running, "running")
    fill(disk)
    await refused_by_the_disk(person)

    # reads go on
    status = await person.ask(KernelStatus())
    assert (status["store"], status["open_calls"]) == ("store_full", 1)
    assert [call["call_id"] for call in (await person.ask(CallsList()))["calls"]] == [running]
    assert (await person.ask(Explain(what=running)))["kind"] == "call"
    # the door is not read: no receipt, and nothing is lost
    envelope = agent.envelope("message.text", {"text": "said to a full disk"})
    agent.submit(envelope)
    assert (await person.ask(KernelStatus()))["store"] == "store_full"
    assert agent.receipts(envelope["message_id"]) == []

    make_room(disk)
    await agent.until(lambda: agent.receipts(envelope["message_id"]))
    assert "store" not in await person.ask(KernelStatus())
    assert (await person.ask(MessageSend(text="room again")))["message_id"]
    rows = (await person.ask(AuditTail(limit=50)))["rows"]
    assert "store.recovered" in [row["event"] for row in rows]
    await agent.go("fixture", "k")
    assert (await agent.result(running))["status"] == "completed"
    assert not person.is_closed
    assert not agent.is_closed
    await kernel.kill_all()
    assert audit.verify(kernel.home / "kernel.db").ok


@pytest.mark.clause("12")
async def test_what_workers_ask_for_on_a_full_disk_is_refused_and_the_count_is_audited(
    kernel: KernelUnderTest, disk: Path, nursery: trio.Nursery
) -> None:
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    order = {"frame": {"type": "state.load"}, "count": FRAMES, "has_id": True}  # more than it may send in this time
    running = await agent.invoke("noisy.burst", {"json": json.dumps(order)})
    await person.status(running, "running")
    fill(disk)
    await refused_by_the_disk(person)
    make_room(disk)
    rows: list[JsonObject] = []
    with trio.fail_after(60):
        while "store" in await person.ask(KernelStatus()):
            await trio.lowlevel.checkpoint()
    while page := (await person.ask(AuditTail(after=rows[-1]["seq"] if rows else 0)))["rows"]:
        rows.extend(page)
    [recovered] = [row for row in rows if row["event"] == "store.recovered"]
    assert (recovered["code"], recovered["count"]) == ("store_full", pytest.approx(FRAMES / 2, abs=FRAMES / 2 - 1))
    assert person.calls[running]["status"] == "running"


@pytest.mark.clause("12")
async def test_a_backup_onto_a_full_disk_fails_alone(kernel: KernelUnderTest, tmp_path: Path, nursery: trio.Nursery) -> None:
    """The kernel's own disk has room: it takes commands as before."""
    person = await kernel.first_view(nursery)
    with small_disk(tmp_path / "other", size_kib=64) as other:
        await person.ask(BackupMake(path=str(other / "backup")))
        made = await person.until(lambda: person.of_type("backup.made"))
        assert (made[0]["accepted"], made[0]["code"]) == (False, "store_full")
        assert list(other.iterdir()) == []
    assert (await person.ask(MessageSend(text="still here")))["message_id"]


@pytest.mark.clause("12")
async def test_what_reads_a_copy_or_writes_a_home_says_when_that_disk_is_full(
    kernel: KernelUnderTest, tmp_path: Path, nursery: trio.Nursery
) -> None:
    """The kernel's own program, for a home nobody runs: a code and a hint, no traceback."""
    person = await kernel.first_view(nursery)
    await person.ask(BackupMake(path=str(tmp_path / "backup")))
    assert (await person.until(lambda: person.of_type("backup.made")))[0]["accepted"]
    await kernel.kill_all()
    size_kib = (tmp_path / "backup" / "kernel.db").stat().st_size // 1024
    with small_disk(tmp_path / "other", size_kib=size_kib + 64) as other:
        shutil.copytree(tmp_path / "backup", other / "backup")
        home = ("--home", str(other / "backup"))
        for said in (offline("audit", "verify", *home), offline("audit", "export", *home), offline("restore", *home, "--from", home[1])):
            assert (said[0], said[1]["code"]) == (1, "store_full")
            assert "free some space" in said[1]["hint"]
    with small_disk(tmp_path / "small", size_kib=size_kib // 2) as small:
        code, said = offline("restore", "--home", str(small / "home"), "--from", str(tmp_path / "backup"))
        assert (code, said["code"]) == (1, "store_full")
        fill(small)
        code, said = offline("restore", "--home", str(small / "new"), "--from", str(tmp_path / "backup"))
        assert (code, said["code"]) == (1, "store_full")
