"""One life of a small app in the zygote, while it is still an ordinary process. What a first use makes (specialised byte code, caches,
compiled patterns) is made once and shared by all children: they begin sooner, and leave shared memory shared.

Rules:
1. Only our own code runs here, and nothing of it stays: no descriptor, no task, no loop.
2. It proves nothing and is no layer: what the seal needs is proved elsewhere.
"""

from __future__ import annotations

import socket

import trio

from lineup_sdk import MiniApp
from lineup_sdk.calls import ToolCall
from lineup_sdk.channel import Channel
from lineup_sdk.protocol.limits import MAX_FRAME_BYTES, MAX_WORKER_FRAME_BYTES, WIRE_VERSION
from lineup_sdk.protocol.messages import JsonObject, LifecycleStarted, Reply, ToolCalled, ToolComplete, Welcome, to_frame

_CALLS = 64  # CPython specialises a function after some dozen runs
_SECONDS = 10.0
_TOOL = "warm.up"
_CONTEXT = {"app_scope": "warm", "instance_id": "warm", "conversation_id": "warm", "app_version": "1.0.0", "state": "starting"}


def warm() -> None:
    """Live once. Raises: whatever is broken; then no worker could live either."""
    trio.run(_live)


async def _live() -> None:
    ours, theirs = socket.socketpair()
    kernel = Channel(ours, max_in_bytes=MAX_WORKER_FRAME_BYTES, max_out_bytes=MAX_FRAME_BYTES)
    channel = Channel(theirs, max_in_bytes=MAX_FRAME_BYTES, max_out_bytes=MAX_WORKER_FRAME_BYTES)
    app = MiniApp()

    @app.tool(_TOOL)
    async def work(call: ToolCall) -> JsonObject:
        return dict(call.input)

    with trio.fail_after(_SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(app.serve, channel, Welcome(wire=WIRE_VERSION, epoch="warm", context=_CONTEXT, source={}))
            await _be_kernel(kernel)
            nursery.cancel_scope.cancel()
    channel.close()
    kernel.close()


async def _be_kernel(kernel: Channel) -> None:
    """Answer everything; make one call after another."""
    calls = 0
    while calls <= _CALLS:
        for frame in await kernel.receive():
            if "id" in frame:
                kernel.queue(to_frame(Reply(id=frame["id"], receipt={"accepted": True, "at": ""})))
            if frame["type"] in (LifecycleStarted.TYPE, ToolComplete.TYPE):
                calls += 1
                called = ToolCalled(call_id=f"call_{calls}", tool_id=_TOOL, input={"text": "warm", "n": calls}, attempts=0)
                kernel.queue(to_frame(called))
        kernel.flush()
