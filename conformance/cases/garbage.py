"""What a kernel never sends: each such frame ends the channel, and nothing behind it is obeyed (SPEC 2.1, 2.2, 2.5).

The bodies are those of the golden vectors, with ping in the place of pong where the direction matters.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

import cbor2

from conformance.case import case, require
from conformance.scripted_kernel import Session
from conformance.trace import framed
from conformance.world import World
from lineup_sdk.protocol.limits import MAX_FRAME_BYTES
from lineup_sdk.protocol.messages import LifecycleStarted, Reply, to_frame

_GOOD_PING = framed(bytes.fromhex("a2647479706564") + b"ping" + bytes.fromhex("616e09"))


@cache
def _vectors() -> dict[str, bytes]:
    text = files("lineup_sdk.protocol").joinpath("vectors", "invalid_frames.json").read_text()
    return {row["name"]: bytes.fromhex(row["hex"]) for row in json.loads(text)["frames"]}


def _vector(name: str) -> Callable[[], bytes]:
    return lambda: _vectors()[name].replace(b"pong", b"ping")


def _map(**frame: Any) -> Callable[[], bytes]:
    return lambda: framed(cbor2.dumps(frame))


def _deep_call() -> bytes:
    body: Any = {}
    for _ in range(16):
        body = {"d": body}
    return framed(cbor2.dumps({"type": "tool.called", "call_id": "call_1", "tool_id": "a.b", "input": body, "attempts": 0}))


def _ends(garbage: Callable[[], bytes]) -> Any:
    async def run(world: World) -> None:
        session = await world.start()
        await session.settle()
        await _require_end(session, garbage())

    return run


async def _require_end(session: Session, garbage: bytes) -> None:
    session.pongs.clear()
    session.wire.write(garbage + _GOOD_PING)
    await session.until(lambda: session.is_ended or session.pongs, "the channel to be closed")
    require(9 not in session.pongs, "it was passed over: the ping behind it was answered")
    await session.until_ended("the channel stayed open")


def _bad_reply(**fields: Any) -> Any:
    async def run(world: World) -> None:
        session = await world.greet()
        session.hold(LifecycleStarted.TYPE)
        session.wire.write(world.welcome())
        await session.until(lambda: session.held, "lifecycle.started")
        _, request_id = session.held[0]
        await _require_end(session, framed(cbor2.dumps({"type": "reply", "id": request_id, **fields})))

    return run


async def ends_at_half_a_frame(world: World) -> None:
    """The end of the channel inside a frame ends the worker."""
    session = await world.start()
    await session.settle()
    session.wire.write(_GOOD_PING[:-2])
    await session.wire.sent()
    session.wire.stop_writing()
    await session.until_ended("the worker lives on behind half a frame")


async def ends_with_the_channel(world: World) -> None:
    """The end of the channel ends the process."""
    session = await world.start()
    await session.settle()
    session.wire.stop_writing()
    await session.until_ended("the worker lives on without a kernel")
    await session.until_process_ended()


_NOBODYS_REPLY = Reply(id=2**40, receipt={"accepted": True, "at": "2026-01-01T00:00:00Z"})

# number, clause, what it is, bytes
_FRAMES: tuple[tuple[int, str, str, Callable[[], bytes]], ...] = (
    (35, "2.1", "A frame of length 0", _vector("length 0")),
    (36, "2.1", "A length over the limit, before anything of it came,", lambda: (MAX_FRAME_BYTES + 1).to_bytes(4, "big")),
    (37, "2.1", "An array in the place of the map", _vector("not a map: an array")),
    (38, "2.1", "A byte behind the item", _vector("trailing byte")),
    (39, "2.1", "An item that is cut off", _vector("cut off inside the item")),
    (40, "2.1", "An indefinite map", _vector("indefinite map")),
    (41, "2.1", "An indefinite text", _vector("indefinite text")),
    (42, "2.1", "A tag", _vector("tag 0 (date text)")),
    (43, "2.1", "A tag around the frame", _vector("tag 55799 (self-described) around the frame")),
    (44, "2.1", "An undefined value", _vector("undefined")),
    (45, "2.1", "A simple value", _vector("simple value 255")),
    (46, "2.1", "A key that comes twice", _vector("duplicate key")),
    (47, "2.1", "A key that comes twice, written differently,", _vector("duplicate key in another encoding")),
    (48, "2.1", "A key that is an integer", _vector("integer key")),
    (49, "2.1", "A key that is a byte string", _vector("byte string key")),
    (50, "2.1", "NaN", _vector("NaN")),
    (51, "2.1", "Infinity", _vector("Infinity")),
    (52, "2.1", "An integer of 2^53", _vector("2^53")),
    (53, "2.1", "A whole float of 2^53", _vector("integral float 2^53")),
    (54, "2.1", "A text that is no UTF-8", _vector("invalid UTF-8")),
    (55, "2.1", "Half of a surrogate pair", _vector("lone surrogate as UTF-8 bytes")),
    (56, "2.1", "A frame of 17 levels", _deep_call),
    (57, "2.1", "An array that claims to be endless", _vector("huge declared array")),
    (58, "2.1", "A break without a beginning", _vector("break without a beginning")),
    (59, "2.1", "A reserved kind of value", _vector("reserved additional information 28")),
    (60, "2.2", "A frame without a type", _map(n=3)),
    (61, "2.2", "A type that is no text", _map(type=3, n=3)),
    (62, "2.2", "A type that does not exist", _map(type="tool.explode", id=1)),
    (63, "2.2", "A type of the other direction", _map(type="pong", n=1)),
    (64, "2.2", "A field that does not belong there", _map(type="ping", n=3, x=1)),
    (65, "2.2", "A field that is missing", _map(type="ping")),
    (66, "2.2", "A text in the place of a number", _map(type="ping", n="3")),
    (67, "2.2", "A boolean in the place of a number", _map(type="ping", n=True)),
    (68, "2.2", "A null in the place of a number", _map(type="ping", n=None)),
    (69, "2.2", "An id where none belongs", _map(type="ping", n=3, id=1)),
    (70, "2.5", "A reply to a request nobody made", lambda: framed(cbor2.dumps(to_frame(_NOBODYS_REPLY)))),
    (71, "2.1", "A chunk of nothing", _map(type="chunk", of="nothing", data=b"x", last=True)),
    (72, "3", "A state of the instance that does not exist", _map(type="context.changed", state="hidden")),
)
_BAD_REPLIES: tuple[tuple[int, str, dict[str, Any]], ...] = (
    (73, "A reply with neither value nor receipt", {}),
    (74, "A reply with both a value and a receipt", {"value": {}, "receipt": {"accepted": True, "at": "2026-01-01T00:00:00Z"}}),
    (75, "A refusal without a code", {"receipt": {"accepted": False, "at": "2026-01-01T00:00:00Z"}}),
    (76, "A receipt that does not say whether it is one", {"receipt": {"at": "2026-01-01T00:00:00Z"}}),
)
_LIVES = (1, 6, 21)

CASES = (
    *(case(n, clause, _ends(make), f"{what} ends the channel.", needs=_LIVES) for n, clause, what, make in _FRAMES),
    *(case(n, "2.5", _bad_reply(**fields), f"{what} ends the channel.", needs=_LIVES) for n, what, fields in _BAD_REPLIES),
    case(77, "2.1", ends_at_half_a_frame, needs=_LIVES),
    case(78, "8.3", ends_with_the_channel, needs=_LIVES),
)
