"""The strict border: an untrusted map becomes a message of messages.py or host.py, or is refused (SPEC 2.2-2.5, 11.1).

Rules:
1. Every message class has one pydantic model, made from its fields: strict types, no extra key, no coercion, no input in errors.
2. A name means one thing on every wire, so the bounds of a field stand once, by its name: those a worker's messages have are published
   (lineup_sdk.protocol.bounds), those only a host's have stand in BOUNDS.
3. What is refused is told as a Detail without the value: pointer, what was expected, the JSON type and size of what came.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, create_model

from kernel.protocol.host import FROM_HOST
from lineup_sdk.protocol import bounds
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.framing import ProtocolViolation
from lineup_sdk.protocol.limits import MAX_INTEGER
from lineup_sdk.protocol.messages import FROM_WORKER, IDENTITY_KEYS, UNGRANTED_TYPES, JsonObject, Message

STRICT = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)

Ident = Annotated[str, StringConstraints(min_length=bounds.IDENT.least, max_length=bounds.IDENT.most)]
Count = Annotated[int, Field(ge=0, le=MAX_INTEGER)]
ShortText = Annotated[str, StringConstraints(max_length=bounds.SHORT_TEXT.most)]
LongText = Annotated[str, StringConstraints(max_length=bounds.LONG_TEXT.most)]


def _strict(bound: bounds.Bound) -> Any:
    match bound:
        case bounds.Length(least, most):
            return Annotated[str, StringConstraints(min_length=least or None, max_length=most)]
        case bounds.Form(pattern):
            return Annotated[str, StringConstraints(pattern=f"^({pattern})$")]
        case bounds.Span(least, most):
            return Annotated[int, Field(ge=least, le=most)]


BOUNDS: Mapping[str, Any] = {name: _strict(bound) for name, bound in bounds.BY_NAME.items()} | {
    "allowed": bool,
    "answer": dict[str, Any],
    "app_scope": Ident,
    "app_session_id": Ident,
    "before": Count,
    "decision": Annotated[str, StringConstraints(pattern="^(once|while_open|always|deny|never)$")],
    "draft": dict[str, Any],
    "instance_id": Ident,
    "label": Annotated[str, StringConstraints(pattern="^[a-z0-9-]{1,32}$")],
    "limit": Annotated[int, Field(ge=1, le=200)],
    "mount_epoch": Count,
    "name": Ident,
    "pairing": Ident,
    "path": Annotated[str, StringConstraints(min_length=1, max_length=4096)],
    "percent": Annotated[float, Field()],
    "place": Annotated[str, StringConstraints(pattern="^(default|inline|modal)$")],
    "providers": Annotated[list[Ident], Field(max_length=16)],
    "request": dict[str, Any],
    "request_id": Ident,
    "role": Annotated[str, StringConstraints(pattern="^(view|admin|agent)$")],
    "shown": _strict(bounds.DIGEST),
    "shown_digest": _strict(bounds.DIGEST),
    "state": Any,
    "surface_id": Ident,
    "surface_version": Count,
    "tool_id": Annotated[str, StringConstraints(min_length=1, max_length=129)],  # scope, dot, verb
    "what": Ident,
}
_OWN_BOUNDS: Mapping[tuple[str, str], Any] = {place: _strict(bound) for place, bound in bounds.OWN.items()} | {
    ("audit.tail", "after"): Count,
    ("calls.list", "state"): Annotated[str, StringConstraints(pattern="^[a-z_]{1,32}$")],
    ("inbox.parked", "after"): Count,
    ("interactions.list", "state"): Annotated[str, StringConstraints(pattern="^[a-z_]{1,32}$")],
    ("outbox.refuse", "code"): _strict(bounds.TOKEN),
    ("provider.result", "status"): Annotated[str, StringConstraints(pattern="^(done|failed)$")],
    ("state.save", "state"): dict[str, Any],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Where an untrusted value is not what it has to be. Never the value itself."""

    pointer: str
    expected: str
    got_type: str
    got_size: int | None = None

    def as_json(self) -> JsonObject:
        """The wire form of a detail (SPEC 2.5)."""
        size = {} if self.got_size is None else {"got_size": self.got_size}
        return {"pointer": self.pointer, "expected": self.expected, "got_type": self.got_type, **size}


class Invalid(Exception):
    """An untrusted value does not fit its model."""

    def __init__(self, refusal: Refusal, code: Code = Code.PROTOCOL_VIOLATION) -> None:
        super().__init__(code)
        self.refusal = refusal
        self.code = code


class Denied(Exception):
    """A worker named itself, or asked for what exists but is not granted: capability_denied, answered on request_id."""

    def __init__(self, request_id: int | None, what: str) -> None:
        super().__init__(what)
        self.request_id = request_id
        self.what = what  # identity | not_granted


_models: dict[type[Message], type[BaseModel]] = {}


def model_of(kind: type[Message]) -> type[BaseModel]:
    """The strict model of a message class, made from its fields and BOUNDS when the first one comes: all at once delay a start."""
    if kind not in _models:
        _models[kind] = _made_model(kind)
    return _models[kind]


def _made_model(kind: type[Message]) -> type[BaseModel]:
    hints = get_type_hints(kind)
    members: dict[str, Any] = {}
    for member in fields(kind):
        by_name = BOUNDS.get(member.name, _without_null(hints[member.name]))
        bound = _OWN_BOUNDS.get((kind.TYPE, member.name), by_name)
        members[member.name] = (bound, ... if member.default is MISSING else member.default)
    return create_model(kind.__name__, __config__=STRICT, **members)


def _without_null(hint: Any) -> Any:
    """An absent optional field takes its default; null on the wire is not an absent field and is refused."""
    kinds = [kind for kind in get_args(hint) if kind is not NoneType]
    return kinds[0] if get_origin(hint) is UnionType and len(kinds) == 1 else hint


def parse_worker(untrusted_frame: JsonObject) -> tuple[Message, int | None]:
    """Return a worker's message and its request id.

    Raises: ProtocolViolation (unknown type, wrong shape, id missing or out of place), Denied (identity key, type not granted).
    """
    name = untrusted_frame.get("type")
    request_id = untrusted_frame.get("id")
    if not IDENTITY_KEYS.isdisjoint(untrusted_frame):
        raise Denied(request_id if type(request_id) is int else None, "identity")
    if isinstance(name, str) and name in UNGRANTED_TYPES:  # a list or a map has no hash: to look for it would be our own failure
        raise Denied(request_id if type(request_id) is int else None, "not_granted")
    kind = FROM_WORKER.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ProtocolViolation("unknown_type")
    try:
        return _build(kind, untrusted_frame), _checked_id(kind, untrusted_frame)
    except Invalid as error:
        raise ProtocolViolation("shape") from error


def parse_host(untrusted_frame: JsonObject) -> tuple[Message, int | None]:
    """Return a host's message and its request id. Raises: ProtocolViolation (type, id), Invalid (a field)."""
    name = untrusted_frame.get("type")
    kind = FROM_HOST.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ProtocolViolation("unknown_type")
    return _build(kind, untrusted_frame), _checked_id(kind, untrusted_frame)


def _checked_id(kind: type[Message], untrusted_frame: JsonObject) -> int | None:
    if not kind.EXPECTS_REPLY:
        if "id" in untrusted_frame:
            raise ProtocolViolation("id_out_of_place")
        return None
    request_id = untrusted_frame.get("id")
    if type(request_id) is not int or not 1 <= request_id <= MAX_INTEGER:
        raise ProtocolViolation("id")
    return request_id


def _build(kind: type[Message], untrusted_frame: JsonObject) -> Message:
    untrusted_fields = untrusted_frame.copy()
    untrusted_fields.pop("type")
    untrusted_fields.pop("id", None)
    return kind(**validate(model_of(kind), untrusted_fields).__dict__)  # a model holds its fields, defaults among them, and nothing else


_Model = TypeVar("_Model", bound=BaseModel)


def validate(model: type[_Model], untrusted: object, pointer: str = "") -> _Model:
    """Check a value against a strict model. Raises: Invalid."""
    try:
        return model.model_validate(untrusted)
    except ValidationError as error:
        raise Invalid(_explain(error, untrusted, pointer)) from None


_EXPECTED = {
    "bool_type": "boolean",
    "dict_type": "object",
    "extra_forbidden": "no such property",
    "float_type": "number",
    "int_type": "integer",
    "list_type": "array",
    "missing": "property required",
    "string_type": "string",
}


def _explain(error: ValidationError, untrusted: object, pointer: str) -> Refusal:
    first = error.errors(include_url=False, include_context=True, include_input=False)[0]
    value: Any = untrusted
    for part in first["loc"]:
        value = value.get(part) if isinstance(value, dict) else None
        pointer += "/" + str(part).replace("~", "~0").replace("/", "~1")
    kind = str(first["type"])
    bounds = " ".join(f"{name} {bound}" for name, bound in sorted(first.get("ctx", {}).items()) if isinstance(bound, int | str))
    if kind == "extra_forbidden":  # the key is the sender's text
        pointer = re.sub(r"/[^/]*$", "", pointer)
    return Refusal(
        pointer=pointer,
        expected=_EXPECTED.get(kind, f"{kind.replace('_', ' ')} {bounds}".strip()),
        got_type="absent" if kind == "missing" else json_type(value),
        got_size=len(value) if isinstance(value, str | list | dict | bytes) else None,
    )


def json_type(value: object) -> str:
    """The JSON name of a value's type."""
    names: dict[type, str] = {
        bool: "boolean",
        bytes: "bytes",
        dict: "object",
        float: "number",
        int: "integer",
        list: "array",
        str: "string",
    }
    return names.get(type(value), "null")
