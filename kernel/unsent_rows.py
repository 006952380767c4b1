"""The outbox rows of one destination that its port has still to send (SPEC 11.3).

Use: `take(room)` whenever rows may be waiting; `ask_again(number)` for a row whose message came once more.
Rules:
1. New rows come once each, in order. A row that is pending and was taken comes again only when it is asked for.
2. A row that was asked for and is not pending any more does not come: it was acknowledged.
"""

from __future__ import annotations

from kernel.core.records import OutboxRow, Source
from kernel.store_view import StoreView


class UnsentRows:
    """See the head of the file. One for each connection that rows go to."""

    def __init__(self, view: StoreView, destination: Source) -> None:
        self._view = view
        self._destination = destination
        self._newest = 0  # of the rows that were taken
        self._again: set[int] = set()

    def ask_again(self, number: int) -> None:
        """Let a row that was taken come once more; one that was not comes anyway."""
        if number <= self._newest:
            self._again.add(number)

    def take(self, room: int) -> list[OutboxRow]:
        """Those asked for again, and up to `room` new ones."""
        again, self._again = sorted(self._again), set()
        rows = [row for number in again for row in self._pending(number - 1, 1) if row.number == number]
        new = self._pending(self._newest, room) if room > 0 else []
        if new:
            self._newest = new[-1].number
        return [*rows, *new]

    def _pending(self, after: int, limit: int) -> list[OutboxRow]:
        return list(self._view.outbox_pending(self._destination, after, limit))
