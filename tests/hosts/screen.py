"""The real console in a pseudo-terminal, and a real Agent beside it on `lineup agent`: what the end-to-end tests look at and type into.

The terminal here knows what the console uses (cursor places, erasing, colours) and nothing else.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hosts.homes import Home
from tests.hosts import lineup

SECONDS = 60
_SEQUENCE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|\x1b\][^\x07]*\x07")
_NAMES = itertools.count(1)


def environ(home: Home) -> dict[str, str]:
    return os.environ | {"LINEUP_HOME": str(home.folder), "TERM": "xterm-256color"}


def with_apps(folders: Sequence[Path]) -> list[str]:
    return [word for folder in folders for word in ("--app-folder", str(folder))]


class Screen:
    """The console, and what stands on its screen now. errors: the file that its stderr goes to, else the terminal."""

    def __init__(self, home: Home, width: int = 80, height: int = 24, apps: Sequence[Path] = (), errors: Path | None = None) -> None:
        self.master, self.terminal = pty.openpty()
        self._resize(width, height)
        self.before = termios.tcgetattr(self.terminal)
        with open(os.devnull if errors is None else errors, "ab") as file:
            ends = {"stdin": self.terminal, "stdout": self.terminal, "stderr": self.terminal if errors is None else file}
            self.process = lineup.start([*with_apps(apps), "console"], env=environ(home), process_group=0, **ends)
        self.raw = b""
        self._unread = ""

    def _resize(self, width: int, height: int) -> None:
        self._width, self._height = width, height
        self._grid = [[" "] * width for _ in range(height)]
        self._row = self._column = 0
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("4H", height, width, 0, 0))

    def resize(self, width: int, height: int) -> None:
        self._resize(width, height)
        os.kill(self.process.pid, signal.SIGWINCH)

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def enter(self, line: str) -> None:
        self.type(line + "\r")

    def text(self) -> str:
        return "\n".join("".join(row).rstrip() for row in self._grid)

    def wait_text(self, *wanted: str) -> str:
        """Wait until all of these stand on the screen at once; return it."""
        return self.wait_for(lambda: all(one in self.text() for one in wanted), f"{wanted}")

    def wait_without(self, unwanted: str) -> str:
        return self.wait_for(lambda: unwanted not in self.text(), f"no {unwanted}")

    def wait_for(self, is_so: Any, what: str) -> str:
        deadline = time.monotonic() + SECONDS
        while not is_so():
            assert time.monotonic() < deadline, f"waited for {what}:\n{self.text()}"
            self._read(1)
        return self.text()

    def look_for(self, seconds: float) -> None:
        """Let time go by that a test is about, and take what is drawn meanwhile."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._read(left)

    def wait_raw(self, wanted: bytes) -> None:
        self.wait_for(lambda: wanted in self.raw, repr(wanted))

    def _read(self, seconds: float) -> None:
        if select.select([self.master], [], [], seconds)[0]:
            data = os.read(self.master, 65536)
            self.raw += data
            self._unread += data.decode(errors="ignore")
            self._take()

    def _take(self) -> None:
        while self._unread:
            if self._unread[0] == "\x1b":
                found = _SEQUENCE.match(self._unread)
                if found is None:
                    return
                self._unread = self._unread[found.end() :]
                self._obey(found.group(1) or "", found.group(2))
                continue
            character, self._unread = self._unread[0], self._unread[1:]
            if character >= " " and self._column < self._width:
                self._grid[self._row][self._column] = character
                self._column += 1

    def _obey(self, arguments: str, command: str | None) -> None:
        match command:
            case "H":
                row, column = [int(number) for number in arguments.split(";")]
                self._row, self._column = min(row, self._height) - 1, min(column, self._width) - 1
            case "K":
                self._grid[self._row][self._column :] = [" "] * (self._width - self._column)
            case "J":
                self._grid = [[" "] * self._width for _ in range(self._height)]
            case _:
                pass  # colours, modes

    def wait_end(self) -> int:
        deadline = time.monotonic() + SECONDS
        while self.process.poll() is None and time.monotonic() < deadline:
            self._read(0.1)
        return self.process.wait(0)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.terminal)


class DoorAgent:
    """An Agent on `lineup agent`."""

    def __init__(self, home: Home) -> None:
        pipe = subprocess.PIPE
        self._process = lineup.start(["agent", "--receipts"], env=environ(home), stdin=pipe, stdout=pipe)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._sink, self._source = self._process.stdin, self._process.stdout
        self._unread = b""
        self.lines: list[dict[str, Any]] = []
        self.opened = self._until(lambda line: line.get("door") == "open")

    def _until(self, is_it: Any) -> dict[str, Any]:
        for line in self.lines:
            if is_it(line):
                return line
        while True:
            self.lines.append(json.loads(self._line()))
            if is_it(self.lines[-1]):
                return self.lines[-1]

    def _line(self) -> bytes:
        while b"\n" not in self._unread:
            assert select.select([self._source], [], [], SECONDS)[0], self.lines[-1]
            data = os.read(self._source.fileno(), 65536)
            assert data, "the door ended"
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def send(self, type_: str, payload: dict[str, Any], **more: Any) -> str:
        message_id = f"msg_door_{next(_NAMES)}"
        named = {"type": "lineup.v1." + type_, "message_id": message_id, "conversation_id": self.opened["conversation_id"]}
        line = json.dumps(named | {"created_at": "2026-11-30T12:00:00.000Z", "payload": payload} | more)
        self._sink.write(line.encode() + b"\n")
        self._sink.flush()
        receipt = self._until(lambda line: line.get("door") == "receipt" and line.get("message_id") == message_id)
        assert receipt["accepted"], receipt
        return message_id

    def call(self, tool_id: str, given: dict[str, Any], **more: Any) -> str:
        call_id = f"call_door_{next(_NAMES)}"
        asked = {"call_id": call_id, "tool_id": tool_id, "inventory_revision": self.opened["revision"], "input": given}
        self.send("tool.call", asked | more)
        return call_id

    def result(self, call_id: str) -> dict[str, Any]:
        found = self._until(lambda line: line.get("type") == "lineup.v1.tool.result" and line["payload"]["call_id"] == call_id)
        return dict(found["payload"])

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._sink.close()
        self._source.close()
