"""Every crash point that the kernel of the model passes, before and after, by a power cut and by kill -9, in three workloads.

    point_sweep.py FIRST SEEDS [WORKLOAD]      prints one JSON object: runs, how many of them passed their point, and what broke

Rules:
1. A program of its own, as simulation.py. Each run is a home; after the death the workload goes on, and every promise is looked at.
2. Workload 0 is a story that passes every point; 1 the same at the second passing, the story's acts in another order; 2 the same with
   steps of anybody between them, at any passing; after both the story comes once more. Steps that keep a point from being passed (an
   App that is switched off) are drawn anew. Where there are fewer passings the last one is taken: each run dies at its point.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
from collections.abc import Iterator
from typing import Any

import kernel.store
from kernel.core.records import Source
from tests.faults.crash_points import IN_THE_MODEL, POINTS, Planted, Side, plant
from tests.faults.simulation import LAYER, PowerCut, Powered, one_step, run
from tests.faults.story import STORY
from tests.model.around import Died

WAYS = ("power cut", "kill -9")
SIDES: tuple[Side, ...] = ("before", "after")
WORKLOADS = (0, 1, 2)
DRAWS = 8  # of which one lets the point be passed


def _acts(machine: Powered, chance: random.Random, workload: int) -> None:
    machine.begin(is_used=True)
    acts = list(STORY)
    if workload == 1:
        chance.shuffle(acts)
    for act in acts:
        act(machine)
        for _ in range(chance.randrange(3) if workload == 2 else 0):
            one_step(machine, chance)
    if workload:
        machine.kernel.attach(Source.AGENT)
        for act in STORY:
            act(machine)


def one(name: str, side: Side, way: str, workload: int, seed: int, skip: int, draw: int = 0) -> tuple[Planted, str]:
    """One run. draw: of the steps between the acts. Returns its point, passed or not, and what broke."""

    def die() -> None:
        if way == "power cut":
            LAYER.platter.is_off = True  # type: ignore[union-attr]
            raise PowerCut
        raise Died

    planted, take_away = plant(name, side, die, skip=skip, is_model=True)

    def act(machine: Powered, drawn: random.Random) -> None:
        _acts(machine, drawn, workload)
        planted.disarm()

    try:
        _, violation = run(seed * 1000 + draw * 10 + workload, act)
    finally:
        take_away()
    return planted, violation


def _at(name: str, side: Side, way: str, workload: int, seed: int) -> Iterator[tuple[Planted, str]]:
    """The runs of a point in a workload: one, but for a statement one for every statement of the story's transaction."""
    if POINTS[name].kind == "statement" and workload == 0:
        every = (one(name, side, way, workload, seed, skip) for skip in itertools.count())
        first = next(every)
        yield first
        yield from itertools.takewhile(lambda run: run[0].has_acted, every if first[0].has_acted else ())
        return
    skip = {0: 0, 1: 1, 2: random.Random(f"{name} {side} {seed}").randrange(4)}[workload]
    for draw in range(DRAWS):
        planted, violation = one(name, side, way, workload, seed, skip, draw)
        if planted.passed and not planted.has_acted and not violation:
            planted, violation = one(name, side, way, workload, seed, planted.passed - 1, draw)
        if planted.has_acted or violation:
            break
    yield planted, violation


def sweep(seeds: range, workloads: tuple[int, ...]) -> dict[str, Any]:
    """All of them, with these seeds."""
    runs = passed = 0
    broken: dict[str, str] = {}
    for seed, name, side, way, workload in itertools.product(seeds, IN_THE_MODEL, SIDES, WAYS, workloads):
        for planted, violation in _at(name, side, way, workload, seed):
            runs += 1
            passed += planted.has_acted
            if violation or not planted.has_acted:
                where = f"{name}, {side}, {way}, workload {workload}, seed {seed}, skip {planted.skip}"
                broken[where] = violation or "the point is not passed"
    return {"done": runs, "passed": passed, "violations": broken}


def main() -> None:
    """Run what the arguments say."""
    LAYER.note_calls()
    kernel.store.CHECKPOINT_COMMITS = 6  # so that some come
    first, seeds, *workloads = map(int, sys.argv[1:])
    sys.stdout.write(json.dumps(sweep(range(first, first + seeds), tuple(workloads) or WORKLOADS)) + "\n")


if __name__ == "__main__":
    main()
