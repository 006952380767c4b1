"""Both directions of a host channel (SPEC 2.6, 2.8): roles view, admin and agent. Hosts import this file and the SDK's protocol only.

A frame is `{"type": <noun.verb>, "id"?: <request number>, ...fields}` as on the worker wire. Rules:
1. The first frame is `hello`; the answer is `welcome` or `goodbye {code}` and the end of the channel.
2. A request carries an id and gets exactly one `reply`: a value, or receipt = {accepted, code?, at, detail?}.
3. role `view` (sees, answers, may ask all below; many at once) and `admin` (the person's commands; no deltas) share the requests.
   role `agent` sends only envelopes and acknowledgements; there is one at a time.
4. After welcome a view gets `snapshot {seq}` and then `delta {seq+1 ...}`; a view that lags is closed and comes back for a new snapshot.

Summaries (absent = null left out; times are RFC 3339 UTC; number = the kernel's opaque local number, rising):
  CallSummary      {number, call_id, tool_id, title, app_scope, instance_id?, source, status, cancel, attempts,
                    progress? {percent?, message?}, error_code?, created_at, updated_at}
  InstanceSummary  {instance_id, app_scope, title, app_version, state, error?, open_calls, started_at, stopped_at?}
  MessageSummary   {number, message_id, direction: in | out, author: agent | person | demo, type, text, state, code?, task?, folded,
                    created_at}
                   direction is seen from the person: in = from the Agent. state of an out message: pending | acknowledged | refused, with
                   the refuser's code. folded = the system App shows it as one line
  SurfaceSummary   {surface_id, app_scope, app_session_id, instance_id?, title, container: trusted | isolated, version, is_open,
                    mounted_view_id?, state?, text: the state for hosts without a web view}
                   state: of a system App (container trusted), when it is at most 16 KiB: every host draws it in its own way
  InteractionSummary: see host_interactions.py. A message of type lineup.v1.interaction or lineup.v1.interaction.answer also has
                   interaction_id: a card, or what the person answered to it.
  AppSummary       {app_scope, version, kind, title, description, enabled, tools: [{tool_id, title, enabled}], may_ask?}
                   may_ask: of an App that requests standard-interaction alone: whether the person allows it (policy.set)
  Snapshot.state   {calls: [CallSummary], instances: [InstanceSummary], focus: [instance_id, bottom first; [] = chat],
                    messages: [MessageSummary], interactions: [open InteractionSummary], apps: [AppSummary],
                    surfaces: [SurfaceSummary], consents: [ConsentSummary that waits: host_capabilities.py], revision,
                    agent: {connected, demo}, kernel: {version, epoch}}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kernel.protocol.host_capabilities import FROM_HOST_CAPABILITIES, TO_HOST_CAPABILITIES
from kernel.protocol.host_interactions import DraftSave, InteractionAnswer, InteractionMove, InteractionsList, PolicySet
from kernel.protocol.host_sessions import (
    AppOpen,
    AppStartEmpty,
    ModeRequest,
    OutboxRefuse,
    SessionsContinue,
    SessionsList,
    SessionsShow,
)
from kernel.protocol.host_surfaces import (
    ArtifactRead,
    SurfaceEvent,
    SurfaceMount,
    SurfacePatch,
    SurfacePatched,
    SurfaceSource,
    SurfaceUnmount,
    SurfaceUnmounted,
)
from kernel.protocol.host_upkeep import FROM_HOST_UPKEEP, TO_HOST_UPKEEP
from lineup_sdk.protocol.messages import Chunk, JsonObject, Message

# =============================================================================================
# host -> kernel
# =============================================================================================


@dataclass(frozen=True, slots=True, kw_only=True)
class HostHello(Message):
    """First frame. pairing = the secret of the home folder, needed on the local socket for view and admin. demo marks the demo Agent.

    Closed with: unsupported_version, capability_denied (pairing), door_busy (a second Agent).
    """

    TYPE: ClassVar[str] = "hello"
    wire: int
    role: str  # view | admin | agent
    pairing: str | None = None
    demo: bool = False
    label: str | None = None  # what kind of view: console, headless, web; for audit
    providers: list[str] | None = None  # of a view: the capabilities it can carry out (host_capabilities.py)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeSubmit(Message):
    """agent: one inbound envelope, judged by kernel.protocol.agent. Answered by `receipt`, never by `reply`."""

    TYPE: ClassVar[str] = "envelope.submit"
    envelope: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxAcknowledge(Message):
    """agent, or admin for its own call: the row with this message_id has arrived. Not answered."""

    TYPE: ClassVar[str] = "outbox.acknowledge"
    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSend(Message):
    """The person's text for the Agent, Markdown, 1..16,384 code points. Value: {message_id}. Refused: limit_exceeded."""

    TYPE: ClassVar[str] = "message.send"
    EXPECTS_REPLY: ClassVar[bool] = True
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallInvoke(Message):
    """The person's own hand calls a tool under the current inventory. Value: {call_id}; progress and result then come as `envelope`.

    Refused: as lineup.v1.tool.call (SPEC 6).
    """

    TYPE: ClassVar[str] = "call.invoke"
    EXPECTS_REPLY: ClassVar[bool] = True
    tool_id: str
    input: JsonObject
    call_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCancel(Message):
    """The person cancels a call. Receipt. Refused: call_not_found, call_already_final."""

    TYPE: ClassVar[str] = "call.cancel"
    EXPECTS_REPLY: ClassVar[bool] = True
    call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallsList(Message):
    """Value: {calls: [CallSummary ...newest first], more}. state: open | ended | one status."""

    TYPE: ClassVar[str] = "calls.list"
    EXPECTS_REPLY: ClassVar[bool] = True
    state: str | None = None
    before: int | None = None  # local number
    limit: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class CallsShow(Message):
    """Value: the whole call with input, result and its outbox rows. Refused: call_not_found."""

    TYPE: ClassVar[str] = "calls.show"
    EXPECTS_REPLY: ClassVar[bool] = True
    call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InstancesList(Message):
    """Value: {instances: [InstanceSummary], focus: [instance_id, bottom first], kernel: {...}}."""

    TYPE: ClassVar[str] = "instances.list"
    EXPECTS_REPLY: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryShow(Message):
    """Value: {revision, tools, capabilities} as the Agent sees it."""

    TYPE: ClassVar[str] = "inventory.show"
    EXPECTS_REPLY: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AppsList(Message):
    """Value: {apps: [{app_scope, version, kind, title, description, enabled, tools: [{tool_id, title, enabled}]}]}."""

    TYPE: ClassVar[str] = "apps.list"
    EXPECTS_REPLY: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AppEnable(Message):
    """Switch an app or one tool on. Value: {revision}. Refused: tool_not_advertised (no such name)."""

    TYPE: ClassVar[str] = "app.enable"
    EXPECTS_REPLY: ClassVar[bool] = True
    name: str  # app_scope or tool_id


@dataclass(frozen=True, slots=True, kw_only=True)
class AppDisable(Message):
    """Switch an app or one tool off; its open calls end as failed app_disabled. Value: {revision}. Refused: as app.enable."""

    TYPE: ClassVar[str] = "app.disable"
    EXPECTS_REPLY: ClassVar[bool] = True
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AppClose(Message):
    """The person closes an instance. Receipt; with open calls the kernel asks first: value {asked: interaction_id}, a confirm to answer.

    A yes closes it and cancels its calls; anything else leaves it as it is. Refused: app_instance_not_found, lifecycle_denied (chat),
    limit_exceeded (too many questions wait).
    """

    TYPE: ClassVar[str] = "app.close"
    EXPECTS_REPLY: ClassVar[bool] = True
    instance_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FocusRaise(Message):
    """The person brings an instance to the front; `chat` goes back to the conversation. Receipt. Refused: app_instance_not_found."""

    TYPE: ClassVar[str] = "focus.raise"
    EXPECTS_REPLY: ClassVar[bool] = True
    instance_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesList(Message):
    """Value: {messages: [MessageSummary, oldest first], more}: the window before a local number, or the newest."""

    TYPE: ClassVar[str] = "messages.list"
    EXPECTS_REPLY: ClassVar[bool] = True
    before: int | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsRead(Message):
    """Value: {text}: the log ring of an instance. Refused: app_instance_not_found."""

    TYPE: ClassVar[str] = "logs.read"
    EXPECTS_REPLY: ClassVar[bool] = True
    instance_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelStatus(Message):
    """Value: {kernel_version, epoch, revision, open_calls, instances, outbox_pending, views, agent, layers, workers,
    retention_days, store?}.
    """

    TYPE: ClassVar[str] = "kernel.status"
    EXPECTS_REPLY: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelStop(Message):
    """End the kernel after this turn. Receipt."""

    TYPE: ClassVar[str] = "kernel.stop"
    EXPECTS_REPLY: ClassVar[bool] = True


# =============================================================================================
# kernel -> host
# =============================================================================================


@dataclass(frozen=True, slots=True, kw_only=True)
class HostWelcome(Message):
    """Answer to hello. view_id is the kernel's opaque name of this connection."""

    TYPE: ClassVar[str] = "welcome"
    wire: int
    epoch: str
    view_id: str
    conversation_id: str
    revision: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodbye(Message):
    """Last frame before the kernel closes the channel, with its reason."""

    TYPE: ClassVar[str] = "goodbye"
    code: str
    detail: JsonObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReply(Message):
    """The one answer to a request: a value, or a receipt {accepted, code?, at, detail?}."""

    TYPE: ClassVar[str] = "reply"
    id: int
    value: JsonObject | None = None
    receipt: JsonObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(Message):
    """view: all there is to draw, within windows: open and newest calls, live instances, focus, newest messages, apps, agent presence."""

    TYPE: ClassVar[str] = "snapshot"
    seq: int
    state: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta(Message):
    """view: what one commit changed. changes = [{kind, value}], value as in the snapshot.

    kind: call | instance | interaction | message | surface = one summary, replacing the one of the same number or id;
    focus | apps | agent | revision = the whole.
    """

    TYPE: ClassVar[str] = "delta"
    seq: int
    changes: list[JsonObject]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeSent(Message):
    """agent, or admin for its own call: one outbox row. Sent again after a reconnect until acknowledged; same id, same bytes."""

    TYPE: ClassVar[str] = "envelope"
    envelope: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeReceipt(Message):
    """agent: the door's answer to one inbound envelope, after its commit (SPEC 11.2). Not an envelope itself."""

    TYPE: ClassVar[str] = "receipt"
    message_id: str | None  # null when the envelope had no readable one
    accepted: bool
    code: str | None = None
    detail: JsonObject | None = None


FROM_HOST: dict[str, type[Message]] = {
    c.TYPE: c
    for c in (
        *FROM_HOST_CAPABILITIES, *FROM_HOST_UPKEEP,
        ArtifactRead, SurfaceEvent, SurfaceMount, SurfacePatch, SurfaceSource, SurfaceUnmount,
        AppOpen, AppStartEmpty, ModeRequest, OutboxRefuse, SessionsContinue, SessionsList, SessionsShow,
        AppClose, AppDisable, AppEnable, AppsList, CallCancel, CallInvoke, CallsList, CallsShow, DraftSave, EnvelopeSubmit, FocusRaise,
        HostHello, InstancesList, InteractionAnswer, InteractionMove, InteractionsList, InventoryShow, KernelStatus,
        KernelStop, LogsRead, MessageSend, MessagesList, OutboxAcknowledge, PolicySet,
    )
}  # fmt: skip

TO_HOST: dict[str, type[Message]] = {
    c.TYPE: c
    for c in (
        *TO_HOST_UPKEEP,
        *TO_HOST_CAPABILITIES, Chunk, SurfacePatched, SurfaceUnmounted,
        Delta, EnvelopeReceipt, EnvelopeSent, Goodbye, HostReply, HostWelcome, Snapshot,
    )
}  # fmt: skip
