"""Notes which `except` handlers of the product are entered, and forces chosen ones: its modules are compiled with two more calls.

Use: `forced = install(file)` before the first import of the product; every handler's name is added to that file once. A handler whose
name is put into `forced` is entered the next time its `try` is begun: an exception of the kind it takes is raised there, once, with the
marker in all its texts (marked.py). `handlers()` lists all there are, so that a new one is known at once.
A name is "<module> <function> <exceptions>", so that it outlives a moved line; a second one of that name in its file ends in " 2".
"""

from __future__ import annotations

import ast
import builtins
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from tests.faults.marked import marked_exception

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"hosts": ROOT / "hosts", "kernel": ROOT / "kernel", "lineup_sdk": ROOT / "sdk" / "lineup_sdk", "workers": ROOT / "workers"}
_NOTE = "__note_handler__"
_FORCE = "__force_handler__"


def handlers() -> set[str]:
    """Every handler of the product, by name."""
    found = set()
    for package, folder in PACKAGES.items():
        for path in folder.rglob("*.py"):
            module = ".".join((package, *path.relative_to(folder).with_suffix("").parts))
            found |= {name for _, handlers in _tries(ast.parse(path.read_text()), module) for name, _ in handlers}
    return found


_Named = list[tuple[str, ast.ExceptHandler]]


def _tries(tree: ast.AST, module: str) -> Iterator[tuple[ast.Try | ast.TryStar, _Named]]:
    """Every `try` that has handlers, with their names."""
    seen: Counter[str] = Counter()

    def walk(node: ast.AST, function: str) -> Iterator[tuple[ast.Try | ast.TryStar, _Named]]:
        for child in ast.iter_child_nodes(node):
            inner = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
            if isinstance(child, ast.Try | ast.TryStar) and child.handlers:
                yield child, [(numbered(f"{module} {inner} {_kind(one)}"), one) for one in child.handlers]
            yield from walk(child, inner)

    def numbered(name: str) -> str:
        seen[name] += 1
        return name if seen[name] == 1 else f"{name} {seen[name]}"

    return walk(tree, "-")


def _kind(handler: ast.ExceptHandler) -> str:
    return ast.unparse(handler.type) if handler.type else "all"


def _call(function: str, *arguments: ast.expr) -> ast.Expr:
    return ast.Expr(ast.Call(ast.Name(function, ast.Load()), list(arguments), []))


def _thunk(kind: ast.expr | None) -> ast.Lambda:
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(nothing, kind or ast.Name("BaseException", ast.Load()))


class _NotingLoader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        tree = ast.parse(self.get_data(path))
        for statement, named in _tries(tree, fullname):
            first = statement.body[0]
            for name, handler in named:
                handler.body.insert(0, ast.copy_location(_call(_NOTE, ast.Constant(name)), handler.body[0]))
                force = _call(_FORCE, ast.Constant(name), _thunk(handler.type))
                statement.body.insert(0, ast.copy_location(force, first))
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


class _Finder:
    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in PACKAGES:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _NotingLoader(fullname, spec.loader.path)
        return spec


def install(file: str) -> set[str]:
    """Let every module of the product that is imported from now on note its handlers. Returns the set of those that are to be forced."""
    noted: set[str] = set()
    waiting: set[str] = set()
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def note(name: str) -> None:
        if name not in noted:
            noted.add(name)
            os.write(descriptor, name.encode() + b"\n")

    def force(name: str, kinds: Callable[[], Any]) -> None:
        if name in waiting:
            waiting.discard(name)
            raise marked_exception(kinds())

    names: Any = builtins
    setattr(names, _NOTE, note)
    setattr(names, _FORCE, force)
    sys.meta_path.insert(0, _Finder())
    return waiting
