"""What a decider gets and what it gives: View, Origin, Stamp in; Decision or Rejected out.

Rules:
1. A View is a snapshot of the store at the start of the turn; it never shows what this turn writes. The Draft does.
2. Origin is stamped from the socket; nothing in a payload can change it. Stamp holds the only time and randomness of a turn.
3. A decider refuses before it writes: Rejected leaves nothing but its audit row.
4. Effects are imperatives; they leave only after the commit and are safe to send again.
5. Stamp and Decision are made in every turn: named tuples, at a quarter of a frozen dataclass's cost. An Origin is copied for every
   request and has no slots (kernel.core.records, rule 3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeVar

from kernel.core.capability_records import CapabilityRequest, CapabilityView, Permission
from kernel.core.interaction_view import InteractionView
from kernel.core.inventory import Enablement, Inventory
from kernel.core.manifest import Manifest, ToolDescriptor
from kernel.core.record_keys import key_of
from kernel.core.records import (
    AppSession,
    Deadline,
    FocusStack,
    InboxRow,
    Instance,
    Interaction,
    Key,
    OutboxRow,
    Record,
    SavedState,
    Source,
    TimelineMessage,
    ToolCall,
)
from kernel.core.retention_view import RetentionView
from kernel.core.session_view import SessionView
from kernel.core.surface_effects import SurfaceEffect
from kernel.core.surface_records import ArtifactView, SurfaceView
from kernel.core.upkeep_effects import MakeBackup
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject, Message


class Rejected(Exception):
    """The asker did something that is not allowed. detail says where and what was expected, never the refused value."""

    def __init__(self, code: Code, detail: Detail | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail


class KernelBug(Exception):
    """An invariant of the kernel broke. Never caught to go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """Why and where (SPEC 2.5)."""

    pointer: str = ""
    expected: str | None = None
    got_type: str | None = None
    got_size: int | None = None
    hint: str | None = None
    more: JsonObject = field(default_factory=dict)  # a few fixed facts, such as the current revision

    def as_json(self) -> JsonObject:
        """The wire form, absent fields left out."""
        facts = {
            "pointer": self.pointer,
            "expected": self.expected,
            "got_type": self.got_type,
            "got_size": self.got_size,
            "hint": self.hint,
        }
        return {name: value for name, value in facts.items() if value is not None} | self.more


class Speaker(StrEnum):
    """Who can start a turn."""

    WORKER = "worker"
    AGENT = "agent"
    VIEW = "view"  # views and admins: the person
    KERNEL = "kernel"


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Who speaks. Made by the ports from the socket, and by turns for the kernel's own commands."""

    speaker: Speaker
    channel: int = 0  # the port's own key, to answer on
    request_id: int | None = None
    # --- a worker
    instance_id: str = ""
    app_scope: str = ""
    life: int = 0
    grants: frozenset[str] = frozenset()
    # --- a door or a view
    source: Source = Source.PERSON
    view_id: str = ""


class Stamp(NamedTuple):
    """The time and randomness of one turn. boottime_ms is CLOCK_BOOTTIME; token is 128 random bits in hex."""

    now: datetime
    boot_id: str
    boottime_ms: int
    token: str
    first_number: int

    def deadline_in(self, milliseconds: int) -> Deadline:
        """A deadline that much machine time from now."""
        return Deadline(self.boot_id, self.boottime_ms + milliseconds)

    def new_id(self, kind: str, epoch: str, counter: int = 0) -> str:
        """A kernel-made id: kind, epoch, 128 random bits, and a counter within the turn."""
        return f"{kind}_{epoch}_{self.token}{counter:02x}"


class View(InteractionView, Protocol):
    """A read-only snapshot of all the kernel knows. "Open" is machines.CALL_OPEN; lists of calls and instances go by number."""

    @property
    def epoch(self) -> str: ...
    @property
    def conversation_id(self) -> str: ...
    @property
    def inventory(self) -> Inventory: ...  # in force: of these manifests and switches, published by a record or about to be
    @property
    def enablement(self) -> Enablement: ...
    @property
    def manifests(self) -> Mapping[str, Manifest]: ...
    @property
    def sessions(self) -> SessionView: ...
    @property
    def retention(self) -> RetentionView: ...
    @property
    def surfaces(self) -> SurfaceView: ...
    @property
    def artifacts(self) -> ArtifactView: ...
    @property
    def capabilities(self) -> CapabilityView: ...

    def descriptor(self, digest: str) -> ToolDescriptor: ...  # of any tool ever published; KernelBug for another
    def fingerprint(self, revision: str) -> Mapping[str, str] | None: ...  # None: never published here
    def key(self, digest: bytes) -> Key | None: ...

    def call(self, number: int) -> ToolCall | None: ...
    def call_by_id(self, call_id: str) -> ToolCall | None: ...
    def open_calls(self, instance_id: str) -> Sequence[ToolCall]: ...  # also received ones that name it
    def open_calls_of_app(self, app_scope: str) -> Sequence[ToolCall]: ...
    def unrouted_calls(self) -> Sequence[ToolCall]: ...  # received or routing
    def due_calls(self, boottime_ms: int, limit: int) -> Sequence[ToolCall]: ...  # open, either deadline <= boottime_ms, earliest first
    def next_deadline_ms(self) -> int | None: ...  # the earliest of any open call, interaction or grant
    def open_call_count(self) -> int: ...

    def instance(self, instance_id: str) -> Instance | None: ...  # in any state
    def current_instance(self, app_scope: str) -> Instance | None: ...  # not stopping, stopped or failed
    def quiet_since_ms(self, instance_id: str) -> int: ...  # boottime at which a record about it was last written; 0 before
    def current_instances(self) -> Sequence[Instance]: ...  # not stopped or failed: stopping ones too
    def focus(self) -> FocusStack: ...  # empty before the first change
    def open_session(self, app_scope: str) -> AppSession | None: ...  # the newest that is not closed
    def timeline_entry(self, number: int) -> TimelineMessage | None: ...
    def saved_state(self, app_session_id: str) -> SavedState | None: ...

    def inbox_row(self, instance_id: str, message_id: str) -> InboxRow | None: ...  # in any state; None for another's
    def inbox_row_by_number(self, number: int) -> InboxRow | None: ...  # in any state
    def inbox_rows(self, instance_id: str, after: int, limit: int) -> Sequence[InboxRow]: ...  # deliverable, number > after, rising
    def inbox_size(self, instance_id: str) -> tuple[int, int]: ...  # rows and body bytes of deliverable and parked ones

    def outbox_row(self, message_id: str) -> OutboxRow | None: ...  # a pending one
    def outbox_pending(self, destination: Source, after: int, limit: int) -> Sequence[OutboxRow]: ...  # number > after, rising
    def outbox_pending_count(self) -> int: ...  # of all destinations
    def final_row(self, call_number: int) -> OutboxRow | None: ...  # in any state
    def pending_progress_row(self, call_number: int) -> OutboxRow | None: ...
    def pending_inventory_row(self, destination: Source) -> OutboxRow | None: ...
    def door(self) -> Source: ...  # Source.AGENT before any Agent came


# --------------------------------------------------------------------------------- effects


@dataclass(frozen=True, slots=True, kw_only=True)
class StartWorker:
    """Give the instance a process of this life, after a wait."""

    instance_id: str
    life: int
    delay_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StopWorker:
    """Tell the process to finish, kill it after deadline_ms. reason: close | suspend | shutdown."""

    instance_id: str
    life: int
    reason: str
    deadline_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KillWorker:
    """End the process now; its death counts as no crash."""

    instance_id: str
    life: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SendToWorker:
    """Put a message on the channel of that life, if it still stands."""

    instance_id: str
    life: int
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Then:
    """Go on with this command in a turn of its own."""

    command: object


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmDeadline:
    """Wake the kernel at this boottime at the latest."""

    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PumpOutbox:
    """Rows of this destination may be waiting. resend_number names one acknowledged before that was asked for again."""

    destination: Source
    resend_number: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedTimeline:
    """Tell that life of the system App the newest window of the timeline, and from now on what changes in it."""

    instance_id: str
    life: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StopKernel:
    """End the kernel tidily."""


Effect = (
    ArmDeadline
    | FeedTimeline
    | KillWorker
    | MakeBackup
    | PumpOutbox
    | SendToWorker
    | StartWorker
    | StopKernel
    | StopWorker
    | SurfaceEffect
    | Then
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One decision, content-free (SPEC 17): only numbers, codes and ids that the kernel made."""

    event: str  # noun.past, a word of this code
    number: int | None = None  # of the call, message or row it is about
    instance_id: str | None = None
    code: Code | None = None
    count: int | None = None


class Decision(NamedTuple):
    """What a turn writes, says and sets off."""

    puts: tuple[Record, ...] = ()
    removed_rows: tuple[int, ...] = ()  # outbox rows replaced before they were acknowledged
    audit: tuple[AuditEntry, ...] = ()
    effects: tuple[Effect, ...] = ()
    value: JsonObject | None = None  # the answer; None is a plain accepted receipt
    refusal: Code | None = None  # accepted as a turn, answered as refused (a rejected call)
    detail: Detail | None = None
    numbers_used: int = 0


_R = TypeVar("_R", ToolCall, Instance, InboxRow, Interaction, CapabilityRequest, Permission)


class Draft:
    """Collects one decision; local to a decider, which reads back through it what it has put."""

    def __init__(self, view: View, origin: Origin, stamp: Stamp) -> None:
        self.view = view
        self.origin = origin
        self.stamp = stamp
        self._puts: dict[tuple[type, object], Record] = {}
        self._removed: list[int] = []
        self._audit: list[AuditEntry] = []
        self._effects: list[Effect] = []
        self._numbers = 0
        self._ids = 0

    def new_number(self) -> int:
        """The next local number."""
        number = self.stamp.first_number + self._numbers
        self._numbers += 1
        return number

    def new_id(self, kind: str) -> str:
        """A kernel-made id that no other has."""
        self._ids += 1
        return self.stamp.new_id(kind, self.view.epoch, self._ids)

    def put(self, record: Record) -> None:
        """Write a record whole, replacing what was put before under the same key."""
        self._puts[type(record), key_of(record)] = record

    def remove_row(self, number: int) -> None:
        """Take away an outbox row that a newer one replaces."""
        self._removed.append(number)

    def audit(
        self,
        event: str,
        *,
        number: int | None = None,
        instance_id: str | None = None,
        code: Code | None = None,
        count: int | None = None,
    ) -> None:
        """Add one audit row."""
        self._audit.append(AuditEntry(event=event, number=number, instance_id=instance_id, code=code, count=count))

    def effect(self, effect: Effect) -> None:
        """Add one effect; they leave in this order, after the commit."""
        self._effects.append(effect)

    def call(self, number: int) -> ToolCall | None:
        """A call as this turn would leave it."""
        return self._staged(ToolCall, number) or self.view.call(number)

    def instance(self, instance_id: str) -> Instance | None:
        """An instance as this turn would leave it."""
        return self._staged(Instance, instance_id) or self.view.instance(instance_id)

    def interaction(self, interaction_id: str) -> Interaction | None:
        """An interaction as this turn would leave it."""
        return self._staged(Interaction, interaction_id) or self.view.interaction(interaction_id)

    def capability_request(self, request_id: str) -> CapabilityRequest | None:
        """A request for a capability as this turn would leave it."""
        return self._staged(CapabilityRequest, request_id) or self.view.capabilities.request(request_id)

    def staged_permission(self, permission: Permission) -> Permission:
        """A standing answer as this turn would leave it."""
        return self._staged(Permission, permission.number) or permission

    def staged_inbox_row(self, row: InboxRow) -> InboxRow:
        """An inbox row as this turn would leave it."""
        return self._staged(InboxRow, row.number) or row

    def focus(self) -> tuple[str, ...]:
        """The focus stack as this turn would leave it."""
        staged = self._puts.get((FocusStack, None))
        return staged.instance_ids if isinstance(staged, FocusStack) else self.view.focus().instance_ids

    def _staged(self, kind: type[_R], key: object) -> _R | None:
        found = self._puts.get((kind, key))
        return found if isinstance(found, kind) else None

    def decision(self, value: JsonObject | None = None, *, refusal: Code | None = None, detail: Detail | None = None) -> Decision:
        """Close the draft."""
        return Decision(
            puts=tuple(self._puts.values()),
            removed_rows=tuple(self._removed),
            audit=tuple(self._audit),
            effects=tuple(self._effects),
            value=value,
            refusal=refusal,
            detail=detail,
            numbers_used=self._numbers,
        )
