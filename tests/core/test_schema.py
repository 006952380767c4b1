"""The schema subset against the golden stories and against jsonschema as oracle, on values the wire admits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from kernel.core.schema import (
    MAX_NAMED_KEY_CHARACTERS,
    MAX_SCHEMA_BYTES,
    MAX_SCHEMA_DOCUMENT_DEPTH,
    MAX_SCHEMA_LEVELS,
    MAX_SCHEMA_NODES,
    EngineDisagrees,
    Mismatch,
    SchemaInvalid,
    compile_schema,
    digest_of,
    pointer_to,
)
from lineup_sdk.protocol.framing import ProtocolViolation, check_value
from lineup_sdk.protocol.limits import MAX_DEPTH

GOLDEN = Path(__file__).parent.parent / "golden"
FEW = settings(max_examples=50, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))


def stories(name: str) -> list[Any]:
    found = json.loads((GOLDEN / name).read_text("utf-8"))["stories"]
    return [pytest.param(story, id=story["story"].replace(" ", "-")) for story in found]


def refusal(document: object, pointer: str = "") -> SchemaInvalid:
    with pytest.raises(SchemaInvalid) as caught:
        compile_schema(document, pointer=pointer)
    return caught.value


# --- golden stories


@pytest.mark.clause("4.3")
@pytest.mark.invariant("54")
@pytest.mark.parametrize("story", stories("schema__refused_documents.json"))
def test_schema_outside_the_subset_is_refused_with_its_path(story: dict[str, Any]) -> None:
    assert refusal(story["schema"]).pointer == story["refused_at"]
    assert refusal(story["schema"], "/tools/3/input_schema").pointer == "/tools/3/input_schema" + story["refused_at"]


@pytest.mark.clause("4.3")
@pytest.mark.parametrize("story", stories("schema__values.json"))
def test_value_fits_or_is_refused_as_the_story_says(story: dict[str, Any]) -> None:
    mismatch = compile_schema(story["schema"]).check(story["value"])
    assert (mismatch and mismatch.detail) == story.get("refused")
    assert Draft202012Validator(story["schema"]).is_valid(story["value"]) == ("refused" not in story)


# --- keyword fuzz

SUBSET = {
    "additionalProperties", "default", "description", "enum", "items", "maxItems", "maxLength", "maximum", "minLength", "minimum",
    "properties", "required", "title", "type",
}  # fmt: skip
OTHER_KEYWORDS = sorted(
    {*Draft202012Validator.VALIDATORS, "$anchor", "$comment", "$defs", "$dynamicAnchor", "$id", "$schema", "$vocabulary"}
    | {"$recursiveRef", "additionalItems", "contentEncoding", "contentMediaType", "contentSchema", "definitions", "deprecated"}
    | {"divisibleBy", "else", "examples", "extends", "id", "nullable", "readOnly", "then", "writeOnly", "Type", "type "} - SUBSET
)
OTHER_KEYWORDS = [keyword for keyword in OTHER_KEYWORDS if keyword not in SUBSET]


@pytest.mark.invariant("54")
@pytest.mark.parametrize("keyword", OTHER_KEYWORDS)
def test_every_other_keyword_is_refused_with_its_path(keyword: str) -> None:
    inner = {"type": "object", "properties": {"a": {"type": "string", keyword: {}}}, "additionalProperties": False}
    assert refusal(inner).pointer == f"/properties/a/{keyword}"
    assert refusal({"type": "array", "items": {"type": "boolean", keyword: True}}).pointer == f"/items/{keyword}"
    assert refusal({keyword: []}).pointer == f"/{keyword}"


@pytest.mark.invariant("54")
@FEW
@given(st.text("abeimrstx$_ /~MLIé", min_size=1, max_size=12).filter(lambda name: name not in SUBSET))
def test_no_invented_keyword_is_admitted(keyword: str) -> None:
    assert refusal({"type": "string", keyword: 1}).pointer == pointer_to("", keyword)


def test_a_keyword_is_an_ordinary_name_of_a_property() -> None:
    schema = compile_schema({"type": "object", "properties": {"$ref": {"type": "string"}}, "additionalProperties": False})
    assert schema.check({"$ref": "x"}) is None


# --- limits


def arrays(levels: int) -> dict[str, Any]:
    document: dict[str, Any] = {"type": "string"}
    for _ in range(levels - 1):
        document = {"type": "array", "items": document}
    return document


def objects(levels: int) -> dict[str, Any]:
    document: dict[str, Any] = {"type": "string"}
    for _ in range(levels - 1):
        document = {"type": "object", "properties": {"a": document}, "additionalProperties": False}
    return document


def test_schemas_may_stand_inside_one_another_up_to_the_limit() -> None:
    assert compile_schema(arrays(MAX_SCHEMA_LEVELS)).check([]) is None
    assert refusal(arrays(MAX_SCHEMA_LEVELS + 1)).pointer == "/items" * MAX_SCHEMA_LEVELS


def test_schema_too_deep_for_the_frame_that_shows_it_is_refused() -> None:
    levels = (MAX_SCHEMA_DOCUMENT_DEPTH + 1) // 2
    schema = compile_schema(objects(levels))
    check_value({"payload": {"inventory": {"tools": [{"input_schema": schema.document}]}}}, max_depth=MAX_DEPTH)
    assert "inside one another" in refusal(objects(levels + 1), "/x").reason


def test_a_bottomless_document_is_refused_and_not_descended() -> None:
    assert "inside one another" in refusal(arrays(5000)).reason
    endless: dict[str, Any] = {"type": "array"}
    endless["items"] = endless
    assert "inside one another" in refusal(endless).reason


def test_schema_has_a_limited_number_of_nodes() -> None:
    def wide(count: int) -> dict[str, Any]:
        properties = {f"p{number}": {"type": "boolean"} for number in range(count - 1)}
        return {"type": "object", "properties": properties, "additionalProperties": False}

    assert compile_schema(wide(MAX_SCHEMA_NODES)).check({}) is None
    assert "nodes" in refusal(wide(MAX_SCHEMA_NODES + 1)).reason


def test_schema_has_a_limited_size() -> None:
    frame = len('{"type": "string", "title": ""}') + 8
    assert compile_schema({"type": "string", "title": "x" * (MAX_SCHEMA_BYTES - frame)}).check("a") is None
    assert "bytes" in refusal({"type": "string", "title": "x" * MAX_SCHEMA_BYTES}).reason


def test_document_that_is_not_json_is_refused() -> None:
    for value in (float("nan"), 2**53, 1e300, "\ud800", b"", (), object()):
        assert "not JSON" in refusal({"type": "string", "default": value}).reason
    assert refusal("string").pointer == ""


# --- what the wire refuses never reaches an engine


@pytest.mark.clause("2.1")
@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), -float("inf"), 2**53, 2**53 + 1, 1e300, -1e300, "\ud800", "a\udfffb"], ids=repr
)
def test_value_outside_json_is_refused_before_any_engine(value: object) -> None:
    for carried in (value, [value], {"a": {"b": value}}):
        with pytest.raises(ProtocolViolation):
            check_value(carried)


def test_lone_surrogate_in_a_key_is_refused_before_any_engine() -> None:
    with pytest.raises(ProtocolViolation):
        check_value({"\ud800": 1})


def test_value_that_skipped_the_decoder_is_a_bug_and_not_a_fit() -> None:
    with pytest.raises(EngineDisagrees):
        compile_schema({"type": "string"}).check("\ud800")
    with pytest.raises(EngineDisagrees):
        compile_schema({"type": "string"}).check(object())


@pytest.mark.parametrize("kind", ["string", "integer", "number", "boolean"])
def test_byte_string_fits_no_schema(kind: str) -> None:
    assert compile_schema({"type": kind}).check(b"abc") == Mismatch("", kind, "bytes", 3)
    assert compile_schema({"type": "array", "items": {"type": kind}}).check([b""]) == Mismatch("/0", kind, "bytes", 0)


# --- the refusal


def test_refusal_never_holds_the_value() -> None:
    marker = "marker-7d1f"
    schema = compile_schema({"type": "object", "properties": {"a": {"type": "string", "enum": ["x"]}}, "additionalProperties": False})
    assert marker not in repr(schema.check({"a": marker}))


def test_first_mismatch_is_the_first_by_name_whatever_the_order_of_keys() -> None:
    names = [f"name{number}" for number in range(40)]
    properties = {name: {"type": "integer"} for name in names}
    schema = compile_schema({"type": "object", "properties": properties, "required": names, "additionalProperties": False})
    for order in (names, names[::-1]):
        assert schema.check(dict.fromkeys(order, "x")) == Mismatch("/name0", "integer", "string", 1)
    assert schema.check({}) == Mismatch("/name0", "property required", "absent")


def test_long_name_of_a_refused_property_is_not_repeated() -> None:
    schema = compile_schema({"type": "object", "properties": {}, "additionalProperties": False})
    assert schema.check({"k" * MAX_NAMED_KEY_CHARACTERS: 1}) == Mismatch("/" + "k" * 64, "no such property", "integer")
    assert schema.check({"k" * (MAX_NAMED_KEY_CHARACTERS + 1): 1}) == Mismatch("", "no such property", "integer")


def test_schema_does_not_change_with_the_document_it_came_from() -> None:
    document: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
    schema = compile_schema(document)
    document["properties"]["b"] = {"type": "string"}
    assert schema.check({"b": "x"}) is not None
    assert schema.document["properties"].keys() == {"a"}


def test_digest_names_content_and_not_key_order() -> None:
    one = compile_schema({"type": "integer", "minimum": 1})
    assert one == compile_schema({"minimum": 1, "type": "integer"})
    assert one != compile_schema({"type": "integer", "minimum": 2})
    assert one.digest == digest_of({"minimum": 1, "type": "integer"})


# --- against the oracle

# A short alphabet: building the table of all of Unicode costs more than the tests.
LETTERS = "ab$/~ _0é\u0301\u200d😀𝄞\x00\x7f\u202e"
NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([0.0, -0.0, 1.0, 2.5, -1.5, 1e15, 2**53 - 1, -(2**53) + 1, float(2**53 - 1), 1e-300]),
)
TEXTS = st.one_of(st.sampled_from(["", "a", "ab", "😀", "e\u0301", "👨‍👩‍👧‍👦", "\x00"]), st.text(LETTERS, max_size=4))
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
NAMES = st.sampled_from(["a", "b", "a/b", "~", "", "type", "😀"])
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=6)
LIMITS = {
    "array": ("maxItems", st.integers(0, 3)),
    "integer": ("maximum", NUMBERS),
    "number": ("minimum", NUMBERS),
    "string": ("maxLength", st.integers(0, 3)),
}


@st.composite
def pairs(draw: st.DrawFn, depth: int = 3) -> tuple[dict[str, Any], Any]:
    """A schema of the subset and a value that fits it, or almost."""
    kinds = ["array", "object", "integer", "number", "string", "boolean"]
    kind = draw(st.sampled_from(kinds if depth else kinds[2:]))
    schema: dict[str, Any] = {"type": kind}
    if kind == "array":
        schema["items"], item = draw(pairs(depth - 1))
        value: Any = [item] * draw(st.integers(0, 2)) + draw(st.lists(VALUES, max_size=1))
    elif kind == "object":
        members = draw(st.dictionaries(NAMES, pairs(depth - 1), max_size=3))
        schema |= {"properties": {name: inner for name, (inner, _) in members.items()}, "additionalProperties": False}
        schema["required"] = draw(st.lists(st.sampled_from(sorted(members)), unique=True)) if members else []
        kept = {name for name in members if draw(st.integers(0, 5))}
        value = {name: member for name, (_, member) in members.items() if name in kept}
        value |= draw(st.dictionaries(NAMES, VALUES, max_size=1)) if not draw(st.integers(0, 4)) else {}
    else:
        value = draw({"integer": NUMBERS, "number": NUMBERS, "string": TEXTS, "boolean": st.booleans()}[kind])
    if kind in LIMITS and draw(st.booleans()):
        schema[LIMITS[kind][0]] = draw(LIMITS[kind][1])
    if not draw(st.integers(0, 3)):
        offered = [known for known in (value, draw(VALUES)) if Draft202012Validator({"type": kind}).is_valid(known)]
        if offered:  # the second only where the oracle finds it another value
            schema["enum"] = offered[:1] + [
                known for known in offered[1:] if not Draft202012Validator({"enum": offered[:1]}).is_valid(known)
            ]
    return schema, draw(VALUES) if not draw(st.integers(0, 7)) else value


def places(schema: dict[str, Any], value: object) -> set[str]:
    found = set()
    for error in Draft202012Validator(schema).iter_errors(value):
        pointer = ""
        for step in error.absolute_path:
            pointer = pointer_to(pointer, step)
        found.add(pointer)
    return found


@pytest.mark.clause("4.3")
@pytest.mark.invariant("14")
@settings(FEW, max_examples=100)
@given(pairs())
def test_engine_and_oracle_agree_on_what_the_wire_admits(pair: tuple[dict[str, Any], Any]) -> None:
    document, value = pair
    check_value(value)
    schema = compile_schema(document)
    Draft202012Validator.check_schema(document)
    mismatch = schema.check(value)
    wrong = places(document, value)
    if mismatch is None:
        assert not wrong
    else:  # the oracle places a missing or a refused property at its object
        assert mismatch.pointer in wrong or mismatch.pointer.rpartition("/")[0] in wrong


@pytest.mark.clause("4.3")
@FEW
@given(st.lists(VALUES, min_size=1, max_size=2), VALUES)
def test_enum_and_oracle_agree_on_equality(members: list[Any], value: object) -> None:
    document = {"type": "array", "items": {"type": "array", "items": {"type": "string"}}, "enum": [members]}
    outcome = compile_schema(document).check([value])
    assert (outcome is None) == Draft202012Validator(document).is_valid([value])
