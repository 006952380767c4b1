"""What the store keeps in memory beside the database, so that a turn need not ask for it.

Rules:
1. It is loaded once at the start and changed only by `remember` and `forget_row`, with what a decision writes. If that write is lost, so
   is the store: it is closed and opened again, and this is loaded anew.
2. It is bounded: the open calls and current instances (SPEC 16), ids of pending rows, those of them that fit MAX_HELD_BYTES, the
   newest MAX_ENDED_CALLS of the calls that wait for their acknowledgement, one inventory, one descriptor a tool and those that open
   calls still need.
3. What is open is read from here and nowhere else: a turn asks for its call and its instance several times, and a row costs 20 times
   as much as a look into a dict. What may be missing here, pending rows and calls that ended, is then read from its row.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, KeysView, Mapping, Sequence
from typing import Any, ClassVar

from kernel.core.decision import KernelBug
from kernel.core.inventory import Enablement, Inventory, PublishedRevision, publish
from kernel.core.machines import CALL_OPEN, INSTANCE_FINAL, INTERACTION_OPEN, CallStatus, OutboxState
from kernel.core.manifest import Manifest, ToolDescriptor
from kernel.core.records import (
    Door,
    FocusStack,
    InboxRow,
    Instance,
    Interaction,
    OutboxKind,
    OutboxRow,
    Policy,
    PublishedInventory,
    Record,
    Source,
    Switch,
    ToolCall,
)

MAX_HELD_BYTES = 16 * 1024 * 1024  # of envelopes of pending rows
MAX_ENDED_CALLS = 256
_ABOUT_INSTANCES = (InboxRow, Instance, ToolCall)


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
        self._pending: dict[int, str] = {}  # message id by number of the row
        self._pending_numbers: dict[str, int] = {}
        self.held_rows = HeldRows()
        self.interactions: dict[str, Interaction] = {}  # without an outcome, by id
        self.policies: set[str] = set()  # that the person allows
        self._published: PublishedRevision | None = None
        self._inventory: Inventory | None = None

    def take_over(self, reread: Memory) -> None:
        """Become what was read again; when instances were last used is of this run and stays."""
        vars(self).update(vars(reread) | {"touched_ms": self.touched_ms})

    def remember(self, records: tuple[Record, ...]) -> None:
        """Follow what a decision writes. Raises: KernelBug when it publishes another inventory than Manifests and switches ask for."""
        published = self._published
        self.recall(records)
        if self._published is not published and self.inventory.published != self._published:
            raise KernelBug("the published inventory is not the one in force")

    def recall(self, records: Iterable[Record]) -> None:
        """Follow records one by one; what is not in _FOLLOW is read from its row."""
        for record in records:
            follow = self._FOLLOW.get(type(record))
            if follow is not None:
                follow(self, record)

    def touch(self, records: Iterable[Record], boottime_ms: int) -> None:
        """Note which instances were used at that time (kernel.core.focus, rule 5). Raises nothing; after `remember`."""
        for record in records:
            instance_id = record.instance_id if isinstance(record, _ABOUT_INSTANCES) else None
            if instance_id is not None and instance_id in self.instances:
                self.touched_ms[instance_id] = boottime_ms

    def forget_row(self, number: int) -> None:
        """Follow the removal of an outbox row."""
        message_id = self._pending.pop(number, None)
        if message_id is not None:
            del self._pending_numbers[message_id]
        self.held_rows.drop(number)

    def note_pending(self, number: int, message_id: str) -> None:
        """Note an outbox row that waits for its acknowledgement."""
        self._pending[number] = message_id
        self._pending_numbers[message_id] = number

    @property
    def pending_rows(self) -> KeysView[int]:
        """The numbers of all rows that wait for their acknowledgement."""
        return self._pending.keys()

    def pending_row(self, message_id: str) -> int | None:
        """The number of the pending row with that envelope."""
        return self._pending_numbers.get(message_id)

    @property
    def knows_pending(self) -> bool:
        """True when every pending row is held: what is not among them is not pending."""
        return len(self.held_rows) == len(self._pending)

    @property
    def inventory(self) -> Inventory:
        """What Manifests and switches ask for: under the published revision, or the next one, which then has to be published."""
        if self._inventory is None:
            self._inventory = publish(self._published, self.epoch, self.manifests, self.enablement)
        return self._inventory

    def _follow_call(self, call: ToolCall) -> None:
        self.open.follow(call)

    def _follow_row(self, row: OutboxRow) -> None:
        if row.state is OutboxState.PENDING:
            self.note_pending(row.number, row.message_id)
            self.held_rows.hold(row)
        else:
            self.forget_row(row.number)

    def _follow_focus(self, focus: FocusStack) -> None:
        self.focus = focus

    def _follow_policy(self, policy: Policy) -> None:
        (self.policies.add if policy.allowed else self.policies.discard)(policy.name)

    def _follow_published(self, record: PublishedInventory) -> None:
        self._published = PublishedRevision(record.epoch, record.number, record.digest)
        self._inventory = None

    def _follow_door(self, door: Door) -> None:
        self.door = door.destination

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

    # By type and not by `match`: most of what a turn writes is of three kinds, or of none of these.
    _FOLLOW: ClassVar[Mapping[type, Callable[[Memory, Any], None]]] = {
        Door: _follow_door,
        FocusStack: _follow_focus,
        Instance: _follow_instance,
        Interaction: _follow_interaction,
        OutboxRow: _follow_row,
        Policy: _follow_policy,
        PublishedInventory: _follow_published,
        Switch: _follow_switch,
        ToolCall: _follow_call,
    }


class HeldRows:
    """Pending outbox rows as they stand, as long as their envelopes fit MAX_HELD_BYTES; those of before this start are never held."""

    def __init__(self) -> None:
        self._rows: dict[int, OutboxRow] = {}
        self._numbers: list[int] = []  # rising
        self._final_of: dict[int | None, OutboxRow] = {}  # by number of the call
        self._progress_of: dict[int | None, OutboxRow] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._rows)

    def hold(self, row: OutboxRow) -> None:
        """Hold a pending row if there is room."""
        self.drop(row.number)
        if self._bytes + len(row.envelope_cbor) > MAX_HELD_BYTES:
            return
        self._bytes += len(row.envelope_cbor)
        self._rows[row.number] = row
        insort(self._numbers, row.number)
        of_call = self._of_call(row)
        if of_call is not None:
            of_call[row.call_number] = row

    def drop(self, number: int) -> None:
        """Forget a row: it is pending no longer, or gone."""
        row = self._rows.pop(number, None)
        if row is None:
            return
        self._bytes -= len(row.envelope_cbor)
        del self._numbers[bisect_left(self._numbers, number)]
        of_call = self._of_call(row)
        if of_call is not None and of_call.get(row.call_number) is row:
            del of_call[row.call_number]

    def _of_call(self, row: OutboxRow) -> dict[int | None, OutboxRow] | None:
        return {OutboxKind.FINAL: self._final_of, OutboxKind.PROGRESS: self._progress_of}.get(row.kind)

    def by_number(self, number: int) -> OutboxRow | None:
        """The one with that number, if it is held."""
        return self._rows.get(number)

    def final(self, call_number: int) -> OutboxRow | None:
        """The final row of a call, if it is held."""
        return self._final_of.get(call_number)

    def progress(self, call_number: int) -> OutboxRow | None:
        """The newest progress row of a call, if it is held."""
        return self._progress_of.get(call_number)

    def after(self, number: int) -> Iterable[OutboxRow]:
        """Those with a number above that, rising."""
        return (self._rows[one] for one in self._numbers[bisect_right(self._numbers, number) :])


class OpenCalls:
    """Every call without an outcome, as its record stands now. A turn changes its call several times; the row is written once.

    The newest of those whose result waits to be acknowledged are kept too: the acknowledgement asks for them.
    """

    def __init__(self) -> None:
        self._by_number: dict[int, ToolCall] = {}
        self._numbers: dict[str, int] = {}  # by call_id
        self._of_instance: dict[str | None, dict[int, ToolCall]] = {}
        self._submitted: dict[int, ToolCall] = {}  # oldest first, at most MAX_ENDED_CALLS
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
        elif call.status is CallStatus.SUBMITTED:
            self._submitted[call.number] = call
            if len(self._submitted) > MAX_ENDED_CALLS:
                del self._submitted[next(iter(self._submitted))]
        else:
            self._submitted.pop(call.number, None)

    def _leave(self, call: ToolCall) -> None:
        del self._numbers[call.call_id]
        others = self._of_instance[call.instance_id]
        del others[call.number]
        if not others:
            del self._of_instance[call.instance_id]

    def by_number(self, number: int) -> ToolCall | None:
        """An open or unwritten call, or one kept for its acknowledgement; None for any other."""
        return self._by_number.get(number) or self.unwritten.get(number) or self._submitted.get(number)

    def by_id(self, call_id: str) -> ToolCall | None:
        """An open or unwritten call by the id its caller gave it."""
        known = self._by_number.get(self._numbers.get(call_id, 0))
        return known or next((call for call in self.unwritten.values() if call.call_id == call_id), None)

    def of_instance(self, instance_id: str) -> Sequence[ToolCall]:
        """Those of one instance, oldest first."""
        calls = self._of_instance.get(instance_id, {})
        return [calls[number] for number in sorted(calls)]

    def oldest(self, next_number: int) -> int:
        """The number of the oldest, or the next number that will be given when there is none."""
        return min(self._by_number, default=next_number)

    def all(self) -> Sequence[ToolCall]:
        """Every one, oldest first."""
        return [self._by_number[number] for number in sorted(self._by_number)]
