"""Lines in and out on plain descriptors, for trio: no threads, no O_NONBLOCK on a descriptor shared with other programs.

Rules:
1. Wait for readiness, then one read or a write of at most a pipe's atomic size: that never blocks on pipe, terminal or socket. A regular
   file cannot be waited for and never blocks.
2. A line is at most max_line_bytes without its newline; a longer one is thrown away up to its end and reported as LineTooLong once.
3. write_line returns when the whole line has left this process: nothing is buffered here.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import trio

_READ_BYTES = 64 * 1024
_ATOMIC_BYTES = 4096  # PIPE_BUF: a pipe that is ready takes at least this much


class LinesClosed(Exception):
    """Nobody reads what is written here any more."""


@dataclass(frozen=True, slots=True)
class LineTooLong:
    """Stands for a line over the limit."""


class LineReader:
    """Reads lines from a descriptor it does not own."""

    def __init__(self, fd: int, max_line_bytes: int) -> None:
        self._fd = fd
        self._max_line_bytes = max_line_bytes
        self._buffer = bytearray()
        self._searched = 0
        self._is_skipping = False
        self._is_at_end = False

    async def read_line(self) -> bytes | LineTooLong | None:
        """Return the next line without its newline, LineTooLong for one over the limit, None at the end."""
        while True:
            end = self._buffer.find(b"\n", self._searched)
            if end >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                self._searched = 0
                if self._is_skipping:
                    self._is_skipping = False
                    continue
                return line if len(line) <= self._max_line_bytes else LineTooLong()
            if self._is_at_end:
                return self._rest()
            if len(self._buffer) > self._max_line_bytes:
                self._buffer.clear()
                self._searched = 0
                if not self._is_skipping:
                    self._is_skipping = True
                    return LineTooLong()
            self._searched = len(self._buffer)
            await self._fill()

    def _rest(self) -> bytes | None:
        line = bytes(self._buffer)
        self._buffer.clear()
        self._searched = 0
        return None if self._is_skipping or not line else line

    async def _fill(self) -> None:
        await _wait_ready(trio.lowlevel.wait_readable, self._fd)
        try:
            data = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:  # another program made the descriptor non-blocking and took the bytes
            return
        self._is_at_end = not data
        self._buffer += data


class LineWriter:
    """Writes lines to a descriptor it does not own; lines of several tasks do not mix."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._turn = trio.Lock()

    async def write_line(self, text: str) -> None:
        """Write the text and a newline. Raises: LinesClosed."""
        async with self._turn:
            await self.write(text.encode() + b"\n")

    async def write(self, data: bytes) -> None:
        """Write bytes as they are. Raises: LinesClosed."""
        left = memoryview(data)
        while left:
            await _wait_ready(trio.lowlevel.wait_writable, self._fd)
            try:
                left = left[os.write(self._fd, left[:_ATOMIC_BYTES]) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise LinesClosed from error


async def _wait_ready(wait: object, fd: int) -> None:
    try:
        await wait(fd)  # type: ignore[operator]
    except PermissionError:  # epoll does not take regular files; they are always ready
        await trio.lowlevel.checkpoint()
