"""A View over dicts, and a World that runs turns over it as the kernel does, without clock, disk or processes.

Rules:
1. DictView keeps what the database would refuse: one final row a call, one call an id, ids never used twice. Breaking one is a KernelBug.
2. A World stands still: time moves by `wait`, ids come from a counter. One command is one turn; what follows (`Then`) is a turn of
   its own, after it. Everything else that would leave the kernel is collected.
3. A refused command leaves exactly its audit row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kernel.core import commands, events
from kernel.core.builtin import RUNTIME
from kernel.core.decision import (
    AuditEntry,
    Decision,
    Detail,
    Effect,
    KernelBug,
    KillWorker,
    Origin,
    Rejected,
    SendToWorker,
    Speaker,
    Stamp,
    StartWorker,
    StopWorker,
    Then,
)
from kernel.core.grants import grants_of
from kernel.core.inventory import Enablement, Inventory, PublishedRevision, publish
from kernel.core.machines import CALL_OPEN, INSTANCE_FINAL, CallStatus, InboxState, InstanceState, OutboxState
from kernel.core.manifest import Manifest, ToolDescriptor, parse_manifest
from kernel.core.records import (
    AppSession,
    Door,
    FocusStack,
    InboxRow,
    Instance,
    KeptDescriptor,
    Key,
    OutboxKind,
    OutboxRow,
    PublishedInventory,
    Record,
    SavedState,
    Source,
    Switch,
    TimelineMessage,
    ToolCall,
    decode_body,
    digest_of_parts,
    encode_body,
)
from kernel.protocol.agent import TOOL_CALL, Envelope, ToolInvoke
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject, Message

EPOCH = "e1"
CONVERSATION = "cnv_e1_main"
START = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)

# ------------------------------------------------------------------------------------ the Apps of the tests

_APPS = json.loads((Path(__file__).parent / "apps.json").read_text("utf-8"))


def manifest_of(scope: str, **changes: Any) -> Manifest:
    """One App of the tests; changes replace top keys of its Manifest."""
    return parse_manifest(deepcopy(_APPS[scope]) | changes)


def renamed(scope: str, new_scope: str) -> Manifest:
    """A copy of an App under another scope."""
    return parse_manifest(json.loads(json.dumps(_APPS[scope]).replace(f'"{scope}', f'"{new_scope}')))


MANIFESTS: Mapping[str, Manifest] = {"runtime": RUNTIME} | {scope: manifest_of(scope) for scope in _APPS}


# ------------------------------------------------------------------------------------ the View

_KEYS: Mapping[type, str] = {
    AppSession: "app_session_id",
    InboxRow: "number",
    Instance: "instance_id",
    KeptDescriptor: "digest",
    Key: "digest",
    OutboxRow: "number",
    PublishedInventory: "number",
    SavedState: "app_session_id",
    Switch: "name",
    TimelineMessage: "number",
    ToolCall: "number",
}


class DictView:
    """All the kernel knows, in dicts."""

    def __init__(self, manifests: Mapping[str, Manifest] = MANIFESTS) -> None:
        self.epoch = EPOCH
        self.conversation_id = CONVERSATION
        self.tables: dict[type, dict[object, Any]] = {kind: {} for kind in (*_KEYS, FocusStack, Door)}
        self.audit: list[AuditEntry] = []
        self.reopen(manifests)

    def reopen(self, manifests: Mapping[str, Manifest]) -> None:
        """What a start makes of what is stored."""
        self.manifests = manifests
        self._descriptors = {tool.digest: tool for manifest in manifests.values() for tool in manifest.tools}
        self._publish()

    def copy(self) -> DictView:
        """Another one with the same content; records are frozen and shared."""
        twin = DictView.__new__(DictView)
        twin.__dict__.update(self.__dict__)
        twin.tables = {kind: dict(table) for kind, table in self.tables.items()}
        twin.audit = list(self.audit)
        twin._descriptors = dict(self._descriptors)
        return twin

    def _publish(self) -> None:
        switches = self._all(Switch)
        self.enablement = Enablement(frozenset(switch.name for switch in switches if not switch.enabled))
        stored = self._all(PublishedInventory)
        newest = max(stored, key=lambda one: one.number) if stored else None
        previous = PublishedRevision(newest.epoch, newest.number, newest.digest) if newest else None
        self.inventory: Inventory = publish(previous, self.epoch, self.manifests, self.enablement)

    # --- writing

    def apply(self, decision: Decision) -> None:
        """Write one decision. Raises: KernelBug where the database would refuse."""
        for number in decision.removed_rows:
            removed = self.tables[OutboxRow].pop(number)
            if removed.state is not OutboxState.PENDING or removed.kind is OutboxKind.FINAL:
                raise KernelBug("this row may not be removed")
        for record in decision.puts:
            self._require_unique(record)
            name = _KEYS.get(type(record))
            self.tables[type(record)][getattr(record, name) if name else None] = record
        self.audit.extend(decision.audit)
        if any(isinstance(record, Switch | PublishedInventory) for record in decision.puts):
            before = self.inventory
            self._publish()
            if self.inventory.content != before.content and self.fingerprint(self.inventory.revision) is None:
                raise KernelBug("the content changed and its revision was not published")

    def _require_unique(self, record: Record) -> None:
        match record:
            case ToolCall():
                twins = [one for one in self._all(ToolCall) if one.call_id == record.call_id and one.number != record.number]
            case OutboxRow(kind=OutboxKind.FINAL):
                twins = [one for one in self._finals(record.call_number) if one.number != record.number]
            case Key():
                old = self.tables[Key].get(record.digest)
                twins = [old] if old is not None and old.content_digest != record.content_digest else []
            case _:
                twins = []
        if twins:
            raise KernelBug(f"a second {type(record).__name__} of that id")

    def _all(self, kind: type) -> list[Any]:
        return list(self.tables[kind].values())

    def _finals(self, call_number: int | None) -> list[OutboxRow]:
        return [row for row in self._all(OutboxRow) if row.kind is OutboxKind.FINAL and row.call_number == call_number]

    # --- reading: the View

    def descriptor(self, digest: str) -> ToolDescriptor:
        if digest not in self._descriptors:
            raise KernelBug("a descriptor that was never kept")
        return self._descriptors[digest]

    def fingerprint(self, revision: str) -> Mapping[str, str] | None:
        found = [one for one in self._all(PublishedInventory) if f"{one.epoch}.{one.number}" == revision]
        return decode_body(found[0].fingerprint_cbor) if found else None

    def key(self, digest: bytes) -> Key | None:
        return self.tables[Key].get(digest)

    def call(self, number: int) -> ToolCall | None:
        return self.tables[ToolCall].get(number)

    def call_by_id(self, call_id: str) -> ToolCall | None:
        return next((call for call in self._all(ToolCall) if call.call_id == call_id), None)

    def _open(self) -> list[ToolCall]:
        return sorted((call for call in self._all(ToolCall) if call.status in CALL_OPEN), key=lambda call: call.number)

    def open_calls(self, instance_id: str) -> Sequence[ToolCall]:
        return [call for call in self._open() if call.instance_id == instance_id]

    def open_calls_of_app(self, app_scope: str) -> Sequence[ToolCall]:
        return [call for call in self._open() if call.app_scope == app_scope]

    def unrouted_calls(self) -> Sequence[ToolCall]:
        return [call for call in self._open() if call.status in {CallStatus.RECEIVED, CallStatus.ROUTING}]

    def due_calls(self, boottime_ms: int, limit: int) -> Sequence[ToolCall]:
        due = [(at, call) for call in self._open() if (at := _due_ms(call)) is not None and at <= boottime_ms]
        return [call for _, call in sorted(due, key=lambda pair: pair[0])][:limit]

    def next_deadline_ms(self) -> int | None:
        return min((at for call in self._open() if (at := _due_ms(call)) is not None), default=None)

    def open_call_count(self) -> int:
        return len(self._open())

    def instance(self, instance_id: str) -> Instance | None:
        return self.tables[Instance].get(instance_id)

    def current_instance(self, app_scope: str) -> Instance | None:
        gone = {*INSTANCE_FINAL, InstanceState.STOPPING}
        return next((one for one in self._all(Instance) if one.app_scope == app_scope and one.state not in gone), None)

    def current_instances(self) -> Sequence[Instance]:
        return sorted((one for one in self._all(Instance) if one.state not in INSTANCE_FINAL), key=lambda one: one.number)

    def focus(self) -> FocusStack:
        return self.tables[FocusStack].get(None, FocusStack(instance_ids=()))

    def open_session(self, app_scope: str) -> AppSession | None:
        found = [one for one in self._all(AppSession) if one.app_scope == app_scope and one.closed_at is None]
        return max(found, key=lambda one: one.number, default=None)

    def saved_state(self, app_session_id: str) -> SavedState | None:
        return self.tables[SavedState].get(app_session_id)

    def _inbox(self, instance_id: str) -> list[InboxRow]:
        rows = (row for row in self._all(InboxRow) if row.instance_id == instance_id)
        return sorted(rows, key=lambda row: row.number)

    def inbox_row(self, instance_id: str, message_id: str) -> InboxRow | None:
        return next((row for row in self._inbox(instance_id) if row.message_id == message_id), None)

    def inbox_rows(self, instance_id: str, after: int, limit: int) -> Sequence[InboxRow]:
        rows = (row for row in self._inbox(instance_id) if row.state is InboxState.DELIVERABLE and row.number > after)
        return list(rows)[:limit]

    def inbox_size(self, instance_id: str) -> tuple[int, int]:
        held = [row for row in self._inbox(instance_id) if row.state is not InboxState.ACKNOWLEDGED]
        return len(held), sum(len(row.body_cbor) for row in held)

    def _pending(self) -> list[OutboxRow]:
        return sorted((row for row in self._all(OutboxRow) if row.state is OutboxState.PENDING), key=lambda row: row.number)

    def outbox_row(self, message_id: str) -> OutboxRow | None:
        return next((row for row in self._all(OutboxRow) if row.message_id == message_id), None)

    def outbox_pending(self, destination: Source, after: int, limit: int) -> Sequence[OutboxRow]:
        return [row for row in self._pending() if row.destination is destination and row.number > after][:limit]

    def outbox_pending_count(self) -> int:
        return len(self._pending())

    def final_row(self, call_number: int) -> OutboxRow | None:
        return next(iter(self._finals(call_number)), None)

    def pending_progress_row(self, call_number: int) -> OutboxRow | None:
        rows = (row for row in self._pending() if row.kind is OutboxKind.PROGRESS and row.call_number == call_number)
        return next(rows, None)

    def pending_inventory_row(self, destination: Source) -> OutboxRow | None:
        rows = (row for row in self._pending() if row.kind is OutboxKind.INVENTORY and row.destination is destination)
        return next(rows, None)

    def door(self) -> Source:
        door = self.tables[Door].get(None)
        return door.destination if door else Source.AGENT


def _due_ms(call: ToolCall) -> int | None:
    return min((deadline.at_ms for deadline in (call.deadline, call.cancel_deadline) if deadline), default=None)


# ------------------------------------------------------------------------------------ the World

KERNEL = Origin(speaker=Speaker.KERNEL)
AGENT = Origin(speaker=Speaker.AGENT, source=Source.AGENT)
DEMO = Origin(speaker=Speaker.AGENT, source=Source.DEMO)
PERSON = Origin(speaker=Speaker.VIEW, source=Source.PERSON)


@dataclass(frozen=True)
class Outcome:
    """How a command ended, with all that it and its followers wrote and set off."""

    code: Code | None
    value: JsonObject | None
    detail: Detail | None
    decisions: tuple[Decision, ...]

    @property
    def audit(self) -> list[str]:
        """Events, in order; a refused command is `command.refused`."""
        return [entry.event for decision in self.decisions for entry in decision.audit]

    @property
    def puts(self) -> list[Record]:
        """Records, in order."""
        return [record for decision in self.decisions for record in decision.puts]

    @property
    def sent(self) -> list[tuple[str, Message]]:
        """(instance id, message) for every frame to a worker."""
        return [(effect.instance_id, effect.message) for effect in self.effects if isinstance(effect, SendToWorker)]

    @property
    def sent_types(self) -> list[str]:
        """The types of those frames."""
        return [message.TYPE for _, message in self.sent]

    @property
    def effects(self) -> list[Effect]:
        """Every effect that leaves the kernel."""
        return [effect for decision in self.decisions for effect in decision.effects if not isinstance(effect, Then)]

    @property
    def processes(self) -> list[str]:
        """start, stop and kill of processes, in order."""
        names = {StartWorker: "start", StopWorker: "stop", KillWorker: "kill"}
        return [names[type(effect)] for effect in self.effects if type(effect) in names]

    @property
    def outbox(self) -> list[JsonObject]:
        """The envelopes that it wrote."""
        return [decode_body(record.envelope_cbor) for record in self.puts if isinstance(record, OutboxRow)]


@dataclass
class World:
    """See the head of the file."""

    view: DictView = field(default_factory=DictView)
    boot_id: str = "boot-1"
    boottime_ms: int = 1_000_000
    now: datetime = START
    next_number: int = 1
    turns: int = 0

    def copy(self) -> World:
        """A second world that goes on from here."""
        return replace(self, view=self.view.copy())

    def wait(self, milliseconds: int) -> None:
        """Let time pass; nothing happens by itself."""
        self.boottime_ms += milliseconds
        self.now += timedelta(milliseconds=milliseconds)

    def say(self, origin: Origin, command: object) -> Outcome:
        """Run one command, and what follows from it."""
        first = self._turn(origin, command)
        decisions = list(first.decisions)
        waiting = [effect.command for decision in decisions for effect in decision.effects if isinstance(effect, Then)]
        while waiting:
            done = self._turn(KERNEL, waiting.pop(0))
            decisions.extend(done.decisions)
            waiting.extend(effect.command for decision in done.decisions for effect in decision.effects if isinstance(effect, Then))
        return replace(first, decisions=tuple(decisions))

    def only(self, origin: Origin, command: object) -> Outcome:
        """Run one command and leave what follows from it undone, as a death of the kernel would."""
        return self._turn(origin, command)

    def _turn(self, origin: Origin, command: object) -> Outcome:
        self.turns += 1
        stamp = Stamp(
            now=self.now,
            boot_id=self.boot_id,
            boottime_ms=self.boottime_ms,
            token=f"{self.turns:032x}",
            first_number=self.next_number,
        )
        try:
            decision = commands.decide(self.view, origin, stamp, command)
        except Rejected as refusal:
            decision = Decision(audit=(AuditEntry(event="command.refused", code=refusal.code),))
            outcome = Outcome(refusal.code, None, refusal.detail, (decision,))
        else:
            outcome = Outcome(decision.refusal, decision.value, decision.detail, (decision,))
        _require_numbers(decision, stamp)
        self.view.apply(decision)
        self.next_number += decision.numbers_used
        return outcome

    # --- who speaks

    def worker(self, instance_id: str, life: int | None = None) -> Origin:
        """The worker of an instance: of its present life, or of another."""
        instance = self.instance(instance_id)
        grants = grants_of(self.view.manifests[instance.app_scope].kind)
        life = instance.life if life is None else life
        return Origin(speaker=Speaker.WORKER, instance_id=instance_id, app_scope=instance.app_scope, life=life, grants=grants)

    def tell(self, instance_id: str, message: Message) -> Outcome:
        """A message of the worker's present life."""
        return self.say(self.worker(instance_id), message)

    # --- what there is

    def instance(self, instance_id: str) -> Instance:
        """An instance that is known to be there."""
        found = self.view.instance(instance_id)
        assert found is not None
        return found

    def call(self, call_id: str) -> ToolCall:
        """A call that is known to be there."""
        found = self.view.call_by_id(call_id)
        assert found is not None
        return found

    def current(self, app_scope: str) -> Instance:
        """The App's one instance."""
        found = self.view.current_instance(app_scope)
        assert found is not None
        return found

    def rows(self, kind: type) -> list[Any]:
        """Every record of a kind, by number where it has one."""
        return sorted(self.view.tables[kind].values(), key=lambda record: getattr(record, "number", 0))

    # --- what happens often

    def boot(self, *, manifests: Mapping[str, Manifest] | None = None) -> Outcome:
        """A start of the kernel over what is stored."""
        self.view.reopen(self.view.manifests if manifests is None else manifests)
        return self.say(KERNEL, events.Booted())

    def invoke(self, call_id: str, tool_id: str, given: JsonObject | None = None, *, by: Origin = AGENT, **more: Any) -> Outcome:
        """A call under the inventory in force."""
        more = {"inventory_revision": self.view.inventory.revision, "envelope": None} | more
        return self.say(by, ToolInvoke(call_id=call_id, tool_id=tool_id, input=given or {}, **more))

    def start(self, instance_id: str) -> Outcome:
        """The worker comes up: subscribed to both, then started."""
        self.tell(instance_id, m.ToolsSubscribe())
        self.tell(instance_id, m.InboxSubscribe())
        return self.tell(instance_id, m.LifecycleStarted())

    def die(self, instance_id: str, death: events.Death = events.Death.CRASH) -> Outcome:
        """The process of the present life is gone."""
        life = self.instance(instance_id).life
        return self.say(KERNEL, events.WorkerExited(instance_id=instance_id, life=life, death=death))

    def pass_time(self, milliseconds: int = 0) -> Outcome:
        """Wait, then look what is due."""
        self.wait(milliseconds)
        return self.say(KERNEL, events.TimePassed())

    def running(self, call_id: str, tool_id: str, given: JsonObject | None = None, **more: Any) -> str:
        """A call that its worker works on; gives the instance id."""
        assert self.invoke(call_id, tool_id, given, **more).code is None
        instance_id = self.call(call_id).instance_id
        assert instance_id is not None
        if self.instance(instance_id).state is InstanceState.STARTING:
            self.start(instance_id)
        assert self.tell(instance_id, m.ToolAccept(call_id=call_id)).code is None
        return instance_id


def _require_numbers(decision: Decision, stamp: Stamp) -> None:
    """Every new number comes from the turn, and every number it took is counted."""
    top = stamp.first_number + decision.numbers_used
    taken = [number for record in decision.puts if (number := getattr(record, "number", None)) is not None]
    if any(number >= top for number in taken if not isinstance(number, bool)):
        raise KernelBug("a number that the turn did not count")


def envelope(message_id: str, type_: str = TOOL_CALL, *, conversation_id: str = CONVERSATION, content: str = "", **more: Any) -> Envelope:
    """The outer part of what an Agent sent; content stands for its bytes."""
    digest = digest_of_parts(message_id, type_, conversation_id, content)
    facts: dict[str, Any] = {"app_scope": None, "instance_id": None, "created_at": "2030-01-02T03:04:05Z"} | more
    return Envelope(type=type_, message_id=message_id, conversation_id=conversation_id, digest=digest, **facts)


def body(value: JsonObject) -> bytes:
    """A body as the kernel stores it."""
    return encode_body(value)
