"""The World of the core's tests over a real Store, and every row of a Store as the record it was.

Rules:
1. `boot` is a real start: the store is closed and opened again; nothing but the database goes on.
2. What the store's view cannot do, a decider that works over a DictView must not need: the same stories run over both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kernel.core.capability_records import CapabilityRequest
from kernel.core.decision import Decision, Origin, Stamp
from kernel.core.events import Booted
from kernel.core.manifest import Manifest
from kernel.core.records import AppSession, InboxRow, Instance, Interaction, OutboxRow, TimelineMessage, ToolCall
from kernel.core.surface_records import Artifact, Surface
from kernel.store import Store
from kernel.store_interactions import read_interaction
from kernel.store_outbox import read_outbox_row
from kernel.store_rows import (
    read_app_session,
    read_inbox_row,
    read_instance,
    read_timeline_message,
    read_tool_call,
)
from kernel.store_surface_rows import read_artifact, read_surface
from tests.core.dict_view import CONVERSATION, EPOCH, MANIFESTS
from tests.core.world import KERNEL, START, Outcome, World

_ROWS: Mapping[type, tuple[str, Callable[[Any], Any]]] = {
    AppSession: ("SELECT * FROM app_session ORDER BY number", read_app_session),
    Artifact: ("SELECT * FROM artifact ORDER BY number", read_artifact),
    InboxRow: ("SELECT * FROM inbox_row ORDER BY number", read_inbox_row),
    Instance: ("SELECT * FROM instance ORDER BY number", read_instance),
    Interaction: ("SELECT * FROM interaction ORDER BY number", read_interaction),
    OutboxRow: ("SELECT * FROM outbox_row ORDER BY number", read_outbox_row),
    Surface: ("SELECT * FROM surface ORDER BY number", read_surface),
    TimelineMessage: ("SELECT * FROM timeline_message ORDER BY number", read_timeline_message),
    ToolCall: ("SELECT * FROM tool_call ORDER BY number", read_tool_call),
}
STORED = (*_ROWS, CapabilityRequest)


def rows_of(store: Store, kind: type) -> list[Any]:
    """Every record of a kind there is, by number."""
    if kind is CapabilityRequest:
        return list(reversed(store.view.capabilities.requests(limit=10_000)))
    sql, read = _ROWS[kind]
    return [read(row) for row in store._db.run(sql)]


class StoredWorld(World):
    """See the head of the file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.store = self._open(MANIFESTS)
        self.boot_id, self.boottime_ms, self.now, self.turns = "boot-1", 1_000_000, START, 0

    def _open(self, manifests: Mapping[str, Manifest]) -> Store:
        return Store.open(
            self._folder / "kernel.db",
            manifests=manifests,
            make_epoch=lambda: EPOCH,
            make_id=lambda kind, epoch: CONVERSATION,
            now=lambda: START,
        )

    @property
    def view(self) -> Any:  # type: ignore[override]
        """The view of the store that is open."""
        return self.store.view

    @property
    def next_number(self) -> int:  # type: ignore[override]
        """The store counts."""
        return self.store.next_number

    def write(self, decision: Decision, stamp: Stamp, origin: Origin, command: str) -> None:
        """Store what a turn decided, in a commit of its own."""
        self.store.begin()
        self.store.apply(decision, stamp=stamp, origin=origin, command=command)
        self.store.commit()

    def rows(self, kind: type) -> list[Any]:
        """Every record of a kind, by number."""
        return rows_of(self.store, kind)

    def boot(self, *, manifests: Mapping[str, Manifest] | None = None) -> Outcome:
        """A start of the kernel over what is stored."""
        manifests = self.view.manifests if manifests is None else manifests
        self.store.close()
        self.store = self._open(manifests)
        return self.say(KERNEL, Booted())
