"""Pings, and encodings a sender is free to choose (SPEC 2.1, 16)."""

from __future__ import annotations

from typing import Any

from conformance.case import case, require
from conformance.trace import framed
from conformance.world import World
from lineup_sdk.protocol.limits import MAX_INTEGER
from lineup_sdk.protocol.messages import Ping

_PING = bytes.fromhex("647479706564") + b"ping"  # "type": "ping"


def _answers(n: int) -> Any:
    async def run(world: World) -> None:
        session = await world.start()
        session.send(Ping(n=n))
        await session.until(lambda: session.pongs, "a pong")
        require(session.pongs == [n], f"ping {n} was answered by {session.pongs}")

    return run


async def answers_many(world: World) -> None:
    """A hundred pings in one write are answered, each once and in order."""
    session = await world.start()
    session.send(*(Ping(n=n) for n in range(1, 101)))
    await session.until(lambda: len(session.pongs) >= 100, "a hundred pongs")
    require(session.pongs == list(range(1, 101)), "the pongs are others, or in another order")


async def answers_during_a_call(world: World) -> None:
    """A worker with an open call answers pings."""
    play = world.role("stays_open")
    session = await world.start()
    await world.play(session, play)
    await session.require_alive("while a call is open")


async def answers_without_replies(world: World) -> None:
    """A worker that waits for replies answers pings."""
    play = world.role("answers")
    session = await world.start_for(play)
    session.hold("tool.accept", "tool.complete", "state.save", "state.load", "surface.update", "surface.read")
    world.new_call(session, play.tool_id, play.input)
    await session.until(lambda: session.held, "a request about the call")
    await session.require_alive("while nothing it asks is answered")


async def never_answers_unasked(world: World) -> None:
    """No pong comes unasked, and none twice."""
    for life in world.seen().lives:
        asked = [entry.n for entry in life.trace if isinstance(entry, Ping)]
        require(set(life.pongs) <= set(asked), "a pong came that no ping had asked for")
        require(len(life.pongs) == len(set(life.pongs)), "a ping was answered twice")


def _reads(body: bytes, n: int = 3) -> Any:
    async def run(world: World) -> None:
        session = await world.start()
        session.wire.write(framed(body))
        await session.until(lambda: n in session.pongs, f"a pong of {n}")

    return run


async def reads_in_pieces(world: World) -> None:
    """A ping that arrives in pieces is answered."""
    session = await world.start()
    await session.wire.write_in_pieces(framed(b"\xa2" + _PING + bytes.fromhex("616e03")))
    await session.until(lambda: 3 in session.pongs, "a pong of 3")


_NEEDS = (1, 6)
_LIVES = (1, 6, 21)

CASES = (
    case(21, "16", _answers(5), "A ping is answered by a pong of the same number.", needs=_NEEDS),
    case(22, "16", _answers(0), "A ping of 0 is answered.", needs=_LIVES),
    case(23, "2.1", _answers(MAX_INTEGER), "A ping of the largest integer of the wire is answered by that number.", needs=_LIVES),
    case(24, "16", answers_many, needs=_LIVES),
    case(25, "16", answers_during_a_call, needs=_LIVES),
    case(26, "16", answers_without_replies, needs=_LIVES),
    case(27, "16", never_answers_unasked, needs=_NEEDS),
    case(
        28,
        "2.1",
        _reads(b"\xa2" + _PING + bytes.fromhex("616e1b0000000000000003")),
        "An integer that is written longer than it has to be is read.",
        needs=_LIVES,
    ),
    case(29, "2.1", _reads(bytes.fromhex("a2616e03") + _PING), "The order of keys means nothing.", needs=_LIVES),
    case(
        32,
        "2.1",
        _reads(bytes.fromhex("b90002") + _PING + bytes.fromhex("616e03")),
        "A map whose size is written longer than it has to be is read.",
        needs=_LIVES,
    ),
    case(
        33,
        "2.1",
        _reads(b"\xa2" + bytes.fromhex("7900047479706564") + b"ping" + bytes.fromhex("616e03")),
        "A text whose length is written longer than it has to be is read.",
        needs=_LIVES,
    ),
    case(34, "2.1", reads_in_pieces, needs=_LIVES),
)
