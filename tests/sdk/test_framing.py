"""The one decoder: every limit and refusal of SPEC 2.1."""

from __future__ import annotations

import struct

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineup_sdk.protocol.framing import FrameReader, ProtocolViolation, check_value, decode_item, encode_frame
from lineup_sdk.protocol.limits import MAX_FRAME_BYTES, MAX_INTEGER, MAX_WORKER_FRAME_BYTES

pytestmark = pytest.mark.clause("2.1")

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MAX_INTEGER, MAX_INTEGER)
    | st.floats(-1e15, 1e15)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), json_values, max_size=4), st.integers(1, 40))
def test_a_frame_comes_back_as_it_was_however_it_is_cut(frame: dict, step: int) -> None:
    encoded = encode_frame(frame, MAX_FRAME_BYTES)
    reader = FrameReader(MAX_FRAME_BYTES)
    came = []
    for start in range(0, len(encoded), step):
        reader.feed(encoded[start : start + step])
        while (next_frame := reader.next_frame()) is not None:
            came.append(next_frame)
    assert came == [frame]
    assert reader.next_frame_bytes() is None


def test_many_frames_of_one_feed_come_out_in_order() -> None:
    reader = FrameReader(MAX_FRAME_BYTES)
    reader.feed(b"".join(encode_frame({"n": n}, MAX_FRAME_BYTES) for n in range(50)))
    assert [reader.next_frame() for _ in range(51)] == [*({"n": n} for n in range(50)), None]


@pytest.mark.parametrize("limit", [MAX_WORKER_FRAME_BYTES, MAX_FRAME_BYTES])
def test_a_frame_of_exactly_the_limit_passes_and_one_byte_more_is_refused_at_both_ends(limit: int) -> None:
    overhead = len(cbor2.dumps({"t": "x" * (limit - 100)})) - (limit - 100)
    fits = {"t": "x" * (limit - overhead)}
    encoded = encode_frame(fits, limit)
    assert len(encoded) == limit + 4
    reader = FrameReader(limit)
    reader.feed(encoded)
    assert reader.next_frame() == fits
    with pytest.raises(ProtocolViolation, match="frame_size"):
        encode_frame({"t": fits["t"] + "x"}, limit)
    reader.feed(struct.pack(">I", limit + 1))
    with pytest.raises(ProtocolViolation, match="frame_size"):
        reader.next_frame()


@pytest.mark.parametrize("size", [0, 2**31, 2**32 - 1])
def test_a_bad_length_is_refused_before_a_byte_of_the_body_came(size: int) -> None:
    reader = FrameReader(MAX_FRAME_BYTES)
    reader.feed(struct.pack(">I", size))
    with pytest.raises(ProtocolViolation, match="frame_size"):
        reader.next_frame()


def test_a_reader_keeps_no_more_than_the_frames_it_was_fed() -> None:
    reader = FrameReader(MAX_FRAME_BYTES)
    encoded = encode_frame({"t": "x" * 1000}, MAX_FRAME_BYTES)
    for _ in range(1000):
        reader.feed(encoded)
        assert reader.next_frame() is not None
    assert len(reader._buffer) <= 2 * len(encoded)


@pytest.mark.parametrize("opening", [b"\x81", b"\xa1\x61a", b"\xc1", b"\x9f", b"\xbf\x61a"])
def test_a_hundred_thousand_levels_are_refused_without_recursion(opening: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        decode_item(b"\xa1\x61a" + opening * 100_000 + b"\x01")


def test_a_hundred_thousand_levels_given_to_the_walk_are_refused_without_recursion() -> None:
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ProtocolViolation, match="depth"):
        check_value(deep)
    while deep:  # taken apart by hand: freeing it whole would recurse
        deep = deep.pop()


def test_a_cyclic_value_is_refused() -> None:
    cycle: dict = {}
    cycle["self"] = cycle
    with pytest.raises(ProtocolViolation, match="depth"):
        check_value(cycle)


def test_sixteen_levels_pass_and_seventeen_do_not() -> None:
    value: object = 1
    for _ in range(15):
        value = [value]
    assert decode_item(cbor2.dumps({"a": value})) == {"a": value}
    with pytest.raises(ProtocolViolation):
        decode_item(cbor2.dumps({"a": [value]}))


def test_a_narrower_depth_counts_the_same_way() -> None:
    check_value({"a": [1]}, max_depth=2)
    with pytest.raises(ProtocolViolation, match="depth"):
        check_value({"a": [1]}, max_depth=1)


@pytest.mark.parametrize("number", [MAX_INTEGER, -MAX_INTEGER, float(MAX_INTEGER), -0.0, 1e-300, 0.1])
def test_numbers_up_to_the_bound_pass(number: float) -> None:
    assert decode_item(cbor2.dumps({"n": number})) == {"n": number}


@pytest.mark.parametrize("number", [2**53, -(2**53), 2**63, 2**64 - 1, float(2**53), 1e300, float("nan"), float("inf"), float("-inf")])
def test_numbers_beyond_the_bound_are_refused(number: float) -> None:
    with pytest.raises(ProtocolViolation, match=r"integer_range|number"):
        decode_item(cbor2.dumps({"n": number}))


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\udc00\ud800"])
def test_lone_surrogates_of_the_json_doors_are_refused_as_value_and_as_key(text: str) -> None:
    with pytest.raises(ProtocolViolation, match="lone_surrogate"):
        check_value({"a": text})
    with pytest.raises(ProtocolViolation, match="lone_surrogate"):
        check_value({text: 1})


def test_bytes_pass_on_the_wire_and_not_where_only_json_may_stand() -> None:
    assert decode_item(cbor2.dumps({"b": b"\x00"})) == {"b": b"\x00"}
    with pytest.raises(ProtocolViolation, match="value_kind"):
        check_value({"b": b"\x00"}, allow_bytes=False)


@pytest.mark.parametrize("value", [(1,), {1}, frozenset(), object(), 1j, bytearray(b"x")])
def test_python_values_no_wire_knows_are_refused(value: object) -> None:
    with pytest.raises(ProtocolViolation, match="value_kind"):
        check_value({"v": value})


@given(st.binary(max_size=200))
def test_random_bytes_give_a_map_or_a_violation_and_nothing_else(data: bytes) -> None:
    try:
        decoded = decode_item(data)
    except ProtocolViolation:
        return
    check_value(decoded)


@given(st.binary(min_size=1, max_size=40), st.integers(0, 60), st.integers(0, 255))
def test_mutated_frames_give_a_map_or_a_violation_and_nothing_else(tail: bytes, position: int, byte: int) -> None:
    good = bytearray(cbor2.dumps({"type": "tool.complete", "id": 1, "call_id": "call_1", "result": {"list": [1, 2.5, None, "text"]}}))
    good[position % len(good)] = byte
    for body in (bytes(good), bytes(good) + tail, bytes(good[: len(tail)])):
        try:
            check_value(decode_item(body))
        except ProtocolViolation:
            continue
