"""Every number of the specification that the tree cites has its line in docs/clauses.md."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACES = ("bench", "conformance", "docs", "hosts", "kernel", "sdk", "tests", "workers")
CITED = re.compile(
    r"SPEC ((?:\d+(?:\.\d+)?(?:, (?=\d+\.|\d\d? *[,):;]))?)+)|clause\(\"(\d+(?:\.\d+)?)\"\)|INV-(\d\d)|invariant\(\"(\d\d)\"\)"
)
LINE = re.compile(r"^\| (SPEC \d+(?:\.\d+)?|INV-\d\d) \| \S", re.MULTILINE)


def cited_in(text: str) -> set[str]:
    """The numbers that a text cites."""
    found = set()
    for match in CITED.finditer(text):
        clauses, marked, invariant, proved = match.groups()
        found |= {f"SPEC {number}" for number in (clauses or marked or "").split(", ") if number}
        found |= {f"INV-{number}" for number in (invariant, proved) if number}
    return found


def test_numbers_are_found_in_every_form_in_which_they_are_cited() -> None:
    text = 'SPEC 2.8, 2.9) and (SPEC 4.6, 12): INV-07 pytest.mark.clause("10") pytest.mark.invariant("56") SPEC 16.'
    assert cited_in(text) == {"SPEC 2.8", "SPEC 2.9", "SPEC 4.6", "SPEC 12", "INV-07", "SPEC 10", "INV-56", "SPEC 16"}


def test_every_cited_number_has_its_line() -> None:
    files = [path for place in PLACES for path in (ROOT / place).rglob("*") if path.suffix in {".md", ".py", ".sql", ".cddl"}]
    cited = set().union(*(cited_in(path.read_text("utf-8")) for path in [*files, *ROOT.glob("*.md")]))
    lines = LINE.findall((ROOT / "docs" / "clauses.md").read_text("utf-8"))
    assert len(lines) == len(set(lines))
    assert len(cited) > 80
    assert cited - set(lines) == set()
