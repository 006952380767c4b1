"""Questions of an App of its own, through lineup_sdk.ui and the fixture app (SPEC 7.4)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lineup_sdk import MiniApp
from lineup_sdk.testing import FakeKernel, FakeQuestion, app_file
from lineup_sdk.ui import Ui

pytestmark = pytest.mark.clause("7.4")
FOLDER = Path(__file__).parents[1] / "fixtures/apps/asker"
MANIFEST = json.loads((FOLDER / "manifest.json").read_bytes())
CONFIRM = {"kind": "confirm", "title": "Clear?", "prompt": "Clear the board."}


def asker(**changes: object) -> FakeKernel:
    return FakeKernel(app_file(FOLDER / "app.py"), manifest=MANIFEST | changes)


async def asked(kernel: FakeKernel) -> FakeQuestion:
    await kernel.wait_until(lambda: any(question.result is None for question in kernel.questions))
    return next(question for question in kernel.questions if question.result is None)


def ask(**more: object) -> dict:
    return {"json": json.dumps(CONFIRM), "as_parent": False, "subscribe": False} | more


def test_a_miniapp_has_no_ui_of_its_own() -> None:
    assert not hasattr(MiniApp(), "ui")


async def test_a_question_is_answered_and_its_result_taken_over() -> None:
    async with asker() as kernel:
        kernel.allow_questions()
        call = await kernel.call("asker.ask", ask(as_parent=True, subscribe=True, expires_at="2030-01-01T00:00:00Z"))
        question = await asked(kernel)
        assert (question.kind, question.request) == ("confirm", {"title": "Clear?", "prompt": "Clear the board."})
        assert (question.parent_call_id, question.expires_at) == (call.call_id, "2030-01-01T00:00:00Z")
        message = await kernel.answer(question, {"approved": True})
        result = json.loads((await call.result())["json"])
        assert result == {
            "interaction_id": question.interaction_id,
            "kind": "confirm",
            "outcome": "answered",
            "answer": {"approved": True},
        }
        await message.wait_acknowledged()
        seen = json.loads((await (await kernel.call("asker.seen", {})).result())["json"])
        assert seen == {"seen": ["submitted"], "results": []}


async def test_without_the_persons_policy_or_the_manifest_every_request_is_denied() -> None:
    async with asker() as kernel:
        call = await kernel.call("asker.ask", ask())
        assert json.loads((await call.result())["json"]) == {"code": "capability_denied"}
    async with asker(requested_capabilities=[]) as kernel:
        kernel.allow_questions()
        for tool, given in (("ask", ask(subscribe=True)), ("meddle", {"interaction_id": "i", "how": "get"})):
            call = await kernel.call(f"asker.{tool}", given)
            assert json.loads((await call.result())["json"]) == {"code": "capability_denied"}


async def test_a_parent_that_is_not_an_own_open_call_and_a_request_of_no_kind_are_refused() -> None:
    async with asker() as kernel:
        kernel.allow_questions()
        call = await kernel.call("asker.ask", ask(parent_call_id="call_of_another"))
        assert json.loads((await call.result())["json"]) == {"code": "call_not_found"}
        call = await kernel.call("asker.ask", ask(json=json.dumps(CONFIRM | {"kind": "alert"})))
        assert json.loads((await call.result())["json"]) == {"code": "tool_input_invalid"}


async def test_own_questions_are_read_and_cancelled_and_unknown_ones_are_not_found() -> None:
    async with asker() as kernel:
        kernel.allow_questions()

        async def meddle(interaction_id: str, how: str) -> dict:
            call = await kernel.call("asker.meddle", {"interaction_id": interaction_id, "how": how})
            return json.loads((await call.result())["json"])

        waiting = await kernel.call("asker.ask", ask())
        question = await asked(kernel)
        got = await meddle(question.interaction_id, "get")
        assert got == {"interaction_id": question.interaction_id, "kind": "confirm", "status": "presented", "result": None}
        assert await meddle(question.interaction_id, "cancel") == {}
        assert json.loads((await waiting.result())["json"])["outcome"] == "cancelled"
        assert await meddle(question.interaction_id, "cancel") == {"code": "interaction_already_final"}
        assert await meddle("int_of_another", "get") == {"code": "interaction_not_found"}


async def test_a_result_of_a_question_from_before_a_crash_comes_to_its_own_handler() -> None:
    async with asker() as kernel:
        kernel.allow_questions()
        await (await kernel.call("asker.leave", {"json": json.dumps(CONFIRM), "crash": False})).result()
        question = await asked(kernel)
        await kernel.crash()
        await kernel.revive()
        message = await kernel.answer(question, {"approved": False})
        await message.wait_acknowledged()
        seen = json.loads((await (await kernel.call("asker.seen", {})).result())["json"])
        assert [result["answer"] for result in seen["results"]] == [{"approved": False}]


async def test_each_event_of_the_extension_has_one_handler() -> None:
    app = MiniApp()
    ui = Ui(app)

    async def handler(_: dict) -> None: ...

    ui.on_result(handler)
    with pytest.raises(ValueError, match="already"):
        ui.on_result(handler)
    with pytest.raises(ValueError, match="already"):
        Ui(app)
