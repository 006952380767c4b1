"""Runs cases on a target: those others need first, the rest side by side, each with processes of its own.

Rules:
1. Only Broken and NotApplicable are verdicts; any other exception is a fault of the suite and ends the run.
2. The tour is taken once, when the first case asks for it; cases that only look judge its traces.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import trio

from conformance.case import MANIFEST_CASE, Broken, Case, NotApplicable, Status, Verdict
from conformance.plays import Plays, read_plays
from conformance.probe import take_tour
from conformance.targets import Target, misfits
from conformance.world import Tour, TourNeeded, World

SIDE_BY_SIDE = 16
_LEAST_PATIENCE = 5.0  # seconds, for cases that others need: what they say must not come from a crowded machine


class Run:
    """One run. Make it anew for each."""

    def __init__(self, target: Target, cases: Sequence[Case], patience: float) -> None:
        self._target = target
        self._cases = cases
        self._patience = patience
        self._plays: Plays = read_plays(target.app)
        self._is_unfit = bool(target.app.manifest and misfits(target.app.manifest))
        self._tour: Tour | None = None
        self._touring = trio.Lock()
        self._verdicts: dict[int, Verdict] = {}

    async def judge(self, chosen: frozenset[int] | None = None) -> list[Verdict]:
        """Run the cases (chosen: these numbers and what they need) and return the verdicts in order of number."""
        wanted = self._with_needs(chosen)
        first = {number for case in wanted for number in case.needs}
        async with trio.open_nursery() as nursery:
            for case in [case for case in wanted if case.number in first]:
                await self._run(case, nursery, max(self._patience, _LEAST_PATIENCE))
            limiter = trio.CapacityLimiter(SIDE_BY_SIDE)
            async with trio.open_nursery() as side_by_side:
                for case in [case for case in wanted if case.number not in self._verdicts]:
                    side_by_side.start_soon(self._run_limited, case, nursery, limiter)
        shown = [v for n, v in self._verdicts.items() if chosen is None or n in chosen]
        return sorted(shown, key=lambda verdict: verdict.case.number)

    def _with_needs(self, chosen: frozenset[int] | None) -> list[Case]:
        if chosen is None:
            return list(self._cases)
        needed = set(chosen)
        while more := {n for case in self._cases if case.number in needed for n in case.needs} - needed:
            needed |= more
        return [case for case in self._cases if case.number in needed]

    def _world(self, nursery: trio.Nursery, patience: float | None = None) -> World:
        seconds = self._patience if patience is None else patience
        return World(target=self._target, plays=copy(self._plays), nursery=nursery, patience=seconds, tour=self._tour)

    async def _take_tour(self, nursery: trio.Nursery) -> None:
        async with self._touring:
            if self._tour is None:
                world = self._world(nursery)
                self._tour = await take_tour(world)
                self._plays = world.plays
                await world.close()

    async def _run_limited(self, case: Case, nursery: trio.Nursery, limiter: trio.CapacityLimiter) -> None:
        async with limiter:
            await self._run(case, nursery)

    async def _run(self, case: Case, nursery: trio.Nursery, patience: float | None = None) -> None:
        began = trio.current_time()
        status, reason = await self._try(case, nursery, patience)
        seconds = trio.current_time() - began
        self._verdicts[case.number] = Verdict(case=case, status=status, reason=reason, seconds=seconds)

    async def _try(self, case: Case, nursery: trio.Nursery, patience: float | None) -> tuple[Status, str]:
        if self._is_unfit and case.number != MANIFEST_CASE:
            return Status.BLOCKED, f"C-{MANIFEST_CASE} does not pass"
        missing = [n for n in case.needs if self._verdicts[n].status in (Status.FAILED, Status.BLOCKED)]
        if missing:
            return Status.BLOCKED, f"C-{missing[0]:03} did not pass"
        unfit = [n for n in case.needs if self._verdicts[n].status is Status.NOT_APPLICABLE]
        if unfit:
            return Status.NOT_APPLICABLE, f"as C-{unfit[0]:03}: {self._verdicts[unfit[0]].reason}"
        world = self._world(nursery, patience)
        try:
            await case.run(world)
        except TourNeeded:
            await self._take_tour(nursery)
            return await self._try(case, nursery, patience)
        except Broken as broken:
            return Status.FAILED, str(broken)
        except NotApplicable as unfit_:
            return Status.NOT_APPLICABLE, str(unfit_)
        finally:
            await world.close()
        return Status.PASSED, ""
