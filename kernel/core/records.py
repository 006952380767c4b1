"""What the kernel stores, one frozen record a kind (SPEC 4-9, 11). Nouns only; the rules stand in the deciders.

Rules:
1. `number` is the kernel's opaque local number: given once, rising, never reused, the only name of a thing in audit and log.
2. A body (`*_cbor`) is CBOR, kept encoded: most turns never look inside. What a digest is made of is encoded deterministically.
3. Records are replaced whole (`replace` below), never changed. Those with a state have no slots: a dict is copied at once.
"""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

import cbor2

from kernel.core.capability_records import Acceptance, AttachedViews, CapabilityRequest, Permission
from kernel.core.machines import CallStatus, InboxState, InstanceState, InteractionStatus, OutboxState
from kernel.core.retention_records import Forgotten
from kernel.core.surface_records import AppendedPatch, Artifact, Surface, SurfaceSnapshot
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.framing import in_order
from lineup_sdk.protocol.messages import JsonObject


class Source(StrEnum):
    """Whose call it is; also where its rows go (outbox destination)."""

    AGENT = "agent"
    PERSON = "person"
    DEMO = "demo"


class Cancel(StrEnum):
    """How far a cancel of a delivered call has come (SPEC 6.7)."""

    NONE = "none"
    ASKED = "asked"
    ACKNOWLEDGED = "acknowledged"


class OutboxKind(StrEnum):
    """Why a row exists. Exactly one FINAL a call, ever."""

    FINAL = "final"
    PROGRESS = "progress"
    REFUSAL = "refusal"  # of a call_id that belongs to another call
    MESSAGE = "message"
    INVENTORY = "inventory"


class InteractionKind(StrEnum):
    """What is asked of the person (SPEC 7)."""

    NOTICE = "notice"
    CHOICE = "choice"
    CONFIRM = "confirm"
    INPUT = "input"


class InteractionSource(StrEnum):
    """Who asks. runtime_policy is the kernel itself."""

    AGENT_TOOL = "agent_tool"
    MINIAPP_TOOL = "miniapp_tool"
    RUNTIME_POLICY = "runtime_policy"


class Place(StrEnum):
    """Where an interaction is shown: a wish until it is presented, then inline (a card) or modal (above an App)."""

    DEFAULT = "default"
    INLINE = "inline"
    MODAL = "modal"


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point of machine time: CLOCK_BOOTTIME of one boot, in ms. On another boot the last remaining time counts (SPEC 6.6)."""

    boot_id: str
    at_ms: int


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """One call from acceptance to its outcome (SPEC 6.1)."""

    number: int
    call_id: str
    tool_id: str
    inventory_revision: str
    descriptor_digest: str
    source: Source
    app_scope: str
    conversation_id: str
    content_digest: bytes
    input_cbor: bytes
    created_at: datetime
    # --- where it stands
    status: CallStatus
    updated_at: datetime
    instance_id: str | None = None
    attempts: int = 0  # crashes of its worker while it had the call
    delivered_life: int | None = None  # the process life it was delivered to; 0 = a life that is over had it
    raised: bool = False  # this call brought the App to the front
    # --- clocks
    deadline: Deadline | None = None
    cancel: Cancel = Cancel.NONE
    cancel_deadline: Deadline | None = None
    human_waits: int = 0  # open questions to the person that belong to it: above 0 the clock stands still
    held_ms: int | None = None  # what was left when it was stopped
    # --- what was said of it
    progress_cbor: bytes | None = None
    progress_window_ms: int = 0  # boottime at which the current second of progress began
    progress_count: int = 0  # reports within it
    result_cbor: bytes | None = None
    error_code: Code | None = None


@dataclass(frozen=True, kw_only=True)
class Instance:
    """One App at work in the conversation (SPEC 8.1). life counts its processes; a message of an older life is nobody's."""

    number: int
    instance_id: str
    app_scope: str
    app_version: str
    bundle_digest: str
    conversation_id: str
    app_session_id: str
    started_at: datetime
    state: InstanceState
    life: int = 0
    parent_instance_id: str | None = None
    # --- of the present life
    tools_subscribed: bool = False
    inbox_subscribed: bool = False
    # --- restart intensity (SPEC 8.3): boottime ms of the crashes of this boot within the window
    crash_boot_id: str = ""
    crashes_ms: tuple[int, ...] = ()
    # --- the person's last act on this App (SPEC 8.2)
    act_boot_id: str = ""
    act_ms: int = 0
    # --- end
    close_reason: str | None = None
    stopped_at: datetime | None = None
    error: Code | None = None
    # --- suspended, and the process of this life is still finishing: the next one comes when that is gone
    is_ending: bool = False
    ui_subscribed_life: int | None = None  # the life that wants to hear of its own questions (SPEC 7.4)


@dataclass(frozen=True, slots=True, kw_only=True)
class FocusStack:
    """Instances from the bottom to the front, above the fixed bottom `chat` (SPEC 8.2)."""

    instance_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AppSession:
    """What belongs together across instances of an App, until a real close (SPEC 8.4)."""

    number: int
    app_session_id: str
    app_scope: str
    conversation_id: str
    opened_at: datetime
    closed_at: datetime | None = None
    continues: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedState:
    """All that an App remembers by itself (SPEC 8.5)."""

    app_session_id: str
    state_cbor: bytes
    updated_at: datetime


@dataclass(frozen=True, kw_only=True)
class InboxRow:
    """One message for one instance until it acknowledges it (SPEC 5). number gives the order."""

    number: int
    message_id: str
    app_scope: str
    conversation_id: str
    instance_id: str
    topic: str
    body_cbor: bytes
    created_at: datetime
    state: InboxState = InboxState.DELIVERABLE
    delivery_count: int = 0
    delivered_life: int | None = None
    crash_count: int = 0


@dataclass(frozen=True, kw_only=True)
class OutboxRow:
    """One envelope that must reach its destination (SPEC 11.3). number gives the order; the bytes never change."""

    number: int
    message_id: str
    destination: Source
    conversation_id: str
    kind: OutboxKind
    envelope_cbor: bytes
    created_at: datetime
    call_number: int | None = None
    state: OutboxState = OutboxState.PENDING
    refused_code: str | None = None  # the receiver's own word for why


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineMessage:
    """One entry both sides can read (SPEC 9.3). author speaks; an out message is the person's."""

    number: int
    message_id: str
    conversation_id: str
    author: Source
    type: str
    body_cbor: bytes
    created_at: datetime
    app_session_id: str | None = None
    is_folded: bool = False  # the system App placed it: shown as one line


@dataclass(frozen=True, kw_only=True)
class Interaction:
    """One standard question or notice to the person (SPEC 7.1). The owner is injected; no asker can name it."""

    number: int
    interaction_id: str
    kind: InteractionKind
    source: InteractionSource
    owner_app_scope: str  # chat for the Agent's
    owner_instance_id: str | None  # None for the Agent's: it belongs to the conversation, not to a process
    conversation_id: str
    call_number: int | None  # the Agent's call that it is
    parent_call_number: int | None  # the owner's call that it belongs to
    app_session_id: str | None  # context only
    request_cbor: bytes
    shown_digest: bytes  # of kind and request: what an answer has to name
    created_at: datetime
    # --- where it stands
    status: InteractionStatus
    updated_at: datetime
    place: Place = Place.DEFAULT
    expires_at: datetime | None = None  # for the eye; the deadline counts
    deadline: Deadline | None = None
    # --- how it ended
    result_cbor: bytes | None = None
    answered_by_view: str | None = None
    error_code: Code | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What the person allows by name, such as `standard-interaction:<app_scope>`. Absent is no."""

    name: str
    allowed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """An id that was used, for ever (SPEC 16): what it stood for, and how that ended once its body is gone."""

    digest: bytes  # of kind, conversation and id: see key_digest
    content_digest: bytes
    number: int
    outcome: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """An app or tool that the person switched off, or on again."""

    name: str
    enabled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """Which Agent the person talks to: the one that last attached. One row; before any Agent came it is Source.AGENT."""

    destination: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedInventory:
    """A revision that an Agent may still hold: enough to tell it what changed (SPEC 4.4)."""

    number: int
    epoch: str
    digest: str
    fingerprint_cbor: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptDescriptor:
    """The descriptor in force when a call was accepted, by digest."""

    digest: str
    document_cbor: bytes


Record = (
    Acceptance
    | AppSession
    | AppendedPatch
    | Artifact
    | AttachedViews
    | CapabilityRequest
    | Forgotten
    | Door
    | FocusStack
    | InboxRow
    | Instance
    | Interaction
    | KeptDescriptor
    | Key
    | OutboxRow
    | Permission
    | Policy
    | PublishedInventory
    | SavedState
    | Surface
    | SurfaceSnapshot
    | Switch
    | TimelineMessage
    | ToolCall
)


_Kept = TypeVar("_Kept")


def replace(record: _Kept, /, **changes: object) -> _Kept:
    """A copy of a frozen record with some fields changed: as dataclasses.replace makes it, at a tenth of its cost if it has no slots."""
    kind = type(record)
    if not kind.__dictoffset__:
        return dataclasses.replace(record, **changes)  # type: ignore[type-var]
    copy = object.__new__(kind)
    fields = copy.__dict__  # past __init__, which sets a frozen field by field
    fields.update(record.__dict__)
    known = len(fields)
    fields.update(changes)
    if len(fields) != known:
        raise TypeError(f"{kind.__name__} has no such field: {sorted(changes)}")
    return copy


def encode_body(value: Any) -> bytes:
    """Encode a JSON value for keeping or sending. Equal content may be other bytes: nothing compares them."""
    return cbor2.dumps(value)


def encode_exact(value: Any) -> bytes:
    """Encode a JSON value so that equal content gives equal bytes, whatever the order of its keys: for what a digest is made of.

    Keys are sorted here: cbor2's canonical form does the same at twice the cost.
    """
    return cbor2.dumps(in_order(value))


def decode_body(body: bytes) -> JsonObject:
    """Decode what encode_body made. Only for bytes that the kernel stored itself."""
    value: JsonObject = cbor2.loads(body)
    return value


def digest_of_parts(*parts: str | bytes) -> bytes:
    """SHA-256 over parts with their lengths, so that no two lists of parts collide."""
    data = [part.encode() if isinstance(part, str) else part for part in parts]
    return hashlib.sha256(b"".join([len(one).to_bytes(8, "big") + one for one in data])).digest()


def key_digest(kind: str, conversation_id: str, ident: str) -> bytes:
    """The key of an id in the key table. kind: message | call | text | interaction | capability."""
    return digest_of_parts(kind, conversation_id, ident)
