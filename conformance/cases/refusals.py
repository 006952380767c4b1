"""What a worker does when the kernel refuses, ends a call elsewhere, or asks to cancel it (SPEC 2.5, 6.2, 6.5, 6.7, 12)."""

from __future__ import annotations

from typing import Any

import trio

from conformance.case import case, require
from conformance.scripted_kernel import Session
from conformance.trace import ENDINGS
from conformance.world import World, end_elsewhere
from lineup_sdk.protocol.messages import ToolCancelRequested, ToolEnded
from lineup_sdk.testing.records import FakeCall

_GRACE_MS = 2_000  # what the kernel gives (SPEC 6.7)
_SLACK_SECONDS = 2.0  # of a loaded machine
_STORE_SECONDS = 12.0  # more than twice the time after which it is worth asking again (SPEC 12)


def _silent_after(message_type: str, code: str) -> Any:
    """Refuse one request about a call for good; nothing more may come about it."""

    async def run(world: World) -> None:
        play = world.role("answers")
        session = await world.start_for(play)
        session.refuse(message_type, code)
        session.hold(message_type)
        call = world.new_call(session, play.tool_id, play.input)
        await session.until(lambda: session.held, message_type)
        session.let_go()
        n = session.ping()  # in one write with the refusal: what comes behind its pong was said when the refusal had been read
        await session.until(lambda: n in session.pongs, "a pong")
        # What left before is no fault; but an ending never has a second one behind it.
        since = session.place_of(message_type, call) if message_type in ENDINGS else session.place_of_pong(n)
        await session.require_alive("after the refusal")
        late = session.about(call.call_id, since)
        require(not late, f"{', '.join(late)} came after it was over")

    return run


def _mends_after(code: str) -> Any:
    async def run(world: World) -> None:
        play = world.role("answers")
        session = await world.start_for(play)
        session.refuse("tool.complete", code)
        call = world.new_call(session, play.tool_id, play.input)
        await world.ended(session, call)
        endings = [name for name in session.about(call.call_id) if name in ENDINGS]
        require(len(endings) >= 2, "no second ending came")
        await session.require_alive("after the refusal")

    return run


async def ends_again_when_there_is_room(world: World) -> None:
    """A result that is refused store_full is sent again once there is room."""
    play = world.role("answers")
    session = await world.start_for(play)
    session.refuse("tool.complete", "store_full")
    call = world.new_call(session, play.tool_id, play.input)
    session.patience = max(session.patience, _STORE_SECONDS)
    outcome = await world.ended(session, call)
    require(outcome.status == "submitted", f"it ended as {outcome.status}: the result is lost")


async def lives_with_an_unknown_code(world: World) -> None:
    """A refusal with an unknown code is a refusal and nothing worse."""
    play = world.role("answers")
    session = await world.start()
    session.refuse("tool.complete", "a_code_of_tomorrow")
    await world.play(session, play)
    await session.require_alive("after a refusal with a code it has never heard of")


async def stops_when_ended_elsewhere(world: World) -> None:
    """Nothing is said about a call after tool.ended."""
    session, call = await world.open_call()
    since = len(session.trace)
    end_elsewhere(call)
    session.send(ToolEnded(call_id=call.call_id, status="expired"))
    await session.require_alive("after one of its calls ended elsewhere")
    late = session.about(call.call_id, since)
    require(not late, f"{', '.join(late)} came although the call has its outcome")


async def stops_at_once(world: World) -> None:
    """Nothing but its accept is said about a call whose tool.ended came with it."""
    play = world.role("stays_open")
    session = await world.start_for(play)
    call = _put_quietly(world, session, play.tool_id, play.input)
    session.send(call.called(), ToolEnded(call_id=call.call_id, status="cancelled"))
    end_elsewhere(call, "cancelled")
    await session.require_alive("after a call that ended in the moment it came")
    late = [name for name in session.about(call.call_id) if name != "tool.accept"]
    require(not late, f"{', '.join(late)} came although the call has its outcome")


def _put_quietly(world: World, session: Session, tool_id: str, tool_input: dict[str, Any]) -> FakeCall:
    """A call that the script delivers itself."""
    was, session.desk.is_subscribed_to_tools = session.desk.is_subscribed_to_tools, False
    call = world.new_call(session, tool_id, tool_input)
    session.mark_delivered(call)
    session.desk.is_subscribed_to_tools = was
    return call


def _passes_over(*messages: ToolEnded | ToolCancelRequested) -> Any:
    async def run(world: World) -> None:
        world.tools()
        session = await world.start()
        await session.settle()
        since = len(session.trace)
        session.send(*messages)
        await session.require_alive("after word of a call it does not have")
        said = [m.TYPE for m in session.heard(since=since) if m.TYPE.startswith("tool.")]
        require(not said, f"it answered with {', '.join(said)}")

    return run


async def answers_a_cancel(world: World) -> None:
    """A cancel is answered by an ending or by tool.cancel_seen within the grace of 2 s."""
    session, call = await world.open_call()
    session.send(ToolCancelRequested(call_id=call.call_id, grace_ms=_GRACE_MS))
    session.patience = min(session.patience, _GRACE_MS / 1000 + _SLACK_SECONDS)
    await session.until(lambda: call.outcome is not None or call.is_cancel_seen, "an ending or tool.cancel_seen within the grace")


async def ends_after_a_cancel(world: World) -> None:
    """A cancelled call is ended."""
    session, call = await world.open_call()
    session.send(ToolCancelRequested(call_id=call.call_id, grace_ms=_GRACE_MS))
    await world.ended(session, call)
    await session.require_alive("after a cancel")


async def ends_when_cancelled_at_once(world: World) -> None:
    """A call that is cancelled in the moment it comes is ended."""
    play = world.role("stays_open")
    session = await world.start_for(play)
    call = _put_quietly(world, session, play.tool_id, play.input)
    session.send(call.called(), ToolCancelRequested(call_id=call.call_id, grace_ms=_GRACE_MS))
    await world.ended(session, call)


async def ends_once_when_asked_twice(world: World) -> None:
    """A call that is cancelled twice is ended once."""
    session, call = await world.open_call()
    for _ in range(2):
        session.send(ToolCancelRequested(call_id=call.call_id, grace_ms=_GRACE_MS))
    await world.ended(session, call)
    await session.require_alive("after two cancels")
    endings = [name for name in session.about(call.call_id) if name in ENDINGS]
    require(len(endings) == 1, f"it was ended {len(endings)} times")


async def lives_when_a_cancel_comes_late(world: World) -> None:
    """A cancel of a call that has ended changes nothing."""
    play = world.role("answers")
    session = await world.start()
    call = await world.play(session, play)
    await world.ended(session, call)
    await session.settle()
    since = len(session.trace)
    session.send(ToolCancelRequested(call_id=call.call_id, grace_ms=_GRACE_MS))
    await session.require_alive("after a cancel of a call that has ended")
    require(not session.about(call.call_id, since), "it spoke of a call that has ended")


async def goes_on_when_a_report_is_refused(world: World) -> None:
    """A report that is refused limit_exceeded does not fail the call."""
    play = world.role("reports")
    session = await world.start_for(play)
    session.refuse("tool.progress", "limit_exceeded")
    call = world.new_call(session, play.tool_id, play.input)
    await session.until(lambda: "tool.progress" in session.about(call.call_id), "tool.progress")
    await session.require_alive("after a report was refused")
    with trio.move_on_after(2):  # a paced report comes again in a second
        await session.until(lambda: call.outcome is not None or call.progress, "the call to go on")
    require(call.outcome is None or call.outcome.status == "submitted", "the call failed because a report was refused")


_LIVES = (1, 6, 21)
_ANSWERS = (1, 6, 21, 79)

CASES = (
    case(
        105,
        "6.2",
        _silent_after("tool.accept", "call_already_final"),
        "A call whose accept is refused call_already_final is left alone.",
        needs=_ANSWERS,
    ),
    case(
        106,
        "6.5",
        _silent_after("tool.accept", "call_not_found"),
        "A call whose accept is refused call_not_found is left alone.",
        needs=_ANSWERS,
    ),
    case(
        107,
        "6.2",
        _silent_after("tool.complete", "call_already_final"),
        "An ending that is refused call_already_final is not tried again.",
        needs=_ANSWERS,
    ),
    case(
        108,
        "4.5",
        _silent_after("tool.complete", "app_disabled"),
        "An ending that is refused app_disabled is not tried again.",
        needs=_ANSWERS,
    ),
    case(
        109,
        "6.5",
        _mends_after("tool_output_invalid"),
        "A result that is refused tool_output_invalid is followed by another ending.",
        needs=_ANSWERS,
    ),
    case(
        110, "16", _mends_after("limit_exceeded"), "A result that is refused limit_exceeded is followed by another ending.", needs=_ANSWERS
    ),
    case(111, "12", ends_again_when_there_is_room, needs=_ANSWERS),
    case(112, "2.5", lives_with_an_unknown_code, needs=_ANSWERS),
    case(113, "6.5", stops_when_ended_elsewhere, needs=_LIVES),
    case(114, "6.5", stops_at_once, needs=_LIVES),
    case(
        115,
        "6.5",
        _passes_over(ToolEnded(call_id="call_of_nobody", status="expired")),
        "tool.ended of a call it does not have changes nothing.",
        needs=_LIVES,
    ),
    case(
        116,
        "6.7",
        _passes_over(ToolCancelRequested(call_id="call_of_nobody", grace_ms=_GRACE_MS)),
        "A cancel of a call it does not have changes nothing.",
        needs=_LIVES,
    ),
    case(117, "6.7", answers_a_cancel, needs=_LIVES),
    case(118, "6.7", ends_after_a_cancel, needs=_LIVES),
    case(119, "6.7", ends_when_cancelled_at_once, needs=_LIVES),
    case(120, "6.7", ends_once_when_asked_twice, needs=_LIVES),
    case(121, "6.7", lives_when_a_cancel_comes_late, needs=_ANSWERS),
    case(122, "6.5", goes_on_when_a_report_is_refused, needs=_LIVES),
)
