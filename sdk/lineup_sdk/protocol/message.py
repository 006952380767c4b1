"""What a message is: a frozen dataclass of plain data with a name on the wire, and the map it becomes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What every message shares: its name on the wire and whether it is answered."""

    TYPE: ClassVar[str] = ""
    EXPECTS_REPLY: ClassVar[bool] = False


_field_names: dict[type[Message], tuple[str, ...]] = {}


def _names_of(kind: type[Message]) -> tuple[str, ...]:
    if kind not in _field_names:
        _field_names[kind] = tuple(f.name for f in fields(kind))
    return _field_names[kind]


def to_frame(message: Message, request_id: int | None = None) -> JsonObject:
    """Turn a message into the map that goes into a frame; absent fields are left out."""
    frame: JsonObject = {"type": message.TYPE}
    if request_id is not None:
        frame["id"] = request_id
    for name in _names_of(type(message)):
        value = getattr(message, name)
        if value is not None:
            frame[name] = value
    return frame
