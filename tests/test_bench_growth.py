"""The bench tells what it counts more than before, and fails on no number."""

from __future__ import annotations

import json
from pathlib import Path

from bench import growth

BEFORE = {"counts": {"sequential": {"statements": 20.3, "system_calls": {"fdatasync": 2.06}}, "crowd_of_32": {"commits": 0.4}}}


def test_only_a_count_that_is_higher_or_gone_is_told() -> None:
    now = {"counts": {"sequential": {"statements": 22.0, "system_calls": "not counted"}, "crowd_of_32": {"commits": 0.45}}}
    assert growth.grown(now, BEFORE) == [
        "sequential statements: 22 a call, 20.3 before",
        "sequential system_calls fdatasync: 2.06 before, not counted now",
    ]
    assert growth.grown(BEFORE, BEFORE) == []


def test_the_run_before_is_the_newest_that_is_kept_with_counts(tmp_path: Path) -> None:
    assert growth.newest(tmp_path) is None
    for day in ("2026-01-02", "2026-01-03", "2026-01-01"):
        (tmp_path / f"{day}.json").write_text(json.dumps({"day": day, "counts": {}}))
    (tmp_path / "2026-01-04.json").write_text(json.dumps({"web": {}}))
    assert growth.newest(tmp_path) == {"day": "2026-01-03", "counts": {}}


def test_the_runs_that_are_kept_can_be_compared() -> None:
    kept = growth.newest()
    assert kept is not None
    assert growth.grown(kept, kept) == []
