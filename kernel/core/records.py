"""What the kernel stores, one frozen record a kind (SPEC 4-9, 11). Nouns only; the rules stand in the deciders.

Rules:
1. `number` is the kernel's opaque local number: given once, rising, never reused, the only name of a thing in audit and log.
2. A body (`*_cbor`) is deterministic CBOR, kept encoded: most turns never look inside.
3. Records are replaced whole (`dataclasses.replace`), never changed.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import cbor2

from kernel.core.machines import CallStatus, InboxState, InstanceState, OutboxState
from lineup_sdk.protocol.codes import Code
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


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point of machine time: CLOCK_BOOTTIME of one boot, in ms. On another boot the last remaining time counts (SPEC 6.6)."""

    boot_id: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
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
    delivered_life: int | None = None  # the process life it was delivered to
    raised: bool = False  # this call brought the App to the front
    # --- clocks
    deadline: Deadline | None = None
    cancel: Cancel = Cancel.NONE
    cancel_deadline: Deadline | None = None
    # --- what was said of it
    progress_cbor: bytes | None = None
    progress_window_ms: int = 0  # boottime at which the current second of progress began
    progress_count: int = 0  # reports within it
    result_cbor: bytes | None = None
    error_code: Code | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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
    AppSession
    | Door
    | FocusStack
    | InboxRow
    | Instance
    | KeptDescriptor
    | Key
    | OutboxRow
    | PublishedInventory
    | SavedState
    | Switch
    | TimelineMessage
    | ToolCall
)


def encode_body(value: Any) -> bytes:
    """Encode a JSON value as deterministic CBOR: equal content, equal bytes."""
    return cbor2.dumps(value, canonical=True)


def decode_body(body: bytes) -> JsonObject:
    """Decode what encode_body made. Only for bytes that the kernel stored itself."""
    value: JsonObject = cbor2.loads(body)
    return value


def digest_of_parts(*parts: str | bytes) -> bytes:
    """SHA-256 over parts with their lengths, so that no two lists of parts collide."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "big") + data)
    return state.digest()


def key_digest(kind: str, conversation_id: str, ident: str) -> bytes:
    """The key of an id in the key table. kind: message | call."""
    return digest_of_parts(kind, conversation_id, ident)
