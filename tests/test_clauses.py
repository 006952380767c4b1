"""Every clause of the sections the kernel has whole is named by a test that proves it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.clauses import CLAUSES, TESTS, marked, uncovered


def test_no_clause_is_without_a_test() -> None:
    assert uncovered() == []


def test_a_marker_names_a_clause_that_there_is() -> None:
    sections = {clause.partition(".")[0] for clause in CLAUSES}
    named = set(marked(TESTS)) - {"number"}
    assert [name for name in named if not re.fullmatch(r"[0-9]{1,2}(\.[0-9]{1,2})?", name)] == []
    unknown = {name for name in named if name.partition(".")[0] in sections and "." in name} - set(CLAUSES)
    assert unknown == set()


def test_a_clause_that_nobody_names_is_told(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text('@pytest.mark.clause("5.1")\ndef test_it():\n    pass\n', "utf-8")
    (tmp_path / "call__two.json").write_text('{"clause": "6.3", "steps": []}', "utf-8")
    told = {line.partition(" ")[0] for line in uncovered(tmp_path)}
    assert told == set(CLAUSES) - {"5.1", "6.3"}
