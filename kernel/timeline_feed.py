"""Feeds the system App what its projection of the timeline is made of: entries, and calls once they ended (SPEC 7.2, 9.3).

Rules:
1. It tells, and nothing waits for it: the entries are in the store and every host reads them there. One reader at a time.
2. A new reader gets the newest window; then what changed, newest state only, at most once in HOLD_SECONDS: a crowd of calls costs the
   reader a few frames a second. Of more than MAX_CHANGES the oldest are left out; they are below the window anyway.
3. What a life that ended was told is forgotten; the next one subscribes and begins with the window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import trio

from kernel import projection
from kernel.core.decision import FeedTimeline, SendToWorker
from kernel.core.machines import CALL_OPEN
from kernel.core.records import OutboxKind, OutboxRow, Record, TimelineMessage, ToolCall
from kernel.store_view import StoreView
from lineup_sdk.protocol.messages import JsonObject
from lineup_sdk.protocol.system_messages import TimelineChanged

HOLD_SECONDS = 0.25
MAX_CHANGES = 64
_CALL_FIELDS = frozenset({"number", "call_id", "tool_id", "title", "status", "error_code", "updated_at"})


class TimelineFeed:
    """See the head of the file."""

    def __init__(self, view: StoreView, send: Callable[[SendToWorker], None], flush: Callable[[], None]) -> None:
        self._view = view
        self._send = send
        self._flush = flush
        self._reader: FeedTimeline | None = None
        self._changed: dict[tuple[str, int], ToolCall | None] = {}  # in the order of the newest change
        self._has_changed = trio.Event()

    def open(self, effect: FeedTimeline) -> None:
        """Effect: begin to feed this life, with the newest window."""
        self._reader = effect
        self._changed.clear()
        entries = self._view.messages(limit=projection.SNAPSHOT_MESSAGES)
        newest_first = projection.fitting(projection.message_summary(*entry) for entry in reversed(entries))
        self._tell([_change("message", value) for value in newest_first[::-1]])

    def committed(self, records: Sequence[Record]) -> None:
        """Follow what a turn wrote; what belongs to the timeline is told in the next hold."""
        if self._reader is None:
            return
        for record in records:
            match record:
                case TimelineMessage(number=number) | OutboxRow(kind=OutboxKind.MESSAGE, number=number):
                    self._note("message", number, None)
                case ToolCall(number=number) if record.status not in CALL_OPEN:
                    self._note("call", number, record)
                case _:
                    pass

    def _note(self, kind: str, number: int, call: ToolCall | None) -> None:
        self._changed.pop((kind, number), None)
        self._changed[kind, number] = call
        if len(self._changed) > MAX_CHANGES:
            del self._changed[next(iter(self._changed))]
        self._has_changed.set()

    async def run(self) -> None:
        """Tell what changed, hold by hold, for as long as the kernel lives."""
        while True:
            await self._has_changed.wait()
            await trio.sleep(HOLD_SECONDS)
            self._has_changed = trio.Event()
            changed, self._changed = self._changed, {}
            self._tell([found for (kind, number), call in changed.items() if (found := self._read(kind, number, call)) is not None])

    def _read(self, kind: str, number: int, call: ToolCall | None) -> JsonObject | None:
        if call is not None:
            summary = projection.call_summary(self._view, call)
            return _change(kind, {name: value for name, value in summary.items() if name in _CALL_FIELDS})
        entry = self._view.message(number)
        return None if entry is None else _change(kind, projection.message_summary(*entry))

    def _tell(self, changes: list[JsonObject]) -> None:
        reader = self._reader
        if reader is None or not self._is_alive(reader):
            self._reader = None
            return
        for frame in projection.deltas(changes):
            message = TimelineChanged(changes=frame)
            self._send(SendToWorker(instance_id=reader.instance_id, life=reader.life, message=message))
        self._flush()

    def _is_alive(self, reader: FeedTimeline) -> bool:
        instance = self._view.instance(reader.instance_id)
        return instance is not None and instance.life == reader.life


def _change(kind: str, value: Any) -> JsonObject:
    return {"kind": kind, "value": value}
