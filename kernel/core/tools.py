"""What a worker says of its calls (SPEC 6.5).

Rules:
1. Only the instance that was given the call may speak of it, and only in the life it was delivered to. Any other id, foreign or
   unknown, is call_not_found: the two are never told apart.
2. A result is checked against the output schema in force when the call was accepted; a bad one leaves the call open for another try.
3. Progress never falls for the Agent, never follows the end, and at most one unacknowledged row of it stands in the outbox.
"""

from __future__ import annotations

from kernel.core import calls, delivery, instances, machines, outbox
from kernel.core.decision import ArmDeadline, Decision, Detail, Draft, Origin, Rejected, Stamp, View
from kernel.core.events import DeliverCalls
from kernel.core.limits import CANCEL_GRANTED_MS
from kernel.core.machines import CALL_OPEN, CallEvent, CallStatus
from kernel.core.records import Cancel, OutboxKind, ToolCall, decode_body, encode_body, replace
from kernel.protocol.agent import TOOL_PROGRESS
from lineup_sdk.protocol import limits as wire
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.framing import ProtocolViolation, check_value
from lineup_sdk.protocol.messages import (
    JsonObject,
    ToolAccept,
    ToolCancel,
    ToolCancelSeen,
    ToolComplete,
    ToolFail,
    ToolProgress,
    ToolsGet,
    ToolsSubscribe,
)

_SECOND_MS = 1_000


def subscribe(view: View, origin: Origin, stamp: Stamp, command: ToolsSubscribe) -> Decision:
    """Begin to deliver calls to this life."""
    draft = Draft(view, origin, stamp)
    instance = instances.require_own(draft)
    if not instance.tools_subscribed:
        instance = replace(instance, tools_subscribed=True)
        draft.put(instance)
        delivery.deliver_calls(draft, instance)
    return draft.decision()


def deliver(view: View, origin: Origin, stamp: Stamp, command: DeliverCalls) -> Decision:
    """Deliver calls that waited for their App to be in front."""
    draft = Draft(view, origin, stamp)
    instance = view.instance(command.instance_id)
    if instance is not None:
        delivery.deliver_calls(draft, instance)
    return draft.decision()


def get(view: View, origin: Origin, stamp: Stamp, command: ToolsGet) -> Decision:
    """Read one own call. Raises: Rejected(call_not_found)."""
    draft = Draft(view, origin, stamp)
    call = _require_own_call(draft, command.call_id)
    return draft.decision(
        {
            "call_id": call.call_id,
            "tool_id": call.tool_id,
            "input": calls.input_of(call),
            "status": call.status.value,
            "attempts": call.attempts,
        }
    )


def accept(view: View, origin: Origin, stamp: Stamp, command: ToolAccept) -> Decision:
    """Work begins. Accepting twice is one acceptance. Raises: Rejected(call_not_found, call_already_final)."""
    draft = Draft(view, origin, stamp)
    call = _require_open(draft, command.call_id)
    if call.status is CallStatus.WAITING_FOR_APP:
        status = machines.step(machines.CALL, call.status, CallEvent.ACCEPT)
        draft.put(replace(call, status=status, updated_at=stamp.now))
        draft.audit("call.accepted", number=call.number, instance_id=call.instance_id)
    return draft.decision()


def progress(view: View, origin: Origin, stamp: Stamp, command: ToolProgress) -> Decision:
    """Persist a report and put it in place of an unacknowledged older one.

    Raises: Rejected(call_not_found, call_already_final, lifecycle_denied, tool_output_invalid, limit_exceeded).
    """
    draft = Draft(view, origin, stamp)
    call = _require_running(draft, command.call_id)
    said = _checked_progress(call, command)
    call = _counted(call, stamp)
    waiting = view.pending_progress_row(call.number)
    if waiting is None:
        outbox.require_room(view)
    else:
        draft.remove_row(waiting.number)
    draft.put(replace(call, progress_cbor=encode_body(said), updated_at=stamp.now))
    draft.audit("call.progressed", number=call.number, instance_id=call.instance_id)
    payload = {"call_id": call.call_id, **said}
    kind, scope = OutboxKind.PROGRESS, call.app_scope
    outbox.send(draft, call.source, TOOL_PROGRESS, payload, kind=kind, call_number=call.number, app_scope=scope)
    return draft.decision()


def _counted(call: ToolCall, stamp: Stamp) -> ToolCall:
    """The call with one report more in its second. Raises: Rejected(limit_exceeded)."""
    window_ms, count = call.progress_window_ms, call.progress_count
    if not 0 <= stamp.boottime_ms - window_ms < _SECOND_MS:  # below 0: the window is of an earlier boot
        window_ms, count = stamp.boottime_ms, 0
    if count >= wire.PROGRESS_PER_SECOND:
        raise Rejected(Code.LIMIT_EXCEEDED, Detail(expected=f"at most {wire.PROGRESS_PER_SECOND} reports a second"))
    return replace(call, progress_window_ms=window_ms, progress_count=count + 1)


def _checked_progress(call: ToolCall, command: ToolProgress) -> JsonObject:
    if command.percent is not None and not 0 <= command.percent <= 100:
        raise Rejected(Code.TOOL_OUTPUT_INVALID, Detail(pointer="/percent", expected="0 to 100", got_type="number"))
    said: JsonObject = {}
    # A redelivered call starts over, and a report may have no percent: the Agent does not see it fall, or forgotten.
    before = decode_body(call.progress_cbor).get("percent") if call.progress_cbor else None
    percents = [percent for percent in (command.percent, before) if percent is not None]
    if percents:
        said["percent"] = max(percents)
    if command.message is not None:
        said["message"] = command.message
    if command.data is not None:
        said["data"] = _checked_data(command.data)
    return said


def _checked_data(data: JsonObject) -> JsonObject:
    """Data no schema judges still has to reach every receiver, JSON doors among them. Raises: Rejected(tool_output_invalid)."""
    try:
        check_value(data, max_depth=wire.MAX_PROGRESS_DEPTH, allow_bytes=False)
    except ProtocolViolation as violation:
        expected = f"JSON values at most {wire.MAX_PROGRESS_DEPTH} deep ({violation.reason})"
        raise Rejected(Code.TOOL_OUTPUT_INVALID, Detail(pointer="/data", expected=expected, got_type="object")) from None
    return data


def complete(view: View, origin: Origin, stamp: Stamp, command: ToolComplete) -> Decision:
    """Fix the result of a call.

    Raises: Rejected(call_not_found, call_already_final, lifecycle_denied, app_disabled, tool_output_invalid, limit_exceeded).
    """
    draft = Draft(view, origin, stamp)
    call = _require_running(draft, command.call_id)
    if not view.enablement.is_enabled(call.app_scope, call.tool_id):
        raise Rejected(Code.APP_DISABLED)
    size = len(encode_body(command.result))
    if size > wire.MAX_BODY_BYTES:
        expected = f"at most {wire.MAX_BODY_BYTES} bytes as CBOR"
        raise Rejected(Code.LIMIT_EXCEEDED, Detail(pointer="/result", expected=expected, got_type="object", got_size=size))
    mismatch = view.descriptor(call.descriptor_digest).output_schema.check(command.result)
    if mismatch is not None:
        raise Rejected(
            Code.TOOL_OUTPUT_INVALID,
            Detail(
                pointer="/result" + mismatch.pointer,
                expected=mismatch.expected,
                got_type=mismatch.got_type,
                got_size=mismatch.got_size,
                hint="mend the result and complete again; the call is still open",
            ),
        )
    calls.finish(draft, call, CallEvent.SUBMIT, result=command.result, by_worker=True)
    return draft.decision()


def fail(view: View, origin: Origin, stamp: Stamp, command: ToolFail) -> Decision:
    """End a call as failed. Raises: Rejected(call_not_found, call_already_final)."""
    draft = Draft(view, origin, stamp)
    call = _require_open(draft, command.call_id)
    report: JsonObject = {"reason": command.reason}
    if command.message is not None:
        report["message"] = command.message
    calls.finish(draft, call, CallEvent.FAIL, code=Code.TOOL_FAILED, report=report, by_worker=True)
    return draft.decision()


def cancel(view: View, origin: Origin, stamp: Stamp, command: ToolCancel) -> Decision:
    """End a call as cancelled, by the App itself or because it was asked. Raises: Rejected(call_not_found, call_already_final)."""
    draft = Draft(view, origin, stamp)
    call = _require_open(draft, command.call_id)
    report: JsonObject = {"cancel": "acknowledged" if call.cancel is not Cancel.NONE else "app"}
    if command.reason is not None:
        report["reason"] = command.reason
    calls.finish(draft, call, CallEvent.CANCEL, code=Code.CANCELLED, report=report, by_worker=True)
    return draft.decision()


def cancel_seen(view: View, origin: Origin, stamp: Stamp, command: ToolCancelSeen) -> Decision:
    """The worker saw the request and gets more time, once (SPEC 6.7). Raises: Rejected(call_not_found, call_already_final)."""
    draft = Draft(view, origin, stamp)
    call = _require_open(draft, command.call_id)
    if call.cancel is Cancel.ASKED:
        deadline = stamp.deadline_in(CANCEL_GRANTED_MS)
        draft.put(replace(call, cancel=Cancel.ACKNOWLEDGED, cancel_deadline=deadline, updated_at=stamp.now))
        draft.audit("call.cancel_acknowledged", number=call.number, instance_id=call.instance_id)
        draft.effect(ArmDeadline(at_ms=deadline.at_ms))
    return draft.decision()


def _require_own_call(draft: Draft, call_id: str) -> ToolCall:
    """A call delivered to this life. Raises: Rejected(call_not_found)."""
    instance = instances.require_own(draft)
    call = draft.view.call_by_id(call_id)
    if call is None or call.instance_id != instance.instance_id or call.delivered_life != instance.life:
        raise Rejected(Code.CALL_NOT_FOUND)
    return call


def _require_open(draft: Draft, call_id: str) -> ToolCall:
    call = _require_own_call(draft, call_id)
    if call.status not in CALL_OPEN:
        raise Rejected(Code.CALL_ALREADY_FINAL)
    return call


def _require_running(draft: Draft, call_id: str) -> ToolCall:
    call = _require_open(draft, call_id)
    if call.status is not CallStatus.RUNNING:
        raise Rejected(Code.LIFECYCLE_DENIED, Detail(hint="send tool.accept for this call first"))
    return call
