"""Opening kernel.db: the checks before, the set-up in its one safe order, the checks after (SPEC 12).

Rules:
1. Refuse rather than repair: a foreign, newer, locked or corrupt database is left as it was found, with a code and a hint, and a
   missing one beside a kept audit head is never replaced by an empty one.
2. The order of `_set_up` is what a power cut cannot hurt: written any other way, the journal of the set-up can come back and
   empty the database. A new database is made whole under another name first, so that a half-made one never has this one.
3. After opening, the checksums are proved to be on: one flipped bit in the header would turn them off in silence.
4. Files are looked at before the connection opens, never while it is open (POSIX locks).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import apsw

from kernel import migrations
from kernel.audit import HEAD_NAME
from kernel.database import CHECKSUM_VFS, code_of, load_checksums
from kernel.wal import WalFacts, read_wal
from lineup_sdk.protocol.codes import Code

RESTORE_MARK = "restore.mark"  # beside the database: a restore put it there, or is about to
CHECKSUM_BYTES = 8  # reserved at the end of every page
STATEMENT_CACHE = 256  # above the number of statements there are
QUICK_CHECK_MAX_PAGES = 2048  # 8 MiB: a bigger file is checked page by page as it is read
_HEADER_BYTES = 100
_MAGIC = b"SQLite format 3\x00"


class StoreRefused(Exception):
    """The database may not be used. code: store_foreign, store_newer, store_locked, store_corrupt, store_full or unknown (I/O)."""

    def __init__(self, code: Code, hint: str) -> None:
        super().__init__(f"{code}: {hint}")
        self.code = code
        self.hint = hint


_HINTS = {
    Code.STORE_CORRUPT: "the database fails its checks; keep a copy of the folder and restore a backup",
    Code.STORE_FOREIGN: "the database belongs to another program or user; choose another LINEUP_HOME or take the file away",
    Code.STORE_FULL: "the disk is full; free some space and start again",
    Code.STORE_LOCKED: "another kernel has this LINEUP_HOME open; stop it with `lineup stop`, or attach to it",
    Code.STORE_NEWER: "the database was written by a newer version; install that version, or choose another LINEUP_HOME",
    Code.UNKNOWN: "the storage failed; look at the disk and start again",
}
_MISSING_HINT = "kernel.db is gone but audit.head or restore.mark is there; restore a backup, or take both away to begin anew"


def refusal(code: Code) -> StoreRefused:
    """A refusal with the hint of its code."""
    return StoreRefused(code, _HINTS[code])


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What was seen of the files before the connection opened."""

    is_new: bool
    wal: WalFacts
    may_fold: bool = True  # there is room to move the log into the main file


@dataclass(frozen=True, slots=True)
class Opened:
    """A connection that passed every check. is_torn: the last transaction in the log was not whole (or it is rotten)."""

    connection: apsw.Connection
    is_torn: bool


def open_connection(path: Path) -> Opened:
    """Open, or make, the database. Raises: StoreRefused."""
    facts = _look(path)
    if facts.is_new:
        _create(path)
    return connect(str(path), FileFacts(is_new=False, wal=facts.wal), sync_folder=lambda: _sync_folder(path.parent))


def open_again(path: Path) -> Opened:
    """Open a database that this process has just closed because the disk is full: its log stays as it is. Raises: StoreRefused."""
    facts = replace(_look(path), may_fold=False)
    if facts.is_new:
        raise refusal(Code.STORE_CORRUPT)
    return connect(str(path), facts, sync_folder=lambda: _sync_folder(path.parent))


def _create(path: Path) -> None:
    making = path.with_name(path.name + ".new")
    try:
        for left_over in (making, making.with_name(making.name + "-wal"), making.with_name(making.name + "-journal")):
            left_over.unlink(missing_ok=True)
        os.close(os.open(making, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        new = FileFacts(is_new=True, wal=WalFacts())
        connect(str(making), new, sync_folder=lambda: _sync_folder(path.parent)).connection.close()
        making.rename(path)
        _sync_folder(path.parent)
    except apsw.Error as error:  # of the closing: what was set up is not durable, and the next start makes it anew
        raise refusal(code_of(error)) from error
    except OSError as error:
        raise _refusal_of(error) from error


def _refusal_of(error: OSError) -> StoreRefused:
    return refusal(Code.STORE_FULL if error.errno in {errno.ENOSPC, errno.EDQUOT} else Code.UNKNOWN)


def connect(name: str, facts: FileFacts, *, sync_folder: Callable[[], None]) -> Opened:
    """Open a database by the name its VFS knows, set it up and check it. Raises: StoreRefused."""
    load_checksums()
    connection = None
    try:
        connection = apsw.Connection(name, vfs=CHECKSUM_VFS, statementcachesize=STATEMENT_CACHE)
        frames = _set_up(connection, facts, sync_folder)
        _require_sound(connection)
    except BaseException as error:
        if connection is not None:
            connection.close(True)
        if isinstance(error, apsw.Error):
            raise refusal(code_of(error)) from error
        if isinstance(error, OSError):  # of the sync of the folder
            raise _refusal_of(error) from error
        raise
    return Opened(connection, is_torn=facts.wal.is_torn(frames))


def _set_up(connection: apsw.Connection, facts: FileFacts, sync_folder: Callable[[], None]) -> int:
    """The safe order (rule 2). Returns how many frames of the log were replayed."""
    if facts.is_new:
        connection.reserve_bytes("main", CHECKSUM_BYTES)  # before the first page is written
    else:
        # The log is evidence: giving up must not fold it into the database or delete it.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.pragma("locking_mode", "exclusive")
    connection.pragma("synchronous", "extra")
    connection.pragma("journal_mode", "wal")  # a second kernel is refused here
    frames = _replayed_frames(connection)
    if facts.wal.has_lost(frames):
        raise refusal(Code.STORE_CORRUPT)
    if not facts.is_new:
        _require_version(connection)
    migrations.migrate(connection)
    sync_folder()
    connection.pragma("synchronous", "full")
    connection.wal_autocheckpoint(0)  # checkpoints are explicit, so that their errors are not taken for a commit's
    connection.pragma("temp_store", "memory")
    connection.pragma("cache_size", -16 * 1024)  # KiB: the working set of the open things, many times over
    # Plans do not look at bound values: otherwise every read through a partial index is compiled again (38 us instead of 2).
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    # What was replayed was perhaps never synced; the main file is, and a missing log later is then no empty database.
    if facts.may_fold:
        connection.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_TRUNCATE)
    return frames


def _replayed_frames(connection: apsw.Connection) -> int:
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # the first read is what replays
    frames, _ = connection.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_NOOP)
    return frames


def _require_version(connection: apsw.Connection) -> None:
    if int(connection.pragma("application_id")) != migrations.APPLICATION_ID:
        raise refusal(Code.STORE_FOREIGN)
    if migrations.user_version(connection) > migrations.latest_version():
        raise refusal(Code.STORE_NEWER)


def _require_sound(connection: apsw.Connection) -> None:
    is_checked = (
        connection.reserve_bytes("main", -1) == CHECKSUM_BYTES
        and connection.open_vfs == CHECKSUM_VFS
        and int(connection.pragma("checksum_verification")) == 1
    )
    if not is_checked:
        raise refusal(Code.STORE_CORRUPT)
    if int(connection.pragma("page_count")) <= QUICK_CHECK_MAX_PAGES and connection.execute("PRAGMA quick_check(1)").get != "ok":
        raise refusal(Code.STORE_CORRUPT)


# --------------------------------------------------------------------------------- the files, before


def _look(path: Path) -> FileFacts:
    header = _read_own(path, _HEADER_BYTES)
    wal = _read_own_wal(path.with_name(path.name + "-wal"))
    has_head = path.with_name(HEAD_NAME).exists() or path.with_name(RESTORE_MARK).exists()
    if not header:
        if has_head or wal.last_frame or wal.is_header_rotten:
            raise StoreRefused(Code.STORE_CORRUPT, _MISSING_HINT)
        return FileFacts(is_new=True, wal=wal)
    if not _is_ours(header):
        raise refusal(Code.STORE_CORRUPT if has_head else Code.STORE_FOREIGN)
    if header[20] != CHECKSUM_BYTES:
        raise refusal(Code.STORE_CORRUPT)
    return FileFacts(is_new=False, wal=wal)


def _is_ours(header: bytes) -> bool:
    return header.startswith(_MAGIC) and header[68:72] == migrations.APPLICATION_ID.to_bytes(4, "big")


def _open_own(path: Path) -> int | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:  # a symbolic link, or a file we may not read
        raise refusal(Code.STORE_FOREIGN) from error
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        os.close(fd)
        raise refusal(Code.STORE_FOREIGN)
    return fd


def _read_own(path: Path, size_bytes: int) -> bytes:
    fd = _open_own(path)
    if fd is None:
        return b""
    with os.fdopen(fd, "rb") as file:
        return file.read(size_bytes)


def _read_own_wal(path: Path) -> WalFacts:
    fd = _open_own(path)
    if fd is None:
        return WalFacts()
    with os.fdopen(fd, "rb") as file:
        return read_wal(file, os.fstat(fd).st_size)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
