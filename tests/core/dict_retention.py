"""Old bodies over a dict (kernel.core.retention_view.RetentionView), and how they go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from kernel.core.capability_records import CapabilityRequest
from kernel.core.machines import CALL_OPEN, CAPABILITY_OPEN, INTERACTION_OPEN, CallStatus, InboxState, InteractionStatus, OutboxState
from kernel.core.records import (
    AppSession,
    InboxRow,
    Interaction,
    OutboxKind,
    OutboxRow,
    Record,
    SavedState,
    TimelineMessage,
    ToolCall,
    decode_body,
)
from kernel.core.retention_records import (
    ForgottenArtifact,
    ForgottenCall,
    ForgottenCapabilityRequest,
    ForgottenInboxRow,
    ForgottenInteraction,
    ForgottenMessage,
    ForgottenOutboxRow,
    ForgottenPatches,
    ForgottenSnapshot,
    ForgottenState,
    ForgottenSurface,
)
from kernel.core.surface_records import AppendedPatch, Artifact, Surface, SurfaceSnapshot
from kernel.protocol.agent import INTERACTION_CARD

Tables = Mapping[type, dict[Any, Any]]

_OF: Mapping[type, tuple[type, str]] = {  # whose rows go, and by which field they are named
    ForgottenArtifact: (Artifact, "number"),
    ForgottenCall: (ToolCall, "number"),
    ForgottenCapabilityRequest: (CapabilityRequest, "number"),
    ForgottenInboxRow: (InboxRow, "number"),
    ForgottenInteraction: (Interaction, "number"),
    ForgottenMessage: (TimelineMessage, "number"),
    ForgottenOutboxRow: (OutboxRow, "number"),
    ForgottenPatches: (AppendedPatch, "surface_number"),
    ForgottenSnapshot: (SurfaceSnapshot, "surface_number"),
    ForgottenState: (SavedState, "app_session_id"),
    ForgottenSurface: (Surface, "number"),
}


def forget(tables: Tables, record: Record) -> bool:
    """Take rows away if that is what the record says; False for any other record."""
    if type(record) not in _OF:
        return False
    kind, name = _OF[type(record)]
    gone = record.app_session_id if isinstance(record, ForgottenState) else record.number  # type: ignore[union-attr]
    rows = tables[kind]
    for key in [key for key, row in rows.items() if getattr(row, name) == gone]:
        del rows[key]
    return True


class DictRetention:
    """Reads by scanning."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def ended_calls(self, before: datetime, limit: int) -> Sequence[ToolCall]:
        waiting = {row.call_number for row in self._rows(OutboxRow) if row.kind is OutboxKind.FINAL and row.state is OutboxState.PENDING}
        open_or_sent = CALL_OPEN | {CallStatus.SUBMITTED}
        calls = self._rows(ToolCall)
        return [one for one in calls if one.updated_at < before and one.status not in open_or_sent and one.number not in waiting][:limit]

    def done_outbox_rows(self, before: datetime, limit: int) -> Sequence[int]:
        calls = {call.number for call in self._rows(ToolCall)}
        old = [row for row in self._rows(OutboxRow) if row.state is not OutboxState.PENDING and row.created_at < before]
        return [row.number for row in old if row.call_number not in calls][:limit]

    def done_inbox_rows(self, before: datetime, limit: int) -> Sequence[int]:
        rows = self._rows(InboxRow)
        return [row.number for row in rows if row.state is InboxState.ACKNOWLEDGED and row.created_at < before][:limit]

    def messages(self, before: datetime, limit: int) -> Sequence[int]:
        waiting = {row.message_id for row in self._rows(OutboxRow) if row.state is OutboxState.PENDING}
        old = [row for row in self._rows(TimelineMessage) if row.created_at < before and row.message_id not in waiting]
        return [row.number for row in old if not self._is_asked(row)][:limit]

    def _is_asked(self, entry: TimelineMessage) -> bool:
        return entry.type == INTERACTION_CARD and decode_body(entry.body_cbor)["interaction_id"] in self._tables[Interaction]

    def ended_interactions(self, before: datetime, limit: int) -> Sequence[Interaction]:
        waiting = INTERACTION_OPEN | {InteractionStatus.SUBMITTED}
        found = (one for one in self._rows(Interaction) if one.call_number is None and one.status not in waiting)
        return [one for one in found if one.updated_at < before][:limit]

    def ended_capability_requests(self, before: datetime, limit: int) -> Sequence[CapabilityRequest]:
        return [one for one in self._rows(CapabilityRequest) if one.status not in CAPABILITY_OPEN and one.updated_at < before][:limit]

    def artifacts(self, before: datetime, limit: int) -> Sequence[Artifact]:
        old = self._old_sessions(before)
        return [one for one in self._rows(Artifact) if one.app_session_id in old and not one.is_lost][:limit]

    def surfaces(self, before: datetime, limit: int) -> Sequence[int]:
        old = self._old_sessions(before)
        return [one.number for one in self._rows(Surface) if one.app_session_id in old and one.closed_at is not None][:limit]

    def states(self, before: datetime, limit: int) -> Sequence[str]:
        return sorted(self._old_sessions(before) & self._tables[SavedState].keys())[:limit]

    def _old_sessions(self, before: datetime) -> set[str]:
        """Closed before that instant, and no session that is not goes on with one of them, however far back."""
        sessions: Mapping[str, AppSession] = self._tables[AppSession]
        needed: set[str] = set()
        for one in sessions.values():
            later: AppSession | None = one
            if one.closed_at is None or one.closed_at >= before:
                while later is not None:
                    needed.add(later.app_session_id)
                    later = sessions.get(later.continues or "")
        return sessions.keys() - needed

    def _rows(self, kind: type) -> list[Any]:
        return sorted(self._tables[kind].values(), key=lambda row: int(row.number))
