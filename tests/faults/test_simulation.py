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

from tests.faults.crash_points import IN_THE_MODEL

ROOT = Path(__file__).parents[2]
SEEDS = 116  # about 2,000 cuts
MIN_CUTS = 2_000
SEEDS_TWICE = 4
SIDES_WAYS_AND_WORKLOADS = 2 * 2 * 3
MORE_STATEMENTS = 4 * 2 * 2  # the transaction of a result has five: row, call, audit, clock, COMMIT
OF_THE_MAKING = "60"  # operations, and a few more
SWEEP_STEP = 29  # of the operations of a run, this many apart fail; `make torture` takes every one


def said(*arguments: str, hash_seed: str = "random") -> dict[str, Any]:
    """What a program of this folder printed."""
    return said_by("-m", *arguments, hash_seed=hash_seed)


def said_by(*arguments: str, hash_seed: str = "random") -> dict[str, Any]:
    """What an interpreter printed."""
    command = [sys.executable, *arguments]
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


def test_a_seed_alone_gives_what_it_gave_after_others() -> None:
    """Every byte that is found after a cut, too: else a finding of a long run could not be made again by its seed."""
    alone, after_others = (said("tests.faults.simulation", "power", first, count) for first, count in (("9002", "1"), ("9000", "3")))
    assert alone["hash_of_the_last"] == after_others["hash_of_the_last"]


def test_loss_on_a_disk_that_lies_is_seen() -> None:
    found = said("tests.faults.simulation", "lie", "0", "6")
    assert len(found["violations"]) == 6
    assert all("INV-60" in line for line in found["violations"].values())


@pytest.mark.parametrize("where", ["kernel.store_start.Start._load", "kernel.store.Store.commit", "kernel.agent_port.AgentPort.flush"])
def test_a_kernel_that_ends_by_a_bug_is_told_with_its_seed(where: str) -> None:
    """Also in the making of a home: else a long run would only know that one of its programs ended."""
    module, kind, name = where.rsplit(".", 2)
    bug = (
        f"import sys; sys.argv[1:] = ['power', '5', '2']; from tests.faults import simulation; import {module}\n"
        f"def bug(*given, **more): raise KeyError('odd')\n"
        f"{module}.{kind}.{name} = bug; simulation.main(sys.argv[1:])"
    )
    found = said_by("-c", bug)
    assert set(found["violations"]) == {"5", "6"}
    assert all(line.startswith("KeyError: 'odd'") for line in found["violations"].values())


@pytest.mark.clause("12")
@pytest.mark.invariant("60")
@pytest.mark.parametrize("kind", ["io", "full", "read", "io-on", "full-on"])
def test_an_operation_of_the_disk_that_fails_breaks_no_promise(kind: str) -> None:
    found = said("tests.faults.simulation", "error", kind, "0", "1", str(SWEEP_STEP))
    assert found["violations"] == {}
    assert found["done"] > 8


@pytest.mark.clause("12")
@pytest.mark.invariant("15")
@pytest.mark.invariant("60")
def test_a_death_at_every_named_place_by_power_cut_and_by_kill_breaks_no_promise() -> None:
    """In all three workloads; other seeds are of `make torture`."""
    found = said("tests.faults.point_sweep", "0", "1")
    assert found["violations"] == {}
    assert found["passed"] == found["done"] >= len(IN_THE_MODEL) * SIDES_WAYS_AND_WORKLOADS + MORE_STATEMENTS


@pytest.mark.clause("12")
@pytest.mark.invariant("60")
@pytest.mark.parametrize("kind", ["io", "full"])
def test_a_database_whose_making_fails_at_any_operation_is_refused_and_made_anew(kind: str) -> None:
    """The closing of the half-made one once let an error of the library out."""
    assert said("tests.faults.simulation", "error", kind, "0", "1", "1", OF_THE_MAKING)["violations"] == {}
