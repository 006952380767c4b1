"""States, stopping and saved state (SPEC 8)."""

from __future__ import annotations

from typing import Any

from conformance.case import NotApplicable, case, require
from conformance.plays import is_as_said
from conformance.world import World
from lineup_sdk.protocol.messages import ContextChanged, LifecycleStopping, StateSave

_STATES = ("foreground", "background", "suspended", "starting", "background")
_CHANGES = ("state.save", "surface.update")


async def lives_in_every_state(world: World) -> None:
    """A worker lives on in every state that it is told."""
    session = await world.start()
    for state in _STATES:
        session.send(ContextChanged(state=state))
        await session.require_alive(f"after it was told that it is {state}")


def _stops(reason: str) -> Any:
    async def run(world: World) -> None:
        session = await world.start()
        await session.settle()
        session.send(LifecycleStopping(reason=reason, deadline_ms=world.deadline_ms()))
        await session.until_ended(f"it did not end within {world.deadline_ms()} ms", world.deadline_seconds())
        await session.until_process_ended()
        require(session.process.how == "exited 0", f"it ended badly: {session.process.how}")

    return run


async def stops_with_an_open_call(world: World) -> None:
    """A worker that stops with an open call ends, and does not give it out as done."""
    session, call = await world.open_call()
    since = len(session.trace)
    session.send(LifecycleStopping(reason="suspend", deadline_ms=world.deadline_ms()))
    await session.until_ended(f"it did not end within {world.deadline_ms()} ms", world.deadline_seconds())
    require("tool.complete" not in session.about(call.call_id, since), "it gave out unfinished work as done")


async def stops_unanswered(world: World) -> None:
    """A worker that waits for replies still ends within its deadline."""
    play = world.role("answers")
    session = await world.start_for(play)
    session.hold("tool.accept", "tool.complete", "tool.fail", *_CHANGES)
    world.new_call(session, play.tool_id, play.input)
    await session.until(lambda: session.held, "a request about the call")
    session.send(LifecycleStopping(reason="close", deadline_ms=world.deadline_ms()))
    await session.until_ended("it did not end while nothing it asks is answered", world.deadline_seconds())


async def stops_without_time(world: World) -> None:
    """A worker that is given no time ends at once."""
    session = await world.start()
    await session.settle()
    session.send(LifecycleStopping(reason="shutdown", deadline_ms=0))
    await session.until_ended("it did not end although it has no time left", world.deadline_seconds())


async def stops_when_told_twice(world: World) -> None:
    """A worker that is told twice to stop stops once, and well."""
    session = await world.start()
    await session.settle()
    session.send(*(LifecycleStopping(reason="close", deadline_ms=world.deadline_ms()) for _ in range(2)))
    await session.until_ended("it did not end", world.deadline_seconds())
    await session.until_process_ended()
    require(session.process.how == "exited 0", f"it ended badly: {session.process.how}")


async def stops_while_it_starts(world: World) -> None:
    """A worker that is still starting ends within its deadline."""
    session = await world.greet()
    session.hold("inbox.subscribe", "lifecycle.started", "state.load", "surface.open", "timeline.subscribe", "tools.subscribe")
    session.wire.write(world.welcome())
    await session.until(lambda: session.held, "a first request")
    session.send(LifecycleStopping(reason="close", deadline_ms=world.deadline_ms()))
    await session.until_ended("it did not end while it starts", world.deadline_seconds())


async def lives_with_a_refused_request(world: World) -> None:
    """A lifecycle request that is refused does no harm."""
    play = world.role("asks_lifecycle")
    session = await world.start()
    for kind in ("background", "close", "foreground"):
        session.refuse(f"lifecycle.request_{kind}", "lifecycle_denied")
    call = await world.play(session, play)
    await world.ended(session, call)
    await session.require_alive("after a lifecycle request was refused")


def _remembers(how: str) -> Any:
    async def run(world: World) -> None:
        if world.plays.remembers is None:
            raise NotApplicable("conformance.json names no `remembers`")
        first, then = world.plays.remembers
        session = await world.start()
        await world.ended(session, await world.play(session, first))
        again = await world.revive(session, how=how)
        outcome = await world.ended(again, await world.play(again, then))
        require(is_as_said(outcome.result, then.result), "the next life does not know what was saved")

    return run


async def starts_from_all_it_saved(world: World) -> None:
    """A worker starts from every state that it has saved."""
    states = world.seen().saved_states
    if not states:
        raise NotApplicable("the worker never saved a state")
    for state in states:
        session = await world.start(world.desk(saved_state=state))
        await session.require_alive("after a start from a state that it had saved itself")


async def saves_before_it_tells(world: World) -> None:
    """A call that changes what is kept ends only after that is saved."""
    if world.plays.remembers is None:
        raise NotApplicable("conformance.json names no `remembers`")
    first, _ = world.plays.remembers
    session = await world.start()
    for step in first.before:
        await world.act(session, step)
    session.hold(*_CHANGES)
    call = world.new_call(session, first.tool_id, first.input)
    await session.until(lambda: session.held, "a change to be saved")
    await session.settle()
    require(call.outcome is None, "it ended the call before what it did was saved")
    session.let_go()
    await world.ended(session, call)


async def lives_when_a_state_is_refused(world: World) -> None:
    """A worker whose state is refused ends its call and lives."""
    world.require_seen(StateSave.TYPE)
    first = world.plays.remembers[0] if world.plays.remembers else world.role("answers")
    session = await world.start()
    for step in first.before:
        await world.act(session, step)
    session.refuse(StateSave.TYPE, "limit_exceeded")
    call = world.new_call(session, first.tool_id, first.input)
    await session.until(lambda: session.count()[StateSave.TYPE] or call.outcome, StateSave.TYPE)
    await world.ended(session, call)
    await session.require_alive("after its state was refused")


async def saves_within_the_size(world: World) -> None:
    """No saved state is over 32 KiB."""
    world.require_seen(StateSave.TYPE)
    for life in world.seen().lives:
        require(("state.save", "limit_exceeded") not in life.desk.refusals, "a saved state has more than 32 KiB")


_LIVES = (1, 6, 21)
_ANSWERS = (1, 6, 21, 79)

CASES = (
    case(133, "8.1", lives_in_every_state, needs=_LIVES),
    case(134, "8.1", _stops("close"), "A worker that is closed ends well within its deadline.", needs=_LIVES),
    case(135, "8.1", _stops("suspend"), "A worker that is suspended ends well within its deadline.", needs=_LIVES),
    case(136, "8.1", _stops("shutdown"), "A worker whose kernel shuts down ends well within its deadline.", needs=_LIVES),
    case(137, "6.8", stops_with_an_open_call, needs=_LIVES),
    case(138, "8.1", stops_unanswered, needs=_ANSWERS),
    case(139, "8.1", stops_without_time, needs=_LIVES),
    case(140, "8.1", stops_when_told_twice, needs=_LIVES),
    case(141, "8.1", stops_while_it_starts, needs=_LIVES),
    case(142, "8.2", lives_with_a_refused_request, needs=_LIVES),
    case(143, "8.4", _remembers("suspend"), "What was saved is there after a suspension.", needs=_ANSWERS),
    case(144, "8.5", _remembers("crash"), "What was saved is there after a crash.", needs=_ANSWERS),
    case(145, "8.4", starts_from_all_it_saved, needs=_LIVES),
    case(146, "8.5", saves_before_it_tells, needs=_ANSWERS),
    case(147, "8.5", lives_when_a_state_is_refused, needs=_ANSWERS),
    case(148, "8.5", saves_within_the_size, needs=(1, 6)),
)
