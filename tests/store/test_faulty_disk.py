"""The store on a disk that loses power, fails or lies (tests/store/faulty_disk.py), each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def verdicts(*arguments: str) -> dict[str, int]:
    command = [sys.executable, "-m", "tests.store.faulty_disk", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    return found


@pytest.mark.invariant("15")
@pytest.mark.clause("12")
def test_a_power_cut_loses_nothing_that_was_acknowledged_and_tears_nothing() -> None:
    assert verdicts("power", "0", "150") == {"ok": 150}


def test_the_judge_of_power_cuts_sees_loss_on_a_disk_that_lies() -> None:
    found = verdicts("lie", "0", "40")
    assert found.get("ok", 0) < 10, found


@pytest.mark.invariant("60")
@pytest.mark.parametrize("kind", ["io", "full"])
def test_every_operation_that_fails_stops_the_store_and_a_new_start_finds_a_whole_one(kind: str) -> None:
    found = verdicts("error", kind)
    assert set(found) == {"ok", "stopped"}, found
    assert found["ok"] == 1  # the last run, which had no failure left to meet
    assert found["stopped"] > 100
