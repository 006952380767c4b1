"""Inputs for tools, made from the schemas of a Manifest (SPEC 4.3). The same schema gives the same inputs, always.

Rules:
1. Every input fits its schema; a test holds them against an independent validator.
2. Sizes are bounded: the largest input is far below what a body may weigh (SPEC 2.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lineup_sdk.protocol.messages import JsonObject

_MAX_TEXT = 200  # code points of one generated text
_MAX_ITEMS = 3
# Beyond ASCII and beyond 16 bits, with a combining mark, a turn of direction, a control character and a line end.
_STRANGE = "日本語 é Ω \U0001f469‍\U0001f680 é \u202eabc\u202c \x00\t\n\\\"' עברית "


def smallest(schema: JsonObject) -> Any:
    """Only what is required, each as small as it may be."""
    return _make(schema, _least, is_full=False)


def fullest(schema: JsonObject) -> Any:
    """Everything the schema knows, each as large as it may be (rule 2)."""
    return _make(schema, _most, is_full=True)


def with_floats(schema: JsonObject) -> Any:
    """Everything, and every integer written as the same number with a fraction of zero."""
    return _make(schema, _as_float, is_full=True)


def strange(schema: JsonObject) -> Any:
    """Everything, with texts no program expects."""
    return _make(schema, _strange, is_full=True)


def every_enum(schema: JsonObject) -> Iterator[Any]:
    """For each value of each enum of the top level, the fullest input with that value."""
    for name, member in schema.get("properties", {}).items():
        for value in member.get("enum", ()):
            yield {**fullest(schema), name: value}


def holds(schema: JsonObject, *types: str) -> bool:
    """Whether some value of these types can stand anywhere inside."""
    below = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    return schema.get("type") in types or any(holds(part, *types) for part in below)


def _make(schema: JsonObject, leaf: Callable[[JsonObject], Any], *, is_full: bool) -> Any:
    if "enum" in schema:
        return schema["enum"][-1 if is_full else 0]
    kind = schema["type"]
    if kind == "object":
        required = schema.get("required", ())
        members = {n: s for n, s in schema.get("properties", {}).items() if is_full or n in required}
        return {name: _make(member, leaf, is_full=is_full) for name, member in members.items()}
    if kind == "array":
        count = min(schema.get("maxItems", _MAX_ITEMS), _MAX_ITEMS) if is_full else 0
        return [_make(schema["items"], leaf, is_full=is_full) for _ in range(count)] if "items" in schema else []
    return is_full if kind == "boolean" else leaf(schema)


def _least(schema: JsonObject) -> Any:
    if schema["type"] == "string":
        return "a" * schema.get("minLength", 0)
    return _number(schema, 0)


def _most(schema: JsonObject) -> Any:
    if schema["type"] == "string":
        return _text(schema, "Lorem ipsum 123. ", schema.get("maxLength", _MAX_TEXT))
    return _number(schema, 1_000_000)


def _as_float(schema: JsonObject) -> Any:
    value = _most(schema)
    return float(value) if schema["type"] in {"integer", "number"} else value


def _strange(schema: JsonObject) -> Any:
    return _text(schema, _STRANGE, schema.get("maxLength", _MAX_TEXT)) if schema["type"] == "string" else _least(schema)


def _text(schema: JsonObject, pattern: str, length: int) -> str:
    length = max(schema.get("minLength", 0), min(length, _MAX_TEXT))
    return (pattern * (length // len(pattern) + 1))[:length]


def _number(schema: JsonObject, wanted: int) -> Any:
    value = min(max(wanted, schema.get("minimum", wanted)), schema.get("maximum", max(wanted, schema.get("minimum", wanted))))
    return int(value) if schema["type"] == "integer" and float(value).is_integer() else value
