"""The kernel's log: one JSON line an event on stderr, allow-listed fields only (SPEC 17).

Rules:
1. An event is a fixed name; a field is in FIELDS and holds a number, a code, or a word the kernel itself made.
2. Never: identity, conversation, text, arguments, results, titles, tokens, paths, or the text of an exception.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from types import TracebackType

FIELDS = frozenset(
    {
        "attempt", "batch", "channel", "code", "command", "count", "death", "duration_ms", "event", "exception", "exit_status",
        "instance_id", "layer", "life", "line", "number", "pid", "reason", "role", "size", "state", "view_id",
    }
)  # fmt: skip

_LOGGER = logging.getLogger("lineup.kernel")
_LOGGER.propagate = False


def open_log(level: int = logging.INFO) -> None:
    """Send the log to stderr as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    _LOGGER.handlers[:] = [handler]
    _LOGGER.setLevel(level)


def event(name: str, /, **fields: int | str | None) -> None:
    """Write one event. Raises: ValueError for a field that is not allowed, which a test would find."""
    _write(logging.INFO, name, fields)


def trouble(name: str, /, **fields: int | str | None) -> None:
    """Write one event that somebody should look at."""
    _write(logging.WARNING, name, fields)


def _write(level: int, name: str, fields: dict[str, int | str | None]) -> None:
    if not FIELDS.issuperset(fields):
        raise ValueError("a log field is not in the allow-list")
    if _LOGGER.isEnabledFor(level):
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        known = {key: value for key, value in fields.items() if value is not None}
        _LOGGER.log(level, "%s", json.dumps({"at": at, "event": name, **known}))


def bug(error: BaseException) -> None:
    """Write what broke: exception classes and code places, never their texts, which may quote anything."""
    for leaf in _leaves(error):
        trouble("kernel.bug", exception=type(leaf).__name__, line=_place(leaf.__traceback__))


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for member in error.exceptions for leaf in _leaves(member)]
    return [error]


def _place(traceback: TracebackType | None) -> str:
    places = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        places.append(f"{code.co_name}:{traceback.tb_lineno}")
        traceback = traceback.tb_next
    return " > ".join(places[-6:])
