"""What FakeKernel answers to a request, and what it refuses: the kernel's rules for one instance (SPEC 5, 6.5, 8.2, 8.5).

Rules:
1. One row a message type in ANSWERS; a message without a row needs no answer.
2. A refusal changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import cbor2
import trio

from lineup_sdk.errors import Refused
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.limits import MAX_BODY_BYTES, MAX_STATE_BYTES, PROGRESS_PER_SECOND
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
from lineup_sdk.testing.records import Changes, FakeCall, FakeMessage, Outcome

LIST_PAGE = 100
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
    is_subscribed_to_tools: bool = False
    is_subscribed_to_inbox: bool = False
    is_started: bool = False

    def open_calls(self) -> list[FakeCall]:
        """Calls without an outcome, oldest first."""
        return [c for c in self.calls.values() if c.outcome is None]

    def answer(self, message: Message) -> JsonObject | None:
        """Do what a request asks; return its value, or None for an accepted receipt. Raises: Refused."""
        try:
            if self.is_store_full and message.EXPECTS_REPLY:
                raise Refused(Code.STORE_FULL)
            return ANSWERS[type(message)](self, message)
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


def _started(desk: Desk, _: LifecycleStarted) -> None:
    desk.is_started = True


def _subscribe_tools(desk: Desk, _: ToolsSubscribe) -> None:
    desk.is_subscribed_to_tools = True


def _subscribe_inbox(desk: Desk, _: InboxSubscribe) -> None:
    desk.is_subscribed_to_inbox = True


def _log(desk: Desk, message: LogWrite) -> None:
    desk.log.append((message.stream, message.text))


ANSWERS: dict[type[Message], Callable[..., JsonObject | None]] = {
    InboxAcknowledge: _acknowledge,
    InboxList: _list,
    InboxSubscribe: _subscribe_inbox,
    LifecycleRequestBackground: _request_background,
    LifecycleRequestClose: _request_close,
    LifecycleRequestForeground: _request_foreground,
    LifecycleStarted: _started,
    LogWrite: _log,
    StateLoad: _load,
    StateSave: _save,
    ToolAccept: _accept,
    ToolCancel: _cancel,
    ToolCancelSeen: _cancel_seen,
    ToolComplete: _complete,
    ToolFail: _fail,
    ToolProgress: _progress,
    ToolsGet: _get,
    ToolsSubscribe: _subscribe_tools,
}
