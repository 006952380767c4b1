"""Inputs that are nearly right: good ones, changed in their structure or in their bytes, given to every target (targets.py).

    python -m tests.fuzz.mutate FIRST COUNT [TARGET]     prints one JSON object: how many, how many each target took, what was found

Rules:
1. The n-th input depends on n alone: `input_of(n)` makes a finding again.
2. CBOR is written by hand, so that it can be what no encoder writes: indefinite, tagged, doubled, too long, cut short.
3. A finding is an exception that the target's border does not promise; an input that takes SLOW_SECONDS is one too.
"""

from __future__ import annotations

import json
import random
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import cbor2

from lineup_sdk.protocol.framing import ProtocolViolation, decode_item
from tests.fuzz.seeds import seeds
from tests.fuzz.targets import JSON_TARGETS, MARKER, TARGETS

SLOW_SECONDS = 2.0
MOST_CHANGES = 4
_BYTE_CHANGES = 0.2
_ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**53 - 1, 2**53, -(2**53), 2**63, 2**64 - 1, 0.0, -0.0, 1.5, 1e308, 2.0**53, float("nan"), float("inf"),
    "", MARKER, MARKER * 60, "\x00", "\ud7ff", "\u202e", "\U0001f600", b"", b"\xff" * 9, [], {}, [[]], [None], {"": None}, {"type": MARKER},
    {"app_scope": "chat"}, {"instance_id": "x"}, {"__proto__": 1}, {"$ref": "#"}, "2026-02-30T00:00:00Z", "lineup.v2.tool.call",
)  # fmt: skip
_NAMES = (
    "type",
    "id",
    "app_scope",
    "owner",
    "input",
    "payload",
    MARKER,
    "",
    "__proto__",
    "$ref",
    "enum",
    "properties",
    "\x00",
    "patch",
    "value",
)
_SEEDS = seeds()
_NAMES_OF_TARGETS = tuple(TARGETS)


def input_of(number: int, target: str | None = None) -> tuple[str, bytes]:
    """The n-th input, and whose it is."""
    chance = random.Random(number)
    name = target or _NAMES_OF_TARGETS[number % len(_NAMES_OF_TARGETS)]
    base = chance.choice(_SEEDS[name])
    if chance.random() < _BYTE_CHANGES or name in {"log", "stream"}:
        return name, with_changed_bytes(base, chance)
    value = _read(base, is_json=name in JSON_TARGETS)
    if value is None:
        return name, with_changed_bytes(base, chance)
    for _ in range(chance.choice((0, 1, 1, 1, 1, 2, 3, MOST_CHANGES))):
        value = with_changed_value(value, chance)
    written = _json(value) if name in JSON_TARGETS else write_cbor(value, chance, 0.02 if chance.random() < 0.3 else 0.0)
    return name, with_changed_bytes(written, chance) if chance.random() < 0.1 else written


def _read(data: bytes, *, is_json: bool) -> Any:
    try:
        return json.loads(data) if is_json else decode_item(data)
    except (ProtocolViolation, RecursionError, ValueError):  # a bad seed is changed in its bytes instead
        return None


def _json(value: Any) -> bytes:
    return json.dumps(value, default=repr).encode(errors="surrogatepass")


# --------------------------------------------------------------------------------- values


def with_changed_value(value: Any, chance: random.Random) -> Any:
    """The value with one place of it changed."""
    if isinstance(value, dict) and value and chance.random() < 0.8:
        name = chance.choice(list(value))
        return {**value, name: with_changed_value(value[name], chance)} if chance.random() < 0.6 else _changed_members(value, name, chance)
    if isinstance(value, list) and value and chance.random() < 0.7:
        place = chance.randrange(len(value))
        return [*value[:place], with_changed_value(value[place], chance), *value[place + 1 :]]
    return _other(value, chance)


def _changed_members(value: dict[Any, Any], name: Any, chance: random.Random) -> dict[Any, Any]:
    match chance.randrange(5):
        case 0:
            return {key: member for key, member in value.items() if key != name}
        case 1:
            return {**value, chance.choice(_NAMES): chance.choice(_ODD)}
        case 2:
            return {(chance.choice(_NAMES) if key == name else key): member for key, member in value.items()}
        case 3:
            return dict(reversed(value.items()))
        case _:
            return {**value, name: chance.choice(_ODD)}


def _other(value: Any, chance: random.Random) -> Any:
    match chance.randrange(8):
        case 0 if isinstance(value, int) and not isinstance(value, bool):
            return value + chance.choice((-1, 1, 2**31, 2**53))
        case 1 if isinstance(value, str):
            return value + chance.choice((MARKER, "\n", "\x1b", "a" * 300))
        case 2:
            return [value, value]
        case 3:
            return {MARKER: value}
        case 4:
            for _ in range(chance.choice((2, 9, 15, 16, 17, 40))):
                value = {"a": value} if chance.random() < 0.5 else [value]
            return value
        case 5 if isinstance(value, list):
            return value * chance.choice((0, 2, 40))
        case _:
            return chance.choice(_ODD)


# --------------------------------------------------------------------------------- CBOR as no encoder writes it


def write_cbor(value: Any, chance: random.Random, oddness: float) -> bytes:
    """The value; with this chance, at each place, written in a way that is not allowed or not the shortest."""
    if chance.random() < oddness:
        return chance.choice(_ODD_WAYS)(value, chance, oddness)
    if isinstance(value, dict):
        members = b"".join(write_cbor(key, chance, oddness) + write_cbor(member, chance, oddness) for key, member in value.items())
        return _head(5, len(value)) + members
    if isinstance(value, list):
        return _head(4, len(value)) + b"".join(write_cbor(item, chance, oddness) for item in value)
    if isinstance(value, str):
        data = value.encode(errors="surrogatepass")
        return _head(3, len(data)) + data
    return cbor2.dumps(value)


def _head(major: int, argument: int, size: int = 0) -> bytes:
    if argument < 24 and not size:
        return bytes((major << 5 | argument,))
    for kind, (most, form) in enumerate(((0xFF, ">B"), (0xFFFF, ">H"), (0xFFFFFFFF, ">I"), (2**64 - 1, ">Q"))):
        if argument <= most and kind >= size:
            return bytes((major << 5 | 24 + kind,)) + struct.pack(form, argument)
    raise ValueError(argument)


def _tagged(value: Any, chance: random.Random, oddness: float) -> bytes:
    return _head(6, chance.choice((0, 2, 4, 25, 28, 29, 35, 258, 55799, 2**40))) + write_cbor(value, chance, oddness)


def _indefinite(value: Any, chance: random.Random, oddness: float) -> bytes:
    if isinstance(value, dict):
        return b"\xbf" + write_cbor(value, chance, oddness)[1:] + b"\xff"
    return b"\x9f" + write_cbor(value, chance, oddness) + b"\xff"


def _doubled(value: Any, chance: random.Random, oddness: float) -> bytes:
    if not isinstance(value, dict) or not value:
        return b"\xf7"
    name, member = next(iter(value.items()))
    key = write_cbor(name, chance, 0.0)
    return _head(5, 2) + (key + write_cbor(member, chance, oddness)) * 2


def _long(value: Any, chance: random.Random, oddness: float) -> bytes:
    data = str(value).encode(errors="replace")[:200]
    return _head(3, len(data), chance.randrange(4)) + data


def _lying(value: Any, chance: random.Random, oddness: float) -> bytes:
    return _head(chance.randrange(2, 6), chance.choice((3, 100, 2**16, 2**31, 2**63))) + write_cbor(value, chance, oddness)


def _simple(value: Any, chance: random.Random, oddness: float) -> bytes:
    return chance.choice((b"\xf7", b"\xf8\x20", b"\xf8\xff", b"\xe0", b"\xff", b"\xfc", b"\xf9\x7e\x00", b"\xf9\x7c\x00", b"\x1c"))


_ODD_WAYS: tuple[Callable[[Any, random.Random, float], bytes], ...] = (_tagged, _indefinite, _doubled, _long, _lying, _simple)


# --------------------------------------------------------------------------------- bytes


def with_changed_bytes(data: bytes, chance: random.Random) -> bytes:
    """The bytes with a few places changed."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, MOST_CHANGES)):
        place = chance.randrange(len(changed) + 1)
        match chance.randrange(6):
            case 0 if changed:
                changed[place % len(changed)] ^= 1 << chance.randrange(8)
            case 1:
                changed[place:place] = chance.randbytes(chance.randint(1, 6))
            case 2:
                del changed[place : place + chance.randint(1, 12)]
            case 3:
                changed[place:place] = changed[: chance.randrange(len(changed) + 1)]
            case 4 if changed:
                changed[place % len(changed)] = chance.choice((0, 0x7F, 0x80, 0xFF, 0x9F, 0xBF, 0xC0, 0xF7, 0xFB))
            case _:
                changed[place:] = b""
    return bytes(changed)


# --------------------------------------------------------------------------------- the run


def run(first: int, count: int, target: str | None = None) -> dict[str, Any]:
    """Give that many inputs to their targets."""
    taken: Counter[str] = Counter()
    found: dict[str, str] = {}
    for number in range(first, first + count):
        name, data = input_of(number, target)
        began = time.process_time()
        try:
            taken[name] += TARGETS[name](data)
        except Exception as error:
            found[f"{name} {number}"] = f"{type(error).__name__}: {str(error)[:200]}"
        if time.process_time() - began > SLOW_SECONDS:
            found[f"{name} {number}"] = "slow"
    return {"done": count, **{f"taken_{name}": number for name, number in sorted(taken.items())}, "violations": found}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:4])) + "\n")
