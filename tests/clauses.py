"""Which clauses of the specification a test proves: `python tests/clauses.py` lists how many each, and fails for one without any.

A test names its clause by `@pytest.mark.clause("6.3")`, a golden story by `"clause": "6.3"`. Only sections that the kernel has whole are
asked for; other markers are welcome and counted apart.
"""

from __future__ import annotations

import ast
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent

# Section 5 to 10, 12, 16 and 17, in the words of their headings.
CLAUSES = {
    "5.1": "stored, delivered, acknowledged",
    "5.2": "own messages only, acknowledged once",
    "5.3": "nothing lost by crash, restart, background",
    "5.4": "parked messages, full inboxes, unknown topics",
    "6.1": "durable before anything moves",
    "6.2": "the table of a call, one outcome",
    "6.3": "a refused call has no side effect",
    "6.4": "the same call again, the same id for another",
    "6.5": "what an App says of its calls",
    "6.6": "clocks",
    "6.7": "cancel",
    "6.8": "a death of the worker",
    "6.9": "routing",
    "6.10": "the end of a tool closes nothing",
    "7.1": "the record of a question",
    "7.2": "the Agent asks",
    "7.3": "one outcome, the four kinds",
    "7.4": "an App asks",
    "8.1": "instances",
    "8.2": "focus",
    "8.3": "idle, crash, boot",
    "8.4": "App sessions",
    "8.5": "saved state",
    "9.1": "surfaces",
    "9.2": "containers and mounts",
    "9.3": "the timeline",
    "9.4": "artifacts",
    "10": "capabilities",
    "12": "recovery",
    "16": "limits",
    "17": "logs and audit",
}


def marked(folder: Path) -> Counter[str]:
    """How many tests and stories name each clause, of the tests under a folder."""
    found = Counter(name for path in sorted(folder.rglob("*.py")) for name in _in_code(path))
    found.update(str(story["clause"]) for story in _stories(folder) if "clause" in story)
    return found


def _in_code(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        is_mark = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "clause"
        if is_mark and node.args and isinstance(node.args[0], ast.Constant):
            yield str(node.args[0].value)


def _stories(folder: Path) -> Iterator[dict[str, object]]:
    for path in sorted(folder.rglob("*__*.json")):
        document = json.loads(path.read_text("utf-8"))
        if isinstance(document, dict) and "steps" in document:
            yield document


def uncovered(folder: Path = TESTS) -> list[str]:
    """Clauses that no test and no story names."""
    found = marked(folder)
    return [f"{clause} {title}" for clause, title in CLAUSES.items() if not found[clause]]


def main() -> int:
    """Print the counts; 1 when a clause is uncovered."""
    found = marked(TESTS)
    print("clauses: " + " ".join(f"{clause}:{found[clause]}" for clause in CLAUSES))
    for line in uncovered():
        print(f"no test proves {line}", file=sys.stderr)
    return 1 if uncovered() else 0


if __name__ == "__main__":
    sys.exit(main())
