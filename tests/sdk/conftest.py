"""A kernel that says only what the test says, over a socket that keeps the borders of writes."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
import trio

from lineup_sdk import MiniApp
from lineup_sdk.channel import Channel
from lineup_sdk.protocol.framing import FrameReader, encode_frame
from lineup_sdk.protocol.limits import MAX_FRAME_BYTES, MAX_WORKER_FRAME_BYTES
from lineup_sdk.protocol.messages import Message, Welcome, to_frame

CONTEXT = {"app_scope": "a", "instance_id": "i", "conversation_id": "c", "app_version": "1.0.0", "state": "starting"}


class ScriptedKernel:
    """The kernel's end of one channel."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock

    def send(self, message: Message) -> None:
        """Send one message, in a write of its own."""
        self.send_frames(to_frame(message))

    def send_frames(self, *frames: dict) -> None:
        """Send maps together, in one write."""
        self.sock.send(b"".join(encode_frame(frame, MAX_FRAME_BYTES) for frame in frames))

    async def frames(self) -> list[dict]:
        """Wait for the app's next write; return the frames in it."""
        await trio.lowlevel.wait_readable(self.sock)
        reader = FrameReader(MAX_WORKER_FRAME_BYTES)
        reader.feed(self.sock.recv(1_000_000))
        came = []
        while (frame := reader.next_frame()) is not None:
            came.append(frame)
        return came


@asynccontextmanager
async def _serve(app: MiniApp) -> AsyncIterator[ScriptedKernel]:
    ours, sock = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.setblocking(False)
    channel = Channel(ours, max_in_bytes=MAX_FRAME_BYTES, max_out_bytes=MAX_WORKER_FRAME_BYTES)

    async def serve() -> None:
        await app.serve(channel, Welcome(wire=1, epoch="e", context=CONTEXT))
        channel.close()

    with sock, trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            yield ScriptedKernel(sock)
            nursery.cancel_scope.cancel()
    channel.close()


@pytest.fixture
def scripted_kernel() -> Callable[[MiniApp], AbstractAsyncContextManager[ScriptedKernel]]:
    """`async with scripted_kernel(app) as kernel`: the app is served until the block ends."""
    return _serve
