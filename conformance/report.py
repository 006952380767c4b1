"""The verdicts of a run for people (table), programs (JSON) and build servers (JUnit).

Rules:
1. Every form names number, clause and demand of each case; what was not applicable stands there with its reason, apart from what passed.
2. Every form says whether the worker ran sealed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as ET

from conformance.case import Status, Verdict
from conformance.expected import UNKEPT, surprises
from conformance.targets import Target

UNSEALED = "unsealed: a command ran with the rights of whoever started it; nothing here speaks of the sandbox"
_WIDTH = 220  # of a reason


def broken_clauses(verdicts: Sequence[Verdict]) -> list[str]:
    """The clauses that were not kept, each once, in order of number. Blocked cases break none."""
    return list(dict.fromkeys(v.case.clause for v in verdicts if v.status is Status.FAILED))


def as_table(target: Target, verdicts: Sequence[Verdict], expected: Mapping[str, str]) -> str:
    """One line a case, then what was broken."""
    lines = [f"{target.title}: {'sealed' if target.is_sealed else UNSEALED}"]
    for kind in dict.fromkeys(v.case.kind for v in verdicts):
        lines += ["", kind]
        lines += [line for v in verdicts if v.case.kind == kind for line in _lines(v, expected)]
    counts = Counter(v.status for v in verdicts)
    lines += ["", ", ".join(f"{counts[status]} {status}" for status in Status if counts[status])]
    if clauses := broken_clauses(verdicts):
        lines.append("broken clauses: " + ", ".join(clauses))
    lines += surprises(verdicts, expected)
    return "\n".join(lines) + "\n"


def _lines(verdict: Verdict, expected: Mapping[str, str]) -> list[str]:
    mark = {Status.PASSED: "ok  ", Status.FAILED: "FAIL", Status.BLOCKED: "----", Status.NOT_APPLICABLE: "n/a "}[verdict.status]
    line = f"  {mark} {verdict.case.name} {verdict.case.clause:<5} {verdict.case.demand}"
    known = f" (expected: {expected[verdict.case.name]})" if verdict.case.name in expected and verdict.status in UNKEPT else ""
    return [line, *([f"       {verdict.reason}{known}"[:_WIDTH]] if verdict.reason else [])]


def as_json(target: Target, verdicts: Sequence[Verdict], expected: Mapping[str, str]) -> str:
    """One object."""
    cases = [
        {
            "case": v.case.name,
            "clause": v.case.clause,
            "kind": v.case.kind,
            "demand": v.case.demand,
            "status": str(v.status),
            "reason": v.reason,
            "seconds": round(v.seconds, 3),
            "is_expected": v.case.name in expected,
        }
        for v in verdicts
    ]
    counts = Counter(str(v.status) for v in verdicts)
    document = {
        "target": target.title,
        "is_sealed": target.is_sealed,
        "counts": dict(sorted(counts.items())),
        "broken_clauses": broken_clauses(verdicts),
        "surprises": surprises(verdicts, expected),
        "cases": cases,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def as_junit(target: Target, verdicts: Sequence[Verdict], expected: Mapping[str, str]) -> str:
    """One test suite; expected failures and what was not applicable are skipped, with their reason."""
    suite = ET.Element("testsuite", name=f"conformance of {target.title}", tests=str(len(verdicts)))
    properties = ET.SubElement(suite, "properties")
    ET.SubElement(properties, "property", name="sealed", value=str(target.is_sealed).lower())
    failures = 0
    for verdict in verdicts:
        name = f"{verdict.case.name} {verdict.case.demand}"
        row = ET.SubElement(suite, "testcase", classname=f"clause {verdict.case.clause}", name=name, time=f"{verdict.seconds:.3f}")
        is_unkept = verdict.status in UNKEPT
        is_known = verdict.case.name in expected
        if is_unkept != is_known:
            failures += 1
            reason = verdict.reason if is_unkept else "expected to fail, and does not"
            ET.SubElement(row, "failure", message=_printable(reason))
        elif verdict.status is not Status.PASSED:
            ET.SubElement(row, "skipped", message=_printable(verdict.reason))
    suite.set("failures", str(failures))
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)


FORMS = {"json": as_json, "junit": as_junit, "table": as_table}
