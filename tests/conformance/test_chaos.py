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
        ("of_life", "TakesNothingTwice", "messages to be acknowledged; left: "),
        ("of_calls", "ForgetsOpenCalls", "open calls to end; left: 1 of plain."),
        ("of_calls", "EndsTwice", "a call was ended twice: plain."),
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


def test_workers_that_do_otherwise_meet_the_same_row_of_acts() -> None:
    names = (("good_worker", "GoodWorker"), ("of_calls", "ForgetsOpenCalls"))
    codes = [f"from {family} import {name}\n\napp = {name}()\n" for family, name in names]
    good, other = (_trouble(plain_app(code), seed=3, patience=2.0) for code in codes)
    assert good.calls != other.calls
    assert (good.acts, good.last_acts) == (other.acts, other.last_acts)


_REMEMBERS_MORE_WHEN_IT_COMES_AGAIN = """
from good_worker import GoodWorker

class Worker(GoodWorker):
    async def do_remember(self, called):
        state = await self.load()
        await self.save({**state, "value": called.input["text"] * (1 + called.attempts)})
        return {"text": state.get("value", "")}

app = Worker()
"""


@pytest.mark.clause("5.3")
def test_what_is_done_once_more_when_it_comes_again_is_found() -> None:
    report = _trouble(plain_app(_REMEMBERS_MORE_WHEN_IT_COMES_AGAIN), seed=3, steps=5)
    said = "plain.remember was to give {'text': 'blue'}, and gave {'text': 'blueblue'}"
    assert report.broken == [f"what came again after a crash was done twice: {said}"]


def test_a_call_the_kernel_may_not_repeat_is_not_repeated() -> None:
    app = plain_app(_REMEMBERS_MORE_WHEN_IT_COMES_AGAIN)
    for tool in app.manifest["tools"]:
        tool["hints"]["idempotent"] = False
    assert _trouble(app, seed=3, steps=5).broken == []


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
