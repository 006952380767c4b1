"""What the store keeps in memory beside the database, so that a turn need not ask for it.

Rules:
1. It is loaded once at the start and changed only by `remember` and `forget_row`, with what a decision writes. If that write is lost, so
   is the store: it is closed and opened again, and this is loaded anew.
2. It is bounded: the open calls and current instances (SPEC 16), numbers of pending rows, one inventory, one descriptor a tool and those
   that open calls still need.
3. What is open is read from here and nowhere else: a turn asks for its call and its instance several times, and a row costs 20 times
   as much as a look into a dict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kernel.core.decision import KernelBug
from kernel.core.inventory import Enablement, Inventory, PublishedRevision, publish
from kernel.core.machines import CALL_OPEN, INSTANCE_FINAL, INTERACTION_OPEN, OutboxState
from kernel.core.manifest import Manifest, ToolDescriptor
from kernel.core.records import (
    Door,
    FocusStack,
    InboxRow,
    Instance,
    Interaction,
    OutboxRow,
    Policy,
    PublishedInventory,
    Record,
    Source,
    Switch,
    ToolCall,
)


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
        self.open = OpenCalls()
        self.instances: dict[str, Instance] = {}  # neither stopped nor failed, by id, oldest first
        self.touched_ms: dict[str, int] = {}  # boottime of the last record about an instance, in this run only
        self.focus = FocusStack(instance_ids=())
        self.pending_rows: set[int] = set()
        self.interactions: dict[str, Interaction] = {}  # without an outcome, by id
        self.policies: set[str] = set()  # that the person allows
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
                    self.open.follow(record)
                case OutboxRow(state=OutboxState.PENDING):
                    self.pending_rows.add(record.number)
                case OutboxRow():
                    self.pending_rows.discard(record.number)
                case Instance():
                    self._follow_instance(record)
                case FocusStack():
                    self.focus = record
                case Switch():
                    self._follow_switch(record)
                case Interaction():
                    self._follow_interaction(record)
                case Policy(name=name):
                    (self.policies.add if record.allowed else self.policies.discard)(name)
                case PublishedInventory():
                    self._published = PublishedRevision(record.epoch, record.number, record.digest)
                    self._inventory = None
                case Door():
                    self.door = record.destination
                case _:
                    pass  # everything else is read from its row

    def touch(self, records: Iterable[Record], boottime_ms: int) -> None:
        """Note which instances were used at that time (kernel.core.focus, rule 5). Raises nothing; after `remember`."""
        for record in records:
            if isinstance(record, Instance | InboxRow | ToolCall) and record.instance_id in self.instances:
                self.touched_ms[record.instance_id] = boottime_ms

    def forget_row(self, number: int) -> None:
        """Follow the removal of an outbox row."""
        self.pending_rows.discard(number)

    @property
    def inventory(self) -> Inventory:
        """What Manifests and switches ask for: under the published revision, or the next one, which then has to be published."""
        if self._inventory is None:
            self._inventory = publish(self._published, self.epoch, self.manifests, self.enablement)
        return self._inventory

    def _follow_instance(self, instance: Instance) -> None:
        if instance.state in INSTANCE_FINAL:
            self.instances.pop(instance.instance_id, None)
            self.touched_ms.pop(instance.instance_id, None)
        else:
            self.instances[instance.instance_id] = instance

    def _follow_interaction(self, interaction: Interaction) -> None:
        if interaction.status in INTERACTION_OPEN:
            self.interactions[interaction.interaction_id] = interaction
        else:
            self.interactions.pop(interaction.interaction_id, None)

    def _follow_switch(self, switch: Switch) -> None:
        disabled = self.enablement.disabled
        self.enablement = Enablement(disabled - {switch.name} if switch.enabled else disabled | {switch.name})
        self._inventory = None


class OpenCalls:
    """Every call without an outcome, as its record stands now. A turn changes its call several times; the row is written once."""

    def __init__(self) -> None:
        self._by_number: dict[int, ToolCall] = {}
        self._numbers: dict[str, int] = {}  # by call_id
        self._of_instance: dict[str | None, dict[int, ToolCall]] = {}
        self.unwritten: dict[int, ToolCall] = {}  # changed in the transaction under way; written once, at its end

    def __len__(self) -> int:
        return len(self._by_number)

    def follow(self, call: ToolCall) -> None:
        """Take a call as it is now: kept while it is open, and until it is written."""
        self.unwritten[call.number] = call
        before = self._by_number.pop(call.number, None)
        if before is not None:
            self._leave(before)
        if call.status in CALL_OPEN:
            self._by_number[call.number] = call
            self._numbers[call.call_id] = call.number
            self._of_instance.setdefault(call.instance_id, {})[call.number] = call

    def _leave(self, call: ToolCall) -> None:
        del self._numbers[call.call_id]
        others = self._of_instance[call.instance_id]
        del others[call.number]
        if not others:
            del self._of_instance[call.instance_id]

    def by_number(self, number: int) -> ToolCall | None:
        """An open or unwritten call, or None for one that ended or never was."""
        return self._by_number.get(number) or self.unwritten.get(number)

    def by_id(self, call_id: str) -> ToolCall | None:
        """As by_number, by the id its caller gave it."""
        known = self._by_number.get(self._numbers.get(call_id, 0))
        return known or next((call for call in self.unwritten.values() if call.call_id == call_id), None)

    def of_instance(self, instance_id: str) -> Sequence[ToolCall]:
        """Those of one instance, oldest first."""
        calls = self._of_instance.get(instance_id, {})
        return [calls[number] for number in sorted(calls)]

    def all(self) -> Sequence[ToolCall]:
        """Every one, oldest first."""
        return [self._by_number[number] for number in sorted(self._by_number)]
