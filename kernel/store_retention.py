"""Bodies that are given up, as rows, and the reads that find them (kernel.core.retention_records).

Rules:
1. Numbers rise with time: the oldest rows stand first, so a look at a few of them by number finds what is old without an index.
2. A look is bounded by LOOKED_AT rows of each table, whatever is in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from kernel.core.records import ToolCall
from kernel.core.retention_records import ForgottenCall, ForgottenInboxRow, ForgottenMessage, ForgottenOutboxRow
from kernel.database import Database
from kernel.store_rows import Values, read_tool_call, time_value

LOOKED_AT = 2_000  # above the number of calls that may be open

_ENDED_CALLS = """
SELECT * FROM (SELECT * FROM tool_call ORDER BY number LIMIT ?) AS c
WHERE status IN ('completed', 'failed', 'cancelled', 'expired', 'rejected') AND updated_at < ?
  AND NOT EXISTS (SELECT 1 FROM outbox_row WHERE call_number = c.number AND kind = 'final' AND state = 'pending')
ORDER BY number LIMIT ?
"""
_DONE_OUTBOX_ROWS = """
SELECT number FROM (SELECT number, state, created_at, call_number FROM outbox_row ORDER BY number LIMIT ?) AS o
WHERE state <> 'pending' AND created_at < ?
  AND (call_number IS NULL OR NOT EXISTS (SELECT 1 FROM tool_call WHERE number = o.call_number))
ORDER BY number LIMIT ?
"""
_DONE_INBOX_ROWS = """
SELECT number FROM (SELECT number, state, created_at FROM inbox_row ORDER BY number LIMIT ?)
WHERE state = 'acknowledged' AND created_at < ? ORDER BY number LIMIT ?
"""
_MESSAGES = """
SELECT number FROM (SELECT number, message_id, created_at FROM timeline_message ORDER BY number LIMIT ?) AS m
WHERE created_at < ? AND NOT EXISTS (SELECT 1 FROM outbox_row WHERE message_id = m.message_id AND state = 'pending')
ORDER BY number LIMIT ?
"""


def _number(record: ForgottenCall | ForgottenInboxRow | ForgottenMessage | ForgottenOutboxRow) -> Values:
    return (record.number,)


PUTS: Mapping[type, tuple[str, Callable[[Any], Values]]] = {
    ForgottenCall: ("DELETE FROM tool_call WHERE number = ?", _number),
    ForgottenInboxRow: ("DELETE FROM inbox_row WHERE number = ? AND state = 'acknowledged'", _number),
    ForgottenMessage: ("DELETE FROM timeline_message WHERE number = ?", _number),
    ForgottenOutboxRow: ("DELETE FROM outbox_row WHERE number = ? AND state <> 'pending'", _number),
}


class RetentionReads:
    """See kernel.core.retention_records.RetentionView."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def ended_calls(self, before: datetime, limit: int) -> Sequence[ToolCall]:
        """Calls with an outcome that arrived."""
        return [read_tool_call(row) for row in self._db.run(_ENDED_CALLS, (LOOKED_AT, time_value(before), limit))]

    def done_inbox_rows(self, before: datetime, limit: int) -> Sequence[int]:
        """Messages that were taken over or dropped."""
        return self._numbers(_DONE_INBOX_ROWS, before, limit)

    def messages(self, before: datetime, limit: int) -> Sequence[int]:
        """Entries of the timeline."""
        return self._numbers(_MESSAGES, before, limit)

    def done_outbox_rows(self, before: datetime, limit: int) -> Sequence[int]:
        """Envelopes that arrived or were refused for good."""
        return self._numbers(_DONE_OUTBOX_ROWS, before, limit)

    def has_any(self, before: datetime) -> bool:
        """True while there is something to give up."""
        finders = (self.ended_calls, self.done_outbox_rows, self.done_inbox_rows, self.messages)
        return any(find(before, 1) for find in finders)

    def _numbers(self, sql: str, before: datetime, limit: int) -> Sequence[int]:
        return [row[0] for row in self._db.run(sql, (LOOKED_AT, time_value(before), limit))]
