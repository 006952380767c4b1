"""The one connection to kernel.db: every statement of the kernel runs through it.

Rules:
1. SQL is a literal, never built; every result is read to its end at once (an open cursor would
   make a checkpoint fail).
2. An error of the storage closes the connection: whatever was under way is undecided, nobody may be answered, the caller stops or
   opens the store again and reads back (INV-60). It leaves as StorageFailed, never as a library's own error.
3. An error that only a wrong statement or record can cause is a KernelBug; the transaction is rolled back and the connection closed.
4. The connection is never carried through a fork, and nobody else in this process opens or closes kernel.db while it lives (POSIX
   locks would be dropped).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, NoReturn

import apsw
import apsw.sqlite_extra

from kernel.core.decision import KernelBug
from lineup_sdk.protocol.codes import Code

Row = tuple[Any, ...]
CHECKSUM_VFS = "cksmvfs"  # the file layer that checks every page

_OUR_FAULT = (
    apsw.BindingsError,
    apsw.ConstraintError,
    apsw.IncompleteExecutionError,
    apsw.MismatchError,
    apsw.MisuseError,
    apsw.RangeError,
    apsw.SQLError,
    apsw.TooBigError,
)


def load_checksums() -> None:
    """Make the checksum VFS known to SQLite, once a process. It wraps the file layer that is the default at that moment."""
    if CHECKSUM_VFS not in apsw.vfs_names():
        apsw.sqlite_extra.load(apsw.Connection(":memory:"), "cksumvfs")


class StorageFailed(Exception):
    """The storage failed; what the last commit did is undecided and the store is closed.

    code: store_full (no space), store_corrupt (a page or the file fails its checks), store_locked, or unknown (any other I/O error).
    """

    def __init__(self, code: Code) -> None:
        super().__init__(code)
        self.code = code


def code_of(error: apsw.Error) -> Code:
    """The stable code of an error of the storage."""
    if isinstance(error, apsw.FullError):
        return Code.STORE_FULL
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return Code.STORE_LOCKED
    is_rot = isinstance(error, apsw.IOError) and getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_DATA
    if is_rot or isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return Code.STORE_CORRUPT
    return Code.UNKNOWN


class Database:
    """The connection, its transaction and its counters."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.attach(connection)
        # counts for benches; they never go back
        self.commits = 0
        self.statements = 0

    def attach(self, connection: apsw.Connection) -> None:
        """Go on with this connection, after the last one was closed."""
        self._connection = connection
        self._cursor = connection.cursor()
        self.name = connection.filename
        self.is_closed = False
        self.wal_pages = 0  # in the log after the last commit
        connection.set_wal_hook(self._follow_wal)

    def run(self, sql: str, values: tuple[Any, ...] = ()) -> list[Row]:
        """Run one literal statement and return all its rows. Raises: StorageFailed, KernelBug."""
        self.statements += 1
        try:
            return self._cursor.execute(sql, values).fetchall()
        except apsw.Error as error:
            self._fail(error)

    def run_one(self, sql: str, values: tuple[Any, ...] = ()) -> Row | None:
        """Run a statement that has at most one row. Raises: StorageFailed, KernelBug."""
        rows = self.run(sql, values)
        return rows[0] if rows else None

    def run_many(self, sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Run one literal statement that has no rows, once with each of these values. Raises: StorageFailed, KernelBug."""
        if not rows:
            return
        self.statements += 1
        try:
            self._cursor.executemany(sql, rows)
        except apsw.Error as error:
            self._fail(error)

    def changes(self) -> int:
        """Rows that the last statement changed."""
        return self._connection.changes()

    @property
    def is_in_transaction(self) -> bool:
        """True between begin and commit."""
        return self._connection.in_transaction

    def begin(self) -> None:
        """Open the transaction."""
        self.run("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Make the transaction durable. Raises: StorageFailed, and then nobody knows whether it is."""
        self.run("COMMIT")
        self.commits += 1

    def backup_steps(self, copy: apsw.Connection, pages: int) -> Generator[None, None, None]:
        """Copy the database into another connection, some pages a step; commits may happen in between. Raises: StorageFailed."""
        try:
            with copy.backup("main", self._connection, "main") as backup:
                while not backup.done:
                    backup.step(pages)
                    yield
        except apsw.Error as error:
            raise StorageFailed(code_of(error)) from error

    def checkpoint(self) -> None:
        """Move the log into the main file, so that the next commit begins it anew. Raises: StorageFailed."""
        self._checkpoint(apsw.SQLITE_CHECKPOINT_PASSIVE)

    def fold(self) -> None:
        """Move the log into the main file and leave it empty: the last act of a tidy end. Raises: StorageFailed."""
        self._checkpoint(apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def _checkpoint(self, mode: int) -> None:
        try:
            self._connection.wal_checkpoint("main", mode)
        except apsw.Error as error:
            self._fail(error)
        self.wal_pages = 0

    def _follow_wal(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self.wal_pages = pages
        return apsw.SQLITE_OK

    def close(self) -> None:
        """Close the connection; a transaction under way is gone. Closing twice is fine."""
        if not self.is_closed:
            self.is_closed = True
            self._connection.close(True)  # the storage is given up, its error has been told already

    def _fail(self, error: apsw.Error) -> NoReturn:
        if isinstance(error, apsw.ConnectionClosedError | apsw.CursorClosedError) and self.is_closed:
            raise StorageFailed(Code.UNKNOWN) from error
        self.close()
        if isinstance(error, _OUR_FAULT):
            raise KernelBug(type(error).__name__) from error
        raise StorageFailed(code_of(error)) from error
