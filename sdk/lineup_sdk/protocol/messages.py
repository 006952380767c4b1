"""Both directions of a worker channel (SPEC 2, 5, 6, 8); those of surfaces and artifacts stand in surface_messages.py.

A frame is `{"type": <noun.verb>, "id"?: <request number>, ...fields}`. Rules:
1. A message is a frozen dataclass of plain data; a field that is None is absent on the wire.
2. A request carries an id (1 .. 2^53-1, chosen by the worker, not reused while open) and gets exactly one `reply`.
   A message whose class says EXPECTS_REPLY = False carries none and gets none.
3. Identity never travels: no message has a field that says who speaks (IDENTITY_KEYS).
4. Requests are imperative, deliveries and facts are past.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lineup_sdk.protocol.capability_messages import CapabilityRequest
from lineup_sdk.protocol.interaction_messages import InteractionPresented, UiCancel, UiChanged, UiGet, UiRequest, UiSubscribe
from lineup_sdk.protocol.message import JsonObject, Message, to_frame
from lineup_sdk.protocol.surface_messages import (
    ArtifactGet,
    ArtifactPut,
    SurfaceChanged,
    SurfaceClose,
    SurfaceOpen,
    SurfaceRead,
    SurfaceUpdate,
)
from lineup_sdk.protocol.system_messages import (
    ConversationSendText,
    LifecycleRequestMode,
    TimelineChanged,
    TimelinePlace,
    TimelineSubscribe,
)

__all__ = ["JsonObject", "Message", "to_frame"]  # of kernel.protocol and the SDK alike; the rest is named where it stands

IDENTITY_KEYS = frozenset({"app_scope", "conversation_id", "instance_id", "owner"})


# =============================================================================================
# both directions
# =============================================================================================


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk(Message):
    """A part of something too big for one frame. of = its name; last = no more parts follow. Not answered."""

    TYPE: ClassVar[str] = "chunk"
    of: str
    data: bytes
    last: bool


# =============================================================================================
# worker -> kernel
# =============================================================================================


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello(Message):
    """First frame of a worker, sent from inside its event loop once it is sealed. Refused: unsupported_version."""

    TYPE: ClassVar[str] = "hello"
    wire: int
    sdk: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxList(Message):
    """Ask for own undelivered rows after a message (or all), oldest first. Value: {messages: [...], more: bool}."""

    TYPE: ClassVar[str] = "inbox.list"
    EXPECTS_REPLY: ClassVar[bool] = True
    after: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxSubscribe(Message):
    """Ask that rows of the own inbox are delivered, those waiting first. Receipt."""

    TYPE: ClassVar[str] = "inbox.subscribe"
    EXPECTS_REPLY: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxAcknowledge(Message):
    """Take over a message for good. Value: {acknowledged: true once, false after or when it is not there}."""

    TYPE: ClassVar[str] = "inbox.acknowledge"
    EXPECTS_REPLY: ClassVar[bool] = True
    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsSubscribe(Message):
    """Ask that own open calls are delivered, those waiting first. Receipt."""

    TYPE: ClassVar[str] = "tools.subscribe"
    EXPECTS_REPLY: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsGet(Message):
    """Read one own call. Value: {call_id, tool_id, input, status, attempts}. Refused: call_not_found."""

    TYPE: ClassVar[str] = "tools.get"
    EXPECTS_REPLY: ClassVar[bool] = True
    call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAccept(Message):
    """Say that work on a delivered call begins. Receipt. Refused: call_not_found, call_already_final."""

    TYPE: ClassVar[str] = "tool.accept"
    EXPECTS_REPLY: ClassVar[bool] = True
    call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProgress(Message):
    """Report progress of an accepted call. percent is 0..100. Receipt.

    Refused: call_not_found, call_already_final, tool_output_invalid (percent out of range), limit_exceeded (over 4 a second).
    """

    TYPE: ClassVar[str] = "tool.progress"
    EXPECTS_REPLY: ClassVar[bool] = True
    call_id: str
    percent: float | None = None
    message: str | None = None
    data: JsonObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolComplete(Message):
    """End an accepted call with its result. Receipt. Refused: call_not_found, call_already_final, tool_output_invalid, app_disabled."""

    TYPE: ClassVar[str] = "tool.complete"
    EXPECTS_REPLY: ClassVar[bool] = True
    call_id: str
    result: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFail(Message):
    """End an accepted call as failed. reason is a short token ([a-z0-9_]). Receipt. Refused: as tool.complete."""

    TYPE: ClassVar[str] = "tool.fail"
    EXPECTS_REPLY: ClassVar[bool] = True
    call_id: str
    reason: str
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCancel(Message):
    """End an accepted call as cancelled. Receipt. Refused: as tool.complete."""

    TYPE: ClassVar[str] = "tool.cancel"
    EXPECTS_REPLY: ClassVar[bool] = True
    call_id: str
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCancelSeen(Message):
    """Acknowledge a cancel request and ask for up to 30 s more to end tidily. Receipt. Refused: as tool.complete."""

    TYPE: ClassVar[str] = "tool.cancel_seen"
    EXPECTS_REPLY: ClassVar[bool] = True
    call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleStarted(Message):
    """Say that the app is loaded and its start handler is done; ends `starting`. Receipt."""

    TYPE: ClassVar[str] = "lifecycle.started"
    EXPECTS_REPLY: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleRequestForeground(Message):
    """Ask to come to the front. Receipt. Refused: lifecycle_denied."""

    TYPE: ClassVar[str] = "lifecycle.request_foreground"
    EXPECTS_REPLY: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleRequestBackground(Message):
    """Ask to go to the background. Receipt."""

    TYPE: ClassVar[str] = "lifecycle.request_background"
    EXPECTS_REPLY: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleRequestClose(Message):
    """Ask to be closed. Receipt. Refused: lifecycle_denied while own calls are open."""

    TYPE: ClassVar[str] = "lifecycle.request_close"
    EXPECTS_REPLY: ClassVar[bool] = True
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSave(Message):
    """Replace the saved state of the own App session (at most 32 KiB). Receipt. Refused: limit_exceeded."""

    TYPE: ClassVar[str] = "state.save"
    EXPECTS_REPLY: ClassVar[bool] = True
    state: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class StateLoad(Message):
    """Read the saved state. Value: {state: object or null}."""

    TYPE: ClassVar[str] = "state.load"
    EXPECTS_REPLY: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LogWrite(Message):
    """A piece of the worker's stdout, stderr or log, kept in a bounded ring for the person. Not answered."""

    TYPE: ClassVar[str] = "log.write"
    stream: str  # stdout | stderr | log
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pong(Message):
    """Answer to a ping. Not answered."""

    TYPE: ClassVar[str] = "pong"
    n: int


# Types of later parts of the SDK: they exist, so asking for one without its grant is `capability_denied`, not a wire error.
UNGRANTED_TYPES: frozenset[str] = frozenset()


# =============================================================================================
# kernel -> worker
# =============================================================================================


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome(Message):
    """Answer to hello, sent when the process gets its instance.

    context = {app_scope, instance_id, conversation_id, app_version, state, mode?}. source, when the worker is the kernel's own
    sealed process, = {entry, files: [{name, size, sha256 (hex)}]}; each file then follows as `chunk` frames in that order.
    """

    TYPE: ClassVar[str] = "welcome"
    wire: int
    epoch: str
    context: JsonObject
    source: JsonObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Message):
    """The one answer to a request: either a value, or receipt = CommandReceipt {accepted, code?, at, detail?} (SPEC 2.5)."""

    TYPE: ClassVar[str] = "reply"
    id: int
    value: JsonObject | None = None
    receipt: JsonObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled(Message):
    """A call is delivered; again after a death, with attempts > 0. time_left_ms is absent when the call has no clock."""

    TYPE: ClassVar[str] = "tool.called"
    call_id: str
    tool_id: str
    input: JsonObject
    attempts: int
    time_left_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCancelRequested(Message):
    """Somebody asked to cancel a delivered call. End it, or answer tool.cancel_seen within grace_ms."""

    TYPE: ClassVar[str] = "tool.cancel_requested"
    call_id: str
    grace_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEnded(Message):
    """A delivered call got its outcome without this worker (expiry, cancel, disable): stop working on it."""

    TYPE: ClassVar[str] = "tool.ended"
    call_id: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxDelivered(Message):
    """A message for this App; comes again until it is acknowledged. delivery_count starts at 1."""

    TYPE: ClassVar[str] = "inbox.delivered"
    message_id: str
    topic: str
    body: JsonObject
    delivery_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextChanged(Message):
    """The instance's visible state changed: starting | foreground | background | suspended."""

    TYPE: ClassVar[str] = "context.changed"
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleStopping(Message):
    """The process will end: finish within deadline_ms, then it is killed. reason: close | suspend | shutdown."""

    TYPE: ClassVar[str] = "lifecycle.stopping"
    reason: str
    deadline_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ping(Message):
    """Watchdog: answer with pong of the same n."""

    TYPE: ClassVar[str] = "ping"
    n: int


# =============================================================================================
# the two registries
# =============================================================================================

FROM_WORKER: dict[str, type[Message]] = {
    c.TYPE: c
    for c in (
        ArtifactGet, ArtifactPut, CapabilityRequest, Chunk, Hello, InboxAcknowledge, InboxList, InboxSubscribe, LifecycleRequestBackground,
        LifecycleRequestClose, LifecycleRequestForeground, LifecycleStarted, LogWrite, Pong, StateLoad, StateSave, SurfaceClose,
        SurfaceOpen, SurfaceRead, SurfaceUpdate, ToolAccept, ToolCancel, ToolCancelSeen, ToolComplete, ToolFail, ToolProgress,
        ToolsGet, ToolsSubscribe, UiCancel, UiGet, UiRequest, UiSubscribe,
        ConversationSendText, LifecycleRequestMode, TimelinePlace, TimelineSubscribe,
    )
}  # fmt: skip

TO_WORKER: dict[str, type[Message]] = {
    c.TYPE: c
    for c in (
        Chunk, ContextChanged, InboxDelivered, InteractionPresented, LifecycleStopping, Ping, Reply, SurfaceChanged, ToolCalled,
        TimelineChanged, ToolCancelRequested, ToolEnded, UiChanged, Welcome,
    )
}  # fmt: skip
