"""From a decoded map to a message, and the shape of every value a request is answered with. Both ends may use it.

Use: `parse_frame(frame, FROM_WORKER)` or `parse_frame(frame, TO_WORKER)`; `check_reply(reply, request_type)` before a reply is believed;
`check_fields(type(message), values)` before a message leaves.
Rules:
1. The frame already passed `framing.decode_item`; here only names and kinds of the message's own level are checked.
2. An unknown type, an extra field, an absent field, a field of another kind or, from a worker, out of its bounds (bounds.py), a request
   without a good id or an id where none belongs: all are ProtocolViolation. Nothing is coerced; a boolean is never a number.
3. The kinds are read from the annotations of messages.py, so a message cannot be added here and forgotten there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

from lineup_sdk.protocol.bounds import bounds_of
from lineup_sdk.protocol.capability_messages import CapabilityRequest
from lineup_sdk.protocol.framing import ProtocolViolation
from lineup_sdk.protocol.interaction_messages import UiGet, UiRequest
from lineup_sdk.protocol.limits import MAX_INTEGER
from lineup_sdk.protocol.messages import (
    FROM_WORKER,
    TO_WORKER,
    InboxAcknowledge,
    InboxList,
    JsonObject,
    Message,
    Reply,
    StateLoad,
    ToolsGet,
)
from lineup_sdk.protocol.surface_messages import ArtifactGet, ArtifactPut, SurfaceOpen, SurfaceRead, SurfaceUpdate
from lineup_sdk.protocol.system_messages import ConversationSendText, TimelinePlace

_Check = Callable[[Any], bool]


def _is(*kinds: type) -> _Check:
    return lambda value: type(value) in kinds


_KINDS: dict[str, _Check] = {
    "JsonObject": _is(dict),
    "bool": _is(bool),
    "bytes": _is(bytes),
    "float": _is(int, float),
    "int": _is(int),
    "list[JsonObject]": lambda value: type(value) is list and all(type(item) is dict for item in value),
    "str": _is(str),
}


class BadField(ProtocolViolation):
    """A field is not what its message says: reason is field, field_kind, field_bound or field_missing."""

    def __init__(self, reason: str, name: str = "", expected: str = "") -> None:
        super().__init__(reason)
        self.pointer = f"/{name}" if name else ""  # never a name that is not the message's own
        self.expected = expected


def _kind_of(field: Field[Any]) -> str:
    return str(field.type).removesuffix(" | None")


def _fields_of(message_type: type[Message]) -> dict[str, tuple[_Check, bool]]:
    return {f.name: (_KINDS[_kind_of(f)], f.default is MISSING) for f in fields(message_type)}


_FIELDS = {c: _fields_of(c) for c in (*FROM_WORKER.values(), *TO_WORKER.values())}
_BOUNDS = {c: bounds_of(c) if c in FROM_WORKER.values() else {} for c in _FIELDS}

# What the value of a reply holds, for the requests that are answered by a value and not by a receipt.
REPLY_VALUES: dict[type[Message], dict[str, _Check]] = {
    CapabilityRequest: {"request_id": _is(str), "status": _is(str)},
    ArtifactGet: {"media_type": _is(str), "of": _is(str), "sha256": _is(str), "size": _is(int)},
    ArtifactPut: {"artifact_id": _is(str)},
    InboxAcknowledge: {"acknowledged": _is(bool)},
    InboxList: {"messages": _is(list), "more": _is(bool)},
    ConversationSendText: {"message_id": _is(str)},
    StateLoad: {"state": _is(dict, type(None))},
    TimelinePlace: {"placed": _is(bool)},
    SurfaceOpen: {"version": _is(int)},
    SurfaceRead: {"of": _is(str), "size": _is(int), "version": _is(int)},
    SurfaceUpdate: {"version": _is(int)},
    UiGet: {"interaction_id": _is(str), "kind": _is(str), "result": _is(dict, type(None)), "status": _is(str)},
    UiRequest: {"interaction_id": _is(str)},
    ToolsGet: {"attempts": _is(int), "call_id": _is(str), "input": _is(dict), "status": _is(str), "tool_id": _is(str)},
}
CONTENT_FOLLOWS = frozenset({ArtifactGet, SurfaceRead})  # their value names the chunks that come after it
INBOX_ROW: dict[str, _Check] = {"body": _is(dict), "delivery_count": _is(int), "message_id": _is(str), "topic": _is(str)}


def parse_frame(frame: JsonObject, registry: Mapping[str, type[Message]]) -> tuple[Message, int | None]:
    """Return the message of a frame and, when it is a request, its id.

    Raises: ProtocolViolation("type" | "id"), BadField. Source: SPEC 2.2, 2.3.
    """
    values = dict(frame)
    message_type = _type_of(values.pop("type", None), registry)
    request_id = _take_request_id(values) if message_type.EXPECTS_REPLY else None
    check_fields(message_type, values)
    return message_type(**values), request_id


def check_fields(message_type: type[Message], values: JsonObject) -> None:
    """Refuse values that are not the fields of a message, of their kinds and in their bounds; an absent optional field is not among them.

    Raises: BadField.
    """
    expected = _FIELDS[message_type]
    bounds = _BOUNDS[message_type]
    for name, value in values.items():
        if name not in expected:
            raise BadField("field")
        if not expected[name][0](value):
            raise BadField("field_kind", name, _expected_kind(message_type, name))
        if name in bounds and not bounds[name].holds(value):
            raise BadField("field_bound", name, str(bounds[name]))
    for name, (_, is_required) in expected.items():
        if is_required and name not in values:
            raise BadField("field_missing", name, _expected_kind(message_type, name))


def _expected_kind(message_type: type[Message], name: str) -> str:
    return next(_kind_of(f) for f in fields(message_type) if f.name == name).replace("JsonObject", "dict")


def _type_of(name: object, registry: Mapping[str, type[Message]]) -> type[Message]:
    if type(name) is not str or name not in registry:
        raise ProtocolViolation("type")
    return registry[name]


def _take_request_id(values: JsonObject) -> int:
    request_id = values.pop("id", None)
    if type(request_id) is not int or not 1 <= request_id <= MAX_INTEGER:
        raise ProtocolViolation("id")
    return request_id


def check_reply(reply: Reply, request_type: type[Message]) -> None:
    """Refuse a reply that is neither a good receipt nor the value this request is answered with.

    Raises: ProtocolViolation("reply"). Source: SPEC 2.5.
    """
    if (reply.value is None) == (reply.receipt is None):
        raise ProtocolViolation("reply")
    if reply.receipt is not None:
        _check_receipt(reply.receipt, is_value_owed=request_type in REPLY_VALUES)
    elif reply.value is not None:
        _check_members(reply.value, REPLY_VALUES.get(request_type, {}))
        for row in reply.value["messages"] if request_type is InboxList else ():
            _check_members(row, INBOX_ROW)


def _check_receipt(receipt: JsonObject, *, is_value_owed: bool) -> None:
    accepted = receipt.get("accepted")
    if accepted is True and not is_value_owed:
        return
    if accepted is False and type(receipt.get("code")) is str and type(receipt.get("detail", {})) is dict:
        return
    raise ProtocolViolation("reply")


def _check_members(value: object, expected: Mapping[str, _Check]) -> None:
    if type(value) is not dict or value.keys() != expected.keys():
        raise ProtocolViolation("reply")
    if not all(check(value[name]) for name, check in expected.items()):
        raise ProtocolViolation("reply")
