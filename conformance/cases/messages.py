"""What a worker does with the messages of its inbox (SPEC 5)."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.case import NotApplicable, case, require
from conformance.plays import Step
from conformance.scripted_kernel import Session, delivery_of
from conformance.world import World
from lineup_sdk.protocol.messages import InboxAcknowledge, InboxDelivered, StateSave
from lineup_sdk.testing.records import FakeMessage

_WINDOW = 16  # delivered and not yet acknowledged at one time (SPEC 5.2, 16)


def _occasions(world: World) -> Sequence[Step]:
    steps = (*world.plays.messages, *world.plays.events)
    if not steps:
        raise NotApplicable("conformance.json names neither `messages` nor `events`")
    return steps


def _put(world: World, session: Session, step: Step) -> FakeMessage:
    if step.kind == "topic":
        return world.new_message(session, step.name, step.body)
    return world.new_message(session, "surface.event", {"name": step.name, "body": step.body})


async def _held(world: World) -> tuple[Session, FakeMessage]:
    """A worker that has taken a message over and waits for the reply to its acknowledgement."""
    step = _occasions(world)[0]
    session = await world.start()
    session.hold(InboxAcknowledge.TYPE)
    message = _put(world, session, step)
    await session.until(lambda: session.held, "the message to be acknowledged")
    return session, message


async def takes_over(world: World) -> None:
    """A message of each topic and each act in the surface is acknowledged."""
    session = await world.start()
    for step in _occasions(world):
        message = _put(world, session, step)
        await session.acknowledged(message, f"a message of {step.name} to be acknowledged")


async def takes_over_many(world: World) -> None:
    """16 messages at once, as many as are delivered at once, are all acknowledged."""
    step = _occasions(world)[0]
    session = await world.start()
    messages = [_put(world, session, step) for _ in range(_WINDOW)]
    await session.until(lambda: all(m.is_acknowledged for m in messages), f"{_WINDOW} messages to be acknowledged")


async def takes_over_again(world: World) -> None:
    """A message that comes again after a crash is acknowledged."""
    session, message = await _held(world)
    again = await world.revive(session)
    await again.until(lambda: message.is_acknowledged, "a message that comes again to be acknowledged")
    require(message.delivery_count == 2, "the suite lost count")


async def lives_with_a_second_delivery(world: World) -> None:
    """A message that is delivered twice in one life does no harm."""
    step = _occasions(world)[0]
    session = await world.start()
    session.hold(InboxAcknowledge.TYPE)
    message = _put(world, session, step)
    session.send(delivery_of(message))
    await session.until(lambda: session.held, "the message to be acknowledged")
    session.let_go()
    await session.require_alive("after a message that was delivered twice")
    require(message.is_acknowledged, "the message was not acknowledged")


async def lives_with_a_late_acknowledgement(world: World) -> None:
    """An acknowledgement that is answered false does no harm."""
    session, message = await _held(world)
    message.is_acknowledged = True  # so the reply says false
    session.let_go()
    await session.require_alive("after an acknowledgement that was answered false")


async def lives_with_a_refused_acknowledgement(world: World) -> None:
    """An acknowledgement that is refused does not end the inbox."""
    step = _occasions(world)[0]
    session = await world.start()
    session.refuse(InboxAcknowledge.TYPE, "store_full")
    _put(world, session, step)
    await session.until(lambda: session.count()[InboxAcknowledge.TYPE], "the message to be acknowledged")
    await session.require_alive("after an acknowledgement that was refused")
    following = _put(world, session, step)
    await session.until(lambda: following.is_acknowledged, "the next message to be acknowledged")


async def saves_before_it_takes_over(world: World) -> None:
    """What a message changed is saved before the message is acknowledged."""
    step = next((step for step in world.steps("messages") if step.saves), None)
    if step is None:
        raise NotApplicable("conformance.json names no message with `saves`")
    session = await world.start()
    session.hold(StateSave.TYPE)
    message = _put(world, session, step)
    await session.until(lambda: session.held or message.is_acknowledged, "a change to be saved")
    await session.settle()
    require(not message.is_acknowledged, "it was acknowledged before what it changed was saved")
    session.let_go()
    await session.acknowledged(message, "the message to be acknowledged once that is saved")


async def is_not_held_up_by_a_call(world: World) -> None:
    """An open call does not hold up the inbox."""
    step, play = _occasions(world)[0], world.role("stays_open")
    session = await world.start()
    await world.play(session, play)
    await session.settle()
    message = _put(world, session, step)
    await session.until(lambda: message.is_acknowledged, "a message to be acknowledged while a call is open")


async def lives_with_an_act_nobody_wants(world: World) -> None:
    """An act in the surface that it has no handler for does no harm."""
    if not (world.target.app.topics or world.plays.events):
        raise NotApplicable("the App asks for no messages")
    session = await world.start()
    await session.settle()
    session.send(
        InboxDelivered(message_id="msg_odd", topic="surface.event", body={"name": "nobody-wants-this", "body": {}}, delivery_count=1)
    )
    await session.require_alive("after an act that it has no handler for")


async def takes_over_its_own_only(world: World) -> None:
    """A worker acknowledges only what it was given."""
    world.require_seen(InboxAcknowledge.TYPE)
    for life in world.seen().lives:
        for message in life.heard(InboxAcknowledge.TYPE):
            assert isinstance(message, InboxAcknowledge)
            require(message.message_id in life.desk.messages, "it acknowledged a message that it was never given")


_LIVES = (1, 6, 21)
_TAKES = (1, 6, 21, 123)

CASES = (
    case(123, "5.2", takes_over, needs=_LIVES),
    case(124, "5.2", takes_over_many, needs=_TAKES),
    case(125, "5.3", takes_over_again, needs=_TAKES),
    case(126, "5.3", lives_with_a_second_delivery, needs=_TAKES),
    case(127, "5.2", lives_with_a_late_acknowledgement, needs=_TAKES),
    case(128, "12", lives_with_a_refused_acknowledgement, needs=_TAKES),
    case(129, "5.1", saves_before_it_takes_over, needs=_TAKES),
    case(130, "5.2", is_not_held_up_by_a_call, needs=_TAKES),
    case(131, "5.4", lives_with_an_act_nobody_wants, needs=_LIVES),
    case(132, "5.2", takes_over_its_own_only, needs=(1, 6)),
)
