"""One end of a framed CBOR channel on a stream socket, for trio. Every end of every wire uses it: worker, kernel and host.

Use: `send` queues a frame and never waits; `flush` writes at once what the socket takes; `run_flusher` (one task) writes the rest.
Who flushes at the end of its step anyway, or may wait for somebody else's flush, uses `queue`: it does not wake the flusher.
`receive_bodies` waits for whole frames and returns them undecoded, `receive` decodes them.
Rules:
1. The raw descriptor is written first and waited for only on EAGAIN: that halves a round trip against a trio stream.
2. All frames queued between two flushes leave in one write; all whole frames of one read come back together.
3. The queue is bounded. A peer that does not read is a ChannelOverflow for the sender, never memory.
4. Who gets ProtocolViolation, ChannelOverflow or ChannelClosed closes the channel; there is no way back into step.
"""

from __future__ import annotations

import os
import socket
from typing import Any

import trio

from lineup_sdk.protocol.framing import FrameReader, decode_item, encode_frame, frame_of

_READ_BYTES = 256 * 1024


class ChannelClosed(Exception):
    """The peer is gone, or this end was closed."""


class ChannelOverflow(Exception):
    """The peer does not read: the queue is at its bound."""


class Channel:
    """See the head of the file. Owns the socket it is given."""

    def __init__(self, sock: socket.socket, *, max_in_bytes: int, max_out_bytes: int, max_queued_bytes: int = 8 * 1024 * 1024) -> None:
        sock.setblocking(False)
        self._fd = sock.detach()
        self._reader = FrameReader(max_in_bytes)
        self._pushed_back: list[bytes] = []
        self._max_out_bytes = max_out_bytes
        self._max_queued_bytes = max_queued_bytes
        self._queue = bytearray()
        self._wake = trio.Event()
        self._shrank = trio.Event()

    @property
    def is_closed(self) -> bool:
        """True once this end was closed."""
        return self._fd < 0

    @property
    def queued_bytes(self) -> int:
        """How much waits for the peer to read."""
        return len(self._queue)

    def send(self, frame: dict[str, Any]) -> None:
        """Queue one frame; the flusher writes it soon. Raises: as queue."""
        self.queue(frame)
        self._wake.set()

    def queue_body(self, body: bytes) -> None:
        """Queue one frame whose bytes are there already. Raises: as queue."""
        self._add(frame_of(body, self._max_out_bytes))

    def queue(self, frame: dict[str, Any]) -> None:
        """Queue one frame for a flush that the caller owes. Raises: ChannelClosed, ChannelOverflow, ProtocolViolation (frame_size)."""
        self._add(encode_frame(frame, self._max_out_bytes))

    def _add(self, encoded: bytes) -> None:
        if self._fd < 0:
            raise ChannelClosed
        if len(self._queue) + len(encoded) > self._max_queued_bytes:
            raise ChannelOverflow
        self._queue += encoded

    def flush(self) -> None:
        """Write now what the socket takes; the flusher gets the rest. Raises: ChannelClosed when the peer is gone."""
        while self._queue:
            try:
                sent = os.write(self._fd, self._queue)
            except BlockingIOError:
                self._wake.set()
                return
            except OSError as error:
                raise ChannelClosed from error
            del self._queue[:sent]
            self._shrank.set()

    async def run_flusher(self) -> None:
        """Write what is queued, for as long as the channel lives. Raises: ChannelClosed."""
        while True:
            await self._wake.wait()
            self._wake = trio.Event()
            while self._queue:
                self.flush()
                if self._queue:
                    await self._wait(trio.lowlevel.wait_writable)

    async def wait_queued_below(self, max_bytes: int) -> None:
        """Wait until less than that waits for the peer, while `run_flusher` writes. Raises: ChannelClosed."""
        while len(self._queue) >= max_bytes:
            self._shrank = trio.Event()
            await self._shrank.wait()
        if self._fd < 0:
            raise ChannelClosed

    async def drain(self) -> None:
        """Wait until everything queued is written. Raises: ChannelClosed."""
        self.flush()
        while self._queue:
            await self._wait(trio.lowlevel.wait_writable)
            self.flush()

    async def receive_bodies(self) -> list[bytes]:
        """Wait for at least one whole frame and return all that have come, undecoded.

        Raises: ChannelClosed at end of stream, ProtocolViolation on a bad length.
        """
        bodies, self._pushed_back = self._pushed_back, []
        while True:
            while (body := self._reader.next_frame_bytes()) is not None:
                bodies.append(body)
            if bodies:
                return bodies
            self._reader.feed(await self._read())

    def push_back(self, bodies: list[bytes]) -> None:
        """Return frames that were received but belong to the next reader; they come first."""
        self._pushed_back = [*bodies, *self._pushed_back]

    async def receive(self) -> list[dict[str, Any]]:
        """Wait for at least one whole frame and return all that have come. Raises: ChannelClosed, ProtocolViolation."""
        return [decode_item(body) for body in await self.receive_bodies()]

    async def _read(self) -> bytes:
        has_waited = False
        while True:
            try:
                data = os.read(self._fd, _READ_BYTES)
            except BlockingIOError:
                await self._wait(trio.lowlevel.wait_readable)
                has_waited = True
                continue
            except OSError as error:
                raise ChannelClosed from error
            if not data:
                raise ChannelClosed
            if not has_waited:  # a peer that always has more must not keep the others from running
                await trio.lowlevel.checkpoint()
            return data

    async def _wait(self, until_ready: Any) -> None:
        if self._fd < 0:
            raise ChannelClosed
        try:
            await until_ready(self._fd)
        except trio.ClosedResourceError as error:
            raise ChannelClosed from error

    def close(self) -> None:
        """Close this end; tasks waiting on it get ChannelClosed."""
        if self._fd < 0:
            return
        fd, self._fd = self._fd, -1
        trio.lowlevel.notify_closing(fd)
        os.close(fd)
        self._queue.clear()
        self._shrank.set()
