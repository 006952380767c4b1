"""Old bodies over a dict (kernel.core.retention_view.RetentionView), and how they go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from kernel.core.machines import CALL_OPEN, CallStatus, InboxState, OutboxState
from kernel.core.records import InboxRow, OutboxKind, OutboxRow, Record, TimelineMessage, ToolCall
from kernel.core.retention_records import ForgottenCall, ForgottenInboxRow, ForgottenMessage, ForgottenOutboxRow

Tables = Mapping[type, dict[Any, Any]]

_OF = {ForgottenCall: ToolCall, ForgottenInboxRow: InboxRow, ForgottenMessage: TimelineMessage, ForgottenOutboxRow: OutboxRow}


def forget(tables: Tables, record: Record) -> bool:
    """Take a row away if that is what the record says; False for any other record."""
    kind = _OF.get(type(record))
    if kind is None:
        return False
    rows = tables[kind]
    number = record.number  # type: ignore[union-attr]
    for key in [key for key, row in rows.items() if row.number == number]:
        del rows[key]
    return True


class DictRetention:
    """Reads by scanning."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def ended_calls(self, before: datetime, limit: int) -> Sequence[ToolCall]:
        waiting = {row.call_number for row in self._rows() if row.kind is OutboxKind.FINAL and row.state is OutboxState.PENDING}
        open_or_sent = CALL_OPEN | {CallStatus.SUBMITTED}
        calls = self._tables[ToolCall].values()
        old = [one for one in calls if one.updated_at < before and one.status not in open_or_sent and one.number not in waiting]
        return sorted(old, key=lambda call: int(call.number))[:limit]

    def done_outbox_rows(self, before: datetime, limit: int) -> Sequence[int]:
        calls = {call.number for call in self._tables[ToolCall].values()}
        old = [row for row in self._rows() if row.state is not OutboxState.PENDING and row.created_at < before]
        return sorted(row.number for row in old if row.call_number not in calls)[:limit]

    def done_inbox_rows(self, before: datetime, limit: int) -> Sequence[int]:
        rows = self._tables[InboxRow].values()
        return sorted(row.number for row in rows if row.state is InboxState.ACKNOWLEDGED and row.created_at < before)[:limit]

    def messages(self, before: datetime, limit: int) -> Sequence[int]:
        waiting = {row.message_id for row in self._rows() if row.state is OutboxState.PENDING}
        rows = self._tables[TimelineMessage].values()
        return sorted(row.number for row in rows if row.created_at < before and row.message_id not in waiting)[:limit]

    def _rows(self) -> Sequence[OutboxRow]:
        return list(self._tables[OutboxRow].values())
