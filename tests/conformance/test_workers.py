"""Every worker of the tree keeps every demand it gives an occasion for."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from conformance.__main__ import PATIENCE_SECONDS, judge
from conformance.case import Status, Verdict
from conformance.chaos import make_trouble
from conformance.targets import App, read_app
from tests.conformance.plain_app import plain_app
from tests.sdk.test_authors_guide import ROOT, write_examples
from workers import digests

FIXTURES = ROOT / "tests" / "fixtures" / "apps"

# What each is asked at least: a worker that gives fewer occasions than before has lost some.
LEAST_PASSED = {
    "task-dashboard": 165,
    "whiteboard": 160,
    "chat": 110,
    str(FIXTURES / "fixture"): 160,
    str(FIXTURES / "asker"): 140,
    str(ROOT / "bench" / "app"): 120,
}


def _unkept(verdicts: list[Verdict]) -> list[str]:
    return [f"{v.case.name} ({v.case.clause}) {v.status}: {v.reason}" for v in verdicts if v.status in (Status.FAILED, Status.BLOCKED)]


def _judged(app: App) -> list[Verdict]:
    target, verdicts = trio.run(judge, app, None, None, PATIENCE_SECONDS)
    assert target.is_sealed
    return verdicts


@pytest.mark.clause("2.7")
@pytest.mark.parametrize("named", LEAST_PASSED, ids=lambda named: "-".join(Path(named).parts[-2:]))
def test_a_worker_of_the_tree_keeps_every_demand(named: str) -> None:
    verdicts = _judged(read_app(named))
    assert _unkept(verdicts) == []
    assert sum(v.status is Status.PASSED for v in verdicts) >= LEAST_PASSED[named]
    assert all(v.reason for v in verdicts if v.status is Status.NOT_APPLICABLE)


def test_the_app_of_the_authors_guide_keeps_every_demand_and_its_promises_under_trouble(tmp_path: Path) -> None:
    assert "conformance.json" in write_examples(ROOT / "docs" / "authors.md", tmp_path)
    assert digests.main([str(tmp_path / "manifest.json")]) == 0
    app = read_app(str(tmp_path))
    verdicts = _judged(app)
    assert _unkept(verdicts) == []
    assert sum(v.status is Status.PASSED for v in verdicts) >= 140
    assert trio.run(make_trouble, app, 1, 300.0, 60).broken == []


def test_a_worker_without_the_sdk_gives_an_occasion_for_every_case_that_is_not_of_the_system_app() -> None:
    verdicts = _judged(plain_app("from good_worker import app"))
    assert _unkept(verdicts) == []
    assert {v.reason for v in verdicts if v.status is Status.NOT_APPLICABLE} == {"not the system App"}


def test_a_system_app_without_the_sdk_keeps_every_demand() -> None:
    verdicts = _judged(plain_app("from good_worker import app", is_system=True))
    assert _unkept(verdicts) == []
    assert {v.case.number for v in verdicts if v.status is Status.PASSED} >= {176, 177, 178, 179}
