"""The wire is not Python's: a worker in C passes every case it gives an occasion for, and one that begins wrongly is found."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import trio

from conformance.__main__ import PATIENCE_SECONDS, judge
from conformance.case import Status, Verdict
from conformance.report import as_table
from conformance.targets import App

SOURCE = Path(__file__).with_name("small_worker.c")
WIRE_CASES = 90  # that it passes at least

# What the worker breaks when it is told to, and the cases that find it: what a sealed process cannot do, because the launcher says hello.
BREAKS = {
    "no-hello": {1},
    "other-wire": {2},
    "no-sdk": {3},
    "talks-early": {4},
    "impatient": {5},
    "any-first": {11, 12},
    "any-field": {16, 64, 69},
    "one-read": {17, 34},
}


@pytest.fixture(scope="module")
def small_worker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("small") / "small_worker"
    command = ["cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-o", str(program), str(SOURCE), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


@pytest.mark.clause("2.7")
def test_a_worker_in_c_passes_the_wire_cases_and_the_report_says_that_it_is_unsealed(small_worker: Path) -> None:
    target, verdicts = trio.run(judge, App(), str(small_worker), None, PATIENCE_SECONDS)
    assert [(v.case.name, v.reason) for v in verdicts if v.status in (Status.FAILED, Status.BLOCKED)] == []
    assert sum(v.status is Status.PASSED for v in verdicts) >= WIRE_CASES
    assert "unsealed" in as_table(target, verdicts, {}).splitlines()[0]


@pytest.mark.parametrize("how", BREAKS)
def test_a_worker_that_begins_wrongly_is_found(small_worker: Path, how: str) -> None:
    verdicts = _judged(small_worker, how)
    assert {v.case.number for v in verdicts if v.status is Status.FAILED} == BREAKS[how]


def _judged(program: Path, how: str) -> list[Verdict]:
    _, verdicts = trio.run(judge, App(), f"{program} {how}", frozenset(BREAKS[how]), 2.0)
    return verdicts
