"""Write docs/machines.md from the tables of kernel/core/machines.py, so that the picture is never another than the code.

Use: `python docs/make_machines.py` writes; with `--check` it only compares and ends with 1 when the file is stale.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from kernel.core.machines import MACHINES

PAGE = Path(__file__).with_name("machines.md")
Machine = Mapping[Any, Mapping[Any, StrEnum]]

_HEAD = """# State machines

Made by `docs/make_machines.py` from `kernel/core/machines.py`; not to be edited. A step that is not in a table is refused and changes
nothing.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *(_section(name, machine) for name, machine in sorted(MACHINES.items()))])


def _section(name: str, machine: Machine) -> str:
    return "\n".join([f"## {name.capitalize()}", "", *_table(machine), "", *_diagram(machine), ""])


def _table(machine: Machine) -> list[str]:
    events = sorted({event for steps in machine.values() for event in steps})
    head = ["| from \\ event |", *(f" {event} |" for event in events)]
    rule = ["|---|", *("---|" for _ in events)]
    rows = [[f"| {_shown(state, steps)} |", *(f" {steps.get(event, '')} |" for event in events)] for state, steps in machine.items()]
    return ["".join(line) for line in (head, rule, *rows)]


def _shown(state: StrEnum, steps: Mapping[Any, StrEnum]) -> str:
    return str(state) if steps else f"**{state}** (final)"


def _diagram(machine: Machine) -> list[str]:
    first = next(iter(machine))
    lines = ["```mermaid", "stateDiagram-v2", f"  [*] --> {first}"]
    lines += [f"  {state} --> {target}: {event}" for state, steps in machine.items() for event, target in sorted(steps.items())]
    lines += [f"  {state} --> [*]" for state, steps in machine.items() if not steps]
    return [*lines, "```"]


def main(arguments: list[str]) -> int:
    """Write or check; the exit code."""
    if arguments == ["--check"]:
        is_fresh = PAGE.exists() and PAGE.read_text("utf-8") == page()
        if not is_fresh:
            print(f"{PAGE.name} is stale: run python docs/make_machines.py", file=sys.stderr)
        return 0 if is_fresh else 1
    if arguments:
        print("usage: make_machines.py [--check]", file=sys.stderr)
        return 2
    PAGE.write_text(page(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
