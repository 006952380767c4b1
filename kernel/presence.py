"""Who is attached to this kernel: views and the one Agent (SPEC 2.8, 2.9). Counts only; policy stands with who reads it."""

from __future__ import annotations

import trio

from kernel.core.records import Source
from lineup_sdk.protocol.messages import JsonObject


class Presence:
    """Views and Agent of this moment."""

    def __init__(self) -> None:
        self.views = 0
        self.agent: Source | None = None
        self._changed = trio.Event()

    def view_opened(self) -> None:
        """One view or admin more."""
        self.views += 1
        self._note()

    def view_closed(self) -> None:
        """One view or admin less."""
        self.views -= 1
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
            if self.views or self.agent is not None:
                await changed.wait()
                continue
            with trio.move_on_after(seconds):
                await changed.wait()
                continue
            return
