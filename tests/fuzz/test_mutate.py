"""Nearly right inputs at every border (mutate.py): a share of what `make torture` gives them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz import turns
from tests.fuzz.mutate import input_of
from tests.fuzz.seeds import kept, seeds
from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).parents[2]
INPUTS = 200_000
MESSAGES = 4_000


@pytest.mark.clause("2.1")
@pytest.mark.clause("2.2")
@pytest.mark.invariant("47")
def test_two_hundred_thousand_inputs_get_an_answer_that_their_border_promises() -> None:
    command = [sys.executable, "-m", "tests.fuzz.mutate", "0", str(INPUTS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["violations"] == {}
    assert found["done"] == INPUTS
    assert all(found[f"taken_{name}"] > 0 for name in TARGETS), found  # what is refused always would prove nothing


@pytest.mark.clause("2.2")
@pytest.mark.clause("2.5")
@pytest.mark.invariant("47")
def test_no_word_of_a_worker_a_host_or_an_agent_ends_the_kernel_that_decides_it() -> None:
    found = turns.run(0, MESSAGES)
    assert found["violations"] == {}
    assert found["done"] > MESSAGES // 8


def test_the_message_that_once_ended_a_kernel_is_refused() -> None:
    """A question whose kind is a list, and one whose kind is a map."""
    for number in (8217, 9258):
        assert turns.run(number, 1)["violations"] == {}


def test_an_input_is_made_again_by_its_number() -> None:
    assert [input_of(number) for number in range(200)] == [input_of(number) for number in range(200)]


@pytest.mark.clause("2.2")
@pytest.mark.parametrize("target", sorted(TARGETS))
def test_what_was_found_once_is_answered_ever_after(target: str) -> None:
    """The corpus holds each input that broke something, and what reaches far."""
    for data in (*kept(target), *seeds()[target]):
        TARGETS[target](data)
