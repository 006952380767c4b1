"""Opening: the set-up's effects, and every refusal."""

from __future__ import annotations

import ctypes
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import apsw
import pytest

from kernel.audit import HEAD_NAME
from kernel.core.decision import KernelBug
from kernel.database import StorageFailed
from kernel.home import Home
from kernel.migrations import APPLICATION_ID
from kernel.store_open import QUICK_CHECK_MAX_PAGES, StoreRefused, open_connection
from kernel.store_start import forget_restore
from lineup_sdk.protocol.codes import Code
from tests.descriptors import open_descriptors
from tests.store.world import World, flip_bit, message, open_raw


def refusal_of(world: World) -> StoreRefused:
    with pytest.raises(StoreRefused) as refused:
        _ = world.store
    return refused.value


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[apsw.Connection]:
    opened = open_connection(tmp_path / "kernel.db").connection
    yield opened
    opened.close()


@pytest.mark.clause("12")
def test_set_up_leaves_checksums_exclusive_lock_full_sync_and_no_automatic_checkpoint(connection: apsw.Connection) -> None:
    pragmas = {name: connection.pragma(name) for name in ("locking_mode", "synchronous", "journal_mode", "wal_autocheckpoint")}
    assert pragmas == {"locking_mode": "exclusive", "synchronous": 2, "journal_mode": "wal", "wal_autocheckpoint": 0}
    assert connection.reserve_bytes("main", -1) == 8
    assert connection.open_vfs == "cksmvfs"
    assert int(connection.pragma("checksum_verification")) == 1
    assert (connection.pragma("application_id"), connection.pragma("user_version")) == (APPLICATION_ID, 1)


@pytest.mark.clause("12")
def test_the_file_layer_says_that_a_write_harms_no_byte_beside_it(connection: apsw.Connection) -> None:
    """kernel/wal.py counts on it."""
    answer = ctypes.c_int(-1)
    assert connection.file_control("main", apsw.SQLITE_FCNTL_POWERSAFE_OVERWRITE, ctypes.addressof(answer))
    assert answer.value == 1


def test_a_new_home_holds_three_private_files_and_no_leftover(world: World) -> None:
    world.count(1)
    assert {path.name: path.stat().st_mode & 0o777 for path in world.folder.iterdir()} == {
        "kernel.db": 0o600,
        "kernel.db-wal": 0o600,
        HEAD_NAME: 0o600,
    }


def test_a_making_that_was_cut_off_is_begun_anew(world: World) -> None:
    (world.folder / "kernel.db.new").write_bytes(b"half")
    (world.folder / "kernel.db.new-journal").write_bytes(b"half")
    assert world.store.is_first_start
    assert not (world.folder / "kernel.db.new").exists()


@pytest.mark.clause("12")
def test_everything_committed_is_there_after_an_untidy_end(world: World) -> None:
    world.count(25)
    world.crash()
    assert [entry.number for entry, _ in world.store.view.messages(limit=100)] == list(range(1, 26))
    assert world.store.next_number == 26


@pytest.mark.clause("12")
@pytest.mark.parametrize("content", [b"not a database at all", b"SQLite format 3\x00" + bytes(4096)])
def test_a_file_of_something_else_is_foreign_and_left_alone(world: World, content: bytes) -> None:
    world.path.write_bytes(content)
    assert refusal_of(world).code is Code.STORE_FOREIGN
    assert world.path.read_bytes() == content
    assert [path.name for path in world.folder.iterdir()] == ["kernel.db"]


@pytest.mark.clause("12")
def test_a_database_of_another_program_is_foreign_and_left_alone(world: World) -> None:
    other = apsw.Connection(str(world.path), vfs="unix")
    other.execute("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    other.close()
    before = world.path.read_bytes()
    refused = refusal_of(world)
    assert refused.code is Code.STORE_FOREIGN
    assert "LINEUP_HOME" in refused.hint
    assert world.path.read_bytes() == before


@pytest.mark.clause("12")
@pytest.mark.parametrize("name", ["kernel.db", "kernel.db-wal"])
def test_a_symbolic_link_in_place_of_a_file_is_foreign(world: World, name: str) -> None:
    elsewhere = world.folder / "elsewhere"
    elsewhere.write_bytes(b"")
    (world.folder / name).symlink_to(elsewhere)
    assert refusal_of(world).code is Code.STORE_FOREIGN


@pytest.mark.clause("12")
def test_a_fifo_in_place_of_the_file_is_foreign_and_does_not_block(world: World) -> None:
    os.mkfifo(world.path)
    assert refusal_of(world).code is Code.STORE_FOREIGN


@pytest.mark.clause("12")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_database_of_another_user_is_foreign(world: World) -> None:
    world.count(1)
    world.close()
    os.chown(world.path, 65534, 65534)
    assert refusal_of(world).code is Code.STORE_FOREIGN


@pytest.mark.clause("12")
def test_a_database_of_a_newer_version_is_refused(world: World) -> None:
    world.count(1)
    world.close()
    raw = open_raw(world.path)
    raw.pragma("user_version", 2)
    raw.close()
    assert refusal_of(world).code is Code.STORE_NEWER


@pytest.mark.clause("12")
def test_a_second_kernel_is_refused_and_the_first_goes_on(world: World) -> None:
    world.count(1)
    script = (
        "import sys\nfrom pathlib import Path\nfrom kernel.store_open import QUICK_CHECK_MAX_PAGES, StoreRefused, open_connection\n"
        "try:\n    open_connection(Path(sys.argv[1]))\nexcept StoreRefused as refused:\n    print(refused.code, refused.hint)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(world.path)], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.startswith("store_locked ")
    world.count(1)
    assert len(world.reopen().view.messages()) == 2


@pytest.mark.clause("12")
def test_a_database_that_is_gone_while_its_head_is_kept_is_never_replaced_by_an_empty_one(world: World) -> None:
    world.count(1)
    world.close()
    world.path.unlink()
    refused = refusal_of(world)
    assert refused.code is Code.STORE_CORRUPT
    assert HEAD_NAME in refused.hint
    assert not world.path.exists()


@pytest.mark.clause("12")
@pytest.mark.invariant("60")
def test_every_flipped_bit_in_the_main_file_is_found(world: World) -> None:
    world.count(40)
    world.close()
    sound = world.path.read_bytes()
    chance = random.Random(8)
    # Every bit of the header that says how the file is read, then bits anywhere.
    offsets = [*range(100), *(chance.randrange(len(sound)) for _ in range(150))]
    for offset in offsets:
        flip_bit(world.path, offset, chance.randrange(8))
        assert refusal_of(world).code is Code.STORE_CORRUPT, offset
        world.path.write_bytes(sound)
    assert len(world.store.view.messages(limit=100)) == 40


@pytest.mark.clause("12")
def test_a_rotten_page_of_a_big_file_is_found_when_it_is_read_and_closes_the_store(world: World) -> None:
    for number in range(1, 12):
        world.turn(message(number, body_cbor=bytes(1024 * 1024)), numbers=1)
    world.close()
    assert world.path.stat().st_size > QUICK_CHECK_MAX_PAGES * 4096
    flip_bit(world.path, world.path.stat().st_size - 1024 * 1024)
    store = world.store
    with pytest.raises(StorageFailed) as failure:
        store.view.messages()
    assert failure.value.code is Code.STORE_CORRUPT
    with pytest.raises(StorageFailed):
        _ = store.view


def _code_of_opening(world: World) -> Code | None:
    try:
        _ = world.store
    except StoreRefused as refused:
        return refused.code
    return None


@pytest.mark.clause("12")
def test_every_flip_that_would_drop_acknowledged_commits_from_the_log_is_refused(world: World) -> None:
    world.count(60)
    world.crash()
    sound = {path: path.read_bytes() for path in world.folder.iterdir()}
    log = sound[world.wal_path]
    chance = random.Random(5)
    refused = 0
    for offset in [*range(32), *(chance.randrange(32, len(log)) for _ in range(150))]:
        flip_bit(world.wal_path, offset, chance.randrange(8))
        code = _code_of_opening(world)
        if code is None:
            assert [entry.number for entry, _ in world.store.view.messages(limit=100)] == list(range(1, 61)), offset
            assert not world.store.is_restored
            world.crash()
        else:
            assert code is Code.STORE_CORRUPT
            refused += 1
        for path, data in sound.items():
            path.write_bytes(data)
    assert refused > 150  # nearly every bit of a log matters
    assert len(world.store.view.messages(limit=100)) == 60


@pytest.mark.clause("12")
def test_a_refused_log_is_left_as_evidence(world: World) -> None:
    world.count(30)
    world.crash()
    flip_bit(world.wal_path, 32 + 24 + 100)
    before = {path: path.read_bytes() for path in world.folder.iterdir()}
    assert refusal_of(world).code is Code.STORE_CORRUPT
    assert {path: path.read_bytes() for path in world.folder.iterdir()} == before


@pytest.mark.clause("12")
def test_a_torn_tail_that_nobody_was_told_of_is_no_corruption(world: World) -> None:
    world.count(10)
    head = (world.folder / HEAD_NAME).read_bytes()
    world.count(1)  # as if this one had been cut off between its frames and its head
    world.crash()
    (world.folder / HEAD_NAME).write_bytes(head)
    with world.wal_path.open("r+b") as log:
        log.truncate(world.wal_path.stat().st_size - 10)
    assert len(world.store.view.messages()) == 10
    assert not world.store.is_restored


@pytest.mark.clause("4.6")
def test_a_database_older_than_its_kept_head_begins_a_new_epoch(world: World) -> None:
    world.count(3)
    world.close()
    backup = world.path.read_bytes()
    assert world.store.view.epoch == "e1"
    world.turn(world.publish())
    assert world.store.view.inventory.revision == "e1.1"
    world.count(3)
    world.close()
    world.path.write_bytes(backup)
    assert world.store.is_restored
    assert world.store.view.epoch == "e2"
    assert world.store.view.conversation_id == "conversation_e1_00"
    assert world.store.view.upkeep.audit_after(after=None, limit=1)[0]["event"] == "store.restored"
    assert world.store.view.inventory.epoch == "e2"
    forget_restore(world.folder)
    assert not world.reopen().is_restored


def test_a_damaged_head_is_audited_and_written_anew(world: World) -> None:
    world.count(3)
    world.close()
    flip_bit(world.folder / HEAD_NAME, 30)
    assert [row["event"] for row in world.store.view.upkeep.audit_after(after=None, limit=1)] == ["audit.head_damaged"]
    world.close()
    assert world.reopen().view.upkeep.audit_after(after=None, limit=1)[0]["event"] == "audit.head_damaged"  # once, not again


def test_the_epoch_and_the_conversation_are_made_once(world: World) -> None:
    first = (world.store.view.epoch, world.store.view.conversation_id, world.store.is_first_start)
    second_store = world.reopen()
    assert first == ("e1", "conversation_e1_00", True)
    assert (second_store.view.epoch, second_store.view.conversation_id, second_store.is_first_start) == (
        "e1",
        "conversation_e1_00",
        False,
    )


def descriptors() -> int:
    return len(open_descriptors())


def _no_epoch() -> str:
    return cast("str", None)


@pytest.mark.clause("12")
@pytest.mark.parametrize(
    ("spoil", "raised"),
    [
        (lambda world: setattr(world, "make_epoch", _no_epoch), KernelBug),  # the first write fails, after everything is open
        (lambda world: (world.folder / HEAD_NAME).symlink_to("nowhere"), StoreRefused),
        (lambda world: (world.folder / HEAD_NAME).mkdir(), StoreRefused),
        (lambda world: world.path.write_bytes(b"x" * 200), StoreRefused),
    ],
    ids=["first write", "head is a link", "head is a folder", "foreign"],
)
def test_a_start_that_fails_leaves_no_descriptor_open(world: World, spoil: Callable[[World], None], raised: type[Exception]) -> None:
    other = World(world.folder / "other")  # what opens once a process, such as the checksum layer, is open before the count
    other.folder.mkdir()
    other.count(1)
    other.close()
    spoil(world)
    before = descriptors()
    for _ in range(3):
        with pytest.raises(raised):
            _ = world.store
    assert descriptors() == before


@pytest.mark.clause("2.9")
def test_a_home_that_is_locked_leaves_no_descriptor_open(tmp_path: Path) -> None:
    held = Home(tmp_path / "home")
    before = descriptors()
    for _ in range(3):
        with pytest.raises(StoreRefused):
            Home(tmp_path / "home")
    assert descriptors() == before
    held.close()


@pytest.mark.clause("2.9")
@pytest.mark.parametrize("spoiled", [b"", b"{}", b'"abc"', b"[1]", b"[" * 100_000, b"\xff\xfe", None], ids=str)
def test_a_list_of_app_folders_that_cannot_be_read_is_refused_and_written_anew(tmp_path: Path, spoiled: bytes | None) -> None:
    home = Home(tmp_path / "home")
    path = home.folder / "app-folders.json"
    path.mkdir() if spoiled is None else path.write_bytes(spoiled)
    with pytest.raises(StoreRefused, match=Code.STORE_CORRUPT):
        home.app_folders([])
    if spoiled is None:
        with pytest.raises(StoreRefused, match=Code.STORE_FOREIGN):
            home.app_folders([tmp_path])
    else:
        assert home.app_folders([tmp_path]) == home.app_folders([]) == [tmp_path]
    home.close()
