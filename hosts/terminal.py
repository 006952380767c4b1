"""The terminal of the console: raw keys in, frames out, and always put back as it was.

Rules:
1. Every way out of `full_screen` restores the terminal: return, exception, cancellation.
2. Ctrl-C arrives as a key; signals of the terminal are off meanwhile, so that nothing ends half drawn.
3. Reading and writing wait for readiness and use no thread.
"""

from __future__ import annotations

import os
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import StringIO

import trio
from rich.console import Console
from rich.text import Text

from hosts.lines import LineWriter

_ENTER = b"\x1b[?1049h\x1b[?2004h\x1b[2J"  # other screen, bracketed paste, clear
_LEAVE = b"\x1b[?2004l\x1b[?25h\x1b[?1049l"
_READ_BYTES = 4096
_INPUT_OFF = termios.BRKINT | termios.ICRNL | termios.INPCK | termios.ISTRIP | termios.IXON
_LOCAL_OFF = termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG


class Terminal:
    """Two descriptors of one terminal, not owned."""

    def __init__(self, in_fd: int, out_fd: int) -> None:
        self._in_fd = in_fd
        self._out_fd = out_fd
        self._writer = LineWriter(out_fd)
        self._drawn: list[str] = []
        self._writing = trio.Lock()  # a frame and a message of ours do not mix

    def size(self) -> tuple[int, int]:
        """Return width and height in cells."""
        size = os.get_terminal_size(self._out_fd)
        return size.columns or 80, size.lines or 24

    @contextmanager
    def full_screen(self) -> Iterator[None]:
        """Take the terminal for the block."""
        before = termios.tcgetattr(self._in_fd)
        raw = termios.tcgetattr(self._in_fd)
        raw[0] &= ~_INPUT_OFF
        raw[3] &= ~_LOCAL_OFF
        try:
            termios.tcsetattr(self._in_fd, termios.TCSADRAIN, raw)
            os.write(self._out_fd, _ENTER)
            yield
        finally:
            _write_if_there(self._out_fd, _LEAVE)
            _restore_if_there(self._in_fd, before)

    async def read(self) -> bytes:
        """Return what was typed; b"" when the terminal is gone."""
        await trio.lowlevel.wait_readable(self._in_fd)
        try:
            return os.read(self._in_fd, _READ_BYTES)
        except OSError:
            return b""

    def forget(self) -> None:
        """Draw everything anew next time, as after a resize."""
        self._drawn = []

    async def show(self, lines: Sequence[Text], cursor: tuple[int, int], width: int) -> None:
        """Write the lines that differ from the last frame, and place the cursor. Raises: LinesClosed."""
        encoded = [_encode(line, width) for line in lines]
        out = ["\x1b[?25l"]
        if len(encoded) != len(self._drawn):
            self._drawn = [""] * len(encoded)
            out.append("\x1b[2J")
        for row, text in enumerate(encoded):
            if text != self._drawn[row]:
                out.append(f"\x1b[{row + 1};1H\x1b[0m{text}\x1b[0m\x1b[K")
        self._drawn = encoded
        out.append(f"\x1b[{cursor[0] + 1};{cursor[1] + 1}H\x1b[?25h")
        await self.send("".join(out).encode())

    async def send(self, data: bytes) -> None:
        """Write bytes between two frames, such as OSC 52. Raises: LinesClosed."""
        async with self._writing:
            await self._writer.write(data)


def _encode(line: Text, width: int) -> str:
    file = StringIO()
    console = Console(file=file, force_terminal=True, width=width + 1, markup=False, emoji=False, highlight=False, legacy_windows=False)
    console.print(line, end="", soft_wrap=True)
    return file.getvalue()


def _write_if_there(fd: int, data: bytes) -> None:
    try:
        os.write(fd, data)
    except OSError:
        return  # the terminal is gone: there is nothing left to restore


def _restore_if_there(fd: int, before: list[object]) -> None:
    try:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)  # type: ignore[arg-type]
    except termios.error:
        return  # as above
