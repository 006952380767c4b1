"""The tour: tries everything an App is known to do, once, and learns from it which tool shows what.

Rules:
1. Each tool that is not left out is called alone with one input; what the worker said until it was quiet tells the roles it can play.
2. A role that conformance.json names is played as it says; it is never replaced by one that was found.
3. A tour that is cut short keeps what was seen, and the reason.
"""

from __future__ import annotations

from conformance.case import Broken
from conformance.plays import Play, Plays, first_input, tools_to_try
from conformance.scripted_kernel import Session
from conformance.trace import Answered
from conformance.world import Tour, World, end_elsewhere
from lineup_sdk.protocol.messages import JsonObject, StateSave, ToolCancelRequested, ToolEnded
from lineup_sdk.testing.records import FakeCall

GRACE_MS = 2_000
_SHOWN_BY = {
    "artifact.put": "puts",
    "capability.request": "asks_host",
    "tool.progress": "reports",
    "ui.request": "asks_person",
    "lifecycle.request_background": "asks_lifecycle",
    "lifecycle.request_close": "asks_lifecycle",
    "lifecycle.request_foreground": "asks_lifecycle",
}


async def take_tour(world: World) -> Tour:
    """See the head of the file; what was learned is written into `world.plays`."""
    lives: list[Session] = []
    trouble = ""
    try:
        session = await world.start()
        lives.append(session)
        await _visit(world, session)
        session = await world.revive(session, how="suspend")
        lives.append(session)
        await _visit_again(world, session)
    except Broken as broken:
        trouble = str(broken)
    return Tour(lives=tuple(lives), saved_states=_saved(lives), trouble=trouble)


async def _visit(world: World, session: Session) -> None:
    await session.settle()
    named = dict(world.plays.roles)
    for tool in tools_to_try(world.target.app, world.plays):
        await _try(world, session, Play(tool_id=tool["id"], input=first_input(world.target.app, tool)), world.plays)
    remembered = world.plays.remembers or ()
    for play in (*named.values(), *remembered):
        await _show(world, session, play)
    for step in (*world.plays.messages, *world.plays.events):
        await world.act(session, step)
    await session.require_alive("at the end of the tour")


async def _visit_again(world: World, session: Session) -> None:
    if "answers" in world.plays.roles:
        await _show(world, session, world.plays.roles["answers"])
    await session.require_alive("in the second life of the tour")


async def _try(world: World, session: Session, play: Play, plays: Plays) -> None:
    since = len(session.trace)
    call = await _show(world, session, play)
    status = "open" if call is None else call.status
    roles = {_SHOWN_BY[m.TYPE] for m in session.heard(since=since) if m.TYPE in _SHOWN_BY}
    roles |= {{"open": "stays_open", "submitted": "answers", "failed": "fails"}.get(status, "")}
    for role in roles - {""}:
        plays.roles.setdefault(role, play)


async def _show(world: World, session: Session, play: Play) -> FakeCall | None:
    """Make a call and let it go as far as it goes; None when it stayed open. Nothing is left open."""
    call = await world.play(session, play)
    await session.settle()
    await answer_questions(world, session)
    is_open = call.outcome is None
    for one in session.desk.open_calls():
        await end_open(session, one)
    return None if is_open else call


async def answer_questions(world: World, session: Session) -> None:
    """Answer what the worker asked the host and the person, and wait until it said all it has to say to that."""
    answered = {m.body.get("request_id") for m in session.desk.messages.values()}
    open_requests = [r for r in session.desk.capability_requests if r.request_id not in answered]
    for request in open_requests:
        body = {"request_id": request.request_id, "capability": request.capability, "status": "done"}
        world.new_message(session, "capability.result", body)
    questions = [q for q in session.desk.questions.kept.values() if q.result is None]
    for question in questions:
        session.desk.end_question(question, {"outcome": "cancelled", "code": "cancelled"})
        session.deliver_waiting()
    if open_requests or questions:
        await session.settle()


async def end_open(session: Session, call: FakeCall) -> None:
    """Cancel an open call; one that is not ended by it gets its outcome elsewhere."""
    session.send(ToolCancelRequested(call_id=call.call_id, grace_ms=GRACE_MS))
    await session.settle()
    if call.outcome is None:
        end_elsewhere(call)
        session.send(ToolEnded(call_id=call.call_id, status="expired"))
        await session.settle()


def _saved(lives: list[Session]) -> tuple[JsonObject, ...]:
    entries = [entry for life in lives for entry in life.trace]
    taken = [e.to.state for e in entries if isinstance(e, Answered) and not e.code and isinstance(e.to, StateSave)]
    return tuple(state for number, state in enumerate(taken) if state not in taken[:number])
