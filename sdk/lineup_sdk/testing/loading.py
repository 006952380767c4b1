"""Loads an app's entry file the way its process does: afresh for every life, siblings importable by their stem.

Rules:
1. Nothing of an earlier life is left: module-level variables start again, as after a crash.
2. sys.path and sys.modules are as before when the entry file has run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from lineup_sdk.app import MiniApp


def app_file(path: str | Path) -> Callable[[], MiniApp]:
    """Return what FakeKernel calls for each life: it runs the entry file and returns its `app`.

    Raises (when called): LookupError for a file without a MiniApp named `app`; whatever the file raises.
    """
    entry = Path(path).resolve()
    return lambda: _load(entry)


def _load(entry: Path) -> MiniApp:
    module = ModuleType(entry.stem)
    module.__file__ = str(entry)
    with _only_here(module, entry.parent):
        exec(compile(entry.read_bytes(), str(entry), "exec"), module.__dict__)
    app = getattr(module, "app", None)
    if not isinstance(app, MiniApp):
        raise LookupError(f"{entry.name} defines no MiniApp named `app`")
    return app


@contextmanager
def _only_here(module: ModuleType, folder: Path) -> Iterator[None]:
    modules_before = dict(sys.modules)
    sys.modules[module.__name__] = module
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name, loaded in list(sys.modules.items()):
            is_ours = loaded is module or Path(getattr(loaded, "__file__", None) or "/").parent == folder
            if is_ours and modules_before.get(name) is not loaded:
                del sys.modules[name]
        if module.__name__ in modules_before:
            sys.modules[module.__name__] = modules_before[module.__name__]
