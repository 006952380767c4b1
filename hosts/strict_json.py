"""JSON from outside under the value rules of the wire (SPEC 2.1): for the NDJSON door and for arguments on the command line. Pure.

Rules:
1. Duplicate keys, NaN, Infinity, numbers beyond +-(2^53-1), lone surrogates and deep nesting are refused, with a fixed word.
2. NotJson and JsonRefused are different: text that is no JSON at all may be plain text, JSON that breaks a rule never is.
3. Written JSON is ASCII on one line, so that no reader splits it at U+2028 and no terminal is steered by it.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from lineup_sdk.protocol.framing import ProtocolViolation, check_value
from lineup_sdk.protocol.limits import MAX_DEPTH

_OWN_LEVELS = 1  # a value travels inside a frame, which takes one level of the wire's depth


class NotJson(Exception):
    """The text is not JSON."""


class JsonRefused(Exception):
    """It is JSON, but holds what no wire admits. `reason` is a fixed word."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise JsonRefused("duplicate_key")
    return members


def _refuse_constant(_: str) -> NoReturn:
    raise JsonRefused("number")


def _integer(digits: str) -> int:
    if len(digits) > len("-9007199254740991"):  # longer ones are out of range whatever they are; int() on them is slow
        raise JsonRefused("integer_range")
    return int(digits)


def read_json(untrusted_text: str) -> Any:
    """Return the value of one JSON text. Raises: NotJson, JsonRefused."""
    try:
        value = json.loads(untrusted_text, object_pairs_hook=_pairs, parse_constant=_refuse_constant, parse_int=_integer)
        check_value(value, max_depth=MAX_DEPTH - _OWN_LEVELS, allow_bytes=False)
    except ProtocolViolation as error:
        raise JsonRefused(error.reason) from error
    except RecursionError as error:
        raise JsonRefused("depth") from error
    except ValueError as error:
        raise NotJson from error
    return value


def write_json(value: object) -> str:
    """Return the value as one line of ASCII JSON, without the newline."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
