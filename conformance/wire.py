"""The raw end of a channel: whole frames in, any bytes out, also those no frame is made of.

Rules:
1. A frame that is too large is still read, so that it can be told; one of no length is not.
2. The owner is told of every body, and of the end; nothing is decoded here.
"""

from __future__ import annotations

import fcntl
import socket
import termios
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise

import trio

from lineup_sdk.protocol.framing import FrameReader, ProtocolViolation

_MAX_HEARD_BYTES = 16 * 1024 * 1024
_READ_BYTES = 256 * 1024
_READ_SECONDS = 2.0  # for the peer to read a piece
_LOOK_SECONDS = 0.001


class Wire:
    """See the head of the file. on_body(None) says that a length was broken."""

    def __init__(self, sock: socket.socket, on_body: Callable[[bytes | None], None], on_change: Callable[[], None]) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.is_ended = False
        self._on_body = on_body
        self._on_change = on_change
        self._reader = FrameReader(_MAX_HEARD_BYTES)
        self._out = bytearray()
        self._wake = trio.Event()
        self._progress = trio.Event()  # something was written, or the channel ended

    async def run(self) -> None:
        """Read and write until the channel ends."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write)
            await self._read()
            nursery.cancel_scope.cancel()

    async def _write(self) -> None:
        while True:
            await self._wake.wait()
            self._wake = trio.Event()
            while self._out:
                try:
                    sent = self.sock.send(self._out)
                except BlockingIOError:
                    with suppress(trio.ClosedResourceError):
                        await trio.lowlevel.wait_writable(self.sock)
                except OSError:
                    return
                else:
                    del self._out[:sent]
                    self._progress.set()

    async def _read(self) -> None:
        while not self.is_ended:
            try:
                data = self.sock.recv(_READ_BYTES)
            except BlockingIOError:
                await self._wait_readable()
                continue
            except OSError:
                data = b""
            if data:
                self._take_bytes(data)
            else:
                self.is_ended = True
                self._progress.set()
            self._on_change()
            await trio.lowlevel.checkpoint()

    async def _wait_readable(self) -> None:
        with suppress(trio.ClosedResourceError):
            await trio.lowlevel.wait_readable(self.sock)

    def close(self) -> None:
        """Let the socket go; who waits for it is woken."""
        self.is_ended = True
        trio.lowlevel.notify_closing(self.sock)
        self.sock.close()

    def _take_bytes(self, data: bytes) -> None:
        self._reader.feed(data)
        try:
            while not self.is_ended and (body := self._reader.next_frame_bytes()) is not None:
                self._on_body(body)
        except ProtocolViolation:
            self._on_body(None)

    def write(self, data: bytes) -> None:
        """Queue any bytes. Nothing happens when the worker is gone."""
        self._out += data
        self._wake.set()

    async def write_in_pieces(self, data: bytes) -> None:
        """Write bytes in a few pieces, the length and the first key cut, each only when the worker has read what came before."""
        cuts = [0, 1, 3, 4, 6, *(len(data) // 8 * n for n in range(1, 8)), len(data) - 1, len(data)]
        for start, end in pairwise(sorted(set(cuts))):
            self.write(data[start:end])
            await self.sent()
            with trio.move_on_after(_READ_SECONDS):
                while _unread(self.sock) and not self.is_ended:  # noqa: ASYNC110 - nothing tells that a peer has read
                    await trio.sleep(_LOOK_SECONDS)

    async def sent(self) -> None:
        """Wait until all that was said is written."""
        while self._out and not self.is_ended:
            self._progress = trio.Event()
            await self._progress.wait()

    def stop_writing(self) -> None:
        """End our direction of the channel."""
        self.sock.shutdown(socket.SHUT_WR)

    def hang_up(self) -> None:
        """Close the channel."""
        if not self.is_ended:
            self.is_ended = True
            self.sock.shutdown(socket.SHUT_RDWR)
        self._on_change()


def _unread(sock: socket.socket) -> int:
    """How many bytes the peer has not read."""
    return int.from_bytes(fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4)), "little")
