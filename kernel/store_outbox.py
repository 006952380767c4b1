"""The outbox as rows: how they are written, read back and found (SPEC 11.3).

Rules:
1. Columns stand in the order of the record's fields, as in kernel/store_rows.py.
2. A row is inserted once; after that only its state, and the receiver's word for a refusal, change.
3. What is pending is found in memory while all of it is held there (kernel/store_memory.py); else, and for all that is not pending,
   a read is served by an index and bounded by a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from kernel.core.machines import OutboxState
from kernel.core.records import OutboxKind, OutboxRow, Source
from kernel.database import Database, Row
from kernel.store_memory import Memory
from kernel.store_rows import Values, read_time, time_value

_PUT_OUTBOX_ROW = """
INSERT INTO outbox_row VALUES (?,?,?,?,?,?,?,?,?,?)
ON CONFLICT (number) DO UPDATE SET state = excluded.state, refused_code = excluded.refused_code
"""

UPDATE_OUTBOX_ROW = "UPDATE outbox_row SET state = ?, refused_code = ? WHERE number = ?"


def _outbox_row_values(r: OutboxRow) -> Values:
    identity = (r.number, r.message_id, r.destination, r.conversation_id, r.kind)
    return (*identity, r.envelope_cbor, time_value(r.created_at), r.call_number, r.state, r.refused_code)


def read_outbox_row(row: Row) -> OutboxRow:
    """An outbox row from its row."""
    return OutboxRow(
        number=row[0],
        message_id=row[1],
        destination=Source(row[2]),
        conversation_id=row[3],
        kind=OutboxKind(row[4]),
        envelope_cbor=row[5],
        created_at=read_time(row[6]),
        call_number=row[7],
        state=OutboxState(row[8]),
        refused_code=row[9],
    )


PUTS: Mapping[type, tuple[str, Callable[[Any], Values]]] = {OutboxRow: (_PUT_OUTBOX_ROW, _outbox_row_values)}


class OutboxReads:
    """What a View tells of the outbox."""

    _db: Database
    _memory: Memory

    def outbox_row(self, message_id: str) -> OutboxRow | None:
        """A pending row by the id of its envelope."""
        number = self._memory.pending_row(message_id)
        if number is None:
            return None
        return self._memory.held_rows.by_number(number) or self._one("SELECT * FROM outbox_row WHERE number = ?", number)

    def outbox_pending(self, destination: Source, after: int, limit: int) -> Sequence[OutboxRow]:
        """Rows a destination has not acknowledged, with a number above `after`, in order."""
        if self._memory.knows_pending:
            return list(islice((row for row in self._memory.held_rows.after(after) if row.destination is destination), limit))
        rows = self._db.run(
            "SELECT * FROM outbox_row WHERE destination = ? AND number > ? AND state = 'pending' ORDER BY number LIMIT ?",
            (destination, after, limit),
        )
        return [read_outbox_row(row) for row in rows]

    def outbox_pending_count(self) -> int:
        """How many rows wait for their acknowledgement, whatever the destination."""
        return len(self._memory.pending_rows)

    def final_row(self, call_number: int) -> OutboxRow | None:
        """The one final row of a call, in any state; None while it is open."""
        known = self._memory.held_rows.final(call_number)
        return known or self._one("SELECT * FROM outbox_row WHERE call_number = ? AND kind = 'final'", call_number)

    def pending_progress_row(self, call_number: int) -> OutboxRow | None:
        """The unacknowledged progress row of a call."""
        if self._memory.knows_pending:
            return self._memory.held_rows.progress(call_number)
        return self._one(
            "SELECT * FROM outbox_row WHERE kind = 'progress' AND call_number = ? AND state = 'pending'"
            " AND kind IN ('progress', 'inventory') ORDER BY number DESC LIMIT 1",
            call_number,
        )

    def pending_inventory_row(self, destination: Source) -> OutboxRow | None:
        """The unacknowledged inventory row for a destination."""
        return self._one(
            "SELECT * FROM outbox_row WHERE kind = 'inventory' AND call_number IS NULL AND destination = ? AND state = 'pending'"
            " AND kind IN ('progress', 'inventory') ORDER BY number DESC LIMIT 1",
            destination,
        )

    def outbox_rows_of_call(self, call_number: int, *, limit: int = 50) -> Sequence[OutboxRow]:
        """The newest rows of a call, oldest first: its final row is always among them."""
        rows = self._db.run(_ROWS_OF_CALL, (call_number, call_number, limit))
        return [read_outbox_row(row) for row in rows][::-1]

    def _one(self, sql: str, value: object) -> OutboxRow | None:
        row = self._db.run_one(sql, (value,))
        return None if row is None else read_outbox_row(row)


# Each half has an index of its own, so that a final row, which every call has, stands in one of them only.
_ROWS_OF_CALL = """SELECT * FROM outbox_row WHERE call_number = ? AND kind = 'final'
  UNION ALL SELECT * FROM outbox_row WHERE call_number = ? AND call_number IS NOT NULL AND kind <> 'final'
  ORDER BY number DESC LIMIT ?"""
