"""Where a fuzzer begins: the published vectors, and what earlier runs kept (corpus/TARGET.txt, one input a line, as hex)."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cbor2

import lineup_sdk.protocol
from kernel.protocol.host import FROM_HOST
from lineup_sdk.protocol import control
from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).with_name("corpus")
_VECTORS = Path(lineup_sdk.protocol.__file__).parent / "vectors"
_GOLDEN = Path(__file__).parents[1] / "golden"


def _read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def _frames() -> Iterator[tuple[str, bytes]]:
    for name in ("valid_frames", "invalid_frames"):
        for one in _read(_VECTORS / f"{name}.json")["frames"]:
            whole = bytes.fromhex(one["hex"])
            yield "stream", whole
            yield "frame", whole[4:]
            yield ("to_worker" if one["direction"] == "to_worker" else "worker"), whole[4:]


def _envelopes() -> Iterator[tuple[str, bytes]]:
    found = _read(_VECTORS / "envelopes.json")
    for one in (*found["valid"], *found["invalid"]):
        value = one.get("envelope")
        if isinstance(value, dict):
            yield "envelope", cbor2.dumps(value)
            yield "agent_line", json.dumps(value).encode()
            yield "host", cbor2.dumps({"type": "envelope.submit", "envelope": value})


def _manifests() -> Iterator[tuple[str, bytes]]:
    found = _read(_VECTORS / "manifests.json")
    for one in (*found["valid"], *found["invalid"]):
        yield "manifest", cbor2.dumps(one["manifest"])
        yield "manifest_text", json.dumps(one["manifest"]).encode()
    yield "manifest_text", b'{"app_scope": "a", "app_scope": "a"}'
    yield "manifest_text", b"[" * 2_000


def _schemas() -> Iterator[tuple[str, bytes]]:
    for name in ("schema__values", "schema__refused_documents"):
        for one in _read(_GOLDEN / f"{name}.json")["stories"]:
            yield "schema", cbor2.dumps({"schema": one["schema"], "value": one.get("value")})


_FILLED: dict[str, Any] = {"int": 1, "bool": True, "float": 0.5, "str": "a", "JsonObject": {}, "dict": {}, "list": [], "bytes": b""}
_SPECIAL: dict[str, Any] = {
    "answer": {"approved": True}, "decision": "once", "draft": {}, "label": "console", "mode": "im", "place": "inline", "role": "view",
    "sha256": "0" * 64, "shown": "0" * 64, "shown_digest": "0" * 64, "status": "done", "providers": ["clipboard.write"], "state": "open",
}  # fmt: skip


def _hosts() -> Iterator[tuple[str, bytes]]:
    """One good message of every kind a host may send."""
    for kind in FROM_HOST.values():
        value: dict[str, Any] = {"type": kind.TYPE} | ({"id": 1} if kind.EXPECTS_REPLY else {})
        for name, hint in kind.__annotations__.items():
            base = str(hint).removesuffix(" | None").partition("[")[0]
            if base in _FILLED or name in _SPECIAL:
                value[name] = _SPECIAL.get(name, _FILLED.get(base))
        yield "host", cbor2.dumps(value)
        yield "page", json.dumps({"op": "ask", **value}, default=str).encode()


def _deep(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"a": value}
    return value


_OPS: tuple[dict[str, Any], ...] = (
    {"op": "auth", "token": "t", "lang": "en"},
    {"op": "provided", "request_id": "r", "ok": True},
    {"op": "retry"},
    {"op": "surface.event", "id": 2, "mount": "m", "name": "submit", "body": {}},
    {"op": "surface.mount", "id": 1, "surface_id": "s"},
    {"op": "surface.patch", "id": 1, "mount": "m", "base_version": 1, "patch": {"a": None}},
)
_PATCHES: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    ({"a": {"b": 1, "c": [1, {"d": None}]}, "e": "x" * 30}, {"a": {"b": None, "f": {"g": None, "h": 1}}, "e": {}}),
    ({"k" * 300: 1, "l": {}}, {str(number): number for number in range(300)}),
    ({}, {"k" * 70_000: {"m": 1}}),
)
_TEXT = {"type": "string"}
_SCHEMAS: tuple[dict[str, Any], ...] = (
    {"type": "array", "items": {"type": "string", "minLength": 2, "enum": ["ab", "cd"]}, "maxItems": 3},
    {"type": "integer", "minimum": 0, "maximum": 5, "enum": [1, 2]},
    {"type": "object", "additionalProperties": False, "properties": {str(number): _TEXT for number in range(300)}},
    {"type": "object", "additionalProperties": False, "properties": {"a": _TEXT}, "required": ["a"], "description": "d" * 17_000},
    {"type": "object", "additionalProperties": False, "properties": {"a": {"type": "array", "items": _TEXT}}, "required": ["a"]},
)


def _rest() -> Iterator[tuple[str, bytes]]:
    for op in _OPS:
        yield "page", json.dumps(op).encode()
    for state, patch in _PATCHES:
        yield "patch", cbor2.dumps({"state": state, "patch": patch})
    for body in ({"a": "x" * 50_000}, _deep(14)):
        payload = {"topic": "a.b", "body": body}
        outer = {"type": "lineup.v1.app.message", "message_id": "m", "conversation_id": "c", "created_at": "2026-01-01T00:00:00Z"}
        yield "envelope", cbor2.dumps({**outer, "payload": payload})
    for schema in _SCHEMAS:
        for value in ({}, [b"x"], b"", 1.0, "x" * 9, {"a": b""}):
            yield "schema", cbor2.dumps({"schema": schema, "value": value})
    yield "json_text", b'{"a": [1, 2.5, null, true, "\\u00e9"], "b": {"c": -1e3}}'
    yield "log", _log(frames=3)
    for message in (control.Spawn(number=1), control.Ready(), control.Exited(number=1, how="exited", status=0), control.Spawned(number=2),
                    control.NotSpawned(number=3, errno=11), control.Layer(name="platform", ok=True, detail="d", hint="h")):  # fmt: skip
        yield "zygote", control.encode(message)


def _log(frames: int) -> bytes:
    """A sound write-ahead log of small pages, each frame a commit."""
    fields = struct.pack(">6I", 0x377F0683, 3007000, 512, 0, 0xAAAA, 0xBBBB)
    sum_1 = sum_2 = 0
    for low, high in struct.iter_unpack(">II", fields):
        sum_1 = (sum_1 + low + sum_2) & 0xFFFFFFFF
        sum_2 = (sum_2 + high + sum_1) & 0xFFFFFFFF
    frame = struct.pack(">6I", 1, 1, 0xAAAA, 0xBBBB, 0, 0) + bytes(512)
    return fields + struct.pack(">II", sum_1, sum_2) + frame * frames


def kept(target: str) -> list[bytes]:
    """What earlier runs kept for a target."""
    path = CORPUS / f"{target}.txt"
    return [bytes.fromhex(line) for line in path.read_text("ascii").split()] if path.exists() else []


def seeds() -> dict[str, list[bytes]]:
    """Everything to begin with, by target."""
    found: dict[str, list[bytes]] = {name: [] for name in TARGETS}
    for made in (_frames(), _envelopes(), _manifests(), _schemas(), _hosts(), _rest()):
        for target, data in made:
            found[target].append(data)
    return {name: list(dict.fromkeys([*some, *kept(name)])) for name, some in found.items()}
