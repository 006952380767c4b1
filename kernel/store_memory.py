"""What the store keeps in memory beside the database, so that a turn need not ask for it.

Rules:
1. It is loaded once at the start and changed only by `remember` and `forget_row`, with what a decision writes. If that write is lost, so
   is the store: it is closed and opened again, and this is loaded anew.
2. It is bounded: sets of what is open (SPEC 16), one inventory, one descriptor a tool and those that open calls still need.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kernel.core.decision import KernelBug
from kernel.core.inventory import Enablement, Inventory, PublishedRevision, publish
from kernel.core.machines import CALL_OPEN, OutboxState
from kernel.core.manifest import Manifest, ToolDescriptor
from kernel.core.records import Door, OutboxRow, PublishedInventory, Record, Source, Switch, ToolCall


class Memory:
    """The standing facts of one open store."""

    def __init__(self, *, epoch: str, conversation_id: str, manifests: Mapping[str, Manifest]) -> None:
        self.epoch = epoch
        self.conversation_id = conversation_id
        self.manifests = manifests
        self.descriptors: dict[str, ToolDescriptor] = {tool.digest: tool for manifest in manifests.values() for tool in manifest.tools}
        # what a decision changes
        self.enablement = Enablement()
        self.door = Source.AGENT
        self.open_calls: set[int] = set()
        self.pending_rows: set[int] = set()
        self._published: PublishedRevision | None = None
        self._inventory: Inventory | None = None

    def remember(self, records: tuple[Record, ...]) -> None:
        """Follow what a decision writes. Raises: KernelBug when it publishes another inventory than Manifests and switches ask for."""
        self.recall(records)
        if any(isinstance(record, PublishedInventory) for record in records) and self.inventory.published != self._published:
            raise KernelBug("the published inventory is not the one in force")

    def recall(self, records: Iterable[Record]) -> None:
        """Follow records one by one."""
        for record in records:
            match record:
                case ToolCall():
                    _keep(self.open_calls, record.number, is_kept=record.status in CALL_OPEN)
                case OutboxRow():
                    _keep(self.pending_rows, record.number, is_kept=record.state is OutboxState.PENDING)
                case Switch():
                    self._follow_switch(record)
                case PublishedInventory():
                    self._published = PublishedRevision(record.epoch, record.number, record.digest)
                    self._inventory = None
                case Door():
                    self.door = record.destination
                case _:
                    pass  # everything else is read from its row

    def forget_row(self, number: int) -> None:
        """Follow the removal of an outbox row."""
        self.pending_rows.discard(number)

    @property
    def inventory(self) -> Inventory:
        """What Manifests and switches ask for: under the published revision, or the next one, which then has to be published."""
        if self._inventory is None:
            self._inventory = publish(self._published, self.epoch, self.manifests, self.enablement)
        return self._inventory

    def _follow_switch(self, switch: Switch) -> None:
        disabled = self.enablement.disabled
        self.enablement = Enablement(disabled - {switch.name} if switch.enabled else disabled | {switch.name})
        self._inventory = None


def _keep(numbers: set[int], number: int, *, is_kept: bool) -> None:
    if is_kept:
        numbers.add(number)
    else:
        numbers.discard(number)
