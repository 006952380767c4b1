"""The one service of notices and questions to the person (SPEC 7): opened, presented, answered, dismissed, expired, moved.

Rules:
1. Opened in one commit (pending), presented in the next, with its card in the timeline; no outcome waits for any worker.
2. Answer, dismissal, expiry and failure compete; `end` or the end of its call writes the one outcome. Whoever comes later is refused
   interaction_already_final.
3. An answer names what was shown by its digest and is judged by interaction_forms alone. It comes from a view, never from a worker.
4. The Agent's interaction is its call: it starts nothing, moves no focus and is on no business worker's channel. Chat is told that it
   is presented, and nothing more.
5. An App's own interaction (kernel/core/ui.py) has its result in the owner's inbox and nowhere else; the kernel's own
   (kernel/core/own_questions.py) is in no timeline and on no worker's channel.
6. Where it is shown is a wish the kernel may change; it changes neither what it is nor who may answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from kernel.core import calls, envelopes, focus, interaction_ends, interaction_forms, machines, results
from kernel.core.decision import ArmDeadline, Decision, Detail, Draft, Origin, Rejected, SendToWorker, Stamp, Then, View
from kernel.core.events import NoticePresented, PresentInteraction
from kernel.core.limits import MAX_OPEN_INTERACTIONS
from kernel.core.machines import CALL_OPEN, INSTANCE_FINAL, INTERACTION_OPEN, CallEvent, InstanceState, InteractionEvent, InteractionStatus
from kernel.core.manifest import SYSTEM_SCOPE
from kernel.core.records import (
    Deadline,
    Instance,
    Interaction,
    InteractionKind,
    InteractionSource,
    Place,
    Source,
    TimelineMessage,
    ToolCall,
    decode_body,
    encode_body,
    encode_exact,
    key_digest,
    replace,
)
from kernel.protocol.agent import INTERACTION_ANSWER, INTERACTION_CARD, InteractionDismissAsked
from kernel.protocol.host_interactions import InteractionAnswer, InteractionMove
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.interaction_messages import INTERACTION_RESULT, InteractionPresented, UiChanged
from lineup_sdk.protocol.messages import JsonObject

SCOPE = interaction_ends.SCOPE

_EVENT_OF_CALL: Mapping[InteractionEvent, CallEvent] = {
    InteractionEvent.CANCEL: CallEvent.CANCEL,
    InteractionEvent.EXPIRE: CallEvent.EXPIRE,
    InteractionEvent.FAIL: CallEvent.FAIL,
    InteractionEvent.SUBMIT: CallEvent.SUBMIT,
}
_WITH_PROCESS = frozenset({InstanceState.FOREGROUND, InstanceState.BACKGROUND})


# --------------------------------------------------------------------------------- opening


def require_room(view: View) -> None:
    """Refuse one question too many, those counted that are accepted and not open yet. Raises: Rejected(limit_exceeded)."""
    of_apps = sum(1 for one in view.open_interactions() if one.call_number is None)
    if of_apps + len(view.open_calls_of_app(SCOPE)) >= MAX_OPEN_INTERACTIONS:
        raise Rejected(Code.LIMIT_EXCEEDED, Detail(expected=f"at most {MAX_OPEN_INTERACTIONS} open questions to the person"))


def open_for_call(draft: Draft, call: ToolCall) -> None:
    """Open what an interactive call asks; the call runs until it ends. Its clock, if it has one, is the interaction's from now on."""
    request = decode_body(call.input_cbor)
    wish = Place(request.pop("presentation", Place.DEFAULT))
    kind = interaction_forms.kind_of_tool(call.tool_id)
    status = machines.step(machines.CALL, call.status, CallEvent.PRESENT)
    draft.put(replace(call, status=status, deadline=None, updated_at=draft.stamp.now))
    draft.audit("call.routed", number=call.number)
    new = new_interaction(draft, kind, request, wish=wish, deadline=call.deadline)
    open_interaction(draft, replace(new, call_number=call.number, app_session_id=_session_in_front(draft)))


def new_interaction(draft: Draft, kind: InteractionKind, request: JsonObject, *, wish: Place, deadline: Deadline | None) -> Interaction:
    """The bare record, owned by chat and the main conversation: the Agent's."""
    request_cbor = encode_exact(request)
    left = None if deadline is None else timedelta(milliseconds=deadline.at_ms - draft.stamp.boottime_ms)
    return Interaction(
        number=draft.new_number(),
        interaction_id=draft.new_id("int"),
        kind=kind,
        source=InteractionSource.AGENT_TOOL,
        owner_app_scope=SYSTEM_SCOPE,
        owner_instance_id=None,
        conversation_id=draft.view.conversation_id,
        call_number=None,
        parent_call_number=None,
        app_session_id=None,
        request_cbor=request_cbor,
        shown_digest=interaction_forms.shown_digest(kind, request_cbor),
        created_at=draft.stamp.now,
        status=InteractionStatus.PENDING,
        updated_at=draft.stamp.now,
        place=wish,
        expires_at=None if left is None else draft.stamp.now + left,
        deadline=deadline,
    )


def open_interaction(draft: Draft, interaction: Interaction) -> None:
    """Write a new one; it is presented in the next turn, once it is durable."""
    draft.put(interaction)
    draft.audit("interaction.opened", number=interaction.number, instance_id=interaction.owner_instance_id)
    draft.effect(Then(command=PresentInteraction(interaction_id=interaction.interaction_id)))
    if interaction.deadline is not None:
        draft.effect(ArmDeadline(at_ms=interaction.deadline.at_ms))


def _session_in_front(draft: Draft) -> str | None:
    front = focus.front(draft)
    instance = draft.instance(front) if front else None
    return instance.app_session_id if instance is not None else None


# --------------------------------------------------------------------------------- presenting


def present(view: View, origin: Origin, stamp: Stamp, command: PresentInteraction) -> Decision:
    """Show what is pending: the card of the Agent's is committed here. What ended meanwhile is left alone."""
    draft = Draft(view, origin, stamp)
    interaction = view.interaction(command.interaction_id)
    if interaction is None or interaction.status is not InteractionStatus.PENDING:
        return draft.decision()
    status = machines.step(machines.INTERACTION, interaction.status, InteractionEvent.PRESENT)
    shown = replace(interaction, status=status, place=_place_for(draft, interaction, interaction.place), updated_at=stamp.now)
    draft.put(shown)
    draft.audit("interaction.presented", number=shown.number, instance_id=shown.owner_instance_id)
    if shown.source is InteractionSource.AGENT_TOOL:
        _put_card(draft, shown)
        _tell_chat(draft, shown)
    _tell_subscriber(draft, shown)
    if shown.kind is InteractionKind.NOTICE:
        draft.effect(Then(command=NoticePresented(interaction_id=shown.interaction_id)))
    return draft.decision()


def _place_for(draft: Draft, interaction: Interaction, wish: Place) -> Place:
    """An App's own question, and the kernel's, lies over Apps. The Agent's lies over an App only while one is in front."""
    if interaction.source is not InteractionSource.AGENT_TOOL:
        return Place.MODAL if wish is Place.DEFAULT else wish
    return Place.INLINE if focus.front(draft) is None or wish is Place.INLINE else Place.MODAL


def _put_card(draft: Draft, shown: Interaction) -> None:
    call = draft.call(shown.call_number) if shown.call_number is not None else None
    request = decode_body(shown.request_cbor)
    body = {
        "interaction_id": shown.interaction_id,
        "kind": shown.kind.value,
        "title": request["title"],
        "text": request.get("prompt", request.get("message", "")),
    }
    _put_message(draft, call.source if call is not None else draft.view.door(), INTERACTION_CARD, body, shown.app_session_id)


def _put_message(draft: Draft, author: Source, type_: str, body: JsonObject, app_session_id: str | None) -> None:
    draft.put(
        TimelineMessage(
            number=draft.new_number(),
            message_id=draft.new_id("msg"),
            conversation_id=draft.view.conversation_id,
            author=author,
            type=type_,
            body_cbor=encode_body(body),
            created_at=draft.stamp.now,
            app_session_id=app_session_id,
        )
    )


def _tell_chat(draft: Draft, shown: Interaction) -> None:
    """Chat chooses where a card stands; it is told if it lives, and nobody waits for it."""
    chat = draft.view.current_instance(SYSTEM_SCOPE)
    if chat is not None and chat.state in _WITH_PROCESS:
        message = InteractionPresented(
            interaction_id=shown.interaction_id,
            kind=shown.kind.value,
            title=decode_body(shown.request_cbor)["title"],
            place=shown.place.value,
        )
        draft.effect(SendToWorker(instance_id=chat.instance_id, life=chat.life, message=message))


def _tell_subscriber(draft: Draft, interaction: Interaction) -> None:
    owner = draft.instance(interaction.owner_instance_id) if interaction.owner_instance_id else None
    if owner is not None and owner.state in _WITH_PROCESS and owner.ui_subscribed_life == owner.life:
        message = UiChanged(interaction_id=interaction.interaction_id, status=interaction.status.value)
        draft.effect(SendToWorker(instance_id=owner.instance_id, life=owner.life, message=message))


def notice_presented(view: View, origin: Origin, stamp: Stamp, command: NoticePresented) -> Decision:
    """The card of a notice is durable: accepted, at once and once."""
    draft = Draft(view, origin, stamp)
    notice = view.interaction(command.interaction_id)
    if notice is not None and notice.status is InteractionStatus.PRESENTED and notice.kind is InteractionKind.NOTICE:
        end(draft, notice, InteractionEvent.SUBMIT)
    return draft.decision()


def bring_back(draft: Draft) -> None:
    """At a start: what was pending is presented, and a notice whose card is durable is accepted (SPEC 12)."""
    for interaction in draft.view.open_interactions():
        if interaction.status is InteractionStatus.PENDING:
            draft.effect(Then(command=PresentInteraction(interaction_id=interaction.interaction_id)))
        elif interaction.kind is InteractionKind.NOTICE:
            draft.effect(Then(command=NoticePresented(interaction_id=interaction.interaction_id)))


# --------------------------------------------------------------------------------- the one outcome


def end(
    draft: Draft, interaction: Interaction, event: InteractionEvent, *, code: Code | None = None, answer: JsonObject | None = None
) -> None:
    """End an open interaction, its call with it, and tell its owner."""
    result = interaction_ends.result_of(interaction.kind, event, answer)
    call = draft.call(interaction.call_number) if interaction.call_number is not None else None
    if call is not None:
        is_result = event is InteractionEvent.SUBMIT
        calls.finish(draft, call, _EVENT_OF_CALL[event], code=code, result=result if is_result else None)
        return
    interaction_ends.write(draft, interaction, event, result, code)
    parent = draft.call(interaction.parent_call_number) if interaction.parent_call_number is not None else None
    if parent is not None:
        calls.resume_clock(draft, parent)
    _tell_owner(draft, interaction, result, code)


def _tell_owner(draft: Draft, interaction: Interaction, result: JsonObject, code: Code | None) -> None:
    owner = draft.instance(interaction.owner_instance_id) if interaction.owner_instance_id else None
    if owner is None or owner.state in INSTANCE_FINAL:
        return  # nobody is left to read it
    body = {"interaction_id": interaction.interaction_id, "kind": interaction.kind.value, **result}
    results.store(draft, owner, INTERACTION_RESULT, body if code is None else body | {"code": code.value})
    _tell_subscriber(draft, draft.interaction(interaction.interaction_id) or interaction)


def end_due(draft: Draft) -> None:
    """Expire what is due. Only expires_at does it."""
    for found in draft.view.open_interactions():
        interaction = draft.interaction(found.interaction_id) or found
        deadline = interaction.deadline
        if interaction.status in INTERACTION_OPEN and deadline is not None and deadline.at_ms <= draft.stamp.boottime_ms:
            end(draft, interaction, InteractionEvent.EXPIRE, code=Code.EXPIRED)


def end_about(draft: Draft, instance: Instance) -> None:
    """What the kernel itself asks about an App session is settled without the person: its instance closes, or has failed."""
    for found in draft.view.open_interactions():
        interaction = draft.interaction(found.interaction_id) or found
        is_about = interaction.source is InteractionSource.RUNTIME_POLICY and interaction.app_session_id == instance.app_session_id
        if is_about and interaction.status in INTERACTION_OPEN:
            end(draft, interaction, InteractionEvent.CANCEL, code=Code.CANCELLED)


def end_of_owner(draft: Draft, instance: Instance, event: InteractionEvent, code: Code) -> None:
    """An App's own questions end with its instance, or with its right to ask; the Agent's never do."""
    for found in draft.view.open_interactions():
        interaction = draft.interaction(found.interaction_id) or found
        if interaction.owner_instance_id == instance.instance_id and interaction.status in INTERACTION_OPEN:
            end(draft, interaction, event, code=code)


# --------------------------------------------------------------------------------- what the person and the Agent do


def take_answer(draft: Draft, command: InteractionAnswer) -> tuple[Interaction, JsonObject]:
    """The person answers, or declines: end what is asked; gives it and the answer in its one form.

    Raises: Rejected(interaction_not_found, interaction_already_final, answer_invalid).
    """
    interaction = _require_open(draft.view, command.interaction_id)
    if command.shown_digest != interaction.shown_digest.hex():
        raise Rejected(Code.ANSWER_INVALID, Detail(pointer="/shown_digest", expected="the digest of what is shown"))
    request = decode_body(interaction.request_cbor)
    given = interaction_forms.check_answer(interaction.kind, request, command.answer)
    end(draft, interaction, InteractionEvent.SUBMIT, answer=given)
    if interaction.source is InteractionSource.AGENT_TOOL:
        words = interaction_forms.words(interaction.kind, request, given)
        body = {"interaction_id": interaction.interaction_id, "title": request["title"], "text": words}
        _put_message(draft, Source.PERSON, INTERACTION_ANSWER, body, _session_in_front(draft))
    elif interaction.owner_instance_id is not None:
        _note_act(draft, interaction.owner_instance_id)
    return interaction, given


def _note_act(draft: Draft, instance_id: str) -> None:
    """Answering an App's own question is an act of the person on that App (SPEC 8.2)."""
    instance = draft.instance(instance_id)
    if instance is not None:
        focus.person_acted(draft, instance)


def move(view: View, origin: Origin, stamp: Stamp, command: InteractionMove) -> Decision:
    """Show it elsewhere. Raises: Rejected(interaction_not_found, interaction_already_final)."""
    draft = Draft(view, origin, stamp)
    interaction = _require_open(view, command.interaction_id)
    place = _place_for(draft, interaction, Place(command.place))
    if interaction.status is InteractionStatus.PRESENTED and place is not interaction.place:
        draft.put(replace(interaction, place=place, updated_at=stamp.now))
        draft.audit("interaction.moved", number=interaction.number)
    return draft.decision({"place": place.value})


def _require_open(view: View, interaction_id: str) -> Interaction:
    interaction = view.interaction(interaction_id)
    if interaction is None:
        is_forgotten = view.key(key_digest("interaction", view.conversation_id, interaction_id)) is not None
        raise Rejected(Code.INTERACTION_ALREADY_FINAL if is_forgotten else Code.INTERACTION_NOT_FOUND)
    if interaction.status not in INTERACTION_OPEN:
        raise Rejected(Code.INTERACTION_ALREADY_FINAL)
    return interaction


def dismiss(view: View, origin: Origin, stamp: Stamp, command: InteractionDismissAsked) -> Decision:
    """The Agent takes its question back, named by either id. Raises: Rejected(interaction_not_found, interaction_already_final)."""
    draft = Draft(view, origin, stamp)
    if not envelopes.is_new(draft, command.envelope):
        return draft.decision()
    call = _call_meant(view, command)
    if call is None or call.app_scope != SCOPE or call.source is not origin.source:
        raise Rejected(Code.INTERACTION_NOT_FOUND)
    if call.status not in CALL_OPEN:
        raise Rejected(Code.INTERACTION_ALREADY_FINAL)
    calls.finish(draft, call, CallEvent.CANCEL, code=Code.CANCELLED)
    return draft.decision()


def _call_meant(view: View, command: InteractionDismissAsked) -> ToolCall | None:
    if command.call_id is not None:
        return view.call_by_id(command.call_id)
    interaction = view.interaction(command.interaction_id or "")
    return view.call(interaction.call_number) if interaction is not None and interaction.call_number is not None else None
