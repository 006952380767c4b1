"""Nearly right inputs at every border (mutate.py): a share of what `make torture` gives them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.interaction_messages import UiRequest
from tests.fuzz import bridge, turns
from tests.fuzz.mutate import input_of
from tests.fuzz.seeds import kept, seeds
from tests.fuzz.targets import TARGETS
from tests.model.test_model import Anything

ROOT = Path(__file__).parents[2]
INPUTS = 200_000
MESSAGES = 4_000
MOUNTS = 2_000
LINES = 4_000


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


@pytest.mark.parametrize("kind", [["confirm", "confirm"], {"m4rk3r": "confirm"}])
def test_the_message_that_once_ended_a_kernel_is_refused(kind: object) -> None:
    """Messages 8217 and 9258 as they were then; what a number gives changes with the corpus."""
    machine = Anything()
    machine.begin(is_used=True)
    asked = {"kind": kind, "title": "Clear?", "prompt": "Clear the board."}
    assert [one.code for one in machine.tell("asker", UiRequest(request=asked, presentation="modal"))] == [Code.TOOL_INPUT_INVALID]
    machine.teardown()


@pytest.mark.clause("9.2")
@pytest.mark.invariant("49")
def test_what_a_frame_says_never_breaks_the_page_and_nothing_goes_on_that_the_host_would_refuse() -> None:
    found = bridge.run(0, MOUNTS)
    assert found["violations"] == {}
    assert found["surface.patch"] > MOUNTS // 3
    assert found["surface.event"] > MOUNTS // 3
    assert 0 < found["ports"] < MOUNTS
    reached = bridge.branches(MOUNTS)
    assert reached["share"] >= bridge.LEAST_SHARE, reached["missed"]


@pytest.mark.parametrize(
    ("file", "kept", "weakened", "told"),
    [
        ("bridge_messages.js", "!isShallow(message)", "false", "the host would refuse"),
        ("bridge_messages.js", "Number.isSafeInteger(value)", "true", "the host would refuse"),
        ("bridge.js", "message === undefined", "false", "thrown"),
        ("bridge.js", "data.mount === this.mount", "true", "no hello"),
    ],
)
def test_a_bridge_that_lacks_a_check_is_told(file: str, kept: str, weakened: str, told: str, tmp_path: Path) -> None:
    for source in bridge.BRIDGE.parent.glob("bridge*.js"):
        text = source.read_text()
        assert source.name != file or kept in text
        (tmp_path / source.name).write_text(text.replace(kept, weakened) if source.name == file else text)
    found = bridge.run(0, MOUNTS, tmp_path / "bridge.js")
    assert any(told in wrong for wrong in found["violations"].values())


@pytest.mark.invariant("57")
def test_a_command_line_that_is_nearly_right_ends_with_a_code_of_the_list_and_one_line() -> None:
    command = [sys.executable, "-m", "tests.fuzz.command_lines", "0", str(LINES)]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["violations"] == {}
    assert all(found[f"exit_{code}"] for code in (0, 2, 4))


def test_an_input_is_made_again_by_its_number() -> None:
    assert [input_of(number) for number in range(200)] == [input_of(number) for number in range(200)]


@pytest.mark.clause("2.2")
@pytest.mark.parametrize("target", sorted(TARGETS))
def test_what_was_found_once_is_answered_ever_after(target: str) -> None:
    """The corpus holds each input that broke something, and what reaches far."""
    for data in (*kept(target), *seeds()[target]):
        TARGETS[target](data)
