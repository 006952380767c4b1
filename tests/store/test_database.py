"""The connection: what its errors become."""

from __future__ import annotations

from collections.abc import Iterator

import apsw
import pytest

from kernel.core.decision import KernelBug
from kernel.database import Database, StorageFailed, code_of
from lineup_sdk.protocol.codes import Code


@pytest.fixture
def database() -> Iterator[Database]:
    made = Database(apsw.Connection(":memory:"))
    made.run("CREATE TABLE t (a INTEGER PRIMARY KEY) STRICT")
    yield made
    made.close()


@pytest.mark.parametrize(
    ("result", "code"),
    [
        (apsw.SQLITE_FULL, Code.STORE_FULL),
        (apsw.SQLITE_CORRUPT, Code.STORE_CORRUPT),
        (apsw.SQLITE_NOTADB, Code.STORE_CORRUPT),
        (apsw.SQLITE_IOERR_DATA, Code.STORE_CORRUPT),
        (apsw.SQLITE_BUSY, Code.STORE_LOCKED),
        (apsw.SQLITE_LOCKED, Code.STORE_LOCKED),
        (apsw.SQLITE_IOERR_FSYNC, Code.UNKNOWN),
        (apsw.SQLITE_IOERR_READ, Code.UNKNOWN),
        (apsw.SQLITE_NOMEM, Code.UNKNOWN),
        (apsw.SQLITE_READONLY, Code.UNKNOWN),
    ],
)
def test_an_error_of_the_storage_has_its_code(result: int, code: Code) -> None:
    error = apsw.exception_for(result)
    assert isinstance(error, apsw.Error)
    assert code_of(error) is code


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("INSERT INTO t VALUES (1), (1)", ()),
        ("INSERT INTO t VALUES ('text')", ()),
        ("INSERT INTO nowhere VALUES (1)", ()),
        ("INSERT INTO t VALUES (?)", (1, 2)),
        ("ROLLBACK", ()),
    ],
)
def test_an_error_that_only_we_can_cause_is_a_kernel_bug_and_closes(database: Database, sql: str, values: tuple[int, ...]) -> None:
    with pytest.raises(KernelBug) as bug:
        database.run(sql, values)
    assert "text" not in str(bug.value)
    assert database.is_closed
    with pytest.raises(StorageFailed):
        database.run("SELECT 1")


def test_counts_and_rows(database: Database) -> None:
    before = database.statements
    database.begin()
    assert database.is_in_transaction
    assert database.run("INSERT INTO t VALUES (?), (?)", (1, 2)) == []
    assert database.changes() == 2
    database.commit()
    assert not database.is_in_transaction
    assert database.run("SELECT a FROM t ORDER BY a") == [(1,), (2,)]
    assert database.run_one("SELECT a FROM t WHERE a = 3") is None
    assert (database.commits, database.statements - before) == (1, 5)
