"""Standard interactions and policies as rows, and the reads of them: a part of the View (kernel.core.interaction_view).

Rules: those of kernel/store_rows.py and kernel/store_view.py. What is open comes from memory and is bounded by MAX_OPEN_INTERACTIONS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kernel.core.machines import InteractionStatus
from kernel.core.records import Interaction, InteractionKind, InteractionSource, Place, Policy
from kernel.database import Database, Row
from kernel.store_memory import Memory
from kernel.store_rows import Values, deadline_values, opt_time_value, read_code, read_deadline, read_opt_time, read_time, time_value

_FOREVER = 2**63 - 1  # above every number

_PUT_INTERACTION = """
INSERT INTO interaction VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
ON CONFLICT (number) DO UPDATE SET
  status = excluded.status, updated_at = excluded.updated_at, place = excluded.place, deadline_boot_id = excluded.deadline_boot_id,
  deadline_at_ms = excluded.deadline_at_ms, result_cbor = excluded.result_cbor, answered_by_view = excluded.answered_by_view,
  error_code = excluded.error_code
"""
_PUT_POLICY = "INSERT INTO policy VALUES (?,?) ON CONFLICT (name) DO UPDATE SET allowed = excluded.allowed"

OPEN_INTERACTIONS = "SELECT * FROM interaction WHERE status IN ('pending', 'presented') ORDER BY number"
ALLOWED_POLICIES = "SELECT name FROM policy WHERE allowed = 1"


def _interaction_values(i: Interaction) -> Values:
    owner = (i.owner_app_scope, i.owner_instance_id, i.conversation_id, i.call_number, i.parent_call_number, i.app_session_id)
    asked = (i.request_cbor, i.shown_digest, time_value(i.created_at))
    standing = (i.status, time_value(i.updated_at), i.place, opt_time_value(i.expires_at), *deadline_values(i.deadline))
    return (i.number, i.interaction_id, i.kind, i.source, *owner, *asked, *standing, i.result_cbor, i.answered_by_view, i.error_code)


def read_interaction(row: Row) -> Interaction:
    """An interaction from its row."""
    return Interaction(
        number=row[0],
        interaction_id=row[1],
        kind=InteractionKind(row[2]),
        source=InteractionSource(row[3]),
        owner_app_scope=row[4],
        owner_instance_id=row[5],
        conversation_id=row[6],
        call_number=row[7],
        parent_call_number=row[8],
        app_session_id=row[9],
        request_cbor=row[10],
        shown_digest=row[11],
        created_at=read_time(row[12]),
        status=InteractionStatus(row[13]),
        updated_at=read_time(row[14]),
        place=Place(row[15]),
        expires_at=read_opt_time(row[16]),
        deadline=read_deadline(row[17], row[18]),
        result_cbor=row[19],
        answered_by_view=row[20],
        error_code=read_code(row[21]),
    )


def _policy_values(policy: Policy) -> Values:
    return (policy.name, policy.allowed)


PUTS: Mapping[type, tuple[str, Callable[[Any], Values]]] = {
    Interaction: (_PUT_INTERACTION, _interaction_values),
    Policy: (_PUT_POLICY, _policy_values),
}


class InteractionReads:
    """The part of StoreView that reads interactions. It inherits (STYLE would rather not): a View is one object, in files by noun."""

    _db: Database
    _memory: Memory

    def interaction(self, interaction_id: str) -> Interaction | None:
        """An interaction by its id, open or ended."""
        known = self._memory.interactions.get(interaction_id)
        if known is not None:
            return known
        row = self._db.run_one("SELECT * FROM interaction WHERE interaction_id = ?", (interaction_id,))
        return None if row is None else read_interaction(row)

    def interaction_of_call(self, call_number: int) -> Interaction | None:
        """The interaction that an interactive call is."""
        for known in self._memory.interactions.values():
            if known.call_number == call_number:
                return known
        row = self._db.run_one("SELECT * FROM interaction WHERE call_number = ?", (call_number,))
        return None if row is None else read_interaction(row)

    def open_interactions(self) -> Sequence[Interaction]:
        """Those without an outcome, oldest first."""
        return sorted(self._memory.interactions.values(), key=lambda one: one.number)

    def is_allowed(self, policy: str) -> bool:
        """What the person allows by this name."""
        return policy in self._memory.policies

    def interactions(self, *, state: str | None = None, before: int | None = None, limit: int = 50) -> Sequence[Interaction]:
        """For listing: those with a number below `before`, newest first. state: open | ended | one status | None for all."""
        top = _FOREVER if before is None else before
        if state is None:
            rows = self._db.run("SELECT * FROM interaction WHERE number < ? ORDER BY number DESC LIMIT ?", (top, limit))
        elif state == "ended":
            rows = self._db.run(
                "SELECT * FROM interaction WHERE number < ? AND +status NOT IN ('pending', 'presented') ORDER BY number DESC LIMIT ?",
                (top, limit),
            )
        elif state == "open":
            rows = self._db.run(
                "SELECT * FROM interaction WHERE status IN ('pending', 'presented') AND number < ? ORDER BY number DESC LIMIT ?",
                (top, limit),
            )
        else:
            rows = self._db.run(
                "SELECT * FROM interaction WHERE status = ? AND number < ? ORDER BY number DESC LIMIT ?",
                (InteractionStatus(state), top, limit),
            )
        return [read_interaction(row) for row in rows]
