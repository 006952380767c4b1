"""How a request for a capability ends, whoever ends it: one place writes the outcome (SPEC 10).

Rules:
1. The outcome, its audit row and the App's inbox row are one decision. Arguments are forgotten with it.
2. What happened is said as it is known: a host that was asked and never answered leaves `unknown`, not `failed`.
3. An App that is gone is told nothing; its request has its outcome all the same.
4. A question for a call waits no longer than the process that works on the call: delivered again, the call asks again, and two yeses
   would do it twice. A question for no call outlives its process, over a restart too: nobody asks it a second time.
"""

from __future__ import annotations

from typing import Final

from kernel.core import calls, machines, results
from kernel.core.capability_records import CapabilityRequest
from kernel.core.decision import Draft
from kernel.core.machines import INSTANCE_FINAL, CapabilityEvent, CapabilityStatus
from kernel.core.records import Instance, replace
from lineup_sdk.protocol.capability_messages import CAPABILITY_RESULT
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject

_CODES: Final = {
    CapabilityEvent.CANCEL: Code.CANCELLED,
    CapabilityEvent.DENY: Code.CAPABILITY_DENIED,
    CapabilityEvent.LOSE: Code.UNKNOWN,
    CapabilityEvent.REVOKE: Code.CAPABILITY_DENIED,
}


def end(
    draft: Draft, request: CapabilityRequest, event: CapabilityEvent, *, code: Code | None = None, reason: str | None = None
) -> CapabilityRequest:
    """Write the outcome. reason is a token of the host. Raises: machines.NoSuchTransition when it has one already."""
    ended = replace(
        request,
        status=machines.step(machines.CAPABILITY, request.status, event),
        updated_at=draft.stamp.now,
        arguments_cbor=None,
        deadline_ms=None,
        error_code=code or _CODES.get(event),
        reason_of_end=reason,
    )
    draft.put(ended)
    draft.audit(f"capability.{ended.status.value}", number=ended.number, instance_id=ended.instance_id, code=ended.error_code)
    if request.status is CapabilityStatus.ASKED:
        resume_clock(draft, ended)
    _tell_app(draft, ended)
    return ended


def resume_clock(draft: Draft, request: CapabilityRequest) -> None:
    """The question to the person is over: the call it belongs to is on machine time again (SPEC 6.6)."""
    parent = draft.call(request.parent_call_number) if request.parent_call_number is not None else None
    if parent is not None:
        calls.resume_clock(draft, parent)


def end_of_instance(draft: Draft, instance: Instance) -> None:
    """The App is gone, or going: nobody may be asked for it any more. What a host does already ends by itself."""
    for found in draft.view.capabilities.open_requests():
        request = draft.capability_request(found.request_id) or found
        if request.instance_id == instance.instance_id and request.status is CapabilityStatus.ASKED:
            end(draft, request, CapabilityEvent.CANCEL)


def end_of_life(draft: Draft, instance: Instance) -> None:
    """A process of the App is gone: what its calls were asking the person ends with it (rule 4)."""
    for found in draft.view.capabilities.open_requests():
        request = draft.capability_request(found.request_id) or found
        is_of_call = request.instance_id == instance.instance_id and request.parent_call_number is not None
        if is_of_call and request.status is CapabilityStatus.ASKED:
            end(draft, request, CapabilityEvent.CANCEL)


def _tell_app(draft: Draft, request: CapabilityRequest) -> None:
    instance = draft.instance(request.instance_id)
    if instance is None or instance.state in INSTANCE_FINAL:
        return
    results.store(draft, instance, CAPABILITY_RESULT, _result_of(request))


def _result_of(request: CapabilityRequest) -> JsonObject:
    result: JsonObject = {"request_id": request.request_id, "capability": request.capability, "status": request.status.value}
    if request.error_code is not None:
        result["code"] = request.error_code.value
    if request.reason_of_end is not None:
        result["reason"] = request.reason_of_end
    return result
