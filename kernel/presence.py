"""Who is attached to this kernel: views, the person's commands and the one Agent (SPEC 2.8, 2.9).

A view shows the person something; a command (role `admin`) does not and is no view, but the kernel stays for it as well: whoever waits
for an answer must not lose its kernel. Counts only; policy stands with who reads it.
"""

from __future__ import annotations

import trio

from kernel.core.records import Source
from lineup_sdk.protocol.messages import JsonObject


class Presence:
    """Views, commands and Agent of this moment."""

    def __init__(self) -> None:
        self.views = 0
        self._commands = 0
        self.agent: Source | None = None
        self._changed = trio.Event()

    def host_opened(self, *, is_view: bool) -> None:
        """One view, or one command, more."""
        self._count(1, is_view=is_view)

    def host_closed(self, *, is_view: bool) -> None:
        """One view, or one command, less."""
        self._count(-1, is_view=is_view)

    def _count(self, change: int, *, is_view: bool) -> None:
        if is_view:
            self.views += change
        else:
            self._commands += change
        self._note()

    def agent_is(self, source: Source | None) -> None:
        """Which Agent has the door now, if any."""
        self.agent = source
        self._note()

    def _note(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    @property
    def agent_summary(self) -> JsonObject:
        """As snapshots and deltas say it."""
        return {"connected": self.agent is not None, "demo": self.agent is Source.DEMO}

    async def wait_abandoned(self, seconds: float) -> None:
        """Wait until nobody has been attached for that long."""
        while True:
            changed = self._changed
            if self.views or self._commands or self.agent is not None:
                await changed.wait()
                continue
            with trio.move_on_after(seconds):
                await changed.wait()
                continue
            return
