"""One deliberately broken kernel for each promise: patched in memory, set to work, and judged by tests/invariants.py. It has to go red
under its own number, or the suite would not see that the promise is broken.

    python -m tests.faults.broken_kernels [NUMBER ...]      prints one JSON object: how many were caught, and which were not

Rules:
1. What is broken stands in broken_rules.py.
2. The work is the story of the crash points, what a hostile neighbour would do beside it, and then steps of anybody.
3. What only real processes or a browser can show is broken there: tests/faults/test_broken_kernels.py says where.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from kernel.core import limits
from kernel.core.decision import KernelBug
from kernel.core.records import (
    Source,
)
from kernel.protocol.agent import ToolInvoke
from lineup_sdk.protocol import messages as m
from tests.faults.breaking import Patch
from tests.faults.broken_rules import broken
from tests.faults.story import STORY, Act
from tests.invariants import check_after_a_turn, check_all, check_trace
from tests.model.steps import step
from tests.model.test_model import Anything
from tests.trace import Drained

SEEDS = 6
STEPS = 40


class Looking(Anything):
    """Looks as the model does, and goes on when something is broken: what was told is kept."""

    def __init__(self) -> None:
        self.told: set[str] = set()
        super().__init__()

    def check(self) -> None:
        """Every promise about rows."""
        self.told |= set(check_after_a_turn(self.kernel.store._db._connection))

    def look_at_the_end(self) -> None:
        """Every promise, over rows and over the trace; receivers took what they got."""
        self.kernel.die_at = None
        self.kernel.free_the_disk()
        for source in (Source.AGENT, Source.DEMO):
            with suppress(AssertionError):
                self.drain(source)
            self.kernel.trace.add(Drained(destination=source))
        self.told |= set(check_all(self.kernel.store._db._connection))
        self.told |= set(check_trace(self.kernel.trace))


def _progress_of_the_newest(machine: Anything) -> None:
    """The App goes on about a call that has ended."""
    for call in machine.view.calls(limit=6):
        machine.tell_of(call, m.ToolProgress(call_id=call.call_id, percent=11.0))


def _invoke_badly(machine: Anything) -> None:
    revision = machine.view.inventory.revision
    command = ToolInvoke(envelope=None, call_id=machine.new_id(), tool_id="board.draw", inventory_revision=revision, input={"x": "no"})
    machine.kernel.say(machine.agent(), command)


def _flood(machine: Anything) -> None:
    for _ in range(limits.MAX_OPEN_INTERACTIONS + 2):
        machine.ask("interaction.confirm", None, None)


NEIGHBOUR: tuple[Act, ...] = (
    lambda one: one.invoke("board.peek", 0, is_stale=True, wait=None),
    lambda one: one.invoke("board.none", 0, is_stale=False, wait=None),
    _invoke_badly,
    lambda one: one.work_on_a_new_call("board.draw", 10.0, None),
    lambda one: one.say_of_a_call(0, "bad"),
    lambda one: one.finish_open_calls("complete", 3),
    lambda one: one.reach_for_anything("notes", 0, 1),
    lambda one: one.reach_for_anything("board", 0, 2),
    lambda one: one.send_to_an_app("board", 2, "note"),
    lambda one: one.send_something_else("again", 50),
    lambda one: one.send_something_else("again", 50),
    lambda one: one.send_something_else("type", 60),
    lambda one: one.reach_for_anything("asker", 0, 1),
    lambda one: one.work_on_a_new_call("board.draw", 10.0, "complete"),
    _progress_of_the_newest,
    lambda one: one.move_an_app("notes", "raise"),
    lambda one: one.process_dies_again_and_again("notes"),
    lambda one: one.process_dies_again_and_again("notes"),
    lambda one: one.kernel_starts_again("killed"),
    lambda one: one.send_to_an_app("asker", 3, "note"),
    lambda one: one.all_come_up(takes_all=True),
    *(lambda one, place=place: one.say_late(place, 0, "state") for place in range(6)),
    lambda one: one.move_an_app("board", "raise"),
    lambda one: one.ask("interaction.confirm", None, None),
    lambda one: one.move(0, "inline"),
    lambda one: one.move(0, "modal"),
    lambda one: one.answer(0, 0, None, 2),
    lambda one: one.ask("interaction.choice", None, None),
    lambda one: one.answer(0, 2, "answer", 1),
    lambda one: one.ask("interaction.confirm", 40_000, None),
    lambda one: one.move(0, "inline"),
    lambda one: one.attach_a_view("view-4-console", can=True),
    lambda one: one.work_in_a_surface(0, 0, "mount", 0, 0),
    lambda one: one.work_in_a_surface(0, 0, "patch", 1, 0),
    lambda one: one.use_a_capability("notes", is_text=False, place=0, has_parent=False, decision="once", is_done=True),
    lambda one: one.move_an_app("notes", "close all"),
    lambda one: one.kernel.reap(),
    lambda one: one.move_an_app("notes", "open"),
    lambda one: one.acknowledge_oddly("foreign", 0),
    lambda one: one.save_and_load("board", 1),
    lambda one: one.switch("board.once", is_on=False),
    lambda one: one.switch("board.once", is_on=True),
    lambda one: one.kernel_starts_again("killed"),
    lambda one: one.all_come_up(takes_all=True),
)
MORE: dict[str, tuple[Act, ...]] = {"08": (_flood,)}  # what only one promise needs, because it is long


@contextmanager
def patched(patches: Sequence[Patch]) -> Iterator[None]:
    real = [(where, name, where.__dict__[name]) for where, name, _ in patches]
    for where, name, value in patches:
        setattr(where, name, value)
    try:
        yield
    finally:
        for where, name, value in reversed(real):
            setattr(where, name, value)


def judged(patches: Sequence[Patch], number: str) -> tuple[bool, set[str]]:
    """Whether a kernel with these patches is told under that number, and all that is told of it."""
    told: set[str] = set()
    for seed in range(SEEDS):
        told |= _told(patches, seed, MORE.get(number, ()))
        if any(line.startswith(f"INV-{number}:") for line in told):
            return True, told
    return False, told


def _told(patches: Sequence[Patch], seed: int, more: Sequence[Act] = ()) -> set[str]:
    machine = Looking()
    chance = random.Random(seed)
    acts = [*STORY[:-1], *NEIGHBOUR, *more] if seed == 0 else [lambda one: step(one, chance)] * STEPS
    try:
        machine.begin(is_used=True)
        with patched(patches):
            for act in acts:
                _try(machine, act)
            _try(machine, Looking.look_at_the_end)
    finally:
        machine.kernel.end()
    return machine.told


def _try(machine: Looking, act: Act) -> None:
    """An act; a broken kernel may stop in it, as a real one would, and is started again."""
    try:
        act(machine)
        machine.check()
    except (AssertionError, AttributeError, KernelBug, KeyError, TypeError, ValueError) as error:
        machine.told.add(f"{type(error).__name__}: {error}")
        with suppress(AssertionError, KernelBug, KeyError):
            machine.kernel.restart()


def main(numbers: Sequence[str]) -> dict[str, Any]:
    """Judge those, or all; what was not caught is told with all that was."""
    table = broken()
    missed: dict[str, str] = {}
    for number in numbers or table:
        is_caught, told = judged(table[number], number)
        if not is_caught:
            missed[f"INV-{number}"] = "; ".join(sorted(told))[:600] or "nothing was told"
    return {"done": len(numbers or table), "violations": missed}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1:])) + "\n")
