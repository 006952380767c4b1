"""Steps from an older schema to a newer one."""

from __future__ import annotations

from collections.abc import Iterator

import apsw
import pytest

from kernel.migrations import migrate, user_version


@pytest.fixture
def connection() -> Iterator[apsw.Connection]:
    made = apsw.Connection(":memory:")
    yield made
    made.close()


def _add_column(connection: apsw.Connection) -> None:
    connection.execute("ALTER TABLE switch ADD COLUMN note TEXT")


def _add_table(connection: apsw.Connection) -> None:
    connection.execute("CREATE TABLE later (a INTEGER) STRICT")


def test_a_new_database_gets_every_step_in_order(connection: apsw.Connection) -> None:
    migrate(connection, (_add_column, _add_table))
    assert user_version(connection) == 3
    assert [row[1] for row in connection.execute("PRAGMA table_info (switch)")] == ["name", "enabled", "note"]


def test_steps_already_taken_are_not_taken_again(connection: apsw.Connection) -> None:
    migrate(connection, (_add_column,))
    migrate(connection, (_add_column, _add_table))  # the first would fail: the column is there
    assert user_version(connection) == 3


def test_a_step_that_fails_leaves_the_version_before_it_whole(connection: apsw.Connection) -> None:
    def cut_off(database: apsw.Connection) -> None:
        database.execute("CREATE TABLE half (a INTEGER) STRICT")
        database.execute("no such statement")

    with pytest.raises(apsw.SQLError):
        migrate(connection, (_add_column, cut_off))
    assert user_version(connection) == 2
    assert not connection.in_transaction
    assert not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'half'").fetchall()
    migrate(connection, (_add_column, _add_table))
    assert user_version(connection) == 3
