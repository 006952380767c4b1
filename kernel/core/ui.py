"""Questions of an App of its own, the extension `ui` (SPEC 7.4): off unless the Manifest requests it and the person allows it.

Rules:
1. Both are asked at the grant of the channel and again at every request: a revoked policy counts at once, and ends what is open; one
   that allows counts from the next process on (decision 0022).
2. The owner is the instance that speaks; nothing in a request can name another.
3. An App sees its own interactions only. A foreign id answers exactly as an unknown one.
4. The clock of the call a question belongs to stands still while it is open (SPEC 6.6).
"""

from __future__ import annotations

from datetime import datetime

from kernel.core import calls, instances, interaction_forms, interactions
from kernel.core.decision import Decision, Detail, Draft, Origin, Rejected, Stamp, View
from kernel.core.grants import STANDARD_INTERACTION, policy_of
from kernel.core.limits import MAX_INBOX_ROWS
from kernel.core.machines import CALL_OPEN, INTERACTION_OPEN, InteractionEvent
from kernel.core.records import (
    Deadline,
    Instance,
    Interaction,
    InteractionKind,
    InteractionSource,
    Place,
    Policy,
    ToolCall,
    decode_body,
    replace,
)
from kernel.protocol.host_interactions import PolicySet
from lineup_sdk.protocol import limits as wire
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.framing import ProtocolViolation, check_value
from lineup_sdk.protocol.interaction_messages import UiCancel, UiGet, UiRequest, UiSubscribe
from lineup_sdk.protocol.messages import JsonObject


def request(view: View, origin: Origin, stamp: Stamp, command: UiRequest) -> Decision:
    """Open a question of this App.

    Raises: Rejected(capability_denied, tool_input_invalid, call_not_found, call_already_final, limit_exceeded).
    """
    draft = Draft(view, origin, stamp)
    instance = _require_allowed(draft)
    kind, asked = _require_form(command.request)
    parent = _parent(draft, instance, command.parent_call_id)
    _require_room(view, instance)
    deadline = _deadline(stamp, command.expires_at)
    new = interactions.new_interaction(draft, kind, asked, wish=Place(command.presentation or Place.DEFAULT), deadline=deadline)
    own = replace(
        new,
        source=InteractionSource.MINIAPP_TOOL,
        owner_app_scope=instance.app_scope,
        owner_instance_id=instance.instance_id,
        parent_call_number=parent.number if parent is not None else None,
        app_session_id=instance.app_session_id,
    )
    interactions.open_interaction(draft, own)
    if parent is not None:
        calls.pause_clock(draft, parent)
    return draft.decision({"interaction_id": own.interaction_id})


def get(view: View, origin: Origin, stamp: Stamp, command: UiGet) -> Decision:
    """Read one own interaction. Raises: Rejected(capability_denied, interaction_not_found)."""
    draft = Draft(view, origin, stamp)
    interaction = _require_own(draft, command.interaction_id)
    result = decode_body(interaction.result_cbor) if interaction.result_cbor is not None else None
    return draft.decision(
        {
            "interaction_id": interaction.interaction_id,
            "kind": interaction.kind.value,
            "status": interaction.status.value,
            "result": result,
        }
    )


def subscribe(view: View, origin: Origin, stamp: Stamp, command: UiSubscribe) -> Decision:
    """Tell this life of every change of its interactions. Raises: Rejected(capability_denied)."""
    draft = Draft(view, origin, stamp)
    instance = _require_allowed(draft)
    if instance.ui_subscribed_life != instance.life:
        draft.put(replace(instance, ui_subscribed_life=instance.life))
    return draft.decision()


def cancel(view: View, origin: Origin, stamp: Stamp, command: UiCancel) -> Decision:
    """Take a question back. Raises: Rejected(capability_denied, interaction_not_found, interaction_already_final)."""
    draft = Draft(view, origin, stamp)
    interaction = _require_own(draft, command.interaction_id)
    if interaction.status not in INTERACTION_OPEN:
        raise Rejected(Code.INTERACTION_ALREADY_FINAL)
    interactions.end(draft, interaction, InteractionEvent.CANCEL, code=Code.CANCELLED)
    return draft.decision()


def set_policy(view: View, origin: Origin, stamp: Stamp, command: PolicySet) -> Decision:
    """The person allows an App to ask, or no longer does. Raises: Rejected(capability_denied) for what no Manifest requests."""
    draft = Draft(view, origin, stamp)
    requesting = {policy_of(scope): scope for scope, one in view.manifests.items() if STANDARD_INTERACTION in one.requested_capabilities}
    scope = requesting.get(command.name)
    if scope is None:
        raise Rejected(Code.CAPABILITY_DENIED, Detail(pointer="/name", expected=f"{STANDARD_INTERACTION}: and an App that requests it"))
    if view.is_allowed(command.name) is not command.allowed:
        draft.put(Policy(name=command.name, allowed=command.allowed))
        draft.audit("policy.allowed" if command.allowed else "policy.revoked")
    instance = view.current_instance(scope)
    if instance is not None and not command.allowed:
        interactions.end_of_owner(draft, instance, InteractionEvent.CANCEL, Code.CAPABILITY_DENIED)
    return draft.decision()


# --------------------------------------------------------------------------------- what has to hold


def _require_allowed(draft: Draft) -> Instance:
    instance = instances.require_own(draft)
    if not draft.view.is_allowed(policy_of(instance.app_scope)):
        raise Rejected(Code.CAPABILITY_DENIED)
    return instance


def _require_own(draft: Draft, interaction_id: str) -> Interaction:
    instance = _require_allowed(draft)
    interaction = draft.view.interaction(interaction_id)
    if interaction is None or interaction.owner_instance_id != instance.instance_id:
        raise Rejected(Code.INTERACTION_NOT_FOUND)
    return interaction


def _require_form(untrusted_request: JsonObject) -> tuple[InteractionKind, JsonObject]:
    asked = dict(untrusted_request)
    name = asked.pop("kind", None)
    is_known = isinstance(name, str) and name in set(InteractionKind)
    if not is_known or "presentation" in asked:  # that is an option, not a part of what is shown
        raise Rejected(Code.TOOL_INPUT_INVALID, Detail(pointer="/request", expected="a request of a known kind"))
    kind = InteractionKind(name)
    try:
        check_value(asked, max_depth=wire.MAX_BODY_DEPTH, allow_bytes=False)
    except ProtocolViolation as violation:
        detail = Detail(pointer="/request", expected=f"JSON values of the wire ({violation.reason})")
        raise Rejected(Code.TOOL_INPUT_INVALID, detail) from None
    mismatch = interaction_forms.SCHEMAS[kind].check(asked)
    if mismatch is not None:
        pointer = "/request" + mismatch.pointer
        detail = Detail(pointer=pointer, expected=mismatch.expected, got_type=mismatch.got_type, got_size=mismatch.got_size)
        raise Rejected(Code.TOOL_INPUT_INVALID, detail)
    interaction_forms.check_request(kind, asked, "/request")
    return kind, asked


def _parent(draft: Draft, instance: Instance, call_id: str | None) -> ToolCall | None:
    """The own open call a question belongs to. Raises: Rejected(call_not_found, call_already_final)."""
    if call_id is None:
        return None
    call = draft.view.call_by_id(call_id)
    if call is None or call.instance_id != instance.instance_id or call.delivered_life != instance.life:
        raise Rejected(Code.CALL_NOT_FOUND)
    if call.status not in CALL_OPEN:
        raise Rejected(Code.CALL_ALREADY_FINAL)
    return call


def _require_room(view: View, instance: Instance) -> None:
    """Every result has its place in the inbox before the question is asked. Raises: Rejected(limit_exceeded)."""
    interactions.require_room(view)
    own = sum(1 for one in view.open_interactions() if one.owner_instance_id == instance.instance_id)
    if view.inbox_size(instance.instance_id)[0] + own >= MAX_INBOX_ROWS:
        raise Rejected(Code.LIMIT_EXCEEDED, Detail(expected="an inbox with room for the result"))


def _deadline(stamp: Stamp, expires_at: str | None) -> Deadline | None:
    if expires_at is None:
        return None
    detail = Detail(pointer="/expires_at", expected="RFC 3339 with a time zone", got_type="string")
    try:
        until = datetime.fromisoformat(expires_at.upper())
    except ValueError:
        raise Rejected(Code.TOOL_INPUT_INVALID, detail) from None
    if until.tzinfo is None:
        raise Rejected(Code.TOOL_INPUT_INVALID, detail)
    return stamp.deadline_in(max(0, int((until - stamp.now).total_seconds() * 1000)))
