"""What is loaded before the seal, and how importing ends with it. Hygiene, not the boundary: the boundary is the process and its filter.

Rules:
1. PRELOADED is all a MiniApp can import, next to its own files: a module that is not loaded is a clean ModuleNotFoundError.
2. Modules with a way to the machine are taken out of reach by name; an app that finds them through object graphs gains nothing.
3. No module, traceback or attribute of sys names a folder of this machine.
4. What would end a sealed process by surprise (SIGSYS behind an innocent call) is replaced by the ordinary error.
"""

from __future__ import annotations

import _imp
import errno
import gc
import importlib
import importlib.machinery
import linecache
import os
import signal
import sys
import uuid
from types import FunctionType, ModuleType
from typing import NoReturn

PRELOADED: tuple[str, ...] = (
    # the SDK and what it stands on
    "cbor2", "lineup_sdk", "lineup_sdk.app", "lineup_sdk.channel", "lineup_sdk.errors", "lineup_sdk.protocol.codes",
    "lineup_sdk.protocol.control", "lineup_sdk.protocol.framing", "lineup_sdk.protocol.limits", "lineup_sdk.protocol.messages",
    "lineup_sdk.ui", "trio", "trio.lowlevel",
    # the standard library for apps
    "__future__", "abc", "array", "base64", "binascii", "bisect", "calendar", "cmath", "collections", "collections.abc", "colorsys",
    "contextlib", "contextvars", "copy", "csv", "dataclasses", "datetime", "decimal", "difflib", "enum", "fractions", "functools",
    "graphlib", "hashlib", "heapq", "hmac", "html", "html.entities", "html.parser", "inspect", "io", "itertools", "json", "keyword",
    "linecache", "logging", "math", "numbers", "operator", "os", "pprint", "queue", "random", "re", "reprlib", "secrets",
    "statistics", "string", "struct", "sys", "textwrap", "threading", "time", "token", "tokenize", "traceback", "types", "typing",
    "unicodedata", "uuid", "warnings", "weakref", "zlib",
    # codecs are imported by name at first use
    "encodings.ascii", "encodings.cp1252", "encodings.hex_codec", "encodings.idna", "encodings.latin_1", "encodings.punycode",
    "encodings.raw_unicode_escape", "encodings.unicode_escape", "encodings.utf_16", "encodings.utf_16_be", "encodings.utf_16_le",
    "encodings.utf_32", "encodings.utf_8", "encodings.utf_8_sig",
    # the launcher's own side of the seal
    "workers.launcher.guest", "workers.launcher.source", "workers.launcher.stdio",
)  # fmt: skip

HIDDEN: tuple[str, ...] = (
    "_ctypes", "_posixsubprocess", "_ssl", "ctypes", "ctypes._endian", "ctypes.util", "fcntl", "importlib.util", "platform",
    "pyseccomp", "resource", "shutil", "ssl", "subprocess", "tempfile", "workers", "workers.launcher",
)  # fmt: skip

_KILLING_SIGNAL_CALLS = ("alarm", "getitimer", "pause", "setitimer", "sigpending", "sigtimedwait", "sigwait", "sigwaitinfo")


class _Denied:
    """The last finder: says no with a sentence an author understands."""

    @staticmethod
    def find_spec(name: str, *_: object) -> NoReturn:
        raise ModuleNotFoundError(f"module {name!r} is not available to a MiniApp", name=name)


def preload() -> None:
    """Import everything of PRELOADED. Raises: ImportError."""
    for name in PRELOADED:
        importlib.import_module(name)


def lock_imports() -> None:
    """End importing from files, forget paths, hide and replace (rules 2 to 4). Nothing undoes it."""
    for name in [n for n in sys.modules if n in HIDDEN or n.startswith("workers.launcher.")]:
        del sys.modules[name]
    sys.modules.pop("__main__", None)
    sys.modules["__main__"] = ModuleType("__main__")
    sys.meta_path[:] = [importlib.machinery.BuiltinImporter, importlib.machinery.FrozenImporter, _Denied]
    sys.path[:] = []
    sys.path_hooks[:] = []
    sys.path_importer_cache.clear()
    _forget_paths()
    linecache.updatecache = lambda *_args, **_named: []  # a traceback must not try to open source files
    for name in _KILLING_SIGNAL_CALLS:
        setattr(signal, name, _refuse)
    vars(uuid).update(_generate_time_safe=None, _GETTERS=[])  # uuid1 then takes a random node and the clock


def _forget_paths() -> None:
    """The folders a person installed to are nobody's business inside: neither of modules nor in tracebacks."""
    sys.argv = [""]
    sys.orig_argv = []
    sys.executable = ""
    for name in ("prefix", "base_prefix", "exec_prefix", "base_exec_prefix", "_base_executable", "_stdlib_dir"):
        setattr(sys, name, "/")
    names: dict[str, str] = {}
    objects = gc.get_objects()
    for module in objects:
        if isinstance(module, ModuleType):
            named = f"<{module.__name__}>"
            names[getattr(module, "__file__", None) or named] = named
            _forget_place(module, named)
    for function in objects:
        if type(function) is FunctionType and not function.__code__.co_filename.startswith("<"):
            _imp._fix_co_filename(function.__code__, names.get(function.__code__.co_filename, "<library>"))  # type: ignore[attr-defined]  # noqa: SLF001 - what the interpreter itself uses for it


def _forget_place(module: ModuleType, named: str) -> None:
    """Leave a module its name in the place of where it was found. What has no place is left as it is."""
    spec = getattr(module, "__spec__", None)
    for owner, attribute, value in (
        (module, "__file__", named),
        (module, "__cached__", None),
        (module, "__path__", []),
        (spec, "origin", named),
        (spec, "cached", None),
        (spec, "submodule_search_locations", []),
        (getattr(spec, "loader", None), "path", named),
        (getattr(spec, "loader_state", None), "filename", named),
    ):
        if getattr(owner, attribute, None):
            setattr(owner, attribute, value)


def _refuse(*_arguments: object, **_named: object) -> NoReturn:
    raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
