"""Backup of a running kernel and restore of one that does not run (SPEC 4.6, 12).

A backup is a folder: kernel.db, audit.head, artifacts/, backup.json {format, epoch, made_at, head}. Rules:
1. The database is copied by SQLite itself, in steps between turns, through the checksum VFS: a whole state of one instant.
2. A backup gets its name when all of it is synced; a half-made one never has it.
3. Restore works on a home whose lock it holds, proves the backup's audit chain first, keeps what it replaces beside it, and leaves a
   mark: the next start makes a new epoch, so that no id is ever given twice. One that is cut off leaves a home that refuses to start
   (its audit head, or the mark, without a database) until it is done again; never one that starts empty or half.
4. What goes wrong with a backup ends the backup and nothing else: a broken source is met by the kernel's own turns soon enough.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import trio

from kernel import audit
from kernel.audit import HEAD_NAME
from kernel.core.decision import Detail
from kernel.database import CHECKSUM_VFS, StorageFailed, code_of, load_checksums
from kernel.home import Home
from kernel.store import Store
from kernel.store_open import open_connection
from kernel.store_start import mark_restore
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject

FORMAT = 1
STEP_PAGES = 64
_FACTS = "SELECT kernel.epoch, audit.seq, audit.hash FROM kernel, audit ORDER BY audit.seq DESC LIMIT 1"
# Moved aside in this order; the mark is set before the last of them goes (rule 3).
_REPLACED = ("kernel.db", "kernel.db-wal", "artifacts", HEAD_NAME)
_BROKEN_HINT = "the backup does not prove itself; take another one"
_WRITE_HINT = "the target cannot be written; look at its disk and rights"
_FULL = frozenset({errno.EDQUOT, errno.ENOSPC})
# What the place that was named is to blame for: it is taken, there is no such folder, its name is too long, it may not be written.
_OF_THE_PLACE = frozenset(
    {
        *(errno.EACCES, errno.EEXIST, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY),
        *(errno.EPERM, errno.EROFS),
    }
)


class BackupFailed(Exception):
    """It could not be made or restored. code and detail say why; nothing of the home was changed."""

    def __init__(self, code: Code, hint: str, *, pointer: str = "", expected: str | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.hint = hint
        self.detail = Detail(pointer=pointer, expected=expected, hint=hint)


async def make(store: Store, artifacts: Path, target: Path) -> JsonObject:
    """Write a backup of the open store into a new folder, while turns go on. Returns what backup.json says.

    Raises: BackupFailed (the target is there, or cannot be written; the source cannot be read).
    """
    partial = target.parent / (target.name + ".partial")
    await trio.to_thread.run_sync(_begin, target, partial)
    try:
        facts = await _copy_database(store, partial / "kernel.db")
        await trio.to_thread.run_sync(_finish, artifacts, partial, target, json.dumps(facts))
    except BaseException as error:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(shutil.rmtree, partial, True)
        if isinstance(error, OSError):
            raise _not_written(error) from error
        raise
    return facts


def _misplaced(hint: str) -> BackupFailed:
    return BackupFailed(Code.LIMIT_EXCEEDED, hint, pointer="/path", expected="a folder that is not there yet, in one that may be written")


def _not_written(error: OSError) -> BackupFailed:
    if error.errno in _OF_THE_PLACE:
        return _misplaced(f"the target cannot be written ({os.strerror(error.errno or 0)})")
    return BackupFailed(Code.STORE_FULL if error.errno in _FULL else Code.UNKNOWN, _WRITE_HINT)


def _begin(target: Path, partial: Path) -> None:
    try:
        if os.path.lexists(target):
            raise _misplaced("something of that name is there, and left as it is")
        partial.mkdir(mode=0o700)  # one that is there may be another backup on its way: it is left alone
    except FileExistsError as error:
        raise _misplaced(
            "a folder of that name and .partial is there: another backup is under way, or was cut off; take it away"
        ) from error
    except OSError as error:
        raise _not_written(error) from error


def _finish(artifacts: Path, partial: Path, target: Path, facts: str) -> None:
    _copy_artifacts(artifacts, partial)
    (partial / "backup.json").write_text(facts)
    _sync_tree(partial)
    partial.rename(target)
    _sync(target.parent)


async def _copy_database(store: Store, path: Path) -> JsonObject:
    load_checksums()
    try:
        copy = apsw.Connection(str(path), vfs=CHECKSUM_VFS)
    except apsw.Error as error:
        raise BackupFailed(code_of(error), _WRITE_HINT) from error
    try:
        copy.pragma("synchronous", "off")  # the whole folder is synced at the end, away from the event loop
        with closing(store.backup_steps(copy, STEP_PAGES)) as steps:
            for _ in steps:
                await trio.lowlevel.checkpoint()  # turns go on between two steps
        facts: Any = copy.execute(_FACTS).fetchall()[0]
    except (apsw.Error, StorageFailed) as error:  # of either end
        raise BackupFailed(error.code if isinstance(error, StorageFailed) else code_of(error), _WRITE_HINT) from error
    finally:
        copy.close(True)
    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    epoch, seq, digest = facts
    with closing(audit.HeadFile(path.parent)) as head_file:
        head_file.write(audit.Head(seq, digest))
    return {"format": FORMAT, "epoch": epoch, "made_at": made_at, "head": {"seq": seq, "hash": digest.hex()}}


def _copy_artifacts(artifacts: Path, partial: Path) -> None:
    """Bytes are never changed once they have their name, so a copy of more than the database knows does no harm."""
    (partial / "artifacts").mkdir(mode=0o700)
    for file in artifacts.iterdir() if artifacts.is_dir() else ():
        if file.is_file() and not file.is_symlink():
            with suppress(FileNotFoundError):  # dropped meanwhile: a start finds and tells it
                shutil.copyfile(file, partial / "artifacts" / file.name)


def restore(home_folder: Path, source: Path) -> JsonObject:
    """Put a backup in the place of a home's state; what was there is kept in `replaced-<time>`. Returns {epoch, head, replaced?}.

    Raises: BackupFailed, StoreRefused (store_locked: a kernel runs; store_corrupt, store_newer: of the backup).
    """
    facts = _read_backup(source)
    home = Home(home_folder)
    incoming = home.folder / "restoring"
    try:
        shutil.rmtree(incoming, ignore_errors=True)
        shutil.copytree(source, incoming, copy_function=_bring)
        _require_sound(incoming / "kernel.db")
        _sync_tree(incoming)
        replaced = _set_aside(home.folder)
        (incoming / "artifacts").rename(home.folder / "artifacts")
        (incoming / "kernel.db").rename(home.folder / "kernel.db")
        shutil.rmtree(incoming)
        _sync(home.folder)
    except OSError as error:
        raise _not_restored(error) from error
    finally:
        home.close()
    return facts | ({"replaced": replaced.name} if replaced else {})


def _bring(source: str, target: str) -> None:
    """Copy one file. What fails is told here: copytree would gather it and lose its number."""
    try:
        shutil.copyfile(source, target)
    except OSError as error:
        raise _not_restored(error) from error


def _not_restored(error: OSError) -> BackupFailed:
    if error.errno in _FULL:
        return BackupFailed(Code.STORE_FULL, "free some space on the disk of the home, then restore again")
    return BackupFailed(Code.UNKNOWN, "the home cannot be written; look at its disk, then restore again")


def _read_backup(source: Path) -> JsonObject:
    try:
        facts: JsonObject = json.loads((source / "backup.json").read_text())
        report = audit.verify(source / "kernel.db")
    except (OSError, ValueError, audit.AuditUnreadable) as error:
        if isinstance(error, audit.AuditUnreadable) and error.code is Code.STORE_FULL:
            raise BackupFailed(error.code, "the check reads a copy; free some space beside the backup") from error
        raise BackupFailed(Code.STORE_CORRUPT, "this is no whole backup: backup.json or kernel.db cannot be read") from error
    is_whole = isinstance(facts, dict) and facts.get("format") == FORMAT and (source / "artifacts").is_dir()
    if not (is_whole and report.ok and facts.get("head") == report.as_json()["head"]):
        raise BackupFailed(Code.STORE_CORRUPT, "the backup does not prove itself: its audit chain or head is not what backup.json says")
    return facts


def _require_sound(database: Path) -> None:
    """Every page, and the version. Raises: StoreRefused, BackupFailed."""
    connection = open_connection(database).connection
    try:
        verdict = connection.execute("PRAGMA quick_check(1)").get
    except apsw.Error as error:
        raise BackupFailed(code_of(error), _BROKEN_HINT) from error
    finally:
        connection.close(True)
    if verdict != "ok":
        raise BackupFailed(Code.STORE_CORRUPT, _BROKEN_HINT)


def _set_aside(folder: Path) -> Path | None:
    present = [folder / name for name in _REPLACED if (folder / name).exists()]
    aside = folder / f"replaced-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    if present:
        aside.mkdir(mode=0o700)
    for path in present:
        if path.name == HEAD_NAME:
            mark_restore(folder)
        path.rename(aside / path.name)
    mark_restore(folder)
    _sync(folder)
    return aside if present else None


def _tree(folder: Path) -> Iterator[Path]:
    yield from (path for path in folder.rglob("*") if path.is_file())
    yield from (path for path in folder.rglob("*") if path.is_dir())
    yield folder


def _sync_tree(folder: Path) -> None:
    for path in _tree(folder):
        _sync(path)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
