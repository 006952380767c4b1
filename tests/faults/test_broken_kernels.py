"""Kernels that break one promise each are told under its number (broken_kernels.py): a dozen, another one with every change of the
kernel; `make torture` takes all. What only real processes, real files or a browser can show is broken there, every time:

  42 44 47 48   tests/faults/test_broken_processes.py
  46            tests/processes/sandbox/test_hostile_app.py: the seal without one step
  50            tests/web/test_surface_attack.py
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kernel.core.decision import KernelBug
from kernel.drafts import Drafts
from kernel.protocol.host_interactions import DraftSave
from lineup_sdk.protocol import messages as m
from tests.faults.breaking import instead
from tests.faults.broken_kernels import judged, patched
from tests.faults.broken_rules import broken, of_another
from tests.invariants import CHECKS, OPEN, PROCESS_CHECKS, TRACE_CHECKS
from tests.invariants_of_traced_questions import check_inv_45
from tests.model.test_model import Anything

ROOT = Path(__file__).parents[2]
DOZEN = 12
_OF_PROCESSES = {"30", "42", "44", "46", "47"}
_OF_THE_BROWSER = {"48", "50"}
_COMPARES_TWO = {"45"}


def _of_today() -> list[str]:
    """A dozen that the sources of the kernel choose."""
    text = "".join(path.read_text("utf-8") for path in sorted((ROOT / "kernel").rglob("*.py")))
    return sorted(random.Random(text).sample(sorted(broken()), DOZEN))


def test_there_is_a_broken_kernel_for_every_promise_that_is_checked() -> None:
    promised = {*CHECKS, *TRACE_CHECKS, *PROCESS_CHECKS, "10", "38"} - _OF_PROCESSES - _OF_THE_BROWSER - _COMPARES_TWO
    assert set(broken()) == promised
    assert not set(broken()) & set(OPEN)


@pytest.mark.parametrize("number", _of_today())
def test_a_broken_kernel_is_told_under_its_number(number: str) -> None:
    is_caught, told = judged(broken()[number], number)
    assert is_caught, told


def test_a_kernel_that_is_not_broken_is_not_told() -> None:
    assert judged([], "00") == (False, set())


def test_a_kernel_that_writes_drafts_down_is_told(tmp_path: Path) -> None:
    def save(drafts: Drafts, interaction_id: str, draft: dict[str, str]) -> None:
        (tmp_path / "draft").write_text(str(draft), "utf-8")

    asked = DraftSave(interaction_id="i", draft={"f": "typed-and-not-sent"})
    with patched([(Drafts, "save", save)]):
        Drafts(None).save(asked.interaction_id, asked.draft)  # type: ignore[arg-type]
    assert PROCESS_CHECKS["30"]([tmp_path], [b"typed-and-not-sent"]) != []


def test_a_kernel_whose_apps_see_their_neighbours_is_told() -> None:
    crowded, alone = Anything(), Anything()
    with patched(instead("inbox.list", of_another)):
        for model in (crowded, alone):
            model.begin(is_used=True)
            if model is crowded:
                model.send_to_an_app("board", 1, "note")
            model.tell("asker", m.InboxList())
    told = check_inv_45(crowded.kernel.trace, alone.kernel.trace, "asker")
    for model in (crowded, alone):
        model.kernel.end()
    assert told != []


def test_a_patch_is_taken_away_again() -> None:
    real = Drafts.save
    with pytest.raises(KernelBug), patched([(Drafts, "save", None)]):
        raise KernelBug
    assert Drafts.save is real
