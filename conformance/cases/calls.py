"""What a worker does with its calls: accept, one ending, every input the schema admits (SPEC 4.3, 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from conformance import inputs
from conformance.case import NotApplicable, case, require
from conformance.plays import is_as_said
from conformance.probe import answer_questions
from conformance.scripted_kernel import Session
from conformance.trace import ENDINGS
from conformance.world import World, end_elsewhere
from lineup_sdk.protocol.messages import JsonObject, ToolAccept, ToolFail
from lineup_sdk.testing.records import FakeCall

_DAY_MS = 24 * 3600 * 1000  # the longest there is
_MAX_OPEN_CALLS = 64  # of one instance (SPEC 16)


async def completes(world: World) -> None:
    """A call is accepted and ends with a result."""
    play = world.role("answers")
    session = await world.start()
    call = await world.play(session, play)
    outcome = await world.ended(session, call)
    require(outcome.status == "submitted", f"the call ended as {outcome.status} ({outcome.reason or outcome.code})")
    require(is_as_said(outcome.result, play.result), "the result is another than conformance.json says")


def _takes(make: Callable[[JsonObject], Iterable[Any]]) -> Any:
    """Call every tool with these inputs, one after the other; each is accepted and the worker lives."""

    async def run(world: World) -> None:
        tried = [(tool, value) for tool in world.tools() for value in make(tool["input_schema"])]
        if not tried:
            raise NotApplicable("no tool has such an input")
        session = await world.start()
        for tool, value in tried:
            call = world.new_call(session, tool["id"], value)
            await session.accepted(call)
            await session.settle()
            await answer_questions(world, session)
            require(not session.is_ended, f"{await session.end_seen()} at a call of {tool['id']}")
        await session.require_alive("after these calls")

    return run


async def fails_an_unknown_tool(world: World) -> None:
    """A call of a tool the worker does not have is ended as failed."""
    scope = str(world.target.app.manifest.get("app_scope", "worker-under-test"))
    world.tools()
    session = await world.start()
    call = world.new_call(session, f"{scope}.nobody-has-this", {})
    outcome = await world.ended(session, call)
    require(outcome.status == "failed", f"it ended as {outcome.status}")
    await session.require_alive("after a call of a tool it does not have")


async def does_a_call_once(world: World) -> None:
    """A call that is delivered twice in one life is done once."""
    play = world.role("answers")
    session = await world.start()
    session.hold("tool.complete")
    call = await world.play(session, play)
    session.send(call.called())
    await session.until(lambda: "tool.complete" in session.about(call.call_id), "the result")
    await session.settle()
    require(session.about(call.call_id).count("tool.accept") == 1, "it was accepted twice")
    require(session.about(call.call_id).count("tool.complete") == 1, "it was done twice")


async def does_calls_side_by_side(world: World) -> None:
    """An open call does not hold up another."""
    open_play, play = world.role("stays_open"), world.role("answers")
    session = await world.start()
    waiting = await world.play(session, open_play)
    await session.until(lambda: waiting.status == "running", "the first call to be accepted")
    call = await world.play(session, play)
    await world.ended(session, call)
    require(waiting.outcome is None, "the other call ended with it")


async def does_as_many_as_may_be_open(world: World) -> None:
    """64 calls at once, as many as may be open, are all ended."""
    play = world.role("answers")
    session = await world.start_for(play)
    calls = [world.new_call(session, play.tool_id, play.input) for _ in range(_MAX_OPEN_CALLS)]
    await session.until(lambda: all(call.outcome for call in calls), f"{_MAX_OPEN_CALLS} calls at once to end")


def _with_clock(time_left_ms: int) -> Any:
    async def run(world: World) -> None:
        play = world.role("answers")
        session = await world.start_for(play)
        call = world.new_call(session, play.tool_id, play.input, time_left_ms=time_left_ms)
        await world.ended(session, call)

    return run


async def takes_replies_in_any_order(world: World) -> None:
    """Replies in another order than the requests find what they belong to."""
    play = world.role("answers")
    session = await world.start_for(play)
    session.hold("tool.accept", "tool.complete", "tool.fail")
    calls = {call.call_id: call for call in (world.new_call(session, play.tool_id, play.input) for _ in range(2))}
    await session.until(lambda: len(_accepts(session)) == 2, "two calls to be accepted")
    await session.settle()
    older, newer = (calls[call_id] for call_id in _accepts(session))
    end_elsewhere(newer)  # so the newer request is refused, and it is answered first
    session.let_go(lambda m: (m.TYPE != "tool.accept", getattr(m, "call_id", "") != newer.call_id))
    await world.ended(session, older)


def _accepts(session: Session) -> list[str]:
    """The calls whose accept is held, the one that was asked first at the beginning."""
    held = sorted(((request_id, m) for m, request_id in session.held if isinstance(m, ToolAccept)), key=lambda one: one[0])
    return [message.call_id for _, message in held]


async def does_it_again_in_the_next_life(world: World) -> None:
    """A call that is delivered again after a crash is done again."""
    play = world.role("answers")
    session = await world.start_for(play)
    session.hold("tool.complete", "tool.fail")
    call = world.new_call(session, play.tool_id, play.input)
    await session.until(lambda: session.held, "the result")
    again = await world.revive(session)
    require(call.attempts == 1, "the suite lost count")
    await world.ended(again, call)


async def takes_up_an_open_call(world: World) -> None:
    """An open call is accepted again by the life after a suspension."""
    session, call = await world.open_call()
    again = await world.revive(session, how="suspend")
    await again.until(lambda: call.status == "running", "the open call to be accepted in the next life")
    require(again.about(call.call_id)[0] == "tool.accept", "something else came first")


async def lives_on_after_a_call(world: World) -> None:
    """The end of a call ends neither the process nor the next call."""
    play = world.role("answers")
    session = await world.start()
    await world.ended(session, await world.play(session, play))
    await session.require_alive("after a call had ended")
    require("lifecycle.request_close" not in session.count(), "it asks to be closed because a call has ended")
    again = world.new_call(session, play.tool_id, play.input)
    await world.ended(session, again)


async def ends_what_was_open(world: World) -> None:
    """A call that stays open ends with a result once what it waits for has come."""
    play, steps = world.role("stays_open"), world.steps("ends_open")
    session = await world.start()
    call = await world.play(session, play)
    await session.until(lambda: call.status != "waiting_for_app", "tool.accept")
    await session.settle()
    require(call.outcome is None, "it did not stay open")
    for step in steps:
        await world.act(session, step)
    outcome = await world.ended(session, call)
    require(outcome.status == "submitted", f"it ended as {outcome.status} ({outcome.reason or outcome.code})")


async def fails_with_a_reason(world: World) -> None:
    """A call that cannot be done ends as failed, with a reason, and the worker lives."""
    play = world.role("fails")
    session = await world.start()
    outcome = await world.ended(session, await world.play(session, play))
    require(outcome.status == "failed", f"it ended as {outcome.status}")
    (failed,) = session.heard("tool.fail")
    assert isinstance(failed, ToolFail)
    require(failed.reason, "it has no reason")
    await session.require_alive("after a call had failed")


async def keeps_to_the_pace(world: World) -> None:
    """Progress comes at most 4 times a second."""
    play = world.role("reports")
    session = await world.start()
    call = await world.play(session, play)
    await session.until(lambda: call.progress or call.outcome, "a report")
    await session.settle()
    require(call.progress, "no progress came")
    require("limit_exceeded" not in call.refusals, "more than 4 reports came in a second")


def _about(world: World) -> Iterable[tuple[Session, FakeCall, list[str]]]:
    lives = world.seen().lives
    found = [(life, call, life.about(call.call_id)) for life in lives for call in life.desk.calls.values() if life.about(call.call_id)]
    if not found:
        raise NotApplicable("no call was made in the tour")
    return found


async def accepts_first(world: World) -> None:
    """Nothing is said about a call before it is accepted."""
    for _, call, types in _about(world):
        require(types[0] == "tool.accept", f"{types[0]} came first about a call of {call.tool_id}")


async def accepts_once(world: World) -> None:
    """A call is accepted once a life."""
    for _, call, types in _about(world):
        require(types.count("tool.accept") == 1, f"a call of {call.tool_id} was accepted {types.count('tool.accept')} times in a life")


async def ends_once(world: World) -> None:
    """Nothing is asked about a call that has ended."""
    for _, call, _ in _about(world):
        require("call_already_final" not in call.refusals, f"something came about a call of {call.tool_id} after its end")


async def speaks_of_own_calls_only(world: World) -> None:
    """A worker speaks only of calls that it was given."""
    for life in world.seen().lives:
        named = {m.call_id for m in life.heard(*ENDINGS, "tool.accept", "tool.progress", "tool.cancel_seen") if hasattr(m, "call_id")}
        require(named <= life.desk.calls.keys(), "it speaks of a call that it was never given")


async def ends_with_what_the_schema_admits(world: World) -> None:
    """Every result fits the output schema, every percent is 0 to 100."""
    for _, call, _ in _about(world):
        require("tool_output_invalid" not in call.refusals, f"a result or report of {call.tool_id} does not fit")


async def ends_within_the_size(world: World) -> None:
    """No result is over 48 KiB."""
    for _, call, types in _about(world):
        is_size = "limit_exceeded" in call.refusals and "tool.progress" not in types
        require(not is_size, f"a result of {call.tool_id} is too large")


async def reports_nothing_after_the_end(world: World) -> None:
    """No progress comes after the ending."""
    world.require_seen("tool.progress")
    for _, call, types in _about(world):
        at_end = next((place for place, name in enumerate(types) if name in ENDINGS), len(types))
        require("tool.progress" not in types[at_end:], f"progress of {call.tool_id} came after its ending")


_NUMBERS = ("integer", "number")
_LIVES = (1, 6, 21)
_ANSWERS = (1, 6, 21, 79)

CASES = (
    case(79, "6.2", completes, needs=_LIVES),
    case(80, "4.3", _takes(lambda s: [inputs.smallest(s)]), "The smallest input that a schema admits is taken.", needs=_LIVES),
    case(81, "4.3", _takes(lambda s: [inputs.fullest(s)]), "An input with everything a schema knows is taken.", needs=_LIVES),
    case(
        82,
        "4.3",
        _takes(lambda s: [inputs.with_floats(s)] if inputs.holds(s, *_NUMBERS) else []),
        "5.0 is taken where the schema says integer.",
        needs=_LIVES,
    ),
    case(
        83,
        "4.3",
        _takes(lambda s: [inputs.strange(s)] if inputs.holds(s, "string") else []),
        "Any text is taken: other scripts, marks, NUL, turns of direction.",
        needs=_LIVES,
    ),
    case(84, "4.3", _takes(inputs.every_enum), "Every value of an enum is taken.", needs=_LIVES),
    case(85, "6.5", fails_an_unknown_tool, needs=_LIVES),
    case(86, "6.4", does_a_call_once, needs=_ANSWERS),
    case(87, "6.5", does_calls_side_by_side, needs=_ANSWERS),
    case(88, "16", does_as_many_as_may_be_open, needs=_ANSWERS),
    case(89, "6.6", _with_clock(_DAY_MS), "A call with a clock of a day is done.", needs=_ANSWERS),
    case(90, "6.6", _with_clock(60_000), "A call with a clock of a minute is done.", needs=_ANSWERS),
    case(91, "2.5", takes_replies_in_any_order, needs=_ANSWERS),
    case(92, "6.8", does_it_again_in_the_next_life, needs=_ANSWERS),
    case(93, "6.8", takes_up_an_open_call, needs=_LIVES),
    case(94, "6.10", lives_on_after_a_call, needs=_ANSWERS),
    case(95, "6.2", ends_what_was_open, needs=_LIVES),
    case(96, "6.5", fails_with_a_reason, needs=_LIVES),
    case(97, "6.5", keeps_to_the_pace, needs=_LIVES),
    case(98, "6.2", accepts_first, needs=(1, 6)),
    case(99, "6.2", accepts_once, needs=(1, 6)),
    case(100, "6.2", ends_once, needs=(1, 6)),
    case(101, "6.5", speaks_of_own_calls_only, needs=(1, 6)),
    case(102, "6.5", ends_with_what_the_schema_admits, needs=(1, 6)),
    case(103, "2.1", ends_within_the_size, needs=(1, 6)),
    case(104, "6.5", reports_nothing_after_the_end, needs=(1, 6)),
)
