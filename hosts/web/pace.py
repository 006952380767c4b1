"""How much one page may ask, and how much may wait for it. Pure but for the event a reader waits on.

Rules:
1. More than MESSAGES_A_SECOND (with a burst) is dropped and counts as a strike, as does what cannot be read; STRIKES end the socket.
2. What waits for a page is bounded in number and bytes; over the bound the page is cut, and comes back to a new snapshot (SPEC 2.6).
"""

from __future__ import annotations

from collections import deque

import trio

MESSAGES_A_SECOND = 120
BURST = 240
STRIKES = 100
MAX_WAITING = 2_048
MAX_WAITING_BYTES = 24 * 1024 * 1024


class Pace:
    """The bucket and the strikes of one socket. now: seconds that only rise."""

    def __init__(self, now: float) -> None:
        self._left = float(BURST)
        self._at = now
        self.strikes = 0

    def take(self, now: float) -> bool:
        """Count one message; False, and a strike, when there are too many."""
        self._left = min(float(BURST), self._left + (now - self._at) * MESSAGES_A_SECOND)
        self._at = now
        if self._left < 1:
            self.strikes += 1
            return False
        self._left -= 1
        return True

    @property
    def is_out(self) -> bool:
        """True once it was too much."""
        return self.strikes >= STRIKES


class TooSlow(Exception):
    """The page does not read what it is sent."""


class Outbox:
    """Texts on their way to a page, in order."""

    def __init__(self) -> None:
        self._waiting: deque[str] = deque()
        self._bytes = 0
        self._filled = trio.Event()
        self._done = trio.Event()
        self._is_done = False
        self.is_over = False

    def put(self, text: str) -> None:
        """Add a text; over the bound everything is dropped and `next` raises."""
        if self.is_over:
            return
        self._waiting.append(text)
        self._bytes += len(text)
        if len(self._waiting) > MAX_WAITING or self._bytes > MAX_WAITING_BYTES:
            self._waiting.clear()
            self.is_over = True
        self._filled.set()

    async def next(self) -> str:
        """Return the next text; to ask again says that the one before is dealt with. Raises: TooSlow."""
        while not self._waiting:
            if self.is_over:
                raise TooSlow
            self._filled = trio.Event()
            self._is_done = True
            self._done.set()
            await self._filled.wait()
        self._is_done = False
        text = self._waiting.popleft()
        self._bytes -= len(text)
        return text

    async def wait_done(self) -> None:
        """Wait until the last one is dealt with."""
        while self._waiting or not self._is_done:
            self._done = trio.Event()
            await self._done.wait()
