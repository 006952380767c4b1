"""Frames of every wire: 4-byte big-endian length, then exactly one strict CBOR map (SPEC 2.1). Sans-IO.

Use: `FrameReader(max_frame_bytes)`; `feed(bytes)`, then `next_frame()` until it returns None. `encode_frame(map)` for the other way.
Rules:
1. One decoder for all wires; whatever it refuses is a ProtocolViolation, and that channel is closed by its owner.
2. No tag, undefined, simple value, indefinite length, duplicate or non-text key, NaN or Infinity, no integer (or integral
   float) beyond +-(2^53-1), no trailing byte, no depth over 16. cbor2 refuses some; one walk over the result refuses the rest.
3. `check_value` is the same walk for values that came through JSON or are about to be sent.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from io import BytesIO
from math import isfinite
from typing import Any, NoReturn

import cbor2

from lineup_sdk.protocol.limits import MAX_DEPTH, MAX_INTEGER

_LENGTH = struct.Struct(">I")
_BUILTIN_TAGS = (*range(300), 1004, 43000, 55799)


class ProtocolViolation(Exception):
    """The peer broke the wire. `reason` is a fixed word, never a piece of what came."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def _refuse_tag(*_: Any) -> NoReturn:
    raise ProtocolViolation("tag")


_REFUSED_TAGS = dict.fromkeys(_BUILTIN_TAGS, _refuse_tag)


def decode_item(data: bytes) -> dict[str, Any]:
    """Decode one CBOR map under the strict profile.

    Raises: ProtocolViolation.
    """
    stream = BytesIO(data)
    decoder = cbor2.CBORDecoder(
        stream,
        max_depth=MAX_DEPTH,
        allow_indefinite=False,
        allow_duplicate_keys=False,
        strict_hashable_types=True,
        tag_hook=_refuse_tag,
        semantic_decoders=_REFUSED_TAGS,
    )
    try:
        value = decoder.decode()
    except ProtocolViolation:
        raise
    except Exception as error:  # cbor2 raises many kinds on hostile bytes; the border translates them all
        raise ProtocolViolation("cbor") from error
    if stream.tell() != len(data):
        raise ProtocolViolation("trailing_bytes")
    if type(value) is not dict:
        raise ProtocolViolation("not_a_map")
    check_value(value)
    return value


def check_value(value: object, *, max_depth: int = MAX_DEPTH, allow_bytes: bool = True) -> None:
    """Walk a value and refuse what no wire admits.

    Raises: ProtocolViolation.
    """
    level: list[Any] = [value]
    depth = 0
    while level:
        depth += 1
        below: list[Any] = []
        for item in level:
            kind = type(item)
            if kind is str:  # first and in line: most of what travels is text
                if not item.isascii():
                    _check_text(item)
            elif kind is int:
                if not -MAX_INTEGER <= item <= MAX_INTEGER:
                    raise ProtocolViolation("integer_range")
            elif kind is dict or kind is list:
                if depth > max_depth:
                    raise ProtocolViolation("depth")
                below.extend(_members(item) if kind is dict else item)
            elif kind is float:
                _check_float(item)
            elif kind is bool or item is None:
                pass
            elif not (allow_bytes and kind is bytes):
                raise ProtocolViolation("value_kind")
        level = below


def _members(item: dict[Any, Any]) -> Iterable[Any]:
    """The values of a map whose keys are sound."""
    for key in item:
        if type(key) is not str:
            raise ProtocolViolation("key")
        if not key.isascii():
            _check_text(key)
    return item.values()


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ProtocolViolation("lone_surrogate") from error


def _check_float(number: float) -> None:
    if not isfinite(number) or (number.is_integer() and abs(number) > MAX_INTEGER):
        raise ProtocolViolation("number")


def in_order(value: Any) -> Any:
    """A JSON value with the keys of all its maps in order: equal content then gives equal bytes, whoever wrote it."""
    kind = type(value)
    if kind is dict:
        return {key: in_order(value[key]) for key in sorted(value)}
    return [in_order(item) for item in value] if kind is list else value


def encode_frame(frame: dict[str, Any], max_frame_bytes: int) -> bytes:
    """Encode one frame with its length.

    Raises: ProtocolViolation("frame_size") when it is larger than the receiver would take.
    """
    return frame_of(cbor2.dumps(frame), max_frame_bytes)


def frame_of(body: bytes, max_frame_bytes: int) -> bytes:
    """Put the length before an encoded map. Raises: as encode_frame."""
    if len(body) > max_frame_bytes:
        raise ProtocolViolation("frame_size")
    return _LENGTH.pack(len(body)) + body


class FrameReader:
    """Splits a byte stream into frames; holds at most one incomplete frame."""

    def __init__(self, max_frame_bytes: int) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._buffer = bytearray()
        self._position = 0

    def feed(self, data: bytes) -> None:
        """Take bytes as they came."""
        if self._position:
            del self._buffer[: self._position]
            self._position = 0
        self._buffer += data

    def next_frame_bytes(self) -> bytes | None:
        """Return the body of the next whole frame, or None when more bytes are needed.

        Raises: ProtocolViolation for a length of 0 or over the limit, before anything of it is awaited.
        """
        start = self._position
        if len(self._buffer) - start < _LENGTH.size:
            return None
        (size,) = _LENGTH.unpack_from(self._buffer, start)
        if not 0 < size <= self._max_frame_bytes:
            raise ProtocolViolation("frame_size")
        end = start + _LENGTH.size + size
        if len(self._buffer) < end:
            return None
        self._position = end
        return bytes(self._buffer[start + _LENGTH.size : end])

    def next_frame(self) -> dict[str, Any] | None:
        """Return the next whole frame decoded, or None. Raises: ProtocolViolation."""
        body = self.next_frame_bytes()
        return None if body is None else decode_item(body)
