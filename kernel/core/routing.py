"""From an invoke to an instance (SPEC 4.4, 6.3, 6.4, 6.9).

Rules:
1. An invoke is judged whole in its first turn: a refused call is one call row, one audit row, one outbox row, and nothing else.
2. An accepted call is `received` in a commit of its own; routing is the next turn and starts, raises and delivers.
3. Routing judges again what may have changed between the two turns.
4. An interactive call has no instance: it is the kernel's own question (interactions.py).
5. One instance an App and conversation. Only launch and direct make one; only launch and foreground bring one to the front.
6. A call that needs a new instance waits, routing, while its App closes or there are as many instances as may be. Every end of an
   instance takes up all that wait, oldest first. Only its own clock, a cancel or the person's switch ends the wait.
"""

from __future__ import annotations

from datetime import datetime

from kernel.core import (
    calls,
    delivery,
    envelopes,
    focus,
    instances,
    interaction_forms,
    interactions,
    machines,
    outbox,
    permissions,
    retention,
    runtime,
)
from kernel.core.decision import ArmDeadline, Decision, Detail, Draft, Origin, Rejected, Stamp, Then, View
from kernel.core.events import RouteCall
from kernel.core.inventory import difference
from kernel.core.limits import DEFAULT_TIMEOUT_MS, MAX_OPEN_CALLS, MAX_OPEN_CALLS_OF_INSTANCE, MAX_TIMEOUT_MS
from kernel.core.machines import CallEvent, CallStatus, InstanceState
from kernel.core.manifest import Handling, ToolDescriptor
from kernel.core.records import (
    Instance,
    Key,
    OutboxKind,
    Source,
    ToolCall,
    digest_of_parts,
    encode_body,
    encode_exact,
    key_digest,
    replace,
)
from kernel.protocol.agent import TOOL_RESULT, ToolInvoke
from kernel.protocol.host import CallInvoke
from lineup_sdk.protocol import limits as wire
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.framing import ProtocolViolation, check_value

_MAKES_INSTANCE = frozenset({Handling.DIRECT, Handling.LAUNCH})
_TO_FRONT = frozenset({Handling.FOREGROUND, Handling.LAUNCH})
_OPEN_CALLS_EXPECTED = f"at most {MAX_OPEN_CALLS_OF_INSTANCE} open calls of an App"

_BARE_CALL = ToolCall(
    number=0,
    call_id="",
    tool_id="",
    inventory_revision="",
    descriptor_digest="",
    source=Source.AGENT,
    app_scope="",
    conversation_id="",
    content_digest=b"",
    input_cbor=encode_body({}),
    created_at=datetime.min,
    updated_at=datetime.min,
    status=CallStatus.RECEIVED,
)


def invoke(view: View, origin: Origin, stamp: Stamp, command: ToolInvoke) -> Decision:
    """Accept or refuse a call. A refusal is a decision too: the call row says rejected.

    Raises: Rejected for an envelope that is not this kernel's, and limit_exceeded when the person's outbox is full.
    """
    draft = Draft(view, origin, stamp)
    command = interaction_forms.of_today(command, view.inventory.revision)
    is_resent = command.envelope is not None and not envelopes.is_new(draft, command.envelope)
    digest = key_digest("call", view.conversation_id, command.call_id)
    if is_resent or view.key(digest) is not None:
        if _is_same_call(draft, command):
            return _repeat(draft, command)
        if is_resent:
            raise Rejected(Code.CALL_ID_CONFLICT)  # its refusal row was written when it first came
        return _conflict(draft, command)
    outbox.require_room(view, 2)
    input_cbor = encode_exact(command.input)
    call = _received(draft, command, input_cbor)
    draft.put(Key(digest=digest, content_digest=call.content_digest, number=call.number))
    try:
        descriptor = _require_advertised(view, command)
        _require_input(descriptor, command, input_cbor)
        _require_routable(view, command, descriptor)
    except Rejected as refusal:
        _reject(draft, call, refusal)
        return draft.decision({"call_id": call.call_id}, refusal=refusal.code, detail=refusal.detail)
    _accept(draft, call, descriptor, command, input_cbor)
    return draft.decision({"call_id": call.call_id})


def _accept(draft: Draft, call: ToolCall, descriptor: ToolDescriptor, command: ToolInvoke, input_cbor: bytes) -> None:
    allowed_ms = _time_allowed_ms(draft.stamp, descriptor, command.expires_at)
    deadline = draft.stamp.deadline_in(allowed_ms) if allowed_ms is not None else None
    draft.put(
        replace(
            call,
            input_cbor=input_cbor,
            instance_id=command.instance_id,
            inventory_revision=draft.view.inventory.revision,
            descriptor_digest=descriptor.digest,
            app_scope=descriptor.app_scope,
            deadline=deadline,
        )
    )
    draft.audit("call.received", number=call.number)
    draft.effect(Then(command=RouteCall(number=call.number)))
    if deadline is not None:
        draft.effect(ArmDeadline(at_ms=deadline.at_ms))


def person_invokes(view: View, origin: Origin, stamp: Stamp, command: CallInvoke) -> Decision:
    """The person's own hand calls a tool: always under the inventory in force."""
    invocation = ToolInvoke(
        envelope=None,
        call_id=command.call_id or stamp.new_id("call", view.epoch),
        tool_id=command.tool_id,
        inventory_revision=view.inventory.revision,
        input=command.input,
    )
    return invoke(view, origin, stamp, invocation)


def content_digest(command: ToolInvoke, conversation_id: str, input_cbor: bytes) -> bytes:
    """What makes two invokes the same call: tool, conversation and input."""
    return digest_of_parts(command.tool_id, conversation_id, input_cbor)


def _received(draft: Draft, command: ToolInvoke, input_cbor: bytes) -> ToolCall:
    """The bare call: what is known before anything of it was judged. Its input is kept only once it was."""
    conversation_id, now = draft.view.conversation_id, draft.stamp.now
    return replace(
        _BARE_CALL,
        number=draft.new_number(),
        call_id=command.call_id,
        tool_id=command.tool_id,
        source=draft.origin.source,
        conversation_id=conversation_id,
        content_digest=content_digest(command, conversation_id, input_cbor),
        created_at=now,
        updated_at=now,
    )


def _is_same_call(draft: Draft, command: ToolInvoke) -> bool:
    """Was the used call_id given to this content, by this asker? (SPEC 6.4) Another's id is a conflict: its rows go elsewhere."""
    view = draft.view
    key = view.key(key_digest("call", view.conversation_id, command.call_id))
    call = view.call_by_id(command.call_id)
    if key is None or (call is not None and call.source is not draft.origin.source):
        return False
    return key.content_digest == content_digest(command, view.conversation_id, encode_exact(command.input))


def _repeat(draft: Draft, command: ToolInvoke) -> Decision:
    """The same call again: acknowledged while it is open; the stored row is sent again, with the same answer, once it ended."""
    call = draft.view.call_by_id(command.call_id)
    row = draft.view.final_row(call.number) if call is not None else None
    key = draft.view.key(key_digest("call", draft.view.conversation_id, command.call_id)) if call is None else None
    if key is not None and key.outcome is not None:
        return _repeat_forgotten(draft, command.call_id, key)
    if call is None or row is None:
        return draft.decision({"call_id": command.call_id})
    draft.audit("call.repeated", number=call.number)
    outbox.send_again(draft, row)
    refusal = call.error_code if call.status is CallStatus.REJECTED else None
    return draft.decision({"call_id": command.call_id}, refusal=refusal)


def _repeat_forgotten(draft: Draft, call_id: str, key: Key) -> Decision:
    """Only the outcome of this call is kept: it is said again, and the call is never run again (SPEC 16)."""
    outbox.require_room(draft.view)
    draft.audit("call.repeated", number=key.number)
    payload = retention.outcome_said(call_id, key.outcome or "")
    outbox.send(draft, draft.origin.source, TOOL_RESULT, payload, kind=OutboxKind.REFUSAL, call_number=key.number)
    return draft.decision({"call_id": call_id})


def _conflict(draft: Draft, command: ToolInvoke) -> Decision:
    outbox.require_room(draft.view)
    number = draft.new_number()
    draft.audit("call.conflict_refused", number=number, code=Code.CALL_ID_CONFLICT)
    payload = {"call_id": command.call_id, "status": "rejected", "code": Code.CALL_ID_CONFLICT.value}
    outbox.send(draft, draft.origin.source, TOOL_RESULT, payload, kind=OutboxKind.REFUSAL)
    return draft.decision(refusal=Code.CALL_ID_CONFLICT)


def _reject(draft: Draft, call: ToolCall, refusal: Rejected) -> None:
    report = refusal.detail.as_json() if refusal.detail is not None else None
    calls.finish(draft, call, CallEvent.REJECT, code=refusal.code, report=report)


def _require_advertised(view: View, command: ToolInvoke) -> ToolDescriptor:
    inventory = view.inventory
    if command.inventory_revision != inventory.revision:
        known = view.fingerprint(command.inventory_revision) if command.inventory_revision else None
        raise Rejected(
            Code.INVENTORY_REVISION_MISMATCH,
            Detail(
                pointer="/payload/inventory_revision",
                expected=inventory.revision,
                hint="read the difference, then call again under the current revision with a new call_id",
                more={"difference": difference(known or {}, inventory, command.tool_id)},
            ),
        )
    descriptor = inventory.tool(command.tool_id)
    if descriptor is None:
        if _is_switched_off(view, command.tool_id):
            raise Rejected(Code.APP_DISABLED, Detail(pointer="/payload/tool_id", expected="a tool that is switched on"))
        raise Rejected(Code.TOOL_NOT_ADVERTISED, Detail(pointer="/payload/tool_id", expected="a tool of the inventory"))
    return descriptor


def _is_switched_off(view: View, tool_id: str) -> bool:
    manifest = view.manifests.get(tool_id.partition(".")[0])
    return manifest is not None and any(tool.id == tool_id for tool in manifest.tools)


def _require_input(descriptor: ToolDescriptor, command: ToolInvoke, input_cbor: bytes) -> None:
    try:
        check_value(command.input, max_depth=wire.MAX_BODY_DEPTH, allow_bytes=False)
    except ProtocolViolation as violation:
        detail = Detail(pointer="/payload/input", expected=f"JSON values of the wire ({violation.reason})")
        raise Rejected(Code.TOOL_INPUT_INVALID, detail) from None
    if len(input_cbor) > wire.MAX_BODY_BYTES:
        expected = f"at most {wire.MAX_BODY_BYTES} bytes as CBOR"
        raise Rejected(
            Code.TOOL_INPUT_INVALID,
            Detail(pointer="/payload/input", expected=expected, got_type="object", got_size=len(input_cbor)),
        )
    mismatch = descriptor.input_schema.check(command.input)
    if mismatch is not None:
        raise Rejected(
            Code.TOOL_INPUT_INVALID,
            Detail(
                pointer="/payload/input" + mismatch.pointer,
                expected=mismatch.expected,
                got_type=mismatch.got_type,
                got_size=mismatch.got_size,
            ),
        )
    if descriptor.handling is Handling.INTERACTIVE:
        interaction_forms.check_request(interaction_forms.kind_of_tool(descriptor.id), command.input, "/payload/input")


def _require_routable(view: View, command: ToolInvoke, descriptor: ToolDescriptor) -> None:
    """What routing needs of the world: scope, capabilities, instance, surface and room."""
    if command.app_scope not in (None, descriptor.app_scope):
        raise Rejected(Code.APP_SCOPE_MISMATCH, Detail(pointer="/app_scope", expected=descriptor.app_scope))
    permissions.require_not_denied(view, descriptor)
    if view.open_call_count() >= MAX_OPEN_CALLS:
        raise Rejected(Code.LIMIT_EXCEEDED, Detail(expected=f"at most {MAX_OPEN_CALLS} open calls"))
    if view.manifests[descriptor.app_scope].surface_required and not view.capabilities.views():  # text counts
        raise Rejected(Code.SURFACE_UNAVAILABLE, Detail(hint="no view can show a surface"))
    if descriptor.handling is Handling.INTERACTIVE:
        _require_no_instance(command.instance_id)
        interactions.require_room(view)
        return
    instance = view.current_instance(descriptor.app_scope)
    _require_instance(instance, command.instance_id, descriptor)
    if instance is not None and len(view.open_calls(instance.instance_id)) >= MAX_OPEN_CALLS_OF_INSTANCE:
        raise Rejected(Code.LIMIT_EXCEEDED, Detail(expected=_OPEN_CALLS_EXPECTED))


def _require_instance(instance: Instance | None, named: str | None, descriptor: ToolDescriptor) -> None:
    """The one the invoke named, or one that there is or may be made. Raises: Rejected(app_instance_not_found)."""
    if named is not None and (instance is None or named != instance.instance_id):
        raise Rejected(Code.APP_INSTANCE_NOT_FOUND, Detail(pointer="/instance_id", expected="the App's instance"))
    if instance is None and descriptor.handling not in _MAKES_INSTANCE:
        raise Rejected(Code.APP_INSTANCE_NOT_FOUND, Detail(expected="a running instance", hint="launch the App first"))


def _require_no_instance(named: str | None) -> None:
    if named is not None:
        raise Rejected(Code.APP_INSTANCE_NOT_FOUND, Detail(pointer="/instance_id", expected="none: the person is asked, not an App"))


def _time_allowed_ms(stamp: Stamp, descriptor: ToolDescriptor, expires_at: str | None) -> int | None:
    if descriptor.handling is Handling.INTERACTIVE:  # the person's time has no cap: only expires_at ends it
        return None if expires_at is None else max(0, _left_ms(stamp, expires_at))
    allowed = descriptor.timeout_ms
    if allowed is None and descriptor.handling is not Handling.LAUNCH:
        allowed = DEFAULT_TIMEOUT_MS
    if expires_at is not None:
        left = _left_ms(stamp, expires_at)
        allowed = left if allowed is None else min(allowed, left)
    return None if allowed is None else max(0, min(allowed, MAX_TIMEOUT_MS))


def _left_ms(stamp: Stamp, expires_at: str) -> int:
    return int((datetime.fromisoformat(expires_at) - stamp.now).total_seconds() * 1000)


def route(view: View, origin: Origin, stamp: Stamp, command: RouteCall) -> Decision:
    """Take up a received call: find or make its instance, raise it, deliver. A call that is not waiting for it is left alone."""
    draft = Draft(view, origin, stamp)
    call = view.call(command.number)
    if call is None or call.status not in {CallStatus.RECEIVED, CallStatus.ROUTING}:
        return draft.decision()
    if call.status is CallStatus.RECEIVED:
        call = replace(call, status=machines.step(machines.CALL, call.status, CallEvent.ROUTE))
    descriptor = view.descriptor(call.descriptor_digest)
    if call.deadline is not None and call.deadline.at_ms <= stamp.boottime_ms:
        calls.finish(draft, call, CallEvent.EXPIRE, code=Code.EXPIRED)
    elif not view.enablement.is_enabled(call.app_scope, call.tool_id):
        calls.finish(draft, call, CallEvent.FAIL, code=Code.APP_DISABLED)
    elif view.inventory.tool(call.tool_id) is None:  # another Manifest since a restart
        _reject(draft, call, Rejected(Code.TOOL_NOT_ADVERTISED))
    elif descriptor.handling is Handling.INTERACTIVE:
        interactions.open_for_call(draft, call)
    elif call.app_scope == runtime.SCOPE:
        calls.finish(draft, call, CallEvent.SUBMIT, result=runtime.answer(view, call.tool_id))
    else:
        _assign(draft, call, descriptor)
    return draft.decision()


def _assign(draft: Draft, call: ToolCall, descriptor: ToolDescriptor) -> None:
    if _must_wait(draft.view, call, descriptor):
        if call != draft.view.call(call.number):
            draft.put(call)  # routing: the end of an instance takes it up again
        return
    try:
        instance = _instance_for(draft, call, descriptor)
    except Rejected as refusal:  # the world changed between the two turns
        _reject(draft, call, refusal)
        return
    was_front = focus.front(draft) == instance.instance_id
    if descriptor.handling in _TO_FRONT or descriptor.requires_foreground:
        focus.raise_instance(draft, instance.instance_id)
    instance = draft.instance(instance.instance_id) or instance
    assigned = replace(
        call,
        status=machines.step(machines.CALL, call.status, CallEvent.ASSIGN),
        instance_id=instance.instance_id,
        raised=not was_front and focus.front(draft) == instance.instance_id,
        updated_at=draft.stamp.now,
    )
    draft.put(assigned)
    draft.audit("call.routed", number=call.number, instance_id=instance.instance_id)
    delivery.deliver_call(draft, assigned, instance)


def _must_wait(view: View, call: ToolCall, descriptor: ToolDescriptor) -> bool:
    """A new instance waits for the end of its App's close, and for room among the instances (SPEC 6.2)."""
    if call.instance_id is not None or descriptor.handling not in _MAKES_INSTANCE or view.current_instance(call.app_scope) is not None:
        return False
    return instances.is_closing(view, call.app_scope) or not instances.has_room(view)


def _instance_for(draft: Draft, call: ToolCall, descriptor: ToolDescriptor) -> Instance:
    """The App's instance: the one there is, revived if it was suspended, or a new one. Raises: Rejected."""
    permissions.require_not_denied(draft.view, descriptor)
    instance = draft.view.current_instance(descriptor.app_scope)
    _require_instance(instance, call.instance_id, descriptor)
    if instance is None:
        return instances.create(draft, draft.view.manifests[descriptor.app_scope])
    others = [one for one in draft.view.open_calls(instance.instance_id) if one.number != call.number]
    if len(others) >= MAX_OPEN_CALLS_OF_INSTANCE:  # many were accepted before the first of them was routed
        raise Rejected(Code.LIMIT_EXCEEDED, Detail(expected=_OPEN_CALLS_EXPECTED))
    if instance.state is InstanceState.SUSPENDED:
        return focus.revive(draft, instance)
    return instance
