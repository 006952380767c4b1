"""What print, logging and tracebacks of a worker write to: log.write frames on its channel, never a descriptor (SPEC 2.10).

Rules:
1. One text is at most MAX_LOG_TEXT_BYTES; a line is sent when it ends, or when that much has gathered.
2. The rate is bounded, and nothing is queued behind a kernel that does not read: what is over is dropped, counted, and the count is
   told with the next text that goes. A worker cannot be slowed down or filled up by its own output.
"""

from __future__ import annotations

import io
import time

from lineup_sdk.channel import Channel, ChannelClosed, ChannelOverflow
from lineup_sdk.protocol.limits import MAX_LOG_TEXT_BYTES
from lineup_sdk.protocol.messages import LogWrite, to_frame

BURST_BYTES = 64 * 1024
BYTES_PER_SECOND = 16 * 1024
FRAME_COST_BYTES = 128  # so that a thousand empty lines are not free
MAX_QUEUED_BYTES = 256 * 1024


class LogBudget:
    """The bucket both streams of a worker drink from."""

    def __init__(self) -> None:
        self._tokens = float(BURST_BYTES)
        self._filled_at = time.monotonic()
        self.dropped = 0  # texts refused since the last that went

    def take(self, size: int) -> bool:
        """Take size bytes out; False when they are not there."""
        now = time.monotonic()
        self._tokens = min(float(BURST_BYTES), self._tokens + (now - self._filled_at) * BYTES_PER_SECOND)
        self._filled_at = now
        if self._tokens < size:
            self.dropped += 1
            return False
        self._tokens -= size
        return True


class LogStream(io.TextIOBase):
    """A text stream (stdout or stderr) whose lines become frames."""

    def __init__(self, channel: Channel, name: str, budget: LogBudget) -> None:
        self._channel = channel
        self._name = name
        self._budget = budget
        self._line = ""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Always UTF-8."""
        return "utf-8"

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, text: str) -> int:
        """Take text; whole lines leave at once."""
        self._line += text
        while "\n" in self._line:
            line, self._line = self._line.split("\n", 1)
            self._send(line + "\n")
        if len(self._line) >= MAX_LOG_TEXT_BYTES // 4:  # a code point has at most 4 bytes
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Send what is left of a line."""
        line, self._line = self._line, ""
        if line:
            self._send(line)

    def _send(self, text: str) -> None:
        step = MAX_LOG_TEXT_BYTES // 4
        for start in range(0, len(text), step):
            self._send_piece(text[start : start + step].encode("utf-8", "backslashreplace").decode())

    def _send_piece(self, text: str) -> None:
        dropped = self._budget.dropped
        if self._channel.is_closed or self._channel.queued_bytes > MAX_QUEUED_BYTES:
            self._budget.dropped += 1
            return
        if not self._budget.take(len(text.encode()) + FRAME_COST_BYTES):
            return
        if dropped:
            text = f"[{dropped} pieces of output dropped]\n{text}"
            self._budget.dropped = 0
        try:
            self._channel.send(to_frame(LogWrite(stream=self._name, text=text)))
            self._channel.flush()
        except (ChannelClosed, ChannelOverflow):  # the kernel is gone or does not read: the worker learns it where it receives
            self._budget.dropped += 1
