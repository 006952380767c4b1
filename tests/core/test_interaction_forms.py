"""What may be asked of the person, and what counts as an answer: every bound and its far side (SPEC 7.3)."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from kernel.core.records import Interaction
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject
from tests.core.test_interactions import CHOICE, CONFIRM, INPUT, NOTICE, answer, asking_world, said_to_agent
from tests.core.world import World

WIDE = "\U0001f600" * 10  # ten code points
GOOD: list[tuple[str, JsonObject, JsonObject]] = [
    ("choice", {"action_ids": ["green", "red"]}, {"action_ids": ["red", "green"]}),
    ("choice", {"action_ids": ["red", "blue", "green"]}, {"action_ids": ["red", "blue", "green"]}),
    ("choice", {"declined": True}, {"declined": True}),
    ("confirm", {"approved": False}, {"approved": False}),
    ("input", {"fields": {"name": "x"}}, {"fields": [{"id": "name", "text": "x"}]}),
    ("input", {"fields": {"age": 1.5, "name": WIDE}}, {"fields": [{"id": "name", "text": WIDE}, {"id": "age", "number": 1.5}]}),
    ("input", {"fields": {"name": "x", "about": "a\nb"}}, {"fields": [{"id": "name", "text": "x"}, {"id": "about", "text": "a\nb"}]}),
    ("input", {"declined": True}, {"declined": True}),
]  # fmt: skip


@pytest.mark.clause("7.3")
@pytest.mark.invariant("29")
@pytest.mark.parametrize(("kind", "given", "kept"), GOOD)
def test_a_good_answer_is_kept_in_its_one_form_and_fits_the_output_schema(kind: str, given: JsonObject, kept: JsonObject) -> None:
    world = asking_world(kind)
    assert answer(world, given).code is None
    result = said_to_agent(world)["result"]
    assert result == {"outcome": "answered", "answer": kept}
    assert world.view.descriptor(world.call("c1").descriptor_digest).output_schema.check(result) is None


BAD: list[tuple[str, JsonObject, str]] = [
    ("choice", {}, ""),
    ("choice", {"action_ids": []}, "/action_ids"),
    ("choice", {"action_ids": ["red", "red"]}, "/action_ids"),
    ("choice", {"action_ids": ["yellow"]}, "/action_ids"),
    ("choice", {"action_ids": "red"}, "/action_ids"),
    ("choice", {"action_ids": [1]}, "/action_ids"),
    ("choice", {"action_ids": ["red"], "declined": True}, ""),
    ("choice", {"declined": False}, "/declined"),
    ("choice", {"approved": True}, ""),
    ("confirm", {"approved": 1}, "/approved"),
    ("confirm", {"approved": None}, "/approved"),
    ("confirm", {"declined": True}, "/declined"),
    ("input", {"fields": {}}, "/fields/name"),
    ("input", {"fields": {"name": ""}}, "/fields/name"),
    ("input", {"fields": {"name": "x" * 11}}, "/fields/name"),
    ("input", {"fields": {"name": "two\nlines"}}, "/fields/name"),
    ("input", {"fields": {"name": 5}}, "/fields/name"),
    ("input", {"fields": {"name": "x", "about": "y"}}, "/fields/about"),
    ("input", {"fields": {"name": "x", "age": "36"}}, "/fields/age"),
    ("input", {"fields": {"name": "x", "age": True}}, "/fields/age"),
    ("input", {"fields": {"name": "x", "age": 151}}, "/fields/age"),
    ("input", {"fields": {"name": "x", "age": -0.5}}, "/fields/age"),
    ("input", {"fields": {"name": "x", "shoe": 1}}, "/fields"),
    ("input", {"fields": [["name", "x"]]}, "/fields"),
]


@pytest.mark.clause("7.3")
@pytest.mark.invariant("29")
@pytest.mark.parametrize(("kind", "given", "pointer"), BAD)
def test_a_bad_answer_is_refused_with_its_place_and_the_question_stays_open(kind: str, given: JsonObject, pointer: str) -> None:
    world = asking_world(kind)
    before = world.view.copy()
    refused = answer(world, given)
    assert refused.code is Code.ANSWER_INVALID
    assert refused.detail is not None
    assert refused.detail.pointer == "/answer" + pointer
    assert world.view.tables == before.tables
    assert answer(world).code is None


@pytest.mark.clause("7.3")
def test_single_choice_and_button_take_exactly_one() -> None:
    for mode in ("single-choice", "button"):
        world = World()
        world.boot()
        world.invoke("c1", "interaction.choice", CHOICE | {"mode": mode})
        assert answer(world, {"action_ids": ["red", "blue"]}).code is Code.ANSWER_INVALID
        assert answer(world, {"action_ids": ["red"]}).code is None


@pytest.mark.clause("7.3")
def test_an_answer_that_would_not_fit_a_workers_frame_is_refused() -> None:
    fields = [{"id": f"f{number}", "label": "Text", "type": "textarea"} for number in range(16)]
    world = World()
    world.boot()
    world.invoke("c1", "interaction.input", {"title": "Much", "prompt": "Write.", "fields": fields})
    big = {"fields": {field["id"]: "\u4e2d" * 4_000 for field in fields}}
    assert answer(world, big).code is Code.ANSWER_INVALID
    assert answer(world, {"fields": {field["id"]: "\u4e2d" * 800 for field in fields}}).code is None


def _with(request: JsonObject, **changes: Any) -> JsonObject:
    return deepcopy(request) | changes


def _field(**field: Any) -> JsonObject:
    return _with(INPUT, fields=[{"id": "a", "label": "A", "type": "text"} | field])


@pytest.mark.clause("7.3")
@pytest.mark.parametrize(
    ("kind", "request_", "pointer"),
    [
        ("choice", _with(CHOICE, actions=[]), "/actions"),
        ("choice", _with(CHOICE, actions=[{"id": "a", "label": "A"}, {"id": "a", "label": "B"}]), "/actions"),
        ("choice", _with(CHOICE, mode="many"), "/mode"),
        ("choice", _with(CHOICE, actions=[{"id": f"a{n}", "label": "A"} for n in range(33)]), "/actions"),
        ("confirm", _with(CONFIRM, html="<b>"), "/html"),
        ("confirm", {"title": "Only a title"}, "/prompt"),
        ("notice", _with(NOTICE, title="x" * 201), "/title"),
        ("input", _with(INPUT, fields=[]), "/fields"),
        ("input", _with(INPUT, fields=[{"id": "a", "label": "A", "type": "text"}] * 2), "/fields"),
        ("input", _field(type="password"), "/fields/0/type"),
        ("input", _field(label="Your password:"), "/fields/0"),
        ("input", _field(id="token"), "/fields/0"),
        ("input", _field(minimum=1), "/fields/0"),
        ("input", _field(type="number", max_length=3), "/fields/0"),
        ("input", _field(min_length=4, max_length=3), "/fields/0/min_length"),
        ("input", _field(type="number", minimum=2, maximum=1), "/fields/0/minimum"),
        ("input", _field(max_length=4_001), "/fields/0/max_length"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused_before_any_effect(kind: str, request_: JsonObject, pointer: str) -> None:
    world = World()
    world.boot()
    refused = world.invoke("c1", f"interaction.{kind}", request_)
    assert (refused.code, refused.audit) == (Code.TOOL_INPUT_INVALID, ["call.rejected"])
    assert refused.detail is not None
    assert refused.detail.pointer == "/payload/input" + pointer
    assert world.rows(Interaction) == []
