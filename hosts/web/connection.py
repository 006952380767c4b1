"""One connection to the port of the web host, which its peer may hold for a while only.

Rules:
1. A peer that takes less than PIECE_BYTES in SEND_SECONDS is cut; one that is slow may take as long as it needs (an artifact has up to
   16 MiB). hypercorn shields what it sends from cancellation, so a stalled page would hold the host for ever.
2. A peer has PATIENCE_SECONDS for a request that the guard lets pass, and again after each answer; while an answer is made, and for the
   life of a page's socket, it is not hurried. hypercorn's own clock stops with the first byte of a body that never comes, and does not
   run at all for HTTP/2, which is never spoken here: MAX_CONNECTIONS of either would keep every page out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import trio

SEND_SECONDS = 20.0
PIECE_BYTES = 64 * 1024
PATIENCE_SECONDS = 10.0


class Connection:
    """A stream as hypercorn takes it, that can be cut."""

    def __init__(self, whole: trio.SocketStream) -> None:
        self.socket = whole.socket
        self.receive_some = whole.receive_some
        self.send_eof = whole.send_eof
        self.aclose = whole.aclose
        self._whole = whole
        self._patience = trio.CancelScope(deadline=trio.current_time() + PATIENCE_SECONDS)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send, or cut; one caller at a time, as hypercorn's lock sees to. Raises: BrokenResourceError, ClosedResourceError."""
        whole = memoryview(data)
        for start in range(0, len(whole), PIECE_BYTES):
            with trio.move_on_after(SEND_SECONDS) as late:
                await self._whole.send_all(whole[start : start + PIECE_BYTES])
            if late.cancelled_caught:
                self.cut()
                raise trio.BrokenResourceError("the peer takes nothing")

    def cut(self) -> None:
        """End it now, whatever is on its way."""
        self.socket.close()

    async def cut_when_idle(self) -> None:
        """Wait until the patience is over, and cut."""
        with self._patience:
            await trio.sleep_forever()
        self.cut()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Around a request that was let pass."""
        self._patience.deadline = math.inf
        try:
            yield
        finally:
            self._patience.deadline = trio.current_time() + PATIENCE_SECONDS
