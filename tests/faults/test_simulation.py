"""The whole kernel in simulation, each run of it in a process of its own (simulation.py, point_sweep.py): power cuts, deaths at named
places, failing disks. `make torture` runs the same for longer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SEEDS = 116  # about 2,000 cuts
MIN_CUTS = 2_000
SEEDS_TWICE = 4
OF_THE_MAKING = "60"  # operations, and a few more
SWEEP_STEP = 29  # of the operations of a run, this many apart fail; `make torture` takes every one


def said(*arguments: str, hash_seed: str = "random") -> dict[str, Any]:
    """What a program of this folder printed."""
    command = [sys.executable, "-m", *arguments]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.clause("12")
@pytest.mark.invariant("01")
@pytest.mark.invariant("02")
@pytest.mark.invariant("15")
@pytest.mark.invariant("16")
@pytest.mark.invariant("23")
@pytest.mark.invariant("32")
@pytest.mark.invariant("60")
def test_two_thousand_power_cuts_break_no_promise() -> None:
    found = said("tests.faults.simulation", "power", "0", str(SEEDS))
    assert found["violations"] == {}
    assert found["done"] >= MIN_CUTS


def test_the_same_seeds_give_the_same_trace_in_any_process() -> None:
    one, other = (said("tests.faults.simulation", "power", "9000", str(SEEDS_TWICE), hash_seed=seed) for seed in ("1", "2"))
    assert one["hash"] == other["hash"]
    assert one["hash"] != said("tests.faults.simulation", "power", "9001", str(SEEDS_TWICE))["hash"]


def test_loss_on_a_disk_that_lies_is_seen() -> None:
    found = said("tests.faults.simulation", "lie", "0", "6")
    assert len(found["violations"]) == 6
    assert all("INV-60" in line for line in found["violations"].values())


@pytest.mark.clause("12")
@pytest.mark.invariant("60")
@pytest.mark.parametrize("kind", ["io", "full"])
def test_an_operation_of_the_disk_that_fails_breaks_no_promise(kind: str) -> None:
    found = said("tests.faults.simulation", "error", kind, "0", "1", str(SWEEP_STEP))
    assert found["violations"] == {}
    assert found["done"] > 8


@pytest.mark.clause("12")
@pytest.mark.invariant("15")
@pytest.mark.invariant("60")
def test_a_death_at_every_named_place_by_power_cut_and_by_kill_breaks_no_promise() -> None:
    """The story that passes every place; the other workloads and seeds are of `make torture`."""
    found = said("tests.faults.point_sweep", "0", "1", "0")
    assert found["violations"] == {}
    assert found["passed"] == found["done"]


@pytest.mark.clause("12")
@pytest.mark.invariant("60")
@pytest.mark.parametrize("kind", ["io", "full"])
def test_a_database_whose_making_fails_at_any_operation_is_refused_and_made_anew(kind: str) -> None:
    """The closing of the half-made one once let an error of the library out."""
    assert said("tests.faults.simulation", "error", kind, "0", "1", "1", OF_THE_MAKING)["violations"] == {}
