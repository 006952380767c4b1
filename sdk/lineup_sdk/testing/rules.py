"""What FakeKernel answers to a request, and what it refuses: the kernel's rules for one instance (SPEC 5, 6.5, 8.2, 8.5).

Rules:
1. One row a message type in ANSWERS; a message without a row needs no answer.
2. A refusal changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256

import cbor2
import trio

from lineup_sdk.errors import Refused
from lineup_sdk.protocol.capability_messages import CapabilityRequest
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.interaction_messages import INTERACTION_RESULT, UiCancel, UiGet, UiRequest, UiSubscribe
from lineup_sdk.protocol.limits import MAX_BODY_BYTES, MAX_STATE_BYTES, MAX_TEXT_LENGTH, PROGRESS_PER_SECOND
from lineup_sdk.protocol.messages import (
    InboxAcknowledge,
    InboxList,
    InboxSubscribe,
    JsonObject,
    LifecycleRequestBackground,
    LifecycleRequestClose,
    LifecycleRequestForeground,
    LifecycleStarted,
    LogWrite,
    Message,
    StateLoad,
    StateSave,
    ToolAccept,
    ToolCancel,
    ToolCancelSeen,
    ToolComplete,
    ToolFail,
    ToolProgress,
    ToolsGet,
    ToolsSubscribe,
)
from lineup_sdk.protocol.surface_messages import ArtifactGet, SurfaceClose, SurfaceOpen, SurfaceRead, SurfaceUpdate
from lineup_sdk.protocol.system_messages import ConversationSendText, LifecycleRequestMode, TimelinePlace, TimelineSubscribe
from lineup_sdk.testing.questions import FakeQuestion, FakeQuestions
from lineup_sdk.testing.records import Changes, FakeCall, FakeCapabilityRequest, FakeMessage, Outcome
from lineup_sdk.testing.surfaces import FakeArtifacts, FakeSurface

LIST_PAGE = 100
CAPABILITIES = frozenset({"artifact.save", "clipboard.write", "notification.show"})  # that some host can carry out
MAX_CAPABILITY_REASON = 300  # code points
IsValid = Callable[[JsonObject, JsonObject], bool]  # (schema, value)


@dataclass(slots=True, eq=False)
class Desk:
    """All that FakeKernel knows of its one instance."""

    changes: Changes
    saved_state: JsonObject | None = None
    grants_foreground: bool = True
    output_schemas: dict[str, JsonObject] = field(default_factory=dict)
    is_valid: IsValid | None = None
    is_store_full: bool = False
    calls: dict[str, FakeCall] = field(default_factory=dict)
    messages: dict[str, FakeMessage] = field(default_factory=dict)
    lifecycle_requests: list[Message] = field(default_factory=list)
    refusals: list[tuple[str, str]] = field(default_factory=list)  # (message type, code)
    log: list[tuple[str, str]] = field(default_factory=list)  # (stream, text)
    requested_capabilities: frozenset[str] | None = None  # of the Manifest; None: no Manifest was given
    capability_requests: list[FakeCapabilityRequest] = field(default_factory=list)
    questions: FakeQuestions = field(default_factory=FakeQuestions)
    is_subscribed_to_tools: bool = False
    is_subscribed_to_inbox: bool = False
    is_started: bool = False
    surface: FakeSurface = field(default_factory=FakeSurface)
    artifacts: FakeArtifacts = field(default_factory=FakeArtifacts)
    # of the system App
    is_subscribed_to_timeline: bool = False
    sent_texts: list[str] = field(default_factory=list)
    folded: dict[int, bool] = field(default_factory=dict)  # by number of the entry, as it was placed last

    def end_question(self, question: FakeQuestion, result: JsonObject) -> FakeMessage:
        """Fix the result of a question and put it into the inbox."""
        question.result = result
        body = {"interaction_id": question.interaction_id, "kind": question.kind, **result}
        message_id = f"msg_{question.interaction_id}"
        message = self.messages[message_id] = FakeMessage(message_id=message_id, topic=INTERACTION_RESULT, body=body, changes=self.changes)
        return message

    def open_calls(self) -> list[FakeCall]:
        """Calls without an outcome, oldest first."""
        return [c for c in self.calls.values() if c.outcome is None]

    def answer(self, message: Message) -> JsonObject | None:
        """Do what a request asks; return its value, or None for an accepted receipt. Raises: Refused."""
        return self.check(message, lambda: ANSWERS[type(message)](self, message))

    def check(self, message: Message, act: Callable[[], JsonObject | None]) -> JsonObject | None:
        """Do it unless the store is full, and note a refusal. Raises: Refused."""
        try:
            if self.is_store_full and message.EXPECTS_REPLY:
                raise Refused(Code.STORE_FULL)
            return act()
        except Refused as refused:
            self.refusals.append((message.TYPE, str(refused.code)))
            raise


def _open_call(desk: Desk, call_id: str) -> FakeCall:
    call = desk.calls.get(call_id)
    if call is None or not call.is_delivered:
        raise Refused(Code.CALL_NOT_FOUND)
    if call.outcome is not None:
        call.refusals.append(Code.CALL_ALREADY_FINAL)
        raise Refused(Code.CALL_ALREADY_FINAL)
    return call


def _running_call(desk: Desk, call_id: str) -> FakeCall:
    call = _open_call(desk, call_id)
    if call.status != "running":  # it was not accepted yet
        raise _refuse(call, Code.LIFECYCLE_DENIED, "", "tool.accept first")
    return call


def _refuse(call: FakeCall, code: Code, pointer: str, expected: str) -> Refused:
    call.refusals.append(code)
    return Refused(code, {"pointer": pointer, "expected": expected})


def _request_capability(desk: Desk, message: CapabilityRequest) -> JsonObject:
    if desk.requested_capabilities is not None and message.capability not in desk.requested_capabilities:
        raise Refused(Code.CAPABILITY_DENIED, {"pointer": "/capability", "expected": "one of the Manifest's requested_capabilities"})
    if message.capability not in CAPABILITIES:
        raise Refused(Code.CAPABILITY_UNSUPPORTED, {"pointer": "/capability"})
    if not message.reason.strip() or len(message.reason) > MAX_CAPABILITY_REASON:
        raise Refused(Code.LIMIT_EXCEEDED, {"pointer": "/reason", "expected": f"1 to {MAX_CAPABILITY_REASON} characters"})
    if message.parent_call_id is not None:
        _open_call(desk, message.parent_call_id)
    request = FakeCapabilityRequest(
        request_id=f"cap_fake_{len(desk.capability_requests) + 1}",
        capability=message.capability,
        reason=message.reason,
        arguments=message.arguments,
        parent_call_id=message.parent_call_id,
    )
    desk.capability_requests.append(request)
    return {"request_id": request.request_id, "status": "asked"}


def _accept(desk: Desk, message: ToolAccept) -> None:
    _open_call(desk, message.call_id).status = "running"


def _get(desk: Desk, message: ToolsGet) -> JsonObject:
    call = desk.calls.get(message.call_id)
    if call is None:
        raise Refused(Code.CALL_NOT_FOUND)
    return {n: getattr(call, n) for n in ("attempts", "call_id", "input", "status", "tool_id")}


def _progress(desk: Desk, message: ToolProgress) -> None:
    call = _running_call(desk, message.call_id)
    if message.percent is not None and not 0 <= message.percent <= 100:
        raise _refuse(call, Code.TOOL_OUTPUT_INVALID, "/percent", "0 to 100")
    now = trio.current_time()
    if sum(now - t < 1 for t in call.progress_times) >= PROGRESS_PER_SECOND:
        raise _refuse(call, Code.LIMIT_EXCEEDED, "", f"at most {PROGRESS_PER_SECOND} a second")
    call.progress_times.append(now)
    reported = {"percent": message.percent, "message": message.message, "data": message.data}
    call.progress.append({name: value for name, value in reported.items() if value is not None})


def _complete(desk: Desk, message: ToolComplete) -> None:
    call = _running_call(desk, message.call_id)
    if len(cbor2.dumps(message.result)) > MAX_BODY_BYTES:
        raise _refuse(call, Code.LIMIT_EXCEEDED, "/result", f"at most {MAX_BODY_BYTES} bytes as CBOR")
    schema = desk.output_schemas.get(call.tool_id)
    if schema is not None and desk.is_valid is not None and not desk.is_valid(schema, message.result):
        raise _refuse(call, Code.TOOL_OUTPUT_INVALID, "/result", "the tool's output_schema")
    call.end(Outcome(status="submitted", result=message.result))


def _fail(desk: Desk, message: ToolFail) -> None:
    call = _open_call(desk, message.call_id)
    call.end(Outcome(status="failed", code=Code.TOOL_FAILED, reason=message.reason, message=message.message))


def _cancel(desk: Desk, message: ToolCancel) -> None:
    call = _open_call(desk, message.call_id)
    call.end(Outcome(status="cancelled", code=Code.CANCELLED, reason=message.reason))


def _cancel_seen(desk: Desk, message: ToolCancelSeen) -> None:
    _open_call(desk, message.call_id).is_cancel_seen = True


def _list(desk: Desk, message: InboxList) -> JsonObject:
    waiting = [m for m in desk.messages.values() if not m.is_acknowledged]
    ids = [m.message_id for m in waiting]
    start = ids.index(message.after) + 1 if message.after in ids else 0
    page = waiting[start : start + LIST_PAGE]
    names = ("body", "delivery_count", "message_id", "topic")
    return {"messages": [{n: getattr(m, n) for n in names} for m in page], "more": start + LIST_PAGE < len(waiting)}


def _acknowledge(desk: Desk, message: InboxAcknowledge) -> JsonObject:
    row = desk.messages.get(message.message_id)
    is_first = row is not None and not row.is_acknowledged
    if row is not None:
        row.is_acknowledged = True
    return {"acknowledged": is_first}


def _save(desk: Desk, message: StateSave) -> None:
    if len(cbor2.dumps(message.state)) > MAX_STATE_BYTES:
        raise Refused(Code.LIMIT_EXCEEDED, {"pointer": "/state", "expected": f"at most {MAX_STATE_BYTES} bytes"})
    desk.saved_state = message.state


def _load(desk: Desk, _: StateLoad) -> JsonObject:
    return {"state": desk.saved_state}


def _request_foreground(desk: Desk, message: LifecycleRequestForeground) -> None:
    if not desk.grants_foreground:
        raise Refused(Code.LIFECYCLE_DENIED)
    desk.lifecycle_requests.append(message)


def _request_background(desk: Desk, message: LifecycleRequestBackground) -> None:
    desk.lifecycle_requests.append(message)


def _request_close(desk: Desk, message: LifecycleRequestClose) -> None:
    if desk.open_calls():
        raise Refused(Code.LIFECYCLE_DENIED)
    desk.lifecycle_requests.append(message)


def _open_surface(desk: Desk, _: SurfaceOpen) -> JsonObject:
    desk.surface.is_open, desk.surface.is_told = True, False
    return {"version": desk.surface.version}


def _update_surface(desk: Desk, message: SurfaceUpdate) -> JsonObject:
    desk.surface.is_told = False
    return {"version": desk.surface.update(message.base_version, message.patch)}


def _read_surface(desk: Desk, _: SurfaceRead) -> JsonObject:
    desk.surface.require_open()
    desk.surface.is_told = False
    return {"version": desk.surface.version, "size": len(cbor2.dumps(desk.surface.state))}


def _close_surface(desk: Desk, _: SurfaceClose) -> None:
    desk.surface.require_open()
    desk.surface.is_open = False


def _get_artifact(desk: Desk, message: ArtifactGet) -> JsonObject:
    artifact = desk.artifacts.require(message.artifact_id)
    return {"media_type": artifact.media_type, "sha256": sha256(artifact.data).hexdigest(), "size": len(artifact.data)}


def content_of(desk: Desk, message: Message) -> bytes:
    """What follows the value of a request in chunks."""
    return desk.artifacts.window(message) if isinstance(message, ArtifactGet) else cbor2.dumps(desk.surface.state)


def _started(desk: Desk, _: LifecycleStarted) -> None:
    desk.is_started = True


def _subscribe_tools(desk: Desk, _: ToolsSubscribe) -> None:
    desk.is_subscribed_to_tools = True


def _subscribe_inbox(desk: Desk, _: InboxSubscribe) -> None:
    desk.is_subscribed_to_inbox = True


def _send_text(desk: Desk, message: ConversationSendText) -> JsonObject:
    if not 0 < len(message.text) <= MAX_TEXT_LENGTH:
        raise Refused(Code.LIMIT_EXCEEDED, {"pointer": "/text", "expected": f"1 to {MAX_TEXT_LENGTH} code points"})
    desk.sent_texts.append(message.text)
    return {"message_id": f"msg_fake_text_{len(desk.sent_texts)}"}


def _place(desk: Desk, message: TimelinePlace) -> JsonObject:
    desk.folded[message.number] = message.folded
    return {"placed": True}


def _subscribe_timeline(desk: Desk, _: TimelineSubscribe) -> None:
    desk.is_subscribed_to_timeline = True


def _request_mode(_: Desk, message: LifecycleRequestMode) -> None:
    if message.mode != "im":
        raise Refused(Code.MODE_UNAVAILABLE, {"pointer": "/mode", "expected": "im"})


def _ask(desk: Desk, message: UiRequest) -> JsonObject:
    desk.questions.require_allowed(desk.requested_capabilities)
    if message.parent_call_id is not None:
        _open_call(desk, message.parent_call_id)
    return {"interaction_id": desk.questions.open(message).interaction_id}


def _get_question(desk: Desk, message: UiGet) -> JsonObject:
    desk.questions.require_allowed(desk.requested_capabilities)
    return desk.questions.get(message)


def _subscribe_ui(desk: Desk, _: UiSubscribe) -> None:
    desk.questions.require_allowed(desk.requested_capabilities)
    desk.questions.is_subscribed = True


def _cancel_question(desk: Desk, message: UiCancel) -> None:
    desk.questions.require_allowed(desk.requested_capabilities)
    question = desk.questions.require_open(message)
    desk.end_question(question, {"outcome": "cancelled", "code": Code.CANCELLED.value})


def _log(desk: Desk, message: LogWrite) -> None:
    desk.log.append((message.stream, message.text))


ANSWERS: dict[type[Message], Callable[..., JsonObject | None]] = {
    ArtifactGet: _get_artifact,
    CapabilityRequest: _request_capability,
    InboxAcknowledge: _acknowledge,
    InboxList: _list,
    InboxSubscribe: _subscribe_inbox,
    LifecycleRequestBackground: _request_background,
    LifecycleRequestClose: _request_close,
    LifecycleRequestForeground: _request_foreground,
    LifecycleStarted: _started,
    LogWrite: _log,
    ConversationSendText: _send_text,
    LifecycleRequestMode: _request_mode,
    TimelinePlace: _place,
    TimelineSubscribe: _subscribe_timeline,
    StateLoad: _load,
    StateSave: _save,
    SurfaceClose: _close_surface,
    SurfaceOpen: _open_surface,
    SurfaceRead: _read_surface,
    SurfaceUpdate: _update_surface,
    ToolAccept: _accept,
    ToolCancel: _cancel,
    ToolCancelSeen: _cancel_seen,
    ToolComplete: _complete,
    ToolFail: _fail,
    ToolProgress: _progress,
    ToolsGet: _get,
    ToolsSubscribe: _subscribe_tools,
    UiCancel: _cancel_question,
    UiGet: _get_question,
    UiRequest: _ask,
    UiSubscribe: _subscribe_ui,
}
