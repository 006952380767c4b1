"""The file of failures an author knows of: one `C-017  why` a line, # for remarks. It may only shrink.

Rules:
1. A case that is listed and fails, or is blocked, does not fail the run. One that is listed and does not fail does: take the line out.
2. A line whose case does not exist, or stands there already, is refused: it would never be taken out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from conformance.case import Status, Verdict
from conformance.targets import TargetInvalid

_LINE = re.compile(r"(C-\d{3,})\s+(\S.*)")
UNKEPT = frozenset({Status.FAILED, Status.BLOCKED})


def read_expected(path: Path, names: Collection[str]) -> dict[str, str]:
    """The listed cases and why. names: every case there is. Raises: TargetInvalid."""
    try:
        lines = [line.strip() for line in path.read_text("utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise TargetInvalid(f"{path}: cannot be read") from error
    matches = [(line, _LINE.fullmatch(line)) for line in lines if line and not line.startswith("#")]
    found: dict[str, str] = {}
    for line, match in matches:
        if match is None:
            raise TargetInvalid(f"{path}: not `C-017  why`: {line}")
        if match[1] not in names or match[1] in found:
            raise TargetInvalid(f"{path}: {match[1]} {'stands there twice' if match[1] in found else 'is no case'}")
        found[match[1]] = match[2]
    return found


def surprises(verdicts: Sequence[Verdict], expected: Mapping[str, str]) -> list[str]:
    """What makes the run fail, one line each."""
    by_name = {verdict.case.name: verdict for verdict in verdicts}
    broken = [f"{v.case.name} {v.status}: {v.reason}" for v in verdicts if v.status in UNKEPT and v.case.name not in expected]
    known = [name for name in expected if name in by_name]
    mended = [
        f"{name} is expected to fail and is {by_name[name].status}: take its line out"
        for name in known
        if by_name[name].status not in UNKEPT
    ]
    return broken + mended
