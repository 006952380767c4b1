"""Apps ask a host to act for them (SPEC 10): the gateway. A request is judged, the person is asked, one host acts once.

Rules:
1. Manifest, policy, arguments, instance state, a host that can, room: all are judged before the person is asked, in this order; what is
   refused leaves no request and no frame to any host.
2. A grant is the request itself in state `granted`, naming one view. It is durable before that view is asked (the frame is an effect of
   the turn that wrote it), good for one use, and never asked for again: not by a restart, not by another view.
3. The view that consented acts if it can, else the newest that can. If it leaves, is late, or the kernel dies: `unknown`.
4. Time in which the person is asked is not the call's (SPEC 6.6). Any answer is an act of the person on that App (SPEC 8.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kernel.core import calls, capability_ends, focus, instances, machines, permissions, switches
from kernel.core.capability_catalog import CATALOG, Capability
from kernel.core.capability_records import AttachedView, CapabilityRequest, ConsentScope
from kernel.core.decision import ArmDeadline, Decision, Detail, Draft, Origin, Rejected, Stamp, View
from kernel.core.events import RecoverCapabilities
from kernel.core.limits import (
    HOST_ACTION_MS,
    MAX_CAPABILITY_REASON,
    MAX_INBOX_ROWS,
    MAX_OPEN_CAPABILITY_REQUESTS,
    MAX_OPEN_CAPABILITY_REQUESTS_OF_INSTANCE,
)
from kernel.core.machines import CALL_OPEN, CapabilityEvent, CapabilityStatus, InstanceState
from kernel.core.manifest import Kind, Manifest
from kernel.core.records import Instance, ToolCall, decode_body, digest_of_parts, encode_body, replace
from kernel.core.surface_effects import SendToView
from kernel.protocol.host_capabilities import CapabilityExecute, ConsentAnswer, ProviderResult
from lineup_sdk.protocol import capability_messages as m
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject

_OVER: Final = Detail(pointer="/request_id", expected="a request that waits for this", hint="it is not there, or it is over")
_GONE: Final = frozenset({InstanceState.STOPPING, *machines.INSTANCE_FINAL})
_REFUSALS: Final = frozenset({"deny", "never"})

# --------------------------------------------------------------------------------- what an App asks


def request(view: View, origin: Origin, stamp: Stamp, command: m.CapabilityRequest) -> Decision:
    """Judge a request; ask the person, or act by a standing answer. Value: {request_id, status}.

    Raises: Rejected(capability_denied, capability_unsupported, lifecycle_denied, limit_exceeded, call_not_found, call_already_final,
    artifact_not_found).
    """
    draft = Draft(view, origin, stamp)
    instance = instances.require_own(draft)
    manifest = view.manifests[instance.app_scope]
    row = _require_allowed(view, manifest, command.capability)
    arguments = _require_arguments(view, row, instance, command.arguments)
    _require_state(draft, row, manifest, instance)
    _require_provider(view, row)
    _require_room(view, instance, command.reason)
    parent = _require_parent(view, instance, command.parent_call_id)
    asked = _asked(draft, row, manifest, instance, command.reason, arguments, parent)
    permission = permissions.standing(view, manifest, row, instance.instance_id)
    if permission is not None:
        _grant(draft, asked, permission.scope, permission.view_id)
        return draft.decision({"request_id": asked.request_id, "status": CapabilityStatus.GRANTED.value})
    draft.put(asked)
    draft.audit("capability.asked", number=asked.number, instance_id=instance.instance_id)
    if parent is not None:
        calls.pause_clock(draft, parent)
    return draft.decision({"request_id": asked.request_id, "status": asked.status.value})


def _require_allowed(view: View, manifest: Manifest, name: str) -> Capability:
    if name not in manifest.requested_capabilities:
        raise Rejected(Code.CAPABILITY_DENIED, Detail(pointer="/capability", expected="one of the Manifest's requested_capabilities"))
    row = CATALOG.get(name)
    if row is None:
        raise Rejected(Code.CAPABILITY_UNSUPPORTED, Detail(pointer="/capability", expected=f"one of {', '.join(sorted(CATALOG))}"))
    if permissions.is_denied(view, manifest, name):
        raise Rejected(Code.CAPABILITY_DENIED, Detail(pointer="/capability", hint="refused by policy"))
    return row


def _require_arguments(view: View, row: Capability, instance: Instance, arguments: JsonObject) -> JsonObject:
    mismatch = row.arguments.check(arguments)
    if mismatch is not None:
        raise Rejected(
            Code.CAPABILITY_DENIED,
            Detail(
                pointer="/arguments" + mismatch.pointer,
                expected=mismatch.expected,
                got_type=mismatch.got_type,
                got_size=mismatch.got_size,
            ),
        )
    return _of_artifact(view, instance, arguments) if row.name == "artifact.save" else arguments


def _of_artifact(view: View, instance: Instance, arguments: JsonObject) -> JsonObject:
    """The arguments with what the kernel knows of the own artifact they name. A foreign id answers exactly as an unknown one."""
    if not _is_plain_name(arguments["name"]):
        raise Rejected(Code.CAPABILITY_DENIED, Detail(pointer="/arguments/name", expected="a plain file name"))
    artifact = view.artifacts.by_id(arguments["artifact_id"])
    if artifact is None or artifact.is_lost or artifact.app_session_id != instance.app_session_id:
        raise Rejected(Code.ARTIFACT_NOT_FOUND, Detail(pointer="/arguments/artifact_id", expected="an own artifact"))
    return arguments | {"media_type": artifact.media_type, "sha256": artifact.sha256, "size": artifact.size}


def _is_plain_name(name: str) -> bool:
    """No folder, nothing hidden, nothing that steers a screen: the person reads it as it is."""
    return not name.startswith((".", " ")) and name.isprintable() and not set(name) & set('/\\:*?"<>|')


def _require_state(draft: Draft, row: Capability, manifest: Manifest, instance: Instance) -> None:
    is_chat_in_front = manifest.kind is Kind.SYSTEM and not draft.focus()
    if instance.state not in row.states and not (is_chat_in_front and instance.state not in _GONE):
        states = " or ".join(sorted(row.states))
        raise Rejected(Code.LIFECYCLE_DENIED, Detail(expected=f"an App that is in state {states}"))


def _require_provider(view: View, row: Capability) -> None:
    if _provider(view.capabilities.views(), row.name, "") is None:
        raise Rejected(Code.CAPABILITY_UNSUPPORTED, Detail(hint="no attached host can do this now"))


def _require_room(view: View, instance: Instance, reason: str) -> None:
    if not reason.strip() or len(reason) > MAX_CAPABILITY_REASON:
        expected = f"1 to {MAX_CAPABILITY_REASON} characters"
        raise Rejected(Code.LIMIT_EXCEEDED, Detail(pointer="/reason", expected=expected, got_type="string", got_size=len(reason)))
    waiting = view.capabilities.open_requests()
    own = [one for one in waiting if one.instance_id == instance.instance_id]
    if len(waiting) >= MAX_OPEN_CAPABILITY_REQUESTS or len(own) >= MAX_OPEN_CAPABILITY_REQUESTS_OF_INSTANCE:
        expected = f"at most {MAX_OPEN_CAPABILITY_REQUESTS_OF_INSTANCE} open requests of an App"
        raise Rejected(Code.LIMIT_EXCEEDED, Detail(expected=expected))
    if view.inbox_size(instance.instance_id)[0] + len(own) >= MAX_INBOX_ROWS:  # each will be a row: what was accepted gets its result
        raise Rejected(Code.LIMIT_EXCEEDED, Detail(expected="an inbox with room", hint="acknowledge what is there"))


def _require_parent(view: View, instance: Instance, call_id: str | None) -> ToolCall | None:
    """The own open call that this belongs to. A foreign id answers exactly as an unknown one."""
    if call_id is None:
        return None
    call = view.call_by_id(call_id)
    if call is None or call.instance_id != instance.instance_id or call.delivered_life != instance.life:
        raise Rejected(Code.CALL_NOT_FOUND, Detail(pointer="/parent_call_id", expected="an own call"))
    if call.status not in CALL_OPEN:
        raise Rejected(Code.CALL_ALREADY_FINAL, Detail(pointer="/parent_call_id", expected="an open call"))
    return call


def _asked(
    draft: Draft, row: Capability, manifest: Manifest, instance: Instance, reason: str, arguments: JsonObject, parent: ToolCall | None
) -> CapabilityRequest:
    request_id = draft.new_id("cap")
    arguments_cbor = encode_body(arguments)
    return CapabilityRequest(
        number=draft.new_number(),
        request_id=request_id,
        capability=row.name,
        contract_version=row.contract_version,
        app_scope=manifest.app_scope,
        instance_id=instance.instance_id,
        conversation_id=instance.conversation_id,
        anchor=manifest.bundle_digest,
        reason=reason,
        parent_call_number=parent.number if parent is not None else None,
        shown_digest=digest_of_parts(request_id, row.name, manifest.app_scope, manifest.title, reason, arguments_cbor),
        created_at=draft.stamp.now,
        status=CapabilityStatus.ASKED,
        updated_at=draft.stamp.now,
        arguments_cbor=arguments_cbor,
    )


# --------------------------------------------------------------------------------- what the person and the hosts say


def answer(view: View, origin: Origin, stamp: Stamp, command: ConsentAnswer) -> Decision:
    """The person answers a consent question. Raises: Rejected(capability_denied, answer_invalid)."""
    draft = Draft(view, origin, stamp)
    asked = view.capabilities.request(command.request_id)
    if asked is None or asked.status is not CapabilityStatus.ASKED:
        raise Rejected(Code.CAPABILITY_DENIED, _OVER)
    if command.shown != asked.shown_digest.hex():
        raise Rejected(Code.ANSWER_INVALID, Detail(pointer="/shown", expected="the digest of the question that was shown"))
    instance = view.instance(asked.instance_id)
    if instance is not None and instance.state not in _GONE:
        focus.person_acted(draft, instance)
    asked = replace(asked, consent_view_id=origin.view_id or None)
    if command.decision in _REFUSALS:
        if command.decision == ConsentScope.NEVER:
            permissions.keep(draft, asked, ConsentScope.NEVER)
        capability_ends.end(draft, asked, CapabilityEvent.DENY)
    elif not _may_still(view, asked):
        capability_ends.end(draft, asked, CapabilityEvent.CANCEL)
    else:
        _consent(draft, asked, ConsentScope(command.decision))
    return draft.decision()


def _may_still(view: View, asked: CapabilityRequest) -> bool:
    """Is the App that asked still the one that would act, and switched on?"""
    instance, manifest = view.instance(asked.instance_id), view.manifests.get(asked.app_scope)
    is_there = instance is not None and instance.state not in _GONE and manifest is not None
    return is_there and manifest is not None and manifest.bundle_digest == asked.anchor and view.enablement.is_enabled(asked.app_scope)


def _consent(draft: Draft, asked: CapabilityRequest, scope: ConsentScope) -> None:
    permissions.keep(draft, asked, scope)
    if _provider(draft.view.capabilities.views(), asked.capability, "") is None:
        capability_ends.end(draft, asked, CapabilityEvent.FAIL, code=Code.CAPABILITY_UNSUPPORTED)
        return
    capability_ends.resume_clock(draft, asked)
    _grant(draft, asked, scope, asked.consent_view_id or "")


def _grant(draft: Draft, asked: CapabilityRequest, scope: ConsentScope, wished_view_id: str) -> None:
    """Make the request the grant, and ask one host once this is durable."""
    view_id = _provider(draft.view.capabilities.views(), asked.capability, wished_view_id)
    if view_id is None or asked.arguments_cbor is None:
        raise Rejected(Code.CAPABILITY_UNSUPPORTED)
    deadline_ms = draft.stamp.boottime_ms + HOST_ACTION_MS
    granted = replace(
        asked,
        status=machines.step(machines.CAPABILITY, asked.status, CapabilityEvent.GRANT),
        updated_at=draft.stamp.now,
        scope=scope,
        provider_view_id=view_id,
        deadline_ms=deadline_ms,
    )
    draft.put(granted)
    draft.audit("capability.granted", number=granted.number, instance_id=granted.instance_id)
    execute = CapabilityExecute(
        request_id=granted.request_id,
        capability=granted.capability,
        arguments=decode_body(asked.arguments_cbor),
        app_scope=granted.app_scope,
        title=draft.view.manifests[granted.app_scope].title,
        deadline_ms=HOST_ACTION_MS,
    )
    draft.effect(SendToView(view_id=view_id, message=execute))
    draft.effect(ArmDeadline(at_ms=deadline_ms))


def _provider(views: Sequence[AttachedView], capability: str, wished_view_id: str) -> str | None:
    """The view that acts: the wished one if it can, else the newest that can."""
    able = [view.view_id for view in views if capability in view.providers]
    return wished_view_id if wished_view_id in able else able[-1] if able else None


def result(view: View, origin: Origin, stamp: Stamp, command: ProviderResult) -> Decision:
    """The host that was asked says how it ended. Raises: Rejected(capability_denied) for any other view, and for what is over."""
    draft = Draft(view, origin, stamp)
    granted = view.capabilities.request(command.request_id)
    if granted is None or granted.status is not CapabilityStatus.GRANTED or granted.provider_view_id != origin.view_id:
        raise Rejected(Code.CAPABILITY_DENIED, _OVER)
    event = CapabilityEvent.FINISH if command.status == CapabilityStatus.DONE else CapabilityEvent.FAIL
    capability_ends.end(draft, granted, event, reason=command.reason)
    return draft.decision()


# --------------------------------------------------------------------------------- what happens by itself


def lose_view(draft: Draft, view_id: str) -> None:
    """A view is gone: whether it did what it was asked is not known."""
    for granted in draft.view.capabilities.open_requests():
        if granted.status is CapabilityStatus.GRANTED and granted.provider_view_id == view_id:
            capability_ends.end(draft, granted, CapabilityEvent.LOSE)


def end_due(draft: Draft) -> None:
    """A host that did not answer in time leaves an unknown end."""
    for granted in draft.view.capabilities.open_requests():
        if granted.deadline_ms is not None and granted.deadline_ms <= draft.stamp.boottime_ms:
            capability_ends.end(draft, granted, CapabilityEvent.LOSE)


def recover(view: View, origin: Origin, stamp: Stamp, command: RecoverCapabilities) -> Decision:
    """At a start: no host of the last run is there any more; questions wait on, for Apps that still are what they were."""
    draft = Draft(view, origin, stamp)
    for found in view.capabilities.open_requests():
        request = draft.capability_request(found.request_id) or found
        if request.status is CapabilityStatus.GRANTED:
            capability_ends.end(draft, request, CapabilityEvent.LOSE)
        elif request.status is CapabilityStatus.ASKED and not _may_still(view, request):
            capability_ends.end(draft, request, CapabilityEvent.CANCEL)
    switches.hold_updates(draft)
    return draft.decision()
