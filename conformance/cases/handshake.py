"""How a worker begins: hello, welcome, started (SPEC 2.6, 3, 8.1)."""

from __future__ import annotations

from typing import Any

from conformance.case import NotApplicable, case, require
from conformance.trace import Heard, framed
from conformance.world import START_SECONDS, World
from lineup_sdk.protocol.limits import WIRE_VERSION
from lineup_sdk.protocol.messages import Hello

_MAX_SDK_NAME = 64
_LATE_SECONDS = 0.5
PING_7 = bytes.fromhex("a2647479706564") + b"ping" + bytes.fromhex("616e07")


async def says_hello(world: World) -> None:
    """The first frame of a worker is hello."""
    session = await world.open()
    await session.until(lambda: session.trace, "a first frame")
    first = session.trace[0]
    require(isinstance(first, Heard) and isinstance(first.message, Hello), "the first frame is no hello")


async def hello_is_exact(world: World) -> None:
    """hello names the version of the wire this suite speaks."""
    session = await world.greet()
    (hello,) = session.heard("hello")
    assert isinstance(hello, Hello)
    require(hello.wire == WIRE_VERSION, f"wire is {hello.wire}, not {WIRE_VERSION}")


async def hello_names_its_sdk(world: World) -> None:
    """hello names its SDK in 1 to 64 characters."""
    session = await world.greet()
    (hello,) = session.heard("hello")
    assert isinstance(hello, Hello)
    require(0 < len(hello.sdk) <= _MAX_SDK_NAME, f"sdk has {len(hello.sdk)} characters, 1 to {_MAX_SDK_NAME} are due")


async def waits_for_welcome(world: World) -> None:
    """A worker says nothing between hello and welcome."""
    session = await world.greet()
    await session.listen_for(_LATE_SECONDS)
    require(len(session.trace) == 1, "more than hello came before welcome")


async def takes_a_late_welcome(world: World) -> None:
    """A worker waits for a welcome that comes late, as a spare does."""
    session = await world.greet()
    await session.listen_for(_LATE_SECONDS)
    require(not session.is_ended, "the worker did not wait for its welcome")
    session.wire.write(world.welcome())
    await session.until(lambda: session.desk.is_started, "lifecycle.started after a late welcome")


async def starts(world: World) -> None:
    """lifecycle.started comes within 5 s of welcome."""
    session = await world.greet()
    session.wire.write(world.welcome())
    await session.until(lambda: session.desk.is_started, "lifecycle.started", START_SECONDS)


async def starts_once(world: World) -> None:
    """lifecycle.started is said once a life."""
    session = await world.start()
    await session.settle()
    count = session.count()["lifecycle.started"]
    require(count == 1, f"lifecycle.started came {count} times")


async def asks_for_calls(world: World) -> None:
    """A worker with tools asks for its calls before it says that it has started."""
    world.tools()
    session = await world.start()
    order = [m.TYPE for m in session.heard("tools.subscribe", "lifecycle.started")]
    require(order[:2] == ["tools.subscribe", "lifecycle.started"], f"before it had started it asked for: {order[:-1]}")


async def asks_for_messages(world: World) -> None:
    """A worker whose Manifest subscribes to topics asks for its messages."""
    if not world.target.app.topics:
        raise NotApplicable("the Manifest subscribes to no topic")
    session = await world.start()
    await session.settle()
    require(session.desk.is_subscribed_to_inbox, "inbox.subscribe never came, and the Manifest subscribes")


def _refuses(**changes: Any) -> Any:
    async def run(world: World) -> None:
        session = await world.greet()
        session.wire.write(world.welcome(**changes))
        await session.until_ended("the worker went on with that welcome")
        require(not session.desk.is_started, "the worker started before it ended")

    return run


async def refuses_another_first_frame(world: World) -> None:
    """A first frame that is no welcome ends the worker."""
    session = await world.greet()
    session.wire.write(framed(PING_7))
    await session.until_ended("the worker went on without a welcome")
    require(session.pongs == [], "the worker answered a ping before its welcome")


async def refuses_a_second_welcome(world: World) -> None:
    """A second welcome ends the worker."""
    session = await world.start()
    await session.settle()
    session.wire.write(world.welcome())
    await session.until_ended("the worker took a second welcome")


async def takes_a_welcome_in_pieces(world: World) -> None:
    """A frame that arrives in pieces is read like any other."""
    session = await world.greet()
    welcome = world.welcome()
    await session.wire.write_in_pieces(welcome)
    await session.until(lambda: session.desk.is_started, "lifecycle.started")


async def loses_nothing_behind_the_welcome(world: World) -> None:
    """A frame right behind the welcome, in the same write, is not lost."""
    session = await world.greet()
    session.wire.write(world.welcome() + framed(PING_7))
    await session.until(lambda: session.desk.is_started and session.pongs == [7], "started and a pong of 7")


async def says_hello_once(world: World) -> None:
    """hello is said once a life."""
    for life in world.seen().lives:
        require(life.count()["hello"] == 1, "hello came again")


async def answers_while_it_starts(world: World) -> None:
    """A worker whose first requests are not answered yet answers a ping."""
    session = await world.greet()
    session.hold("inbox.subscribe", "lifecycle.started", "state.load", "surface.open", "timeline.subscribe", "tools.subscribe")
    session.wire.write(world.welcome())
    await session.until(lambda: session.held, "a first request")
    await session.require_alive("while its first requests are not answered yet")
    session.let_go()
    await session.until(lambda: session.desk.is_started, "lifecycle.started once it is answered")


async def stays_when_started(world: World) -> None:
    """A worker that nobody ends does not end."""
    trouble = world.seen().trouble
    require("the worker ended" not in trouble, f"{trouble}, and nobody asked it to")


async def starts_again_after_a_kill(world: World) -> None:
    """A worker that was killed starts again."""
    session = await world.start()
    again = await world.revive(session)
    await again.require_alive("in its second life")


CASES = (
    case(1, "2.6", says_hello),
    case(2, "2.6", hello_is_exact, needs=(1,)),
    case(3, "2.6", hello_names_its_sdk, needs=(1,)),
    case(4, "2.6", waits_for_welcome, needs=(1,)),
    case(5, "2.6", takes_a_late_welcome, needs=(1, 6)),
    case(6, "8.1", starts, needs=(1,)),
    case(7, "8.1", starts_once, needs=(1, 6)),
    case(8, "6.5", asks_for_calls, needs=(1, 6)),
    case(9, "5.2", asks_for_messages, needs=(1, 6)),
    case(10, "2.6", _refuses(wire=2), "A welcome of another version of the wire ends the worker.", needs=(1, 6)),
    case(11, "2.6", refuses_another_first_frame, needs=(1,)),
    case(12, "2.6", refuses_a_second_welcome, needs=(1, 6)),
    case(13, "3", _refuses(context={"state": "hidden"}), "A context in a state that does not exist ends the worker.", needs=(1, 6)),
    case(14, "3", _refuses(context={"owner": "x"}), "A context with a member that does not belong there ends the worker.", needs=(1, 6)),
    case(15, "3", _refuses(context={"instance_id": None}), "A context without its instance ends the worker.", needs=(1, 6)),
    case(16, "2.2", _refuses(more=1), "A welcome with a field that does not belong there ends the worker.", needs=(1, 6)),
    case(17, "2.1", takes_a_welcome_in_pieces, needs=(1, 6)),
    case(18, "2.1", loses_nothing_behind_the_welcome, needs=(1, 6)),
    case(19, "2.6", says_hello_once, needs=(1, 6)),
    case(20, "16", answers_while_it_starts, needs=(1, 6, 21)),
    case(30, "8.3", stays_when_started, needs=(1, 6)),
    case(31, "8.3", starts_again_after_a_kill, needs=(1, 6, 21)),
)
