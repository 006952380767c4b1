"""Forces every `except` handler of some modules of the kernel in turn, while people and Apps do their acts on it.

Rules:
1. All of them are armed at once, when the kernel serves, and each takes its exception the next time its `try` is begun. Whoever is cut off
   by that comes back and does the act again, until all were entered.
2. What ends the kernel ends one of its lives: the next one is started on the same home, with those armed that were not entered yet.
3. A life that enters no new handler ends the run: what is left then was not reached.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path

import trio

from lineup_sdk.channel import ChannelClosed
from lineup_sdk.protocol.messages import JsonObject
from tests.faults.canary_acts import Stage
from tests.processes.kernel_under_test import KernelUnderTest

Act = Callable[[Stage], Awaitable[None]]
ACT_SECONDS = 1.5  # for one act on an idle machine it takes a tenth of that; a lost one is simply done again
MAX_LIVES = 40


class ForcedKernel:
    """One home, and one kernel after the other on it."""

    def __init__(self, folder: Path, apps: Sequence[Path], home_name: str) -> None:
        self.home = folder / home_name
        self.log = folder / "kernel.log"
        self._notes = folder / "notes"
        self._apps = apps
        self.frames: list[JsonObject] = []

    @property
    def entered(self) -> set[str]:
        """The handlers that were entered so far."""
        return set(self._notes.read_text().splitlines()) if self._notes.exists() else set()

    async def force(self, names: Collection[str], acts: Sequence[Act]) -> set[str]:
        """Do the acts until each of these handlers was entered; returns those that were not."""
        for _ in range(MAX_LIVES):
            left = set(names) - self.entered
            if not left:
                break
            await self._live(left, acts)
            if left == set(names) - self.entered:
                break
        return set(names) - self.entered

    async def _live(self, names: Collection[str], acts: Sequence[Act]) -> None:
        program = ("-m", "tests.faults.forced", str(self._notes), json.dumps(sorted(names)), "kernel")
        kernel = KernelUnderTest.start(self.home, self.log, apps=self._apps, program=program)
        try:
            async with trio.open_nursery() as nursery:
                stage = Stage(kernel, nursery)
                stage.peers.append(await kernel.first_view(nursery))
                kernel.kill(signal.SIGUSR1)  # now they are armed
                while not kernel.has_ended and await self._round(stage, names, acts):
                    pass
                self.frames += stage.frames
                nursery.cancel_scope.cancel()
        finally:
            kernel.close()

    async def _round(self, stage: Stage, names: Collection[str], acts: Sequence[Act]) -> bool:
        """Do every act once, as far as it comes; says whether a handler was entered by it and one is left."""
        before = self.entered
        for act in acts:
            if set(names) <= self.entered or stage.kernel.has_ended:
                break
            await _attempt(act, stage)
        return self.entered > before and not set(names) <= self.entered


async def _attempt(act: Act, stage: Stage) -> None:
    """One act, as far as it comes: it is cut off wherever a handler was forced."""
    with trio.move_on_after(ACT_SECONDS), suppress(AssertionError, AttributeError, ChannelClosed, KeyError, OSError, ValueError):
        await act(stage)
    for peer in stage.peers[1:]:
        peer.close()
