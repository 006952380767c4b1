"""Capabilities, questions to the person, and what only the system App may do (SPEC 3, 7, 9.3, 10, 11.5)."""

from __future__ import annotations

from typing import Any

from conformance.case import NotApplicable, case, require
from conformance.plays import Step
from conformance.scripted_kernel import Session
from conformance.trace import Answered
from conformance.world import SYSTEM_TYPES, UI_TYPES, World
from lineup_sdk.protocol.capability_messages import CAPABILITY_RESULT, CapabilityRequest
from lineup_sdk.protocol.interaction_messages import InteractionPresented, UiRequest
from lineup_sdk.protocol.system_messages import ConversationSendText, LifecycleRequestMode, TimelineChanged
from lineup_sdk.testing.records import FakeMessage, Outcome

_MAX_REASON = 300


async def asks_what_it_may(world: World) -> None:
    """A worker asks only for capabilities that its Manifest requests."""
    requested = world.target.app.manifest.get("requested_capabilities", ())
    for message in world.require_seen(CapabilityRequest.TYPE):
        assert isinstance(message, CapabilityRequest)
        require(message.capability in requested, "it asks for a capability that its Manifest does not request")


async def says_why(world: World) -> None:
    """A capability is asked for with a reason of 1 to 300 characters."""
    for message in world.require_seen(CapabilityRequest.TYPE):
        assert isinstance(message, CapabilityRequest)
        require(len(message.reason.strip()) > 0 and len(message.reason) <= _MAX_REASON, "a reason is empty or over 300 characters")


async def asks_for_its_own_calls(world: World) -> None:
    """A request that belongs to a call belongs to an own, open one."""
    asked = [*world.require_seen(CapabilityRequest.TYPE, UiRequest.TYPE)]
    for life in world.seen().lives:
        for message in asked:
            parent = getattr(message, "parent_call_id", None)
            require(parent is None or any(parent in one.desk.calls for one in world.seen().lives), "it names a call that is not its own")
        refused = [
            kind for kind, code in life.desk.refusals if code in {"call_not_found", "call_already_final"} and kind == "capability.request"
        ]
        require(not refused, "it asks for a call that is not open")


def _refused(role: str, message_type: str, code: str) -> Any:
    async def run(world: World) -> None:
        play = world.role(role)
        session = await world.start()
        session.refuse(message_type, code)
        call = await world.play(session, play)
        await session.until(lambda: session.count()[message_type], message_type)
        await world.ended(session, call)
        await session.require_alive(f"after {message_type} was refused {code}")

    return run


def _told(status: str) -> Any:
    async def run(world: World) -> None:
        session, result = await _asked_host(world, status)
        await session.until(lambda: result.is_acknowledged, "the result to be acknowledged")
        await session.require_alive(f"after its request ended as {status}")
        require(session.count()[CapabilityRequest.TYPE] == 1, "it asked again by itself")

    return run


async def _asked_host(world: World, status: str) -> tuple[Session, FakeMessage]:
    session = await world.start()
    await world.play(session, world.role("asks_host"))
    await session.until(lambda: session.desk.capability_requests, CapabilityRequest.TYPE)
    (request,) = session.desk.capability_requests
    body = {"request_id": request.request_id, "capability": request.capability, "status": status}
    return session, world.new_message(session, CAPABILITY_RESULT, body)


async def takes_an_answer(world: World) -> None:
    """The outcome of an own question is acknowledged, and the call goes on."""
    session = await world.start()
    call = await world.play(session, world.role("asks_person"))
    await session.until(lambda: session.desk.questions.kept, UiRequest.TYPE)
    (question,) = session.desk.questions.kept.values()
    result = session.desk.end_question(question, {"outcome": "cancelled", "code": "cancelled"})
    session.deliver_waiting()
    await session.until(lambda: result.is_acknowledged, "the answer to be acknowledged")
    await world.ended(session, call)


async def takes_a_late_answer(world: World) -> None:
    """The outcome of a question from an earlier life is acknowledged."""
    session = await world.start()
    await world.play(session, world.role("asks_person"))
    await session.until(lambda: session.desk.questions.kept, UiRequest.TYPE)
    (question,) = session.desk.questions.kept.values()
    for call in session.desk.open_calls():
        call.end(Outcome(status="expired", code="expired"))
    again = await world.revive(session)
    result = again.desk.end_question(question, {"outcome": "cancelled", "code": "cancelled"})
    again.deliver_waiting()
    await again.until(lambda: result.is_acknowledged, "an answer from an earlier life to be acknowledged")


async def asks_only_when_granted(world: World) -> None:
    """A worker asks the person only if its Manifest requests it."""
    for life in world.seen().lives:
        denied = [e.to.TYPE for e in life.trace if isinstance(e, Answered) and e.code == "capability_denied" and e.to.TYPE in UI_TYPES]
        require(not denied, f"it sent {denied[:1]}, and its Manifest does not request standard-interaction")


async def leaves_the_conversation_alone(world: World) -> None:
    """A worker that is not the system App leaves the conversation alone."""
    for life in world.seen().lives:
        denied = [e.to.TYPE for e in life.trace if isinstance(e, Answered) and e.code == "capability_denied" and e.to.TYPE in SYSTEM_TYPES]
        require(not denied, f"it sent {denied[:1]}, which is for the system App")


# --- the system App


def _require_system(world: World) -> None:
    if not world.target.app.is_system:
        raise NotApplicable("not the system App")


def _entry(number: int, **more: Any) -> dict[str, Any]:
    message = {"number": number, "message_id": f"msg_{number}", "direction": "in", "author": "agent", "type": "lineup.v1.message.text"}
    message |= {"text": "hello", "state": "shown", "folded": False, "created_at": "2026-01-01T00:00:00Z"}
    return {"kind": "message", "value": {**message, **more}}


async def follows_the_timeline(world: World) -> None:
    """The system App follows the timeline, and the same entries again."""
    _require_system(world)
    session = await world.start()
    await session.until(lambda: session.desk.is_subscribed_to_timeline, "timeline.subscribe")
    call = {"number": 3, "call_id": "call_x", "tool_id": "a.b", "title": "B", "status": "completed", "updated_at": "2026-01-01T00:00:00Z"}
    card = {"task_id": "t", "title": "T", "state": "running"}
    entries = [_entry(1), _entry(2, type="lineup.v1.task.update", task=card), {"kind": "call", "value": call}, _entry(4)]
    session.send(TimelineChanged(changes=entries))
    session.send(TimelineChanged(changes=entries))
    await session.require_alive("after changes of the timeline")


async def takes_cards(world: World) -> None:
    """A card of the Agent does the system App no harm."""
    _require_system(world)
    session = await world.start()
    session.send(InteractionPresented(interaction_id="int_1", kind="confirm", title="Sure?", place="inline"))
    await session.require_alive("after a question of the Agent was presented")


async def sends_a_text_once(world: World) -> None:
    """A text of the person is sent, and under one key when its act is delivered twice."""
    _require_system(world)
    step = Step(kind="event", name="send", body={"text": "hello", "key": "key_1"})
    session = await world.start()
    await world.act(session, step)
    await world.act(session, step)
    sent = [m for m in session.heard(ConversationSendText.TYPE) if isinstance(m, ConversationSendText)]
    require(sent, "the person's text was not sent")
    require({(m.text, m.key) for m in sent} == {("hello", "key_1")}, "the same act delivered twice is two messages")


async def lives_without_a_mode(world: World) -> None:
    """A mode that is not there is asked for, and its refusal does no harm."""
    _require_system(world)
    session = await world.start()
    await world.act(session, Step(kind="event", name="mode", body={"mode": "video"}))
    require(session.count()[LifecycleRequestMode.TYPE], "the person's wish was not asked of the kernel")
    await session.require_alive("after mode_unavailable")


_LIVES = (1, 6, 21)

CASES = (
    case(163, "10", asks_what_it_may, needs=(1, 6)),
    case(164, "10", says_why, needs=(1, 6)),
    case(165, "10", asks_for_its_own_calls, needs=(1, 6)),
    case(
        166,
        "10",
        _refused("asks_host", "capability.request", "capability_denied"),
        "A capability that is denied does not leave the call open, nor end the worker.",
        needs=_LIVES,
    ),
    case(
        167,
        "10",
        _refused("asks_host", "capability.request", "capability_unsupported"),
        "A capability that no host has does not leave the call open, nor end the worker.",
        needs=_LIVES,
    ),
    case(168, "10", _told("done"), "The result of a capability is acknowledged.", needs=_LIVES),
    case(169, "10", _told("denied"), "A capability that the person denied is not asked for again.", needs=_LIVES),
    case(170, "10", _told("unknown"), "A capability that may have been carried out is not asked for again.", needs=_LIVES),
    case(171, "7.4", asks_only_when_granted, needs=(1, 6)),
    case(
        172,
        "7.4",
        _refused("asks_person", "ui.request", "capability_denied"),
        "A question that is denied does not leave the call open, nor end the worker.",
        needs=_LIVES,
    ),
    case(173, "7.4", takes_an_answer, needs=_LIVES),
    case(174, "7.4", takes_a_late_answer, needs=_LIVES),
    case(175, "3", leaves_the_conversation_alone, needs=(1, 6)),
    case(176, "9.3", follows_the_timeline, needs=_LIVES),
    case(177, "7.2", takes_cards, needs=_LIVES),
    case(178, "11.5", sends_a_text_once, needs=_LIVES),
    case(179, "3", lives_without_a_mode, needs=_LIVES),
)
