"""Notes which `except` handlers of the kernel are entered: its modules are compiled with one more call at the head of each.

Use: `install(file)` before the first import of `kernel`; every handler's name is added to that file once. `handlers()` lists all there are.
A name is "<module> <function> <exceptions>", so that it outlives a moved line.
"""

from __future__ import annotations

import ast
import builtins
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

KERNEL = Path(__file__).resolve().parents[2] / "kernel"
_NOTE = "__note_handler__"


def handlers() -> set[str]:
    """Every handler of the kernel, by name."""
    found = set()
    for path in KERNEL.rglob("*.py"):
        module = ".".join(path.relative_to(KERNEL.parent).with_suffix("").parts)
        found |= {name for name, _ in _named_handlers(ast.parse(path.read_text()), module)}
    return found


def _named_handlers(tree: ast.AST, module: str, function: str = "-") -> Iterator[tuple[str, ast.ExceptHandler]]:
    for node in ast.iter_child_nodes(tree):
        inner = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else function
        if isinstance(node, ast.ExceptHandler):
            yield f"{module} {inner} {ast.unparse(node.type) if node.type else 'all'}", node
        yield from _named_handlers(node, module, inner)


class _NotingLoader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        tree = ast.parse(self.get_data(path))
        for name, handler in _named_handlers(tree, fullname):
            call = ast.Expr(ast.Call(ast.Name(_NOTE, ast.Load()), [ast.Constant(name)], []))
            handler.body.insert(0, ast.copy_location(call, handler.body[0]))
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


class _Finder:
    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "kernel":
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _NotingLoader(fullname, spec.loader.path)
        return spec


def install(file: str) -> None:
    """Let every module of the kernel that is imported from now on note its handlers."""
    noted: set[str] = set()
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def note(name: str) -> None:
        if name not in noted:
            noted.add(name)
            os.write(descriptor, name.encode() + b"\n")

    names: Any = builtins
    setattr(names, _NOTE, note)
    sys.meta_path.insert(0, _Finder())
