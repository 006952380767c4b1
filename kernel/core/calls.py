"""How a call ends, whoever ends it: one place writes an outcome (SPEC 6.2, 6.5-6.7).

Rules:
1. `finish` is the only writer of an outcome: state, audit row and the one final outbox row in one decision.
2. The first ending wins; any later one is call_already_final and changes nothing.
3. The interaction of an interactive call ends in the same decision (interaction_ends.follow_call).
4. A call that ended without its worker is told to it (tool.ended), so that no work goes on for nothing.
5. While a question to the person that belongs to a call is open, the call's clock stands still (SPEC 6.6).
"""

from __future__ import annotations

from kernel.core import envelopes, focus, interaction_ends, machines, outbox
from kernel.core.decision import ArmDeadline, Decision, Detail, Draft, KillWorker, Origin, Rejected, SendToWorker, Speaker, Stamp, View
from kernel.core.limits import CANCEL_GRACE_MS, DUE_CALLS_A_TURN
from kernel.core.machines import CALL_OPEN, CallEvent, CallStatus
from kernel.core.records import Cancel, Deadline, OutboxKind, ToolCall, decode_body, encode_body, replace
from kernel.protocol.agent import TOOL_RESULT, ToolCancelAsked
from kernel.protocol.host import CallCancel
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject, ToolCancelRequested, ToolEnded

# What the Agent reads for each outcome: submitted is the kernel's word for "fixed and on its way".
_STATUS_SAID = {CallStatus.SUBMITTED: "completed"}


def finish(
    draft: Draft,
    call: ToolCall,
    event: CallEvent,
    *,
    code: Code | None = None,
    result: JsonObject | None = None,
    report: JsonObject | None = None,
    by_worker: bool = False,
) -> ToolCall:
    """End an open call: outcome, audit row, final outbox row; give the front back if this call took it.

    Raises: machines.NoSuchTransition when it has no such ending from where it stands.
    """
    standing = call if event is CallEvent.REJECT else _taken_up(call)
    ended = replace(
        standing,
        status=machines.step(machines.CALL, standing.status, event),
        result_cbor=encode_body(result) if result is not None else None,
        error_code=code,
        deadline=None,
        held_ms=None,
        cancel_deadline=None,
        updated_at=draft.stamp.now,
    )
    draft.put(ended)
    draft.audit(f"call.{ended.status.value}", number=ended.number, instance_id=ended.instance_id, code=code)
    is_interactive = ended.app_scope == interaction_ends.SCOPE
    said = interaction_ends.follow_call(draft, ended, event, code, result) if is_interactive else result
    payload, scope = _result_payload(ended, said, report), ended.app_scope or None
    outbox.send(draft, ended.source, TOOL_RESULT, payload, kind=OutboxKind.FINAL, call_number=ended.number, app_scope=scope)
    if not by_worker:
        _tell_worker(draft, ended)
    if ended.instance_id is not None:
        focus.watch_idle(draft)
    _give_front_back(draft, ended)
    return ended


def _taken_up(call: ToolCall) -> ToolCall:
    """A call that ends before its routing turn has run; that turn sees the outcome and stops."""
    if call.status is not CallStatus.RECEIVED:
        return call
    return replace(call, status=machines.step(machines.CALL, call.status, CallEvent.ROUTE))


def _result_payload(call: ToolCall, result: JsonObject | None, report: JsonObject | None) -> JsonObject:
    said = dict(report or {})
    if call.cancel is not Cancel.NONE or call.status is CallStatus.CANCELLED:
        said.setdefault("cancel", "acknowledged" if call.cancel is Cancel.ACKNOWLEDGED else "asked")
    payload: JsonObject = {"call_id": call.call_id, "status": _STATUS_SAID.get(call.status, call.status.value)}
    if result is not None:
        payload["result"] = result
    if call.error_code is not None:
        payload["code"] = call.error_code.value
    if said:
        payload["report"] = said
    return payload


def _tell_worker(draft: Draft, call: ToolCall) -> None:
    instance = draft.instance(call.instance_id) if call.instance_id else None
    if instance is not None and call.delivered_life == instance.life:
        message = ToolEnded(call_id=call.call_id, status=call.status.value)
        draft.effect(SendToWorker(instance_id=instance.instance_id, life=instance.life, message=message))


def _give_front_back(draft: Draft, call: ToolCall) -> None:
    if not (call.raised and call.instance_id and call.descriptor_digest):
        return
    descriptor = draft.view.descriptor(call.descriptor_digest)
    if descriptor.restore_previous_focus and focus.front(draft) == call.instance_id:
        focus.lower_instance(draft, call.instance_id)


def time_left_ms(stamp: Stamp, call: ToolCall) -> int | None:
    """Machine time the call still has, never below 0, also while its clock stands still; None when it has no clock."""
    return call.held_ms if call.deadline is None else _time_to_ms(stamp, call.deadline)


def _time_to_ms(stamp: Stamp, deadline: Deadline) -> int:
    return max(0, deadline.at_ms - stamp.boottime_ms)


def pause_clock(draft: Draft, call: ToolCall) -> None:
    """A question to the person that belongs to this call opens: from now on it is human time. Several may be open."""
    held_ms = call.held_ms if call.deadline is None else _time_to_ms(draft.stamp, call.deadline)
    draft.put(replace(call, human_waits=call.human_waits + 1, held_ms=held_ms, deadline=None))


def resume_clock(draft: Draft, call: ToolCall) -> None:
    """Such a question ended; with the last one the clock goes on with what was left. A call that ended has no clock."""
    if call.status not in CALL_OPEN or call.human_waits == 0:
        return
    resumed = replace(call, human_waits=call.human_waits - 1)
    if resumed.human_waits == 0 and call.held_ms is not None:
        deadline = draft.stamp.deadline_in(call.held_ms)
        resumed = replace(resumed, held_ms=None, deadline=deadline)
        draft.effect(ArmDeadline(at_ms=deadline.at_ms))
    draft.put(resumed)


def cancel_asked(view: View, origin: Origin, stamp: Stamp, command: ToolCancelAsked) -> Decision:
    """The Agent or the person cancels a call (SPEC 6.7).

    Raises: Rejected(call_not_found, call_already_final, use_dismiss for an interactive call).
    """
    draft = Draft(view, origin, stamp)
    if command.envelope is not None and not envelopes.is_new(draft, command.envelope):
        return draft.decision()
    call = view.call_by_id(command.call_id)
    if call is None or (origin.speaker is Speaker.AGENT and call.source is not origin.source):
        raise Rejected(Code.CALL_NOT_FOUND)
    if call.status not in CALL_OPEN:
        raise Rejected(Code.CALL_ALREADY_FINAL)
    if call.app_scope == interaction_ends.SCOPE:
        hint = "send interaction.dismiss" if origin.speaker is Speaker.AGENT else "answer it, or decline where that is offered"
        raise Rejected(Code.USE_DISMISS, Detail(pointer="/payload/call_id", hint=hint))
    if not call.delivered_life:
        finish(draft, call, CallEvent.CANCEL, code=Code.CANCELLED)
    elif call.cancel is Cancel.NONE:
        deadline = stamp.deadline_in(CANCEL_GRACE_MS)
        draft.put(replace(call, cancel=Cancel.ASKED, cancel_deadline=deadline, updated_at=stamp.now))
        draft.audit("call.cancel_asked", number=call.number, instance_id=call.instance_id)
        _ask_worker(draft, call)
        draft.effect(ArmDeadline(at_ms=deadline.at_ms))
    return draft.decision()


def person_cancels(view: View, origin: Origin, stamp: Stamp, command: CallCancel) -> Decision:
    """The person cancels any call. Raises: as cancel_asked."""
    return cancel_asked(view, origin, stamp, ToolCancelAsked(envelope=None, call_id=command.call_id))


def _ask_worker(draft: Draft, call: ToolCall) -> None:
    if call.instance_id and call.delivered_life:
        message = ToolCancelRequested(call_id=call.call_id, grace_ms=CANCEL_GRACE_MS)
        draft.effect(SendToWorker(instance_id=call.instance_id, life=call.delivered_life, message=message))


def end_due(draft: Draft) -> None:
    """End the calls that are due: cancelled where the grace is over (and the process with it), else expired."""
    stamp = draft.stamp
    for found in draft.view.due_calls(stamp.boottime_ms, DUE_CALLS_A_TURN):
        call = draft.call(found.number) or found
        if call.cancel_deadline is not None and call.cancel_deadline.at_ms <= stamp.boottime_ms:
            finish(draft, call, CallEvent.CANCEL, code=Code.CANCELLED, report={"cancel": "stopped"}, by_worker=True)
            if call.instance_id and call.delivered_life:
                draft.effect(KillWorker(instance_id=call.instance_id, life=call.delivered_life))
        else:
            finish(draft, call, CallEvent.EXPIRE, code=Code.EXPIRED)


def withdraw(draft: Draft, call: ToolCall, *, is_crash: bool, max_attempts: int) -> None:
    """The worker that may have this call is gone: redeliver it, or end it when it may not run again (SPEC 6.8)."""
    if not call.delivered_life:
        return
    attempts = call.attempts + (1 if is_crash else 0)
    descriptor = draft.view.descriptor(call.descriptor_digest)
    back = replace(call, attempts=attempts, delivered_life=0, cancel_deadline=None, updated_at=draft.stamp.now)
    if call.cancel is not Cancel.NONE:
        finish(draft, back, CallEvent.CANCEL, code=Code.CANCELLED, report={"cancel": "stopped"}, by_worker=True)
    elif attempts >= max_attempts:
        finish(draft, back, CallEvent.FAIL, code=Code.APP_CRASHED, by_worker=True)
    elif call.progress_cbor is not None and not descriptor.hints.idempotent:
        finish(draft, back, CallEvent.FAIL, code=Code.INTERRUPTED, by_worker=True)
    elif call.status is CallStatus.RUNNING:
        draft.put(replace(back, status=machines.step(machines.CALL, call.status, CallEvent.REDELIVER)))
    else:
        draft.put(back)


def input_of(call: ToolCall) -> JsonObject:
    """The call's input, decoded."""
    return decode_body(call.input_cbor)
