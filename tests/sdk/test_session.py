"""The wire under an app: pings, a kernel that breaks it, the end of the channel, bounded requests."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest
import trio
import trio.testing

from lineup_sdk import MiniApp, ToolCall
from lineup_sdk.channel import Channel, ChannelClosed
from lineup_sdk.protocol.framing import ProtocolViolation
from lineup_sdk.protocol.limits import MAX_FRAME_BYTES, MAX_WORKER_FRAME_BYTES
from lineup_sdk.protocol.messages import Chunk, Reply, ToolCalled, Welcome, to_frame
from lineup_sdk.requests import MAX_IN_FLIGHT
from lineup_sdk.testing import FakeKernel

CONTEXT = {"app_scope": "a", "instance_id": "i", "conversation_id": "c", "app_version": "1.0.0", "state": "starting"}


def echo_app() -> MiniApp:
    app = MiniApp()

    @app.tool("a.echo")
    async def echo(call: ToolCall) -> dict:
        return {"text": call.input["text"]}

    return app


async def test_a_ping_is_answered_while_handlers_wait() -> None:
    app = MiniApp()

    @app.tool("a.wait")
    async def wait(call: ToolCall) -> dict:
        await trio.sleep_forever()
        return {}

    async with FakeKernel(app) as kernel:
        call = await kernel.call("a.wait", {})
        await call.wait_running()
        await kernel.ping()


async def test_a_ping_is_answered_at_once_and_not_together_with_later_work(scripted_kernel: Callable) -> None:
    async with scripted_kernel(echo_app()) as kernel:
        await kernel.frames()
        for n in range(20):
            called = ToolCalled(call_id=f"call_{n}", tool_id="a.echo", input={"text": "x"}, attempts=0)
            kernel.send_frames({"type": "ping", "n": n}, to_frame(called))
            assert await kernel.frames() == [{"type": "pong", "n": n}]
            assert [f["type"] for f in await kernel.frames()] == ["tool.accept", "tool.complete"]


@pytest.mark.clause("2.2")
@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        ({"type": "tool.exploded"}, "type"),
        ({"type": "ping"}, "field_missing"),
        ({"type": "ping", "n": 1, "x": 1}, "field"),
        ({"type": "ping", "n": "1"}, "field_kind"),
        ({"type": "reply", "id": 99, "receipt": {"accepted": True, "at": ""}}, "reply_id"),
        ({"type": "context.changed", "state": "floating"}, "context"),
        (to_frame(Chunk(of="x", data=b"", last=True)), "chunk_of"),
        (to_frame(Welcome(wire=1, epoch="e", context=CONTEXT)), "out_of_place"),
    ],
)
async def test_a_kernel_that_breaks_the_wire_ends_the_app_with_a_protocol_violation(frame: dict, reason: str) -> None:
    async with FakeKernel(echo_app()) as kernel:
        kernel.send_frame(frame)
        failure = await kernel.wait_app_ended()
    assert isinstance(failure, ProtocolViolation)
    assert failure.reason == reason


@pytest.mark.clause("2.6")
@pytest.mark.parametrize(
    "welcome",
    [
        Welcome(wire=2, epoch="e", context=CONTEXT),
        Welcome(wire=1, epoch="e", context={**CONTEXT, "user": "Ada"}),
        Welcome(wire=1, epoch="e", context={**CONTEXT, "state": "stopped"}),
        Welcome(wire=1, epoch="e", context={**CONTEXT, "app_scope": 1}),
        Welcome(wire=1, epoch="e", context={"app_scope": "a"}),
    ],
)
async def test_a_welcome_of_another_wire_or_context_is_refused(welcome: Welcome) -> None:
    ours, theirs = socket.socketpair()
    channel = Channel(ours, max_in_bytes=MAX_FRAME_BYTES, max_out_bytes=MAX_WORKER_FRAME_BYTES)
    with theirs, pytest.raises(ProtocolViolation, match=r"wire_version|context"):
        await MiniApp().serve(channel, welcome)
    channel.close()


async def test_the_end_of_the_channel_ends_the_app_quietly_and_whoever_waits_is_told(scripted_kernel: Callable) -> None:
    app, told = echo_app(), []

    @app.on_start
    async def start() -> None:
        try:
            await app.state.load()
        except ChannelClosed as closed:
            told.append(closed)
            raise

    async with scripted_kernel(app) as kernel:
        assert [frame["type"] for frame in await kernel.frames()] == ["state.load"]
        kernel.sock.shutdown(socket.SHUT_RDWR)
        await trio.testing.wait_all_tasks_blocked()
    assert len(told) == 1


@pytest.mark.clause("16")
async def test_requests_in_flight_are_bounded_and_go_on_as_replies_come(scripted_kernel: Callable) -> None:
    app = MiniApp()

    @app.tool("a.many")
    async def many(call: ToolCall) -> dict:
        async with trio.open_nursery() as nursery:
            for _ in range(2 * MAX_IN_FLIGHT):
                nursery.start_soon(app.state.load)
        return {}

    async with scripted_kernel(app) as kernel:
        await kernel.frames()
        kernel.send(Reply(id=1, receipt={"accepted": True, "at": ""}))
        kernel.send(Reply(id=2, receipt={"accepted": True, "at": ""}))
        kernel.send(ToolCalled(call_id="call_1", tool_id="a.many", input={}, attempts=0))
        await trio.testing.wait_all_tasks_blocked()
        owed: list[int] = []
        while len(owed) < MAX_IN_FLIGHT:
            owed += [f["id"] for f in await kernel.frames()]
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(BlockingIOError):  # not one more
            kernel.sock.recv(1)
        kernel.send(Reply(id=owed[1], value={"state": None}))
        assert [f["type"] for f in await kernel.frames()] == ["state.load"]


async def test_a_cancelled_wait_keeps_its_slot_until_the_reply_comes() -> None:
    app = MiniApp()

    @app.tool("a.impatient")
    async def impatient(call: ToolCall) -> dict:
        with trio.move_on_after(0):
            await app.state.load()
        return {}

    async with FakeKernel(app) as kernel:
        for _ in range(2 * MAX_IN_FLIGHT):
            assert await (await kernel.call("a.impatient", {})).result() == {}


async def test_an_app_is_served_once_at_a_time() -> None:
    app = echo_app()
    async with FakeKernel(app):
        ours, theirs = socket.socketpair()
        channel = Channel(ours, max_in_bytes=MAX_FRAME_BYTES, max_out_bytes=MAX_FRAME_BYTES)
        with theirs, pytest.raises(RuntimeError, match="already"):
            await app.serve(channel, Welcome(wire=1, epoch="e", context=CONTEXT))
        channel.close()
