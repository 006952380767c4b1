"""The golden vectors: what any implementation of the wire must read, write and refuse."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from lineup_sdk.protocol.framing import FrameReader, ProtocolViolation, encode_frame
from lineup_sdk.protocol.limits import MAX_FRAME_BYTES, MAX_WORKER_FRAME_BYTES
from lineup_sdk.protocol.messages import FROM_WORKER, TO_WORKER, to_frame
from lineup_sdk.protocol.parsing import parse_frame

pytestmark = pytest.mark.clause("2.7")
DIRECTIONS = {"from_worker": (FROM_WORKER, MAX_WORKER_FRAME_BYTES), "to_worker": (TO_WORKER, MAX_FRAME_BYTES)}


def load(name: str) -> list[dict]:
    return json.loads(files("lineup_sdk.protocol").joinpath("vectors", name).read_text())["frames"]


VALID = load("valid_frames.json")
INVALID = load("invalid_frames.json")


def plain(value: object) -> object:
    """The map a vector means: {"$bytes": hex} is a byte string."""
    if isinstance(value, dict):
        return bytes.fromhex(value["$bytes"]) if value.keys() == {"$bytes"} else {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize("vector", VALID, ids=lambda v: v["name"])
def test_a_valid_frame_is_read_as_its_message_and_written_as_the_same_bytes(vector: dict) -> None:
    registry, limit = DIRECTIONS[vector["direction"]]
    reader = FrameReader(limit)
    reader.feed(bytes.fromhex(vector["hex"]))
    frame = reader.next_frame()
    assert frame == plain(vector["frame"])
    message, request_id = parse_frame(frame, registry)
    assert to_frame(message, request_id).items() == frame.items()
    if vector.get("canonical", True):
        assert encode_frame(frame, limit).hex() == vector["hex"]


@pytest.mark.parametrize("vector", INVALID, ids=lambda v: v["name"])
def test_an_invalid_frame_is_refused_for_its_reason(vector: dict) -> None:
    registry, limit = DIRECTIONS[vector["direction"]]
    reader = FrameReader(limit)
    reader.feed(bytes.fromhex(vector["hex"]))
    with pytest.raises(ProtocolViolation) as caught:
        parse_frame(reader.next_frame() or {}, registry)
    assert caught.value.reason == vector["reason"]


def test_every_message_type_has_a_valid_vector() -> None:
    assert {v["frame"]["type"] for v in VALID} == FROM_WORKER.keys() | TO_WORKER.keys()


def test_names_of_vectors_are_unique() -> None:
    names = [v["name"] for v in (*VALID, *INVALID)]
    assert len(names) == len(set(names))
