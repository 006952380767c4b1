"""Chaos: a sound app keeps its promises under trouble, an unsound one is found, and the same seed is the same trouble."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trio

from conformance.chaos import Report, main, make_trouble
from conformance.targets import App, read_app
from tests.conformance.plain_app import plain_app

FIXTURE = Path(__file__).resolve().parents[1] / "fixtures" / "apps" / "fixture"
STEPS = 120


def _trouble(app: App, seed: int, steps: int = STEPS, patience: float = 10.0) -> Report:
    return trio.run(make_trouble, app, seed, 300.0, steps, patience)  # the steps end it: a crowded machine makes as much trouble


@pytest.mark.clause("5.3")
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("named", ["task-dashboard", "whiteboard", "chat", str(FIXTURE)], ids=lambda named: Path(named).name)
def test_a_worker_of_the_tree_keeps_its_promises_under_trouble(named: str, seed: int) -> None:
    report = _trouble(read_app(named), seed)
    assert report.broken == []
    assert report.acts.keys() >= {"duplicate", "hold back", "kill", "reorder"}


@pytest.mark.parametrize(
    ("family", "villain", "found"),
    [
        ("of_life", "TakesNothingTwice", "messages to be acknowledged"),
        ("of_calls", "ForgetsOpenCalls", "open calls to end"),
        ("of_calls", "EndsTwice", "a call was ended twice"),
        ("of_what_is_kept", "Forgets", "the saved state did not come back"),
        ("of_speech", "LivesOnce", "the worker ended (exited 9)"),
        ("of_speech", "WritesNaN", "the wire was broken"),
        ("of_refusals", "IgnoresACancel", "open calls to end"),
    ],
)
def test_trouble_finds_a_broken_promise(family: str, villain: str, found: str) -> None:
    report = _trouble(plain_app(f"from {family} import {villain}\n\napp = {villain}()\n"), seed=3, patience=2.0)
    assert any(found in what for what in report.broken), report.broken


def test_the_same_seed_is_the_same_trouble() -> None:
    app = read_app(str(FIXTURE))
    first, again, other = (_trouble(app, seed, steps=40) for seed in (5, 5, 6))
    assert (first.acts, first.last_acts) == (again.acts, again.last_acts)
    assert first.last_acts != other.last_acts


def test_the_report_says_how_to_do_it_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app = plain_app("from of_calls import EndsTwice\n\napp = EndsTwice()\n")
    for name, data in app.files.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "manifest.json").write_text(json.dumps(app.manifest))
    (tmp_path / "conformance.json").write_text(json.dumps(app.scenarios))
    assert main([str(tmp_path), "--seed", "3", "--steps", "30"]) == 1
    out, _ = capsys.readouterr()
    assert "BROKEN  a call was ended twice" in out
    assert f"again: python -m conformance.chaos {tmp_path} --seed 3 --steps 30" in out
    assert main([str(tmp_path), "--seed", "3", "--steps", "30", "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["seed"] == 3
