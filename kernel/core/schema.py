"""The JSON schema subset (SPEC 4.3): which schemas are admitted, and whether a value fits one. Pure.

Use: `compile_schema(untrusted)` once, when a Manifest is read; then `schema.check(value)` per call. `digest_of(value)` names any
JSON value by its content.
Rules:
1. A schema is refused at load, with the path, for anything outside the subset. A keyword that its type does not know is outside.
2. Every value has exactly one type: objects name all their properties, arrays their items. So null and byte strings fit nothing.
3. JSON's rules, not Python's: a boolean is no number, 1.0 is an integer and equals 1, length counts code points; no coercion.
4. Only values that passed the strict decoder (framing.check_value) may be checked: the engine raises on others.
5. The engine (jsonschema-rs) decides; `_Search` only says where, and stops at the first place in the order: a container
   before its members, members by name, items by index. (Collecting the engine's errors and sorting them was tried: 48 KiB of
   wrong items held the kernel for a third of a second, and its messages quote the value.)
6. A Mismatch never holds the refused value: only its place, its type and its size.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final

import cbor2
import jsonschema_rs

from lineup_sdk.protocol.framing import ProtocolViolation, check_value
from lineup_sdk.protocol.limits import MAX_DEPTH
from lineup_sdk.protocol.messages import JsonObject

MAX_SCHEMA_LEVELS: Final = 8  # schemas inside schemas
MAX_SCHEMA_NODES: Final = 256
MAX_SCHEMA_BYTES: Final = 16 * 1024  # as deterministic CBOR
# Maps and lists inside one another. A schema is shown to the Agent inside a frame, at most five levels down: one that could not
# be sent there would break the door for every tool of the inventory.
MAX_SCHEMA_DOCUMENT_DEPTH: Final = MAX_DEPTH - 5
# A refused property with a longer name is reported at its object: a report stays small.
MAX_NAMED_KEY_CHARACTERS: Final = 64

_ANNOTATIONS: Final = frozenset({"default", "description", "title"})
_COMMON: Final = _ANNOTATIONS | {"enum", "type"}
_KEYWORDS: Final = {
    "array": _COMMON | {"items", "maxItems"},
    "boolean": _COMMON,
    "integer": _COMMON | {"maximum", "minimum"},
    "number": _COMMON | {"maximum", "minimum"},
    "object": _COMMON | {"additionalProperties", "properties", "required"},
    "string": _COMMON | {"maxLength", "minLength"},
}
_ANY_KEYWORD: Final = frozenset().union(*_KEYWORDS.values())


class SchemaInvalid(Exception):
    """A schema is outside the subset. `pointer` is a JSON pointer into the document, `reason` a short text."""

    def __init__(self, pointer: str, reason: str) -> None:
        super().__init__(f"{pointer or '/'}: {reason}")
        self.pointer = pointer
        self.reason = reason


class EngineDisagrees(Exception):
    """The engine refused a value in which nothing wrong can be found: it never passed the strict decoder. A bug of the caller."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Why a value does not fit: where, what was expected, and the type and size of what came (SPEC 2.5).

    got_size counts code points, items, members or bytes; None for the rest. got_type "absent" is a missing property.
    """

    pointer: str
    expected: str
    got_type: str
    got_size: int | None = None

    @property
    def detail(self) -> JsonObject:
        """The four facts as they travel in a receipt or a report; an absent size is left out."""
        detail: JsonObject = {"pointer": self.pointer, "expected": self.expected, "got_type": self.got_type}
        return detail if self.got_size is None else {**detail, "got_size": self.got_size}


@dataclass(frozen=True, slots=True)
class Schema:
    """An admitted schema, ready to check values. Two are equal when their digests are."""

    document: JsonObject = field(compare=False, repr=False)
    digest: str
    _engine: jsonschema_rs.Draft202012Validator = field(compare=False, repr=False)

    def check(self, value: object) -> Mismatch | None:
        """Return the first place where the value does not fit, or None when it fits.

        Raises: EngineDisagrees, for a value that never passed the strict decoder.
        """
        try:
            if self._engine.is_valid(value):
                return None
        except ValueError:  # the engine knows no byte strings; they fit nothing, and the walk below says so
            pass
        mismatch = _Search().first(self.document, value)
        if mismatch is None:
            raise EngineDisagrees
        return mismatch


def digest_of(value: object) -> str:
    """Return the SHA-256 (hex) of a JSON value's deterministic CBOR encoding: equal for equal content, whatever the key order."""
    return sha256(cbor2.dumps(value, canonical=True)).hexdigest()


def pointer_to(pointer: str, key: str | int) -> str:
    """Return the JSON pointer (RFC 6901) of a member or item of what `pointer` points to."""
    return f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}"


def pointer_to_refused(pointer: str, name: str) -> str:
    """Return the pointer of a member nobody asked for, or of its object when the name is too long to repeat in a report."""
    return pointer_to(pointer, name) if len(name) <= MAX_NAMED_KEY_CHARACTERS else pointer


# --- a schema is admitted


def compile_schema(untrusted: object, *, pointer: str = "") -> Schema:
    """Check that a document is inside the subset and make it ready. `pointer` is where the document itself stands.

    Raises: SchemaInvalid. Source: SPEC 4.3.
    """
    _require_json(untrusted, pointer, max_depth=4 * MAX_DEPTH)  # bounds the recursion below; the exact depth follows
    if not isinstance(untrusted, dict):
        raise SchemaInvalid(pointer, _NOT_AN_OBJECT)
    if len(cbor2.dumps(untrusted, canonical=True)) > MAX_SCHEMA_BYTES:
        raise SchemaInvalid(pointer, f"more than {MAX_SCHEMA_BYTES} bytes")
    if _require_node(untrusted, pointer, level=1) > MAX_SCHEMA_NODES:
        raise SchemaInvalid(pointer, f"more than {MAX_SCHEMA_NODES} nodes")
    _require_json(untrusted, pointer, max_depth=MAX_SCHEMA_DOCUMENT_DEPTH)
    document: JsonObject = deepcopy(untrusted)
    return Schema(document, digest_of(document), jsonschema_rs.Draft202012Validator(document))


def _require_json(untrusted: object, pointer: str, *, max_depth: int) -> None:
    try:
        check_value(untrusted, max_depth=max_depth, allow_bytes=False)
    except ProtocolViolation as violation:
        too_deep = f"more than {max_depth} maps and lists inside one another"
        raise SchemaInvalid(pointer, too_deep if violation.reason == "depth" else f"not JSON: {violation.reason}") from violation


_NOT_AN_OBJECT: Final = "a schema is an object"


def _require_node(untrusted: object, pointer: str, *, level: int) -> int:
    """Check one schema and those inside it; return how many they are."""
    if not isinstance(untrusted, dict):
        raise SchemaInvalid(pointer, _NOT_AN_OBJECT)
    if level > MAX_SCHEMA_LEVELS:
        raise SchemaInvalid(pointer, f"more than {MAX_SCHEMA_LEVELS} schemas inside one another")
    kind = _require_type(untrusted, pointer)
    _require_annotations(untrusted, pointer)
    _require_enum(untrusted, kind, pointer)
    if kind == "object":
        return 1 + _require_object_keywords(untrusted, pointer, level)
    if kind == "array":
        return 1 + _require_array_keywords(untrusted, pointer, level)
    if kind == "string":
        _require_range(untrusted, pointer, "minLength", "maxLength", is_length=True)
    elif kind in ("integer", "number"):
        _require_range(untrusted, pointer, "minimum", "maximum", is_length=False)
    return 1


def _require_type(node: JsonObject, pointer: str) -> str:
    kind = node.get("type")
    known = _KEYWORDS.get(kind, frozenset()) if isinstance(kind, str) else frozenset()
    # Keywords first: "$ref is not known" says more than "type is missing" for the schema that is only a reference.
    for keyword in sorted(node):
        if keyword not in _ANY_KEYWORD:
            raise SchemaInvalid(pointer_to_refused(pointer, keyword), "keyword outside the subset")
        if known and keyword not in known:
            raise SchemaInvalid(pointer_to(pointer, keyword), f"keyword has no meaning for type {kind}")
    if not known:
        raise SchemaInvalid(pointer_to(pointer, "type"), f"one of {', '.join(_KEYWORDS)}")
    return str(kind)


def _require_annotations(node: JsonObject, pointer: str) -> None:
    for keyword in ("title", "description"):
        if not isinstance(node.get(keyword, ""), str):
            raise SchemaInvalid(pointer_to(pointer, keyword), "text")


def _require_enum(node: JsonObject, kind: str, pointer: str) -> None:
    if "enum" not in node:
        return
    at = pointer_to(pointer, "enum")
    values = node["enum"]
    if not isinstance(values, list) or not values:
        raise SchemaInvalid(at, "a list of at least one value")
    seen: set[object] = set()
    for index, value in enumerate(values):
        if not _is_of_type(value, kind):
            raise SchemaInvalid(pointer_to(at, index), f"a value of type {kind}")
        if (identity := _json_identity(value)) in seen:
            raise SchemaInvalid(pointer_to(at, index), "a value that is not in the list yet")
        seen.add(identity)


def _require_object_keywords(node: JsonObject, pointer: str, level: int) -> int:
    if node.get("additionalProperties") is not False:
        raise SchemaInvalid(pointer_to(pointer, "additionalProperties"), "must be stated, false")
    properties = node.get("properties", {})
    at = pointer_to(pointer, "properties")
    if not isinstance(properties, dict):
        raise SchemaInvalid(at, "an object of schemas")
    _require_required(node, properties, pointer_to(pointer, "required"))
    return sum(_require_node(node, pointer_to(at, name), level=level + 1) for name, node in properties.items())


def _require_required(node: JsonObject, properties: JsonObject, at: str) -> None:
    names = node.get("required", [])
    if not isinstance(names, list):
        raise SchemaInvalid(at, "a list of property names")
    for index, name in enumerate(names):
        if not isinstance(name, str) or name not in properties:
            raise SchemaInvalid(pointer_to(at, index), "a name from properties")
        if name in names[:index]:
            raise SchemaInvalid(pointer_to(at, index), "a name that is not in the list yet")


def _require_array_keywords(node: JsonObject, pointer: str, level: int) -> int:
    _require_length(node, pointer, "maxItems")
    if "items" not in node:
        raise SchemaInvalid(pointer_to(pointer, "items"), "must be stated")
    return _require_node(node["items"], pointer_to(pointer, "items"), level=level + 1)


def _require_range(node: JsonObject, pointer: str, low: str, high: str, *, is_length: bool) -> None:
    for keyword in (low, high):
        if is_length:
            _require_length(node, pointer, keyword)
        elif keyword in node and not _is_of_type(node[keyword], "number"):
            raise SchemaInvalid(pointer_to(pointer, keyword), "a number")
    if low in node and high in node and node[low] > node[high]:
        raise SchemaInvalid(pointer_to(pointer, high), f"not below {low}")


def _require_length(node: JsonObject, pointer: str, keyword: str) -> None:
    if keyword in node and not (type(node[keyword]) is int and node[keyword] >= 0):
        raise SchemaInvalid(pointer_to(pointer, keyword), "an integer from 0")


# --- JSON's own idea of type and equality


def _is_of_type(value: object, kind: str) -> bool:
    got = _json_type(value)
    return got == kind or (kind == "number" and got == "integer")


def _json_type(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case str():
            return "string"
        case bytes():
            return "bytes"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            raise EngineDisagrees  # no wire admits it


def _json_size(value: object) -> int | None:
    return len(value) if isinstance(value, str | bytes | list | dict) else None


def _json_identity(value: object) -> object:
    """Return something hashable that is equal for equal JSON values: true is not 1, but 1.0 is."""
    match value:
        case list():
            return ("array", *map(_json_identity, value))
        case dict():
            return ("object", frozenset((key, _json_identity(member)) for key, member in value.items()))
        case bool():
            return ("boolean", value)
        case _:
            return value


# --- where a refused value is wrong


class _Search:
    """One walk to the first mismatch. Pointers grow on the way back, so that a walk over what fits builds no text."""

    def __init__(self) -> None:
        self._enums: dict[int, set[object]] = {}  # by id of the list: each is read once, however many items meet it

    def first(self, node: JsonObject, value: object) -> Mismatch | None:
        """Return the first mismatch; its pointer starts at this value."""
        expected = self._own_expectation(node, value)
        if expected is not None:
            return Mismatch("", expected, _json_type(value), _json_size(value))
        if isinstance(value, dict):
            return self._first_member(node, value)
        if isinstance(value, list):
            return self._first_item(node["items"], value)
        return None

    def _own_expectation(self, node: JsonObject, value: object) -> str | None:
        """Return what this value, its members left aside, should have been; None when it is that."""
        if not _is_of_type(value, node["type"]):
            return str(node["type"])
        if "enum" in node and not self._is_in_enum(node["enum"], value):
            return f"one of {len(node['enum'])} values"
        return _broken_limit(node, value if isinstance(value, int | float) else _json_size(value))

    def _is_in_enum(self, members: list[object], value: object) -> bool:
        identities = self._enums.get(id(members))
        if identities is None:
            identities = self._enums[id(members)] = set(map(_json_identity, members))
        return _json_identity(value) in identities

    def _first_member(self, node: JsonObject, value: JsonObject) -> Mismatch | None:
        properties: JsonObject = node.get("properties", {})
        for name in sorted({*value, *node.get("required", ())}):
            if name not in value:
                return Mismatch(pointer_to("", name), "property required", "absent")
            if name not in properties:
                at = pointer_to_refused("", name)
                return Mismatch(at, "no such property", _json_type(value[name]), _json_size(value[name]))
            if mismatch := self.first(properties[name], value[name]):
                return _inside(name, mismatch)
        return None

    def _first_item(self, items: JsonObject, value: list[object]) -> Mismatch | None:
        for index, item in enumerate(value):
            if mismatch := self.first(items, item):
                return _inside(index, mismatch)
        return None


def _broken_limit(node: JsonObject, measure: float | None) -> str | None:
    # Only numbers, text and arrays have these keywords, and those have a measure: the value itself or its length.
    for keyword in ("maxItems", "maxLength", "maximum"):
        if keyword in node and measure is not None and measure > node[keyword]:
            return f"{keyword} {node[keyword]}"
    for keyword in ("minLength", "minimum"):
        if keyword in node and measure is not None and measure < node[keyword]:
            return f"{keyword} {node[keyword]}"
    return None


def _inside(key: str | int, mismatch: Mismatch) -> Mismatch:
    return replace(mismatch, pointer=pointer_to("", key) + mismatch.pointer)
