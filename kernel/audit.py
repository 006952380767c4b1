"""The audit chain (SPEC 17): one content-free row a decision, each holding the hash of the one before.

Rules:
1. hash = SHA-256 over the previous hash and the deterministic CBOR of the fields before it; the first previous hash is 32 zero bytes.
2. The newest hash is also kept in `audit.head`, one fixed-size write after each commit: a database older than its head shows.
3. Offline readers work on a copy of the files. They never open kernel.db itself: in a running kernel's own process that would drop
   its locks, so nothing in the kernel process may call `read_audit` or `verify`.
4. A chain proves that nothing inside was changed, moved or taken out, and with the head that nothing known was cut off. NOTE says
   what it cannot prove.
"""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from pathlib import Path
from typing import Any

import apsw
import cbor2

from kernel.database import CHECKSUM_VFS, load_checksums
from kernel.wal import HEADER_BYTES
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject

HEAD_NAME = "audit.head"
FIRST_HASH = bytes(32)
NOTE = (
    "The chain shows any change inside it. It cannot show that somebody who may write this folder rewrote the whole chain and its "
    "head, or cut both back to the same older point; compare with an exported head kept elsewhere to rule that out."
)
_COPY_ATTEMPTS = 20
_SELECT = (
    "SELECT seq, at, speaker, view_id, command, cause, event, number, instance_id, code, count, previous_hash, hash FROM audit ORDER BY seq"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One row as stored; at in microseconds since 1970 UTC."""

    seq: int
    at: int
    speaker: str
    view_id: str | None
    command: str
    cause: int | None
    event: str
    number: int | None
    instance_id: str | None
    code: str | None
    count: int | None
    previous_hash: bytes
    hash: bytes

    def hashed(self) -> tuple[Any, ...]:
        """The fields the hash covers beside the hash before it: all but the two hashes, in their order."""
        return _HASHED(self)

    def as_json(self) -> JsonObject:
        """The exported form: times as RFC 3339, hashes as hex, absent fields left out."""
        facts = {name: value for name in _FACTS if (value := getattr(self, name)) is not None}
        at = (_EPOCH + timedelta(microseconds=self.at)).isoformat(timespec="microseconds").replace("+00:00", "Z")
        return {"seq": self.seq, "at": at} | facts | {"previous_hash": self.previous_hash.hex(), "hash": self.hash.hex()}


_FACTS = tuple(one.name for one in fields(AuditRow) if one.name not in ("seq", "at", "previous_hash", "hash"))
_HASHED = attrgetter("seq", "at", *_FACTS)


def hash_row(previous_hash: bytes, hashed: tuple[Any, ...]) -> bytes:
    """The hash of a row from the hash before it and its fields from seq to count."""
    return hashlib.sha256(previous_hash + cbor2.dumps(hashed)).digest()


# --------------------------------------------------------------------------------- the kept head


@dataclass(frozen=True, slots=True)
class Head:
    """The newest row of a chain."""

    seq: int
    hash: bytes


class HeadFile:
    """The file beside the database that holds the head. Open as long as the store is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._fd = os.open(folder / HEAD_NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

    def write(self, head: Head) -> None:
        """Keep a head: one write of fixed size. Raises: OSError."""
        text = f"{head.seq:020d} {head.hash.hex()}"
        os.pwrite(self._fd, f"{text} {zlib.crc32(text.encode()):08x}\n".encode(), 0)

    def close(self) -> None:
        """Close the file. Closing twice is fine."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class HeadDamaged(Exception):
    """The head file holds something that is no head."""


def read_head(folder: Path) -> Head | None:
    """The kept head, None when there is none. Raises: HeadDamaged."""
    try:
        text = (folder / HEAD_NAME).read_bytes()
    except FileNotFoundError:
        return None
    if not text:
        return None  # made, and the first commit never came
    body, _, checksum = text.strip().rpartition(b" ")
    if checksum != f"{zlib.crc32(body):08x}".encode():
        raise HeadDamaged
    seq, _, digest = body.partition(b" ")
    return Head(int(seq), bytes.fromhex(digest.decode()))


# --------------------------------------------------------------------------------- checking a chain


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """What a check found. ok = no problems; head = the newest row; head_file = what was kept beside the database."""

    ok: bool
    rows: int
    head: Head | None
    head_file: Head | None
    problems: list[str] = field(default_factory=list)
    note: str = NOTE

    def as_json(self) -> JsonObject:
        """The printed form."""
        heads = {"head": self.head, "head_file": self.head_file}
        shown = {name: head and {"seq": head.seq, "hash": head.hash.hex()} for name, head in heads.items()}
        return {"ok": self.ok, "rows": self.rows} | shown | {"problems": self.problems, "note": self.note}


def check_chain(rows: Iterable[AuditRow], kept: Head | None) -> AuditReport:
    """Check every row against the one before it, and that the kept head is in the chain."""
    problems: list[str] = []
    previous = Head(0, FIRST_HASH)
    kept_hash = None
    count = 0
    for row in rows:
        count += 1
        problems += _row_problems(row, previous)
        previous = Head(row.seq, row.hash)
        if kept is not None and row.seq == kept.seq:
            kept_hash = row.hash
    if kept is not None and kept_hash is None:
        problems.append(f"the kept head is row {kept.seq}, which is not in the chain: rows were cut off, or the database is older")
    elif kept is not None and kept_hash != kept.hash:
        problems.append(f"the kept head has another hash for row {kept.seq}: the chain was rewritten")
    if kept is None and count:
        problems.append("no head was kept beside the database, or it is damaged")
    return AuditReport(ok=not problems, rows=count, head=previous if count else None, head_file=kept, problems=problems)


def _row_problems(row: AuditRow, previous: Head) -> Iterator[str]:
    if row.seq != previous.seq + 1:
        yield f"row {row.seq} follows row {previous.seq}: rows are missing"
    if row.previous_hash != previous.hash:
        yield f"row {row.seq} does not hold the hash of the row before it"
    if row.hash != hash_row(row.previous_hash, row.hashed()):
        yield f"row {row.seq} was changed: its hash does not fit"


# --------------------------------------------------------------------------------- offline


class AuditUnreadable(Exception):
    """The database cannot be read. code: store_foreign (there is none of ours), store_corrupt, store_locked (never at rest), store_full."""

    def __init__(self, code: Code) -> None:
        super().__init__(code)
        self.code = code


def verify(path: Path) -> AuditReport:
    """Check the chain of a database, also of one that a kernel is using now. Raises: AuditUnreadable."""
    try:
        kept = read_head(path.parent)  # before the copy: the copy is then at least as new
    except (HeadDamaged, OSError):
        kept = None
    return check_chain(read_audit(path), kept)


def read_audit(path: Path) -> Iterator[AuditRow]:
    """Read all rows in order from a copy; `as_json` of each is one exported line. Raises: AuditUnreadable."""
    beside = path.parent if os.access(path.parent, os.W_OK) else None  # content stays in its home when it can
    try:
        made = tempfile.TemporaryDirectory(prefix="audit-", dir=beside)
    except OSError as error:
        raise _unreadable(error) from error
    with made as folder:
        copy = Path(folder) / path.name
        _copy(path, copy, read_log=_read_log)
        load_checksums()
        try:
            with closing(apsw.Connection(str(copy), flags=apsw.SQLITE_OPEN_READWRITE, vfs=CHECKSUM_VFS)) as connection:
                connection.pragma("locking_mode", "exclusive")  # no shared memory file beside the copy
                for row in connection.execute(_SELECT):
                    yield AuditRow(*row)
        except apsw.SQLError as error:  # no such table: not our database
            raise AuditUnreadable(Code.STORE_FOREIGN) from error
        except apsw.Error as error:
            raise AuditUnreadable(Code.STORE_CORRUPT) from error


def _copy(path: Path, copy: Path, *, read_log: Callable[[Path], bytes]) -> None:
    """Copy main file and log so that they fit together.

    The main file changes only by a checkpoint of what is in the log already. So with the same round of the log (its header) before and
    after, the log, copied last, holds every page that the copy of the main file may have caught half-written.
    """
    wal, copied_wal = path.with_name(path.name + "-wal"), copy.with_name(copy.name + "-wal")
    for _ in range(_COPY_ATTEMPTS):
        try:
            before = read_log(wal)[:HEADER_BYTES]
            copy.write_bytes(path.read_bytes())
            log = read_log(wal)
            if log[:HEADER_BYTES] == before:
                copied_wal.write_bytes(log)
                return
        except OSError as error:
            raise _unreadable(error) from error
    raise AuditUnreadable(Code.STORE_LOCKED)


def _unreadable(error: OSError) -> AuditUnreadable:
    return AuditUnreadable(Code.STORE_FULL if error.errno in (errno.EDQUOT, errno.ENOSPC) else Code.STORE_FOREIGN)


def _read_log(wal: Path) -> bytes:
    try:
        return wal.read_bytes()
    except FileNotFoundError:
        return b""
