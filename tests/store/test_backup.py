"""A backup of a store that is written to, and what a restore makes of a home."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from kernel import audit, backup
from kernel.backup import BackupFailed
from kernel.home import Home, StoreRefused
from kernel.store_start import forget_restore, mark_restore
from lineup_sdk.protocol.codes import Code
from tests.store.world import World, flip_bit

ARTIFACT = "a" * 64


async def made_backup(world: World, target: Path) -> None:
    artifacts = world.folder / "artifacts"
    artifacts.mkdir(exist_ok=True)
    (artifacts / ARTIFACT).write_bytes(b"bytes of an artifact")
    await backup.make(world.store, artifacts, target)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def busy(home: Path) -> World:
    world = World(home)
    world.count(40)
    return world


@pytest.mark.clause("12")
async def test_a_backup_of_a_store_that_is_written_to_is_one_whole_state(busy: World, home: Path, tmp_path: Path) -> None:
    """Pages are copied one at a time, so that many turns fall between its steps."""
    target = tmp_path / "backup"
    turns = 0
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:

            async def write() -> None:
                nonlocal turns
                while True:
                    busy.count(1)
                    turns += 1
                    await trio.lowlevel.checkpoint()

            nursery.start_soon(write)
            await made_backup(busy, target)
            nursery.cancel_scope.cancel()
    busy.close()
    report = audit.verify(target / "kernel.db")
    assert report.ok
    facts = json.loads((target / "backup.json").read_text())
    assert facts["head"] == report.as_json()["head"]
    assert (target / "artifacts" / ARTIFACT).read_bytes() == b"bytes of an artifact"

    backup.restore(home, target)
    restored = World(home)
    numbers = [entry.number for entry, _ in restored.store.view.messages(limit=10_000)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert 40 <= len(numbers) <= 40 + turns
    assert restored.store.next_number == len(numbers) + 1
    restored.close()


@pytest.mark.clause("4.6")
async def test_a_restored_store_has_a_new_epoch_and_counts_as_restored_until_its_first_turn(
    busy: World, home: Path, tmp_path: Path
) -> None:
    epoch, conversation = busy.store.view.epoch, busy.store.view.conversation_id
    await made_backup(busy, tmp_path / "backup")
    busy.count(5)
    busy.close()
    answer = backup.restore(home, tmp_path / "backup")
    assert answer["epoch"] == epoch
    assert (home / answer["replaced"] / "kernel.db").exists()
    assert (home / answer["replaced"] / "audit.head").exists()

    restored = World(home)
    restored.make_epoch = iter(["e2", "e3"]).__next__
    assert restored.store.is_restored
    assert (epoch, restored.store.view.epoch) == ("e1", "e2")
    assert restored.store.view.conversation_id == conversation
    assert "store.restored" in [row["event"] for row in restored.store.view.upkeep.audit_after(after=None, limit=1)]
    restored.crash()  # before its first turn
    assert restored.store.is_restored
    assert restored.store.view.epoch == "e3"
    forget_restore(home)
    assert not restored.reopen().is_restored
    restored.close()
    assert audit.verify(home / "kernel.db").ok


@pytest.mark.clause("4.6")
def test_a_database_older_than_its_head_counts_as_restored_until_its_first_turn_too(busy: World, home: Path, tmp_path: Path) -> None:
    busy.close()
    shutil.copyfile(home / "kernel.db", tmp_path / "older.db")
    busy.count(3)
    busy.close()
    shutil.copyfile(tmp_path / "older.db", home / "kernel.db")
    assert busy.store.is_restored
    busy.crash()
    assert busy.store.is_restored
    forget_restore(home)
    busy.crash()
    assert not busy.store.is_restored
    busy.close()


def flip(folder: Path) -> None:
    flip_bit(folder / "kernel.db", 3 * 4096 + 2048)


def cut(folder: Path) -> None:
    data = (folder / "kernel.db").read_bytes()
    (folder / "kernel.db").write_bytes(data[: len(data) // 2])


def lose_the_facts(folder: Path) -> None:
    (folder / "backup.json").unlink()


def be_of_another_form(folder: Path) -> None:
    facts = json.loads((folder / "backup.json").read_text())
    (folder / "backup.json").write_text(json.dumps(facts | {"format": 2}))


def name_another_head(folder: Path) -> None:
    facts = json.loads((folder / "backup.json").read_text())
    facts["head"]["seq"] -= 1
    (folder / "backup.json").write_text(json.dumps(facts))


def be_no_facts(folder: Path) -> None:
    (folder / "backup.json").write_text("[]")


def lose_the_artifacts(folder: Path) -> None:
    shutil.rmtree(folder / "artifacts")


@pytest.mark.clause("12")
@pytest.mark.parametrize("damage", [flip, cut, lose_the_facts, be_of_another_form, name_another_head, be_no_facts, lose_the_artifacts])
async def test_a_backup_that_does_not_prove_itself_is_refused_and_the_home_stays_as_it_is(
    busy: World, home: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    await made_backup(busy, tmp_path / "backup")
    busy.close()
    damage(tmp_path / "backup")
    before = (home / "kernel.db").read_bytes()
    with pytest.raises((BackupFailed, StoreRefused), match=r"^store_corrupt"):
        backup.restore(home, tmp_path / "backup")
    assert (home / "kernel.db").read_bytes() == before
    again = World(home)
    assert not again.store.is_restored
    again.close()


@pytest.mark.clause("2.9")
async def test_a_home_that_a_kernel_holds_is_not_restored(busy: World, home: Path, tmp_path: Path) -> None:
    await made_backup(busy, tmp_path / "backup")
    held = Home(home)
    with pytest.raises(StoreRefused) as refused:
        backup.restore(home, tmp_path / "backup")
    assert refused.value.code is Code.STORE_LOCKED
    held.close()
    busy.close()


@pytest.mark.clause("12")
async def test_a_backup_is_not_written_over_anything(busy: World, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "other.partial").mkdir()
    (tmp_path / "link").symlink_to("nowhere")
    names = ("there", "other", "nowhere/backup", "link", "x" * 300, f"{'x' * 300}/backup", "there.partial/backup/backup")
    for target in (Path("/"), Path("/proc/backup"), *(tmp_path / name for name in names)):
        with pytest.raises(BackupFailed) as failed:
            await made_backup(busy, target)
        detail = failed.value.detail
        assert (failed.value.code, detail.pointer) == (Code.LIMIT_EXCEEDED, "/path"), target
        assert detail.expected == "a folder that is not there yet, in one that may be written"
        assert detail.hint
    assert os.listdir(tmp_path / "there") == []
    assert (tmp_path / "other.partial").exists()
    busy.count(1)
    busy.close()


@pytest.mark.clause("12")
async def test_a_backup_that_is_given_up_leaves_nothing_of_its_name(busy: World, tmp_path: Path) -> None:
    with trio.move_on_after(0):
        await made_backup(busy, tmp_path / "backup")
    assert os.listdir(tmp_path) == ["home"]
    busy.count(1)
    busy.close()


@pytest.mark.clause("12")
@pytest.mark.parametrize("moved", range(1, 5))
async def test_a_restore_that_was_cut_off_leaves_a_home_that_refuses_to_start_and_can_be_restored(
    busy: World, home: Path, tmp_path: Path, moved: int
) -> None:
    """After each of its steps: what is set aside goes in this order, the mark before the last."""
    await made_backup(busy, tmp_path / "backup")
    busy.crash()
    aside = home / "replaced-1"
    aside.mkdir()
    for name in backup._REPLACED[:moved]:
        if name == audit.HEAD_NAME:
            mark_restore(home)
        (home / name).rename(aside / name)
    with pytest.raises(StoreRefused) as refused:
        _ = World(home).store
    assert refused.value.code is Code.STORE_CORRUPT
    backup.restore(home, tmp_path / "backup")
    restored = World(home)
    assert restored.store.is_restored
    restored.close()
