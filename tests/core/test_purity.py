"""The core is pure (ARCHITECTURE): it touches no clock, no randomness, no file, no socket, no process, no log, no database."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import kernel.core
import kernel.protocol
import lineup_sdk.protocol

PACKAGES = (kernel.core, kernel.protocol, lineup_sdk.protocol)
FILES = [path for package in PACKAGES for path in sorted(Path(package.__path__[0]).glob("*.py"))]
CORE = [path for path in FILES if path.parent == Path(kernel.core.__path__[0])]

# Everything else is refused: a new import is thought about here.
ALLOWED = {
    "__future__", "cbor2", "collections", "copy", "dataclasses", "datetime", "enum", "functools", "hashlib", "io", "json", "jsonschema_rs",
    "kernel", "lineup_sdk", "math", "pydantic", "pydantic_core", "re", "struct", "types", "typing", "unicodedata",
}  # fmt: skip
OWN = {"kernel.core", "kernel.protocol", "lineup_sdk.protocol"}
IMPURE_NAMES = {"breakpoint", "compile", "eval", "exec", "input", "open", "print", "__import__"}
IMPURE_METHODS = {"now", "today", "utcnow", "fromtimestamp"}  # of datetime: the clock and the time zone of the machine


Nodes = tuple[ast.AST, ...]


@cache
def nodes_of(path: Path) -> Nodes:
    return tuple(ast.walk(ast.parse(path.read_text("utf-8"))))


def imports_of(nodes: Nodes) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "."


def impurities_of(nodes: Nodes) -> list[str]:
    found = [name for name in imports_of(nodes) if name.partition(".")[0] not in ALLOWED]
    ours = [name for name in imports_of(nodes) if name.partition(".")[0] in {"kernel", "lineup_sdk"}]
    found += [name for name in ours if ".".join(name.split(".")[:2]) not in OWN]
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_NAMES:
            found.append(node.func.id)
        if (
            isinstance(node, ast.Attribute)
            and node.attr in IMPURE_METHODS
            and isinstance(node.value, ast.Name)
            and node.value.id == "datetime"
        ):
            found.append(f"datetime.{node.attr}")
        if isinstance(node, ast.Global):
            found.append("global")
    return found


def test_no_file_imports_or_calls_anything_impure() -> None:
    assert {path.name: found for path in FILES if (found := impurities_of(nodes_of(path)))} == {}


def test_functions_of_the_core_have_at_most_forty_lines_and_files_four_hundred() -> None:
    for path in CORE:
        assert len(path.read_text("utf-8").splitlines()) <= 400, path.name
        functions = [node for node in nodes_of(path) if isinstance(node, ast.FunctionDef)]
        assert [node.name for node in functions if (node.end_lineno or 0) - node.lineno + 1 > 40] == [], path.name


def test_probe_bites() -> None:
    for line in (
        "import time", "import os.path", "from os import environ", "import random", "import trio", "import apsw", "import logging",
        "import socket", "import secrets", "import uuid", "from kernel import store", "from kernel.turns import Turns",
        "import lineup_sdk.app", "from . import store", "x = open('f')", "x = datetime.now()", "print('x')",
    ):  # fmt: skip
        assert impurities_of(tuple(ast.walk(ast.parse(line)))) != [], line


def test_nobody_assigns_a_status_or_a_state_except_through_step() -> None:
    """STYLE 27: `status=` and `state=` of a record take a step of a machine, a default, or a name that holds one."""
    for path in CORE:
        for node in nodes_of(path):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "replace":
                given = [keyword.value for keyword in node.keywords if keyword.arg in {"status", "state"}]
                assert [ast.unparse(value) for value in given if isinstance(value, ast.Attribute | ast.Constant)] == [], path.name
