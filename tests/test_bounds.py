"""The bounds of a worker's fields stand in the kernel's strict models, in the SDK and in the published CDDL: all three say the same."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from importlib.resources import files
from typing import Any

import pytest

from kernel.protocol.strict import Denied, model_of, parse_worker
from lineup_sdk.protocol.bounds import Form, Length, Span, bounds_of
from lineup_sdk.protocol.framing import ProtocolViolation
from lineup_sdk.protocol.messages import FROM_WORKER, JsonObject, Message
from lineup_sdk.protocol.parsing import BadField, check_fields, parse_frame

pytestmark = [pytest.mark.clause("2.2"), pytest.mark.clause("2.7")]

_FACTS = ("minLength", "maxLength", "pattern", "minimum", "maximum")
_CDDL = re.sub(r" *;[^\n]*", "", files("lineup_sdk.protocol").joinpath("wire.cddl").read_text())
_PLAIN = {"JsonObject": {}, "bool": False, "bytes": b"x", "float": 1, "int": 1, "str": "x"}


def of_the_kernel(kind: type[Message]) -> dict[str, JsonObject]:
    properties = model_of(kind).model_json_schema()["properties"] if fields(kind) else {}
    return {name: {fact: schema[fact] for fact in _FACTS if fact in schema} for name, schema in properties.items()}


def of_the_sdk(kind: type[Message]) -> dict[str, JsonObject]:
    bounds = bounds_of(kind)
    return {f.name: _facts(bounds.get(f.name)) for f in fields(kind)}


def _facts(bound: Length | Form | Span | None) -> JsonObject:
    match bound:
        case Length(least, most):
            return {"maxLength": most} | ({"minLength": least} if least else {})
        case Form(pattern):
            return {"pattern": f"^({pattern})$"}
        case Span(least, most):
            return {"minimum": least, "maximum": most}
        case None:
            return {}


def of_the_cddl(kind: type[Message]) -> dict[str, JsonObject]:
    rule = kind.TYPE.replace(".", "-").replace("_", "-")
    body = re.search(rf"^{rule} = \{{\n(.*?)^\}}", _CDDL, re.MULTILINE | re.DOTALL)
    assert body is not None, rule
    members = re.findall(r"^  (?:\? )?([a-z_0-9]+): ([^,]+),$", body[1], re.MULTILINE)
    return {name: _published(named) for name, named in members if name not in ("type", "id")}


def _published(rule: str) -> JsonObject:
    found = re.search(rf"^{re.escape(rule)} = ([^\n]+)$", _CDDL, re.MULTILINE)
    text = found[1] if found else ""
    if text.startswith("tstr .regexp "):
        pattern = json.loads(text.removeprefix("tstr .regexp "))
        length = re.fullmatch(r"\[\\s\\S\]\{(\d+),(\d+)\}", pattern)
        return _facts(Length(int(length[1]), int(length[2])) if length else Form(pattern))
    if text.startswith('"'):
        return _facts(Form("|".join(re.findall(r'"(\w+)"', text))))
    span = re.fullmatch(r"(\d+)\.\.(\d+)", text)
    return _facts(Span(int(span[1]), int(span[2]))) if span else {}


@pytest.mark.parametrize("name", sorted(FROM_WORKER))
def test_the_kernel_the_sdk_and_the_published_wire_bound_every_field_of_a_worker_alike(name: str) -> None:
    kind = FROM_WORKER[name]
    assert of_the_kernel(kind) == of_the_sdk(kind) == of_the_cddl(kind)


def good_values(kind: type[Message]) -> JsonObject:
    """A message with every field, each at the widest its bound allows."""
    bounds = bounds_of(kind)
    plain = {f.name: _PLAIN[str(f.type).removesuffix(" | None")] for f in fields(kind)}
    return plain | {name: edges(bound)[0] for name, bound in bounds.items()}


def edges(bound: Length | Form | Span) -> tuple[Any, list[Any]]:
    """The last value within a bound, and those just beyond it."""
    match bound:
        case Length(least, most):
            return "\u00e9" * most, ["x" * (most + 1), *(["x" * (least - 1)] if least else [])]
        case Span(least, most):
            return most, [least - 1]  # above most no frame carries it
        case Form(pattern):
            good = next(v for v in ("x" * 64, "a" * 64, "a/b", "im", "inline", "log") if re.fullmatch(pattern, v))
            return good, ["", good + "\n", good.upper(), good + " "]


_BOUNDED = [(name, field) for name, kind in sorted(FROM_WORKER.items()) for field in bounds_of(kind)]


def frame_of(kind: type[Message], values: JsonObject) -> JsonObject:
    return {"type": kind.TYPE, **({"id": 1} if kind.EXPECTS_REPLY else {}), **values}


@pytest.mark.parametrize(("name", "field"), _BOUNDED)
def test_what_is_beyond_a_bound_is_refused_by_both_ends_and_what_is_at_it_by_neither(name: str, field: str) -> None:
    kind = FROM_WORKER[name]
    values = good_values(kind)
    frame = frame_of(kind, values)
    assert parse_worker(frame) == parse_frame(frame, FROM_WORKER)
    for beyond in edges(bounds_of(kind)[field])[1]:
        broken = frame_of(kind, values | {field: beyond})
        with pytest.raises(ProtocolViolation, match="shape"):
            parse_worker(broken)
        with pytest.raises(BadField, match="field_bound") as caught:
            parse_frame(broken, FROM_WORKER)
        assert (caught.value.pointer, caught.value.expected) == (f"/{field}", str(bounds_of(kind)[field]))


@pytest.mark.parametrize("name", sorted(FROM_WORKER))
def test_what_the_kernel_would_not_take_for_a_field_is_refused_before_it_leaves(name: str) -> None:
    kind = FROM_WORKER[name]
    for field in fields(kind):
        wrong: list[JsonObject] = [good_values(kind) | {field.name: value} for value in (None, [], True, "x", 1, b"x", 0.5, {})]
        absent = {other: value for other, value in good_values(kind).items() if other != field.name}
        for values in [*wrong, absent]:
            assert _is_taken_by_kernel(kind, values) == _is_taken_by_sdk(kind, values), (field.name, values.get(field.name))


def _is_taken_by_kernel(kind: type[Message], values: JsonObject) -> bool:
    try:
        parse_worker(frame_of(kind, values))
    except (Denied, ProtocolViolation):
        return False
    return True


def _is_taken_by_sdk(kind: type[Message], values: JsonObject) -> bool:
    try:
        check_fields(kind, values)
    except BadField:
        return False
    return True
