"""What a run counts more than the one that was kept before it: told, and never a failure.

Only counts are held against each other; times drift with the machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.kernel_process import ROOT

KEPT = ROOT / "docs" / "bench"
TOLERANCE = 0.1  # a call's counts are means: an acknowledgement more or less falls into the last one


def newest(folder: Path = KEPT) -> Mapping[str, Any] | None:
    """The newest run that was kept with its counts; None when there is none."""
    for path in sorted(folder.glob("*.json"), reverse=True):
        run: Mapping[str, Any] = json.loads(path.read_text())
        if "counts" in run:
            return run
    return None


def grown(run: Mapping[str, Any], kept: Mapping[str, Any]) -> list[str]:
    """One line for each count that is higher than it was, and one for each that is not counted any more."""
    return list(_differences(dict(_counts(run["counts"])), dict(_counts(kept["counts"]))))


def _counts(counted: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, float]]:
    for name, value in counted.items():
        if isinstance(value, Mapping):
            yield from _counts(value, f"{at}{name} ")
        elif isinstance(value, int | float):
            yield f"{at}{name}", float(value)


def _differences(now: Mapping[str, float], before: Mapping[str, float]) -> Iterator[str]:
    for name, count in before.items():
        if name not in now:
            yield f"{name}: {count:g} before, not counted now"
        elif now[name] > count + TOLERANCE:
            yield f"{name}: {now[name]:g} a call, {count:g} before"
