"""The suite has teeth: each villain breaks one rule and fails every case it says; every case has a villain that fails it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pytest
import trio

from conformance.case import Status, Verdict
from conformance.cases import all_cases
from conformance.report import broken_clauses
from conformance.runner import Run
from conformance.sealed import open_cage
from conformance.targets import SealedTarget
from tests.conformance.plain_app import VILLAINS, plain_app
from tests.conformance.test_small_worker import BREAKS

PATIENCE_SECONDS = 2.0
SIDE_BY_SIDE = 8  # nearly all of the time of one is waiting
FAMILIES = ("of_asking", "of_calls", "of_life", "of_refusals", "of_second_halves", "of_speech", "of_the_wire", "of_what_is_kept")


@dataclass(frozen=True)
class Villain:
    """One of them. fails: the cases, clause: what it breaks."""

    family: str
    name: str
    clause: str
    fails: frozenset[int]
    is_for_system: bool
    manifest: dict[str, Any]

    def app(self) -> Any:
        """Its app: its own file names its class."""
        code = f"from {self.family} import {self.name}\n\napp = {self.name}()\n"
        return plain_app(code, is_system=self.is_for_system, **self.manifest)


def _villains() -> Iterator[Villain]:
    """Read from the files that the sealed processes import, by the names they have there."""
    sys.path.insert(0, str(VILLAINS))
    try:
        for family in FAMILIES:
            for name, kind in vars(import_module(family)).items():
                if isinstance(kind, type) and kind.__module__ == family and getattr(kind, "fails", None):
                    is_for_system, manifest = getattr(kind, "is_for_system", False), getattr(kind, "manifest", {})
                    yield Villain(family, name, kind.clause, kind.fails, is_for_system, manifest)
    finally:
        sys.path.remove(str(VILLAINS))


NAMED = tuple(_villains())
ALL = {villain.name: villain for villain in NAMED}


async def _judge_all() -> dict[str, list[Verdict]]:
    """Every villain by the cases it says it fails and those they need, a few villains side by side, in one cage."""
    judged: dict[str, list[Verdict]] = {}
    limiter = trio.CapacityLimiter(SIDE_BY_SIDE)

    async def judge(villain: Villain) -> None:
        async with limiter:
            target = SealedTarget(app=villain.app(), cage=cage, title=villain.name)
            judged[villain.name] = await Run(target, all_cases(), PATIENCE_SECONDS).judge(villain.fails)

    async with open_cage() as cage, trio.open_nursery() as nursery:
        for villain in ALL.values():
            nursery.start_soon(judge, villain)
    return judged


@pytest.fixture(scope="module")
def judged() -> dict[str, list[Verdict]]:
    return trio.run(_judge_all)


@pytest.mark.clause("2.7")
@pytest.mark.parametrize("name", ALL)
def test_a_villain_fails_what_it_breaks_and_its_clause_is_named(name: str, judged: dict[str, list[Verdict]]) -> None:
    verdicts = judged[name]
    assert {v.case.number for v in verdicts if v.status is Status.FAILED} == ALL[name].fails
    assert ALL[name].clause in broken_clauses(verdicts)
    assert all(v.reason for v in verdicts)


def test_there_are_many_villains() -> None:
    assert len(ALL) == len(NAMED) >= 100  # a name that stands twice would hide one


def test_every_case_is_failed_by_a_villain() -> None:
    failed = frozenset().union(*(villain.fails for villain in ALL.values()), *BREAKS.values())
    assert [case.name for case in all_cases() if case.number not in failed] == []
