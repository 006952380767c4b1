"""The chain, its kept head, and reading both offline."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from itertools import count
from pathlib import Path

import apsw
import pytest

from kernel import audit
from kernel.audit import HEAD_NAME, NOTE, AuditReport, AuditRow, AuditUnreadable, Head, HeadFile, check_chain, read_audit, read_head, verify
from lineup_sdk.protocol.codes import Code
from tests.store.world import World, flip_bit, open_raw

Spoil = Callable[[apsw.Connection], object]


def spoiled(world: World, spoil: Spoil) -> AuditReport:
    """The report after somebody with write access to the closed database did that."""
    world.count(6)
    world.close()
    raw = open_raw(world.path)
    spoil(raw)
    raw.close()
    return verify(world.path)


def test_a_sound_chain_is_ok_and_says_what_it_cannot_prove(world: World) -> None:
    report = spoiled(world, lambda raw: None)
    assert (report.ok, report.rows, report.problems) == (True, 7, [])
    assert report.head == report.head_file == read_head(world.folder)
    assert report.as_json()["note"] == NOTE


@pytest.mark.clause("17")
@pytest.mark.invariant("55")
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        pytest.param("UPDATE audit SET event = 'call.completed' WHERE seq = 3", "row 3 was changed", id="event"),
        pytest.param("UPDATE audit SET at = at + 1 WHERE seq = 3", "row 3 was changed", id="time"),
        pytest.param("UPDATE audit SET code = 'expired' WHERE seq = 7", "row 7 was changed", id="code of the newest"),
        pytest.param("UPDATE audit SET number = NULL WHERE seq = 3", "row 3 was changed", id="field emptied"),
        pytest.param("DELETE FROM audit WHERE seq = 3", "row 4 follows row 2", id="deleted"),
        pytest.param("DELETE FROM audit WHERE seq = 1", "row 2 follows row 0", id="first deleted"),
        pytest.param(
            "UPDATE audit SET seq = 99 WHERE seq = 3; UPDATE audit SET seq = 3 WHERE seq = 4; UPDATE audit SET seq = 4 WHERE seq = 99",
            "row 3 does not hold",
            id="swapped",
        ),
        pytest.param("DELETE FROM audit WHERE seq > 4", "the kept head is row 7", id="cut off"),
        pytest.param("DELETE FROM audit", "the kept head is row 7", id="emptied"),
    ],
)
def test_every_change_of_the_chain_is_told(world: World, spoil: str, said: str) -> None:
    report = spoiled(world, lambda raw: raw.execute(spoil))
    assert not report.ok
    assert any(said in problem for problem in report.problems), report.problems


def _rewritten(raw: apsw.Connection) -> None:
    """The whole chain anew, with one event changed and every hash right."""
    previous = audit.FIRST_HASH
    for stored in raw.execute("SELECT * FROM audit ORDER BY seq").fetchall():
        row = AuditRow(*stored)
        row = replace(row, event="call.completed" if row.seq == 3 else row.event)
        digest = audit.hash_row(previous, row.hashed())
        raw.execute("UPDATE audit SET event = ?, previous_hash = ?, hash = ? WHERE seq = ?", (row.event, previous, digest, row.seq))
        previous = digest


@pytest.mark.clause("17")
def test_a_chain_rewritten_with_right_hashes_does_not_fit_the_kept_head(world: World) -> None:
    report = spoiled(world, _rewritten)
    assert report.problems == ["the kept head has another hash for row 7: the chain was rewritten"]


@pytest.mark.clause("17")
def test_a_head_that_lags_is_fine_and_a_lost_or_damaged_one_is_told(world: World) -> None:
    world.count(3)
    older = (world.folder / HEAD_NAME).read_bytes()
    world.count(3)
    world.close()
    (world.folder / HEAD_NAME).write_bytes(older)
    assert verify(world.path).ok
    flip_bit(world.folder / HEAD_NAME, 3)
    assert "no head" in verify(world.path).problems[0]
    (world.folder / HEAD_NAME).unlink()
    assert "no head" in verify(world.path).problems[0]


def test_a_head_file_keeps_the_last_head_written(tmp_path: Path) -> None:
    file = HeadFile(tmp_path)
    assert read_head(tmp_path) is None
    for head in (Head(1, b"a" * 32), Head(10**12, b"b" * 32), Head(2, b"c" * 32)):
        file.write(head)
        assert read_head(tmp_path) == head
    file.close()
    file.close()  # once more is harmless


def test_a_symbolic_link_is_no_head_file(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"")
    (tmp_path / HEAD_NAME).symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="symbolic"):
        HeadFile(tmp_path)


@pytest.mark.clause("17")
def test_exported_rows_are_plain_json_without_absent_fields(world: World) -> None:
    world.count(1)
    world.close()
    first, second = (row.as_json() for row in read_audit(world.path))
    assert first["event"] == "store.created"
    assert second == {
        "seq": 2,
        "at": "2026-11-30T12:00:00.124456Z",
        "speaker": "agent",
        "command": "test.turn",
        "event": "message.stored",
        "number": 1,
        "previous_hash": first["hash"],
        "hash": second["hash"],
    }


@pytest.mark.clause("17")
def test_a_database_in_use_is_verified_from_a_copy_and_stays_locked(world: World) -> None:
    """The reader is another process, as it is for the offline command: inside the kernel's own it would drop its locks."""
    script = "import sys\nfrom pathlib import Path\nfrom kernel.audit import verify\nprint(verify(Path(sys.argv[1])).as_json()['rows'])\n"
    for turns in (5, 150):
        world.count(turns)
        if world.store.is_checkpoint_due:
            world.store.checkpoint()
        done = subprocess.run([sys.executable, "-c", script, str(world.path)], capture_output=True, text=True, timeout=30, check=True)
        assert int(done.stdout) == world.store.last_audit_seq
    world.count(1)


def test_an_audit_that_is_not_there_or_not_ours_or_rotten_has_its_code(world: World) -> None:
    with pytest.raises(AuditUnreadable) as missing:
        verify(world.path)
    assert missing.value.code is Code.STORE_FOREIGN
    foreign = apsw.Connection(str(world.folder / "foreign.db"), vfs="cksmvfs")
    foreign.execute("CREATE TABLE t (a)")
    foreign.close()
    with pytest.raises(AuditUnreadable) as other:
        list(read_audit(world.folder / "foreign.db"))
    assert other.value.code is Code.STORE_FOREIGN
    world.count(200)
    world.close()
    size = world.path.stat().st_size
    for offset in range(4096 + 60, size, 4096):
        flip_bit(world.path, offset)
    with pytest.raises(AuditUnreadable) as rotten:
        verify(world.path)
    assert rotten.value.code is Code.STORE_CORRUPT


def test_a_copy_that_never_comes_to_rest_is_locked(world: World) -> None:
    world.count(1)
    world.close()
    rounds = count()
    with pytest.raises(AuditUnreadable) as busy:
        audit._copy(world.path, world.folder / "copy", read_log=lambda log: next(rounds).to_bytes(32, "big"))
    assert busy.value.code is Code.STORE_LOCKED
    assert next(rounds) == 2 * audit._COPY_ATTEMPTS


def test_an_empty_chain_without_a_head_is_ok() -> None:
    assert check_chain([], None).ok
    assert not check_chain([], Head(1, bytes(32))).ok


@pytest.mark.clause("17")
def test_the_hash_covers_every_field() -> None:
    row = AuditRow(1, 2, "agent", "v", "c", 0, "e", 3, "i", "x", 4, audit.FIRST_HASH, b"")
    others = [replace(row, **{one.name: b"\1" * 32 if one.name == "previous_hash" else None}) for one in fields(row) if one.name != "hash"]
    hashes = {audit.hash_row(one.previous_hash, one.hashed()) for one in [row, *others]}
    assert len(hashes) == len(others) + 1 == len(fields(row))
