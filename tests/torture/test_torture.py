"""The long runs themselves: what they keep when they are stopped, when a chunk says nothing, and when the disk is full."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.torture import __main__ as torture
from tests.torture.parts import PARTS, Part

GOOD = "print('noise'); print(json.dumps({'done': 5, 'killed': 2, 'name': 'a', 'violations': {}}))"
BROKEN = "print(json.dumps({'done': 5, 'violations': {'seed 3': 'INV-16: two results'}}))"
FAILURES = {
    "a crash": ("os.abort()", "ended with -6"),
    "an error": ("raise KeyError('of the kernel')", "of the kernel"),
    "no answer in time": ("time.sleep(60)", "no answer in"),
    "silence": ("pass", "told nothing"),
    "half a line": ('print(\'{"done": 5, "viol\')', "told nothing"),
    "another value": ("print('[5]')", "told nothing"),
    "no count": ("print('{\"violations\": {}}')", "told nothing"),
}


def _part(text: str, name: str = "made_up", *, figure: int = 10, bound_seconds: float = 30.0) -> Part:
    text = f"import json, os, sys, time; first = int(sys.argv[1]); {text}"
    return Part(
        name=name,
        what="w",
        figure=figure,
        unit="things",
        seeds_a_chunk=1,
        program=lambda first, seeds: ("-c", text, str(first)),
        bound_seconds=bound_seconds,
        takes_one_core=False,
    )


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """The long runs with these parts alone, and reports in a folder of the test."""

    def run_parts(*parts: Part, arguments: tuple[str, ...] = ()) -> int:
        monkeypatch.setattr(torture, "PROOF", tmp_path)
        monkeypatch.setattr(torture, "PARTS", {part.name: part for part in parts})
        return torture.main(arguments)

    return run_parts


def _told(folder: Path, name: str = "made_up") -> dict[str, Any]:
    told: dict[str, Any] = json.loads((folder / f"{name}.json").read_text("utf-8"))
    return told


def test_a_part_goes_on_to_its_figure_and_then_does_nothing(run: Callable[..., int], tmp_path: Path) -> None:
    assert run(_part(GOOD)) == 0
    told = _told(tmp_path)
    assert (told["done"], told["next_seed"], told["counts"], told["failed_chunks"]) == (10, 2, {"killed": 4}, {})
    assert run(_part("raise AssertionError")) == 0
    assert _told(tmp_path) == told


def test_what_broke_is_kept_and_stops_its_part(run: Callable[..., int], tmp_path: Path) -> None:
    assert run(_part(BROKEN)) == 1
    assert _told(tmp_path)["violations"] == {"seed 3": "INV-16: two results"}
    assert run(_part(GOOD)) == 1
    assert _told(tmp_path)["done"] == 5


@pytest.mark.parametrize("failure", FAILURES)
def test_a_chunk_that_says_nothing_is_no_progress_and_is_told(
    failure: str, run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, why = FAILURES[failure]
    bound_seconds = 0.5 if failure == "no answer in time" else 30.0
    assert run(_part(f"exec({GOOD!r}) if first == 0 else exec({text!r})", bound_seconds=bound_seconds), _part(GOOD, "another")) == 2
    told = _told(tmp_path)
    assert (told["done"], told["next_seed"]) == (5, 1)
    assert [why in said and name.startswith("1, ") for name, said in told["failed_chunks"].items()] == [True]
    assert _told(tmp_path, "another")["done"] == 10
    assert "A CHUNK FAILED" in capsys.readouterr().out
    assert run(_part(GOOD)) == 0
    assert _told(tmp_path)["done"] == 10
    assert _told(tmp_path)["failed_chunks"] == told["failed_chunks"]


def test_a_report_that_cannot_be_written_leaves_the_one_before(
    run: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(_part(GOOD, figure=5))
    before = _told(tmp_path)

    monkeypatch.setattr(torture, "run_chunk", lambda part, seed: {"done": 5, "violations": {}, "killed": 2})
    monkeypatch.setattr(torture.os, "fsync", _no_room)
    assert run(_part(GOOD)) == 2
    assert _told(tmp_path) == before


def _no_room(descriptor: int) -> None:
    raise OSError(28, "No space left on device")


def test_every_part_is_a_program_that_there_is() -> None:
    for part in PARTS.values():
        option, module = part.program(0, 1)[:2]
        assert option == "-m"
        assert (torture.ROOT / f"{module.replace('.', '/')}.py").is_file(), part.name
