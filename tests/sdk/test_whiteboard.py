"""Whiteboard alone: boards live in the surface, and what the person drew ends as artifacts that hold nothing but a drawing."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from jsonschema import Draft202012Validator

from lineup_sdk.protocol.limits import MAX_SURFACE_BYTES
from lineup_sdk.testing import FakeCall, FakeKernel, app_file

ROOT = Path(__file__).parents[2]
ENTRY = ROOT / "workers/whiteboard/app.py"
MANIFEST = json.loads((ROOT / "manifests/whiteboard.json").read_bytes())
OPEN, SUBMIT = "whiteboard.open", "whiteboard.submit"
SVG = "{http://www.w3.org/2000/svg}"
MAX_BOARDS = 40
LINE = {"color": "#2563eb", "width": 4, "points": [0.1, 0.2, 0.5, 0.5], "order": 1}


def is_valid(schema: dict, value: dict) -> bool:
    return Draft202012Validator(schema).is_valid(value)


def whiteboard() -> FakeKernel:
    return FakeKernel(app_file(ENTRY), manifest=MANIFEST, is_valid=is_valid)


async def open_board(kernel: FakeKernel, board_id: str = "b1", title: str = "Plan", **more: object) -> FakeCall:
    call = await kernel.call(OPEN, {"board_id": board_id, "title": title, **more})
    await kernel.wait_until(lambda: board_id in kernel.surface.state.get("boards", {}))
    return call


async def submit(kernel: FakeKernel, board_id: str = "b1") -> dict:
    return await (await kernel.call(SUBMIT, {"board_id": board_id})).result()


async def draw(kernel: FakeKernel, strokes: dict, board_id: str = "b1") -> None:
    await kernel.patch_surface({"boards": {board_id: {"strokes": strokes}}})


def svg_of(kernel: FakeKernel, result: dict) -> ET.Element:
    artifact = kernel.artifacts[result["artifact_id"]]
    assert artifact.media_type == "image/svg+xml"
    return ET.fromstring(artifact.data)


@pytest.mark.clause("9.1")
async def test_a_board_is_open_until_it_is_submitted_and_both_calls_name_the_same_drawing() -> None:
    async with whiteboard() as kernel:
        call = await open_board(kernel)
        await draw(kernel, {"s1": LINE})
        result = await submit(kernel)
        assert (result["summary"], result["strokes"]) == ("Plan: 1 stroke", 1)
        assert await call.result() == {"status": "submitted", **{n: result[n] for n in ("artifact_id", "data_artifact_id")}}
        [line] = svg_of(kernel, result).findall(f"{SVG}polyline")
        assert (line.get("points"), line.get("stroke"), line.get("stroke-width")) == ("160.0,200.0 800.0,500.0", "#2563eb", "6.4")
        data = json.loads(kernel.artifacts[result["data_artifact_id"]].data)
        stroke = {"color": "#2563eb", "width": 4.0, "points": LINE["points"]}
        assert data == {"board_id": "b1", "title": "Plan", "strokes": [stroke], "texts": []}


@pytest.mark.clause("9.1")
async def test_a_submit_right_behind_its_open_finds_the_board() -> None:
    async with whiteboard() as kernel:
        for number in range(20):
            opened = await kernel.call(OPEN, {"board_id": f"b{number}", "title": "Plan"})
            submitted = await kernel.call(SUBMIT, {"board_id": f"b{number}"})  # delivered together
            assert (await submitted.result())["strokes"] == 0
            assert (await opened.result())["status"] == "submitted"


@pytest.mark.clause("9.1")
async def test_the_person_submits_or_cancels_in_the_surface() -> None:
    async with whiteboard() as kernel:
        for board_id, act, status in (("b1", "submit", "submitted"), ("b2", "cancel", "cancelled")):
            call = await open_board(kernel, board_id)
            event = await kernel.surface_event(act, {"board_id": board_id})
            await event.wait_acknowledged()
            assert (await call.result())["status"] == status
        await (await kernel.surface_event("submit", {"board_id": "b2"})).wait_acknowledged()
        await (await kernel.surface_event("cancel", {"board_id": "nobody's"})).wait_acknowledged()
        assert [board["status"] for board in kernel.surface.state["boards"].values()] == ["submitted", "cancelled"]


@pytest.mark.clause("8.5")
async def test_after_a_crash_the_board_is_back_from_the_surface_and_the_open_call_goes_on() -> None:
    async with whiteboard() as kernel:
        call = await open_board(kernel, state={"strokes": [{"color": "#000000", "width": 2, "points": [0, 0]}]})
        await draw(kernel, {"s1": LINE})
        await kernel.crash()
        await draw(kernel, {"s2": {**LINE, "order": 2}})
        await kernel.revive()
        result = await submit(kernel)
        assert result["strokes"] == 3
        assert (await call.result())["artifact_id"] == result["artifact_id"]
        assert call.attempts == 1


@pytest.mark.clause("6.8")
async def test_a_board_that_ended_answers_again_with_the_same_and_is_not_reopened() -> None:
    async with whiteboard() as kernel:
        await open_board(kernel)
        first = await submit(kernel)
        assert await submit(kernel) == first
        again = await (await kernel.call(OPEN, {"board_id": "b1", "title": "Other"})).result()
        assert again == {"status": "submitted", **{n: first[n] for n in ("artifact_id", "data_artifact_id")}}
        assert len(kernel.artifacts) == 2


@pytest.mark.clause("6.7")
async def test_cancelling_an_open_call_cancels_its_board_for_every_other_call() -> None:
    async with whiteboard() as kernel:
        call, other = await open_board(kernel), await open_board(kernel)
        await kernel.cancel(call)
        assert (await call.wait_outcome()).status == "cancelled"
        assert await other.result() == {"status": "cancelled"}
        failed = await (await kernel.call(SUBMIT, {"board_id": "b1"})).wait_outcome()
        assert failed.reason == "board_ended"
        unknown = await (await kernel.call(SUBMIT, {"board_id": "b9"})).wait_outcome()
        assert unknown.reason == "board_not_found"


HOSTILE = {
    "color": {**LINE, "color": '#000000"/><script>alert(1)</script>'},
    "not a number": {**LINE, "points": ["0", "url(http://example.com)"]},
    "boolean": {**LINE, "points": [True, False]},
    "outside": {**LINE, "points": [-5, 7e300]},
    "odd": {**LINE, "points": [0.1, 0.2, 0.3]},
    "width": {**LINE, "width": "1px' onload='x"},
    "more": {**LINE, "onload": "x", "href": "http://example.com"},
    "no stroke": "<script/>",
    "empty": {},
}


@pytest.mark.clause("9.4")
async def test_a_drawing_holds_numbers_and_escaped_text_only_whatever_the_state_holds() -> None:
    title = "<script>alert('1')</script> & \"x\" \u202e\x00\x1b]0;y\x07"
    async with whiteboard() as kernel:
        await open_board(kernel, title=title)
        await draw(kernel, HOSTILE)
        result = await submit(kernel)
        drawing = svg_of(kernel, result)
        assert {one.tag.removeprefix(SVG) for one in drawing.iter()} == {"svg", "title", "rect", "polyline"}
        allowed = {"points", "fill", "stroke", "stroke-width", "stroke-linecap", "stroke-linejoin"}
        lines = drawing.findall(f"{SVG}polyline")
        assert len(lines) == result["strokes"] == 4
        for line in lines:
            assert set(line.keys()) == allowed
            assert set(line.get("points", "")) <= set("0123456789., ")
        text = drawing.find(f"{SVG}title")
        assert text is not None
        assert text.text == title.replace("\x00", "").replace("\x1b", "").replace("\x07", "")


async def test_what_a_surface_script_spoils_is_no_board_and_ends_no_process() -> None:
    async with whiteboard() as kernel:
        await open_board(kernel)
        await kernel.patch_surface(
            {"boards": {"b1": {"status": 7}, "b0": {"status": ["open"]}, "b2": "x", "b3": {"status": "open", "strokes": []}}}
        )
        outcome = await (await kernel.call(SUBMIT, {"board_id": "b1"})).wait_outcome()
        assert outcome.reason == "board_not_found"
        assert (await submit(kernel, "b3"))["summary"] == ": 0 strokes"


async def test_without_room_for_the_drawing_the_summary_alone_is_the_result() -> None:
    async with whiteboard() as kernel:
        await open_board(kernel)
        await draw(kernel, {"s1": LINE})
        kernel.refuse_artifacts("limit_exceeded")
        assert await submit(kernel) == {"summary": "Plan: 1 stroke", "strokes": 1, "texts": 0}


async def test_ended_boards_make_room_for_a_new_one_and_open_ones_do_not() -> None:
    async with whiteboard() as kernel:
        for n in range(MAX_BOARDS):
            await open_board(kernel, f"b{n}")
        refused = await (await kernel.call(OPEN, {"board_id": "more", "title": "x"})).wait_outcome()
        assert refused.reason == "too_many_boards"
        await submit(kernel, "b7")
        await open_board(kernel, "more")
        assert "b7" not in kernel.surface.state["boards"]
        assert len(kernel.surface.state["boards"]) == MAX_BOARDS


async def test_a_board_that_weighs_too_much_with_the_ended_ones_takes_their_place() -> None:
    async with whiteboard() as kernel:
        await open_board(kernel)
        await submit(kernel)
        kernel.surface.state["boards"]["b1"]["filling"] = "x" * MAX_SURFACE_BYTES
        await open_board(kernel, "b2")
        assert list(kernel.surface.state["boards"]) == ["b2"]


TEXT = {"text": "Hi <b> & \x00 you", "color": "#dc2626", "size": 20, "at": [0.5, 0.25], "order": 2}
NO_TEXTS = {
    "blank": {**TEXT, "text": " \n "},
    "no string": {**TEXT, "text": 7},
    "no place": {**TEXT, "at": [0.5]},
    "no number": {**TEXT, "at": ["0", 0]},
    "no text": 7,
}


@pytest.mark.clause("9.4")
async def test_texts_stand_escaped_in_the_drawing_between_the_strokes_and_what_is_none_is_left_out() -> None:
    async with whiteboard() as kernel:
        await open_board(kernel)
        await draw(kernel, {"s1": LINE, "s2": {**LINE, "order": 3}})
        long = {**TEXT, "text": "x" * 500, "size": 1e9, "color": "red", "order": 4}
        await kernel.patch_surface({"boards": {"b1": {"texts": {"t1": TEXT, "t2": long, **NO_TEXTS}}}})
        result = await submit(kernel)
        assert (result["summary"], result["strokes"], result["texts"]) == ("Plan: 2 strokes, 2 texts", 2, 2)
        drawing = svg_of(kernel, result)
        assert [one.tag.removeprefix(SVG) for one in drawing] == ["title", "rect", "polyline", "text", "polyline", "text"]
        first, second = drawing.findall(f"{SVG}text")
        assert first.attrib == {"x": "800.0", "y": "250.0", "font-size": "32.0", "font-family": "sans-serif", "fill": "#dc2626"}
        assert first.text == "Hi <b> &  you"
        assert (second.text, second.get("font-size"), second.get("fill")) == ("x" * 200, "320.0", "#000000")
        data = json.loads(kernel.artifacts[result["data_artifact_id"]].data)
        assert [text["text"] for text in data["texts"]] == ["Hi <b> & \x00 you", "x" * 200]


@pytest.mark.clause("9.4")
@pytest.mark.parametrize("texts", ["x", ["x"], {"t": None}, 7])
async def test_texts_that_are_no_collection_are_none(texts: object) -> None:
    async with whiteboard() as kernel:
        await open_board(kernel)
        await kernel.patch_surface({"boards": {"b1": {"texts": texts}}})
        assert (await submit(kernel))["texts"] == 0
