"""How an older database becomes the present one: numbered steps, each in a transaction of its own.

Rules:
1. schema.sql is the whole of version 1; version n + 1 is version n and STEPS[n - 1]. A released step is never changed.
2. user_version moves in the step's own transaction: a step that was cut off is done again from its start.
3. A step appends (ADD COLUMN, CREATE TABLE): rows are read by position (kernel/store_rows.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apsw

APPLICATION_ID = 0x4C696E55  # in the file's header: whose database it is
SCHEMA_PATH = Path(__file__).with_name("schema.sql")

Step = Callable[[apsw.Connection], Any]
STEPS: tuple[Step, ...] = ()


def latest_version(steps: Sequence[Step] = STEPS) -> int:
    """The version this program writes."""
    return 1 + len(steps)


def migrate(connection: apsw.Connection, steps: Sequence[Step] = STEPS) -> None:
    """Bring a database, new or older, to the latest version. Raises: apsw.Error, with the last whole step kept."""
    while (version := user_version(connection)) < latest_version(steps):
        step = _create if version == 0 else steps[version - 1]
        connection.execute("BEGIN IMMEDIATE")
        try:
            step(connection)
            connection.pragma("user_version", version + 1)
        except BaseException:
            if connection.in_transaction:  # a full disk has rolled it back already
                connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")


def user_version(connection: apsw.Connection) -> int:
    """The version the database says it has; 0 = nothing in it yet."""
    return int(connection.pragma("user_version"))


def _create(connection: apsw.Connection) -> None:
    connection.pragma("application_id", APPLICATION_ID)
    connection.execute(SCHEMA_PATH.read_text(encoding="utf-8"))
