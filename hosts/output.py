"""How the `lineup` command speaks: data on stdout, all else on stderr, one error line, fixed exit codes.

Rules:
1. Data is text for people or, with --format json, one JSON value. Text from apps and Agents is made visible, never markup.
2. A failure is exactly one line on stderr: JSON when --format json was given or stderr is no terminal, else one for people.
3. It holds code, message, pointer, expected, hint; never the refused value, never a traceback.
4. What leaves here with a code of the kernel keeps it; the command's own words (HOST_WORDS) never travel on a wire.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from enum import IntEnum, StrEnum
from typing import Any

from hosts.strict_json import write_json
from hosts.visible import one_line, visible
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject


class Exit(IntEnum):
    """The exit codes of the command."""

    OK = 0
    UNEXPECTED = 1
    USAGE = 2
    DENIED = 3
    UNREACHABLE = 4
    TOOL_FAILED = 5
    TIMED_OUT = 6
    CONFLICT = 8
    INTERRUPTED = 130


class Format(StrEnum):
    """What a reading verb writes."""

    TEXT = "text"
    JSON = "json"


USAGE = "usage"
UNEXPECTED = "unexpected"
UNREACHABLE = "kernel_unreachable"
TIMED_OUT = "timed_out"
INTERRUPTED = "interrupted_by_person"

_EXITS: dict[str, Exit] = {
    Code.ANSWER_INVALID: Exit.USAGE,
    Code.APP_DISABLED: Exit.DENIED,
    Code.APP_INSTANCE_NOT_FOUND: Exit.USAGE,
    Code.APP_SCOPE_MISMATCH: Exit.USAGE,
    Code.CALL_ALREADY_FINAL: Exit.CONFLICT,
    Code.CALL_ID_CONFLICT: Exit.CONFLICT,
    Code.CALL_NOT_FOUND: Exit.USAGE,
    Code.CAPABILITY_DENIED: Exit.DENIED,
    Code.CAPABILITY_UNSUPPORTED: Exit.DENIED,
    Code.DOOR_BUSY: Exit.CONFLICT,
    Code.EXPIRED: Exit.TIMED_OUT,
    Code.INTERACTION_ALREADY_FINAL: Exit.CONFLICT,
    Code.INTERACTION_NOT_FOUND: Exit.USAGE,
    Code.INVENTORY_REVISION_MISMATCH: Exit.CONFLICT,
    Code.LIFECYCLE_DENIED: Exit.DENIED,
    Code.LIMIT_EXCEEDED: Exit.CONFLICT,
    Code.PROTOCOL_VIOLATION: Exit.USAGE,
    Code.STORE_FULL: Exit.CONFLICT,
    Code.STORE_LOCKED: Exit.CONFLICT,
    Code.SURFACE_UNAVAILABLE: Exit.DENIED,
    Code.TOOL_INPUT_INVALID: Exit.USAGE,
    Code.TOOL_NOT_ADVERTISED: Exit.USAGE,
    Code.USE_DISMISS: Exit.USAGE,
    INTERRUPTED: Exit.INTERRUPTED,
    TIMED_OUT: Exit.TIMED_OUT,
    UNREACHABLE: Exit.UNREACHABLE,
    USAGE: Exit.USAGE,
}

_MESSAGES: dict[str, str] = {
    Code.ANSWER_INVALID: "this does not answer the question",
    Code.APP_CRASHED: "the app died too often while working on it",
    Code.APP_DISABLED: "this app or tool is switched off",
    Code.APP_INSTANCE_NOT_FOUND: "no such app is running",
    Code.CALL_ALREADY_FINAL: "the call has its outcome already",
    Code.CALL_ID_CONFLICT: "this call id was used before for another content",
    Code.CALL_NOT_FOUND: "there is nothing of that name or number",
    Code.CANCELLED: "the call was cancelled",
    Code.CAPABILITY_DENIED: "not allowed here",
    Code.CAPABILITY_UNSUPPORTED: "no host can do this",
    Code.DOOR_BUSY: "another Agent is connected",
    Code.EXPIRED: "the call ran out of time",
    Code.INTERACTION_ALREADY_FINAL: "the question has its outcome already",
    Code.INTERACTION_NOT_FOUND: "there is no such question",
    Code.INTERRUPTED: "the call died half done and may not run twice",
    Code.INVENTORY_REVISION_MISMATCH: "the tools have changed since they were listed",
    Code.LIFECYCLE_DENIED: "not allowed now",
    Code.LIMIT_EXCEEDED: "a limit was reached",
    Code.MODE_UNAVAILABLE: "this mode is not built",
    Code.PROTOCOL_VIOLATION: "this is not what the wire takes",
    Code.SANDBOX_INCOMPLETE: "a layer of the sandbox is missing on this machine; no app runs without it",
    Code.STORE_CORRUPT: "the database of this home fails its checks",
    Code.STORE_FOREIGN: "this home or its database belongs to another program or user",
    Code.STORE_FULL: "the disk is full; this was not done, and nothing was lost",
    Code.STORE_LOCKED: "another kernel holds this home",
    Code.STORE_NEWER: "the database of this home was written by a newer version",
    Code.TOOL_FAILED: "the app reported failure",
    Code.TOOL_INPUT_INVALID: "the input does not fit the tool's schema",
    Code.TOOL_NOT_ADVERTISED: "there is no such tool or app in the inventory",
    Code.UNKNOWN: "the kernel cannot say what went wrong",
    Code.USE_DISMISS: "a question is answered or declined, not cancelled",
    INTERRUPTED: "interrupted",
    TIMED_OUT: "no answer in time",
    UNEXPECTED: "something went wrong in the command itself",
    UNREACHABLE: "no kernel answers on this home",
    USAGE: "the command was not understood",
}
_HINTS: dict[str, str] = {  # what helps, where the refusal itself does not say it
    Code.STORE_FULL: "make room on the disk of the home; within seconds the kernel goes on by itself, then do this again",
}


class Failure(Exception):
    """Ends the command: one line on stderr and an exit code."""

    def __init__(self, code: str, detail: JsonObject | None = None, *, exit_code: Exit | None = None, message: str | None = None) -> None:
        super().__init__(code)
        self.code = code
        hint = {"hint": _HINTS[code]} if code in _HINTS else {}
        self.detail = hint | {key: value for key, value in (detail or {}).items() if value is not None}
        self.exit_code = exit_code if exit_code is not None else _EXITS.get(code, Exit.UNEXPECTED)
        self.message = message or message_of(code)


def message_of(code: str) -> str:
    """Return what a code means, as a sentence without its end."""
    return _MESSAGES.get(code, code.replace("_", " "))


def usage(message: str, *, pointer: str, expected: str | None = None, hint: str | None = None) -> Failure:
    """Build the failure for bad arguments: pointer names the argument."""
    return Failure(USAGE, {"pointer": pointer, "expected": expected, "hint": hint}, message=message)


def write_data(value: object, lines: Iterable[str], chosen: Format) -> None:
    """Write the answer of a verb: the value as JSON, or the lines made for people."""
    if chosen is Format.JSON:
        print_data(write_json(value))
        return
    for line in lines:
        print_data(line)


def print_data(line: str) -> None:
    """Write one line of data and flush it. Raises: Failure when nobody reads it or it does not fit."""
    try:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise Failure(UNEXPECTED, message="nobody reads the output any more") from error
    except OSError as error:
        raise Failure(UNEXPECTED, message=f"the output cannot be written: {os.strerror(error.errno or 0)}") from error


def print_note(line: str) -> None:
    """Write one line for people beside the data. A stderr that takes nothing changes neither the data nor the exit code."""
    with suppress(OSError):
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


def print_failure(failure: Failure, *, as_json: bool) -> None:
    """Write the one error line."""
    if as_json or not os.isatty(2):
        print_note(write_json({"code": failure.code, "message": failure.message, "detail": failure.detail}))
        return
    parts = [f"lineup: {failure.message} ({failure.code})"]
    parts += [f"{name}: {one_line(str(value), 300)}" for name, value in sorted(failure.detail.items()) if value != ""]
    print_note("; ".join(parts))


def facts(value: JsonObject) -> list[str]:
    """Lay out an object as one `name: value` a line, made visible."""
    return [f"{name}: {visible(field) if isinstance(field, str) else write_json(_rounded(field))}" for name, field in value.items()]


def _rounded(value: Any) -> Any:
    """The same for a person's eye: three digits after the point are enough of a measured number."""
    if isinstance(value, dict):
        return {name: _rounded(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_rounded(member) for member in value]
    return round(value, 3) if isinstance(value, float) else value


def table(rows: Sequence[Sequence[object]], head: Sequence[str]) -> list[str]:
    """Lay out rows in columns; every cell is made visible."""
    cells = [list(head), *([visible(str(cell if cell is not None else "-")) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
