"""A surface's state as text, for hosts without a web view (SPEC 9.2).

Rules:
1. The text is an outline: a member a line, inner objects indented, collections beyond MAX_DEPTH as how many they hold.
2. It is bounded, and so is the work: MAX_LINES lines of MAX_WIDTH characters, whatever the state weighs; what is left out is said.
3. Nothing of it can steer a terminal or turn the direction of writing: such characters stand as their code.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Any

from kernel.core.merge_patch import Tree, value_of

MAX_LINES = 60
MAX_WIDTH = 100
MAX_DEPTH = 3
MAX_MEMBERS = 20  # of one object
_MAX_LEAF_BYTES = 4 * MAX_WIDTH + 16  # a leaf beyond that is told by what it is; it is not decoded
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_KINDS = {2: "bytes", 3: "text", 4: "list"}  # by CBOR major type


def render(state: Tree) -> str:
    """The outline of a state; empty for an empty one."""
    lines: list[str] = []
    for line in _outline(state, 0):
        if len(lines) == MAX_LINES:
            lines[-1] = "…"
            break
        lines.append(line if len(line) <= MAX_WIDTH else line[: MAX_WIDTH - 1] + "…")
    return "\n".join(lines)


def _outline(tree: Tree, depth: int) -> Iterator[str]:
    indent = "  " * depth
    for position, (name, value) in enumerate(tree.items()):
        if position == MAX_MEMBERS:
            yield f"{indent}… {len(tree) - MAX_MEMBERS} more"
            return
        label = f"{indent}{visible(name[:MAX_WIDTH])}"
        if not isinstance(value, dict):
            yield f"{label}: {_leaf(value)}"
        elif depth + 1 < MAX_DEPTH:
            yield f"{label}:" if value else f"{label}: empty"
            yield from _outline(value, depth + 1)
        else:
            yield f"{label}: {_count(len(value))}"


def _count(members: int) -> str:
    return "1 member" if members == 1 else f"{members} members"


def _leaf(leaf: bytes) -> str:
    if len(leaf) > _MAX_LEAF_BYTES:
        return f"{_KINDS.get(leaf[0] >> 5, 'value')} of {len(leaf)} bytes"
    return _value(value_of(leaf))


def _value(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case str():
            return visible(value)
        case list():
            return f"list of {len(value)}"
        case _:
            return str(value)


def visible(text: str) -> str:
    """The text with every character that would not be seen, or would move others, as its code."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(f"\\u{ord(one):04x}" if unicodedata.category(one) in _HIDDEN else one for one in text)
