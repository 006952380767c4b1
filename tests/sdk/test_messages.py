"""Both directions of the worker wire: classes, parser and the published CDDL say the same."""

from __future__ import annotations

import re
from dataclasses import fields
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineup_sdk.protocol.bounds import Bound, Form, Length, Span, bounds_of
from lineup_sdk.protocol.framing import ProtocolViolation, decode_item, encode_frame
from lineup_sdk.protocol.limits import MAX_FRAME_BYTES
from lineup_sdk.protocol.messages import (
    FROM_WORKER,
    IDENTITY_KEYS,
    TO_WORKER,
    UNGRANTED_TYPES,
    InboxList,
    Message,
    Reply,
    StateLoad,
    ToolsGet,
    ToolsSubscribe,
    to_frame,
)
from lineup_sdk.protocol.parsing import INBOX_ROW, REPLY_VALUES, check_reply, parse_frame

ALL = {**FROM_WORKER, **TO_WORKER}
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
json_object = st.dictionaries(text, st.none() | st.booleans() | st.integers(-9, 9) | text, max_size=3)
VALUES = {
    "JsonObject": json_object,
    "bool": st.booleans(),
    "bytes": st.binary(max_size=20),
    "float": st.floats(0, 100) | st.integers(0, 100),
    "int": st.integers(0, 2**53 - 1),
    "list[JsonObject]": st.lists(json_object, max_size=2),
    "str": text,
}


def within(bound: Bound) -> st.SearchStrategy[object]:
    match bound:
        case Length(least, most):
            return st.text(st.characters(exclude_categories=["Cs"]), min_size=least, max_size=min(most, 12))
        case Form(pattern):
            return st.from_regex(pattern, fullmatch=True)
        case Span(least, most):
            return st.integers(least, most)


def messages_of(message_type: type[Message]) -> st.SearchStrategy[Message]:
    bounds = bounds_of(message_type) if message_type.TYPE in FROM_WORKER else {}

    def values(name: str, annotation: str) -> st.SearchStrategy[object]:
        kind = annotation.removesuffix(" | None")
        value = within(bounds[name]) if name in bounds else VALUES[kind]
        return value if kind == annotation else st.none() | value

    return st.builds(message_type, **{f.name: values(f.name, str(f.type)) for f in fields(message_type)})


any_message = st.sampled_from(sorted(ALL)).flatmap(lambda name: messages_of(ALL[name]))


@pytest.mark.clause("2.1")
@given(any_message, st.integers(1, 2**53 - 1))
def test_every_message_comes_back_from_its_frame_as_it_was(message: Message, number: int) -> None:
    request_id = number if message.EXPECTS_REPLY else None
    frame = decode_item(encode_frame(to_frame(message, request_id), MAX_FRAME_BYTES)[4:])
    registry = FROM_WORKER if message.TYPE in FROM_WORKER else TO_WORKER
    assert parse_frame(frame, registry) == (message, request_id)


@pytest.mark.clause("2.2")
@given(any_message, st.data())
def test_a_frame_with_a_field_more_or_a_required_field_less_is_refused(message: Message, data: st.DataObject) -> None:
    registry = FROM_WORKER if message.TYPE in FROM_WORKER else TO_WORKER
    frame = to_frame(message, 1 if message.EXPECTS_REPLY else None)
    with pytest.raises(ProtocolViolation, match="field"):
        parse_frame({**frame, "extra": 1}, registry)
    required = [f.name for f in fields(message) if not str(f.type).endswith("None")]
    dropped = data.draw(st.sampled_from(["type", *required, *(["id"] if message.EXPECTS_REPLY else [])]))
    with pytest.raises(ProtocolViolation):
        parse_frame({k: v for k, v in frame.items() if k != dropped}, registry)


@pytest.mark.clause("2.3")
def test_no_message_of_a_worker_has_a_field_that_says_who_speaks() -> None:
    assert not {f.name for c in FROM_WORKER.values() for f in fields(c)} & IDENTITY_KEYS


def test_no_type_but_a_chunk_belongs_to_both_directions_and_none_is_granted_and_ungranted() -> None:
    assert FROM_WORKER.keys() & TO_WORKER.keys() == {"chunk"}
    assert not UNGRANTED_TYPES & ALL.keys()


@pytest.mark.clause("2.5")
@pytest.mark.parametrize(
    "reply",
    [
        Reply(id=1),
        Reply(id=1, value={"state": {}}, receipt={"accepted": True}),
        Reply(id=1, receipt={}),
        Reply(id=1, receipt={"accepted": 1}),
        Reply(id=1, receipt={"accepted": False}),
        Reply(id=1, receipt={"accepted": False, "code": "x", "detail": "y"}),
    ],
)
def test_a_reply_that_is_no_receipt_and_no_value_is_refused(reply: Reply) -> None:
    with pytest.raises(ProtocolViolation, match="reply"):
        check_reply(reply, ToolsSubscribe)


@pytest.mark.clause("2.5")
def test_a_value_is_checked_against_the_request_it_answers() -> None:
    row = {"message_id": "m", "topic": "t", "body": {}, "delivery_count": 1}
    check_reply(Reply(id=1, value={"messages": [row], "more": False}), InboxList)
    check_reply(Reply(id=1, value={"state": None}), StateLoad)
    check_reply(Reply(id=1, receipt={"accepted": False, "code": "call_not_found", "at": ""}), ToolsGet)
    for wrong in (
        Reply(id=1, value={"messages": [{**row, "delivery_count": "1"}], "more": False}),
        Reply(id=1, value={"messages": []}),
        Reply(id=1, receipt={"accepted": True, "at": ""}),
    ):
        with pytest.raises(ProtocolViolation, match="reply"):
            check_reply(wrong, InboxList)


# --- the published CDDL

_CDDL_KINDS = {
    "JsonObject": "json-object",
    "bool": "bool",
    "bytes": "bstr",
    "float": "number",
    "int": "int53",
    "list[JsonObject]": "[* json-object]",
    "str": "tstr",
}


def cddl_maps() -> dict[str, dict[str, tuple[bool, str]]]:
    """Rule name -> key -> (is optional, kind), for the rules that are plain maps."""
    source = files("lineup_sdk.protocol").joinpath("wire.cddl").read_text()
    source = re.sub(r";[^\n]*", "", source)
    rules = re.findall(r"^([a-z0-9-]+) = \{\n((?:  [^\n]*\n)+)\}", source, re.MULTILINE)
    member = re.compile(r'^  (\? )?([a-z_0-9]+): ("[a-z._]+"|[^,{]+),\s*$', re.MULTILINE)
    return {name: {m[1]: (bool(m[0]), m[2]) for m in member.findall(body)} for name, body in rules}


@pytest.mark.clause("2.7")
@pytest.mark.parametrize("name", sorted(ALL))
def test_the_published_cddl_names_every_field_of_the_message_with_its_kind(name: str) -> None:
    message_type = ALL[name]
    rule = cddl_maps()[name.replace(".", "-").replace("_", "-")]
    assert rule.pop("type") == (False, f'"{name}"')
    if message_type.EXPECTS_REPLY or name == "reply":
        assert rule.pop("id") == (False, "request-id")
    bounded = bounds_of(message_type) if name in FROM_WORKER else {}  # tests/test_bounds.py reads their rules
    expected = {}
    for f in fields(message_type):
        if f.name != "id":
            kind = str(f.type).removesuffix(" | None")
            expected[f.name] = (kind != str(f.type), rule[f.name][1] if f.name in bounded else _CDDL_KINDS[kind])
    assert rule == expected


@pytest.mark.clause("2.7")
def test_the_published_cddl_has_no_message_the_wire_does_not_know_and_names_all_in_their_direction() -> None:
    source = files("lineup_sdk.protocol").joinpath("wire.cddl").read_text()
    assert set(re.findall(r'^  type: "([a-z._]+)"', source, re.MULTILINE)) == ALL.keys()
    rules = re.findall(r"^([a-z-]+) =((?:\s+[a-z/-]+)+?)\n\n", source, re.MULTILINE)
    choices = {name: set(re.findall(r"[a-z-]+", body)) for name, body in rules}
    rule_of = {name: name.replace(".", "-").replace("_", "-") for name in ALL}
    assert choices["request"] == {rule_of[n] for n, c in FROM_WORKER.items() if c.EXPECTS_REPLY}
    assert choices["unanswered"] == {rule_of[n] for n, c in FROM_WORKER.items() if not c.EXPECTS_REPLY}
    assert choices["to-worker"] == {rule_of[n] for n in TO_WORKER}


@pytest.mark.clause("2.7")
def test_the_published_cddl_names_every_value_a_request_is_answered_with() -> None:
    rules = cddl_maps()
    for request_type, members in REPLY_VALUES.items():
        assert rules[request_type.TYPE.replace(".", "-").replace("_", "-") + "-value"].keys() >= members.keys() - {"messages"}
    assert rules["inbox-row"].keys() == INBOX_ROW.keys()
