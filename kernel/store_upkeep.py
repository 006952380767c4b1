"""What upkeep reads from the store: parked messages and the audit, in bounded pages. Not part of the core's View."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernel.core.records import InboxRow
from kernel.database import Database
from kernel.store_rows import read_inbox_row, read_time

_NAMES = ("seq", "at", "speaker", "view_id", "command", "cause", "event", "number", "instance_id", "code", "count")


class UpkeepView:
    """Pages of what a person looks after."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def parked_rows(self, *, after: int, limit: int) -> Sequence[InboxRow]:
        """Parked messages of all Apps with a number above `after`, oldest first."""
        rows = self._db.run("SELECT * FROM inbox_row WHERE state = 'parked' AND number > ? ORDER BY number LIMIT ?", (after, limit))
        return [read_inbox_row(row) for row in rows]

    def audit_after(self, *, after: int | None, limit: int) -> Sequence[Mapping[str, Any]]:
        """Audit rows after a seq, oldest first; the newest ones when after is None."""
        if after is None:
            return [_read_audit(row) for row in self._db.run(_AUDIT_NEWEST, (limit,))][::-1]
        return [_read_audit(row) for row in self._db.run(_AUDIT_AFTER, (after, limit))]

    def audit_about(self, *, number: int | None, instance_id: str | None, limit: int) -> Sequence[Mapping[str, Any]]:
        """The newest audit rows that name this number, or this instance, oldest first."""
        if number is not None:
            rows = self._db.run(_AUDIT_OF_NUMBER, (number, limit))
        else:
            rows = self._db.run(_AUDIT_OF_INSTANCE, (instance_id, limit))
        return [_read_audit(row) for row in rows][::-1]

    def audit_row(self, seq: int) -> Mapping[str, Any] | None:
        """One audit row."""
        row = self._db.run_one(_AUDIT_ONE, (seq,))
        return None if row is None else _read_audit(row)


_AUDIT_NEWEST = """SELECT seq, at, speaker, view_id, command, cause, event, number, instance_id, code, count FROM audit
  ORDER BY seq DESC LIMIT ?"""
_AUDIT_AFTER = """SELECT seq, at, speaker, view_id, command, cause, event, number, instance_id, code, count FROM audit
  WHERE seq > ? ORDER BY seq LIMIT ?"""
_AUDIT_OF_NUMBER = """SELECT seq, at, speaker, view_id, command, cause, event, number, instance_id, code, count FROM audit
  WHERE number = ? ORDER BY seq DESC LIMIT ?"""
_AUDIT_OF_INSTANCE = """SELECT seq, at, speaker, view_id, command, cause, event, number, instance_id, code, count FROM audit
  WHERE instance_id = ? AND number IS NULL ORDER BY seq DESC LIMIT ?"""
_AUDIT_ONE = """SELECT seq, at, speaker, view_id, command, cause, event, number, instance_id, code, count FROM audit WHERE seq = ?"""


def _read_audit(row: tuple[Any, ...]) -> Mapping[str, Any]:
    at = read_time(row[1]).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    facts = dict(zip(_NAMES, (row[0], at, *row[2:]), strict=True))
    return {name: value for name, value in facts.items() if value is not None}
