"""Bodies that are given up, as rows, and the reads that find them (kernel.core.retention_records).

Rules:
1. Numbers rise with time: the oldest rows stand first, so a look at a few of them by number finds what is old without an index.
2. A look is bounded by LOOKED_AT rows of each table, whatever is in them; for what belongs to a session, by the number of sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from kernel.core.capability_records import CapabilityRequest
from kernel.core.record_keys import key_of
from kernel.core.records import Interaction, ToolCall, decode_body
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
from kernel.core.surface_records import Artifact
from kernel.database import Database
from kernel.protocol.agent import INTERACTION_CARD
from kernel.store_capabilities import read_request
from kernel.store_interactions import read_interaction
from kernel.store_rows import Values, read_tool_call, time_value
from kernel.store_surface_rows import read_artifact

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
SELECT number, CASE WHEN type = ? THEN body_cbor END
FROM (SELECT number, message_id, type, body_cbor, created_at FROM timeline_message ORDER BY number LIMIT ?) AS m
WHERE created_at < ? AND NOT EXISTS (SELECT 1 FROM outbox_row WHERE number = m.number AND state = 'pending')
ORDER BY number
"""
_ENDED_INTERACTIONS = """
SELECT * FROM (SELECT * FROM interaction ORDER BY number LIMIT ?)
WHERE call_number IS NULL AND status IN ('completed', 'cancelled', 'expired', 'failed') AND updated_at < ? ORDER BY number LIMIT ?
"""
_ENDED_CAPABILITY_REQUESTS = """
SELECT * FROM (SELECT * FROM capability_request ORDER BY number LIMIT ?)
WHERE status NOT IN ('asked', 'granted') AND updated_at < ? ORDER BY number LIMIT ?
"""
# Every session that is open or young, and what it goes on with, is needed.
_OLD_SESSIONS = """
WITH RECURSIVE needed(app_session_id) AS (
  SELECT continues FROM app_session WHERE continues IS NOT NULL AND (closed_at IS NULL OR closed_at >= ?1)
  UNION SELECT s.continues FROM needed AS n JOIN app_session AS s ON s.app_session_id = n.app_session_id WHERE s.continues IS NOT NULL),
old(app_session_id) AS (
  SELECT app_session_id FROM app_session WHERE closed_at < ?1 AND app_session_id NOT IN (SELECT app_session_id FROM needed))
"""
_ARTIFACTS = _OLD_SESSIONS + "SELECT a.* FROM old JOIN artifact AS a USING (app_session_id) WHERE a.is_lost = 0 ORDER BY a.number LIMIT ?2"
_SURFACES = (
    _OLD_SESSIONS
    + "SELECT f.number FROM old JOIN surface AS f USING (app_session_id) WHERE f.closed_at IS NOT NULL ORDER BY f.number LIMIT ?2"
)
_STATES = _OLD_SESSIONS + "SELECT app_session_id FROM old JOIN saved_state USING (app_session_id) LIMIT ?2"


def _key(record: Any) -> Values:
    return (key_of(record),)


PUTS: Mapping[type, tuple[str, Callable[[Any], Values]]] = {
    ForgottenArtifact: ("DELETE FROM artifact WHERE number = ?", _key),
    ForgottenCall: ("DELETE FROM tool_call WHERE number = ?", _key),
    ForgottenCapabilityRequest: ("DELETE FROM capability_request WHERE number = ? AND status NOT IN ('asked', 'granted')", _key),
    ForgottenInboxRow: ("DELETE FROM inbox_row WHERE number = ? AND state = 'acknowledged'", _key),
    ForgottenInteraction: ("DELETE FROM interaction WHERE number = ? AND status NOT IN ('pending', 'presented')", _key),
    ForgottenMessage: ("DELETE FROM timeline_message WHERE number = ?", _key),
    ForgottenOutboxRow: ("DELETE FROM outbox_row WHERE number = ? AND state <> 'pending'", _key),
    ForgottenPatches: ("DELETE FROM surface_patch WHERE surface_number = ?", _key),
    ForgottenSnapshot: ("DELETE FROM surface_snapshot WHERE surface_number = ?", _key),
    ForgottenState: ("DELETE FROM saved_state WHERE app_session_id = ?", _key),
    ForgottenSurface: ("DELETE FROM surface WHERE number = ? AND closed_at IS NOT NULL", _key),
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
        """Entries of the timeline; the card of a question that is still there stays with it."""
        old = self._db.run(_MESSAGES, (INTERACTION_CARD, LOOKED_AT, time_value(before)))
        return list(islice((number for number, card in old if card is None or not self._is_asked(card)), limit))

    def _is_asked(self, card_cbor: bytes) -> bool:
        name = decode_body(card_cbor)["interaction_id"]
        return self._db.run_one("SELECT 1 FROM interaction WHERE interaction_id = ?", (name,)) is not None

    def ended_interactions(self, before: datetime, limit: int) -> Sequence[Interaction]:
        """Questions of Apps and of the kernel itself whose outcome was taken over."""
        return [read_interaction(row) for row in self._db.run(_ENDED_INTERACTIONS, (LOOKED_AT, time_value(before), limit))]

    def ended_capability_requests(self, before: datetime, limit: int) -> Sequence[CapabilityRequest]:
        """Requests for a capability that have ended, however they did."""
        return [read_request(row) for row in self._db.run(_ENDED_CAPABILITY_REQUESTS, (LOOKED_AT, time_value(before), limit))]

    def artifacts(self, before: datetime, limit: int) -> Sequence[Artifact]:
        """Artifacts that nobody can name any more: those of old sessions."""
        return [read_artifact(row) for row in self._db.run(_ARTIFACTS, (time_value(before), limit))]

    def surfaces(self, before: datetime, limit: int) -> Sequence[int]:
        """Surfaces of old sessions."""
        return [row[0] for row in self._db.run(_SURFACES, (time_value(before), limit))]

    def states(self, before: datetime, limit: int) -> Sequence[str]:
        """Sessions that are old and still remember something."""
        return [row[0] for row in self._db.run(_STATES, (time_value(before), limit))]

    def done_outbox_rows(self, before: datetime, limit: int) -> Sequence[int]:
        """Envelopes that arrived or were refused for good."""
        return self._numbers(_DONE_OUTBOX_ROWS, before, limit)

    def has_any(self, before: datetime) -> bool:
        """True while there is something to give up."""
        finders: tuple[Callable[[datetime, int], Sequence[object]], ...] = (
            self.ended_calls,
            self.done_outbox_rows,
            self.done_inbox_rows,
            self.messages,
            self.ended_interactions,
            self.ended_capability_requests,
            self.artifacts,
            self.surfaces,
            self.states,
        )
        return any(find(before, 1) for find in finders)

    def _numbers(self, sql: str, before: datetime, limit: int) -> Sequence[int]:
        return [row[0] for row in self._db.run(sql, (LOOKED_AT, time_value(before), limit))]
