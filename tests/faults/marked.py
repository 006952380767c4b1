"""The marker of the canary tests, and exceptions that carry it wherever a text of theirs could (SPEC 17, INV-56).

Rules:
1. What a library or the system raises quotes anything: all its texts are the marker.
2. An exception of our own carries words of a fixed list; its fields are as the tree fills them, and the marker hangs on it as the cause
   and as a note, which is where a careless print of it would find somebody's words.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

MARK = "canary4e91"

# Our own kinds that take more or other than one free text. The code is one that any of them can have.
_OWN: dict[str, Callable[[Any], BaseException]] = {
    "AddressRefused": lambda kind: kind("an address of this machine"),
    "AskRefused": lambda kind: kind({"expected": "an operation"}),
    "AuditUnreadable": lambda kind: kind(_code("STORE_CORRUPT")),
    "BackupFailed": lambda kind: kind(_code("STORE_FULL"), "take another folder"),
    "CannotDo": lambda kind: kind("failed"),
    "Denied": lambda kind: kind(None, "type"),
    "DoorClosed": lambda kind: kind(_goodbye()),
    "HomeRefused": lambda kind: kind("it cannot be read"),
    "Invalid": lambda kind: kind(_refusal()),
    "JsonRefused": lambda kind: kind("number"),
    "KernelUnreachable": lambda kind: kind("kernel_unreachable"),
    "LineRefused": lambda kind: kind(_code("PROTOCOL_VIOLATION"), {"expected": "an object"}),
    "ManifestInvalid": lambda kind: kind("/tools", "must be an array"),
    "NotProved": lambda kind: kind("not set"),
    "ProtocolViolation": lambda kind: kind("fields"),
    "Refused": lambda kind: kind(_code("LIMIT_EXCEEDED"), *(["try again"] if kind.__module__ == "kernel.serve" else [])),
    "Rejected": lambda kind: kind(_code("LIMIT_EXCEEDED")),
    "SandboxIncomplete": lambda kind: kind("preload", "not ready", "report it"),
    "SchemaInvalid": lambda kind: kind("/type", "must be an object"),
    "SourceInvalid": lambda kind: kind("welcome names no source"),
    "SpawnFailed": lambda kind: kind("zygote_dead"),
    "StorageFailed": lambda kind: kind(_code("STORE_FULL")),
    "StoreRefused": lambda kind: kind(_code("STORE_CORRUPT"), "restore a backup"),
    "ToolFailed": lambda kind: kind("no"),
    "Trouble": lambda kind: kind(_code("SIZE_MISMATCH")),
    "ZygoteUnborn": lambda kind: kind("preload", "not ready", "report it"),
}


_LIBRARIES: dict[str, Callable[[Any], BaseException]] = {
    "AccessDenied": lambda kind: kind(1, MARK, MARK),
    "ArgumentError": lambda kind: kind(None, MARK),
    "NoSuchProcess": lambda kind: kind(1, MARK, MARK),
    "TyperException": lambda kind: kind(f"Not understood: {MARK}"),
    "UnicodeDecodeError": lambda kind: kind("utf-8", MARK.encode(), 0, 1, MARK),
    "UnicodeEncodeError": lambda kind: kind("utf-8", MARK, 0, 1, MARK),
    "ValidationError": lambda kind: kind.from_exception_data(MARK, [{"type": "int_type", "loc": (MARK,), "input": MARK}]),
}
_NUMBERS = {"BlockingIOError": errno.EAGAIN, "BrokenPipeError": errno.EPIPE, "PermissionError": errno.EPERM}
_NUMBERS |= {"FileExistsError": errno.EEXIST, "FileNotFoundError": errno.ENOENT, "NotADirectoryError": errno.ENOTDIR}


def marked_exception(kinds: Any) -> BaseException:
    """An exception that a handler of these kinds takes."""
    kind = kinds[0] if isinstance(kinds, tuple) else kinds
    made = _made(RuntimeError if kind in (BaseException, Exception) else kind)
    made.__cause__ = ValueError(MARK)
    made.add_note(MARK)
    return made


def _made(kind: type[BaseException]) -> BaseException:
    name = kind.__name__
    if name in _OWN and not kind.__module__.startswith(("pydantic", "typer")):
        return _OWN[name](kind)
    if name in _LIBRARIES:
        return _LIBRARIES[name](kind)
    if issubclass(kind, OSError):
        number = _NUMBERS.get(name, errno.EIO)
        return kind(number, os.strerror(number), MARK)  # the system's own words about somebody's file
    return kind(MARK)


def _code(name: str) -> Any:
    from lineup_sdk.protocol.codes import Code  # not before noting.install

    return Code[name]


def _goodbye() -> Any:
    from kernel.protocol.host import Goodbye  # not before noting.install

    return Goodbye(code="door_busy")


def _refusal() -> Any:
    from kernel.protocol.strict import Refusal  # not before noting.install

    return Refusal(pointer="/text", expected="a text", got_type="number")
