"""Capabilities as an author uses them, over the fake kernel (SPEC 10)."""

from __future__ import annotations

from typing import Any

import pytest

from lineup_sdk import MiniApp, Refused, ToolCall
from lineup_sdk.capabilities import CapabilityResult
from lineup_sdk.testing import FakeKernel

pytestmark = pytest.mark.clause("10")


def make() -> MiniApp:
    app = MiniApp()

    @app.tool("app.copy")
    async def copy(call: ToolCall) -> dict[str, Any]:
        asked = await app.capabilities.request("clipboard.write", reason="To paste it", arguments={"text": call.input["text"]}, call=call)
        result = await app.capabilities.wait_result(asked.request_id)
        return {"status": result.status, "is_done": result.is_done}

    return app


async def test_an_app_asks_and_waits_for_what_became_of_it() -> None:
    async with FakeKernel(make) as kernel:
        call = await kernel.call("app.copy", {"text": "hi"})
        await kernel.wait_until(lambda: bool(kernel.capability_requests))
        [request] = kernel.capability_requests
        assert (request.capability, request.reason, request.arguments) == ("clipboard.write", "To paste it", {"text": "hi"})
        assert request.parent_call_id == call.call_id
        message = await kernel.answer_capability(request)
        assert await call.result() == {"status": "done", "is_done": True}
        await message.wait_acknowledged()


async def test_a_result_that_nobody_waits_for_is_acknowledged_and_does_not_fill_the_inbox() -> None:
    async with FakeKernel(make) as kernel:
        await kernel.call("app.copy", {"text": "hi"})
        await kernel.wait_until(lambda: bool(kernel.capability_requests))
        await kernel.crash()
        message = await kernel.answer_capability(kernel.capability_requests[0], "unknown", code="unknown")
        await kernel.revive()
        await kernel.wait_until(lambda: len(kernel.capability_requests) == 2)  # the call came again and asked again
        await message.wait_acknowledged()


async def test_a_handler_gets_every_result_and_keeps_it_until_it_returned() -> None:
    got: list[dict[str, Any]] = []

    def with_handler() -> MiniApp:
        app = make()

        @app.on_message("capability.result")
        async def keep(message: Any) -> None:
            got.append(message.body)

        return app

    manifest = {
        "app_scope": "app", "version": "1.0.0", "subscriptions": [], "requested_capabilities": ["clipboard.write"],
        "tools": [{"id": "app.copy", "input_schema": {}, "output_schema": {}}],
    }  # fmt: skip
    async with FakeKernel(with_handler, manifest=manifest) as kernel:
        call = await kernel.call("app.copy", {"text": "hi"})
        await kernel.wait_until(lambda: bool(kernel.capability_requests))
        message = await kernel.answer_capability(kernel.capability_requests[0], "denied", code="capability_denied")
        assert await call.result() == {"status": "denied", "is_done": False}
        await message.wait_acknowledged()
    assert [body["status"] for body in got] == ["denied"]


@pytest.mark.parametrize(
    ("requested", "capability", "reason", "code"),
    [
        ([], "clipboard.write", "r", "capability_denied"),
        (["microphone"], "microphone", "r", "capability_unsupported"),
        (["clipboard.write"], "clipboard.write", "", "limit_exceeded"),
        (["clipboard.write"], "clipboard.write", "x" * 301, "limit_exceeded"),
    ],
)
async def test_the_fake_kernel_refuses_what_the_kernel_refuses(requested: list[str], capability: str, reason: str, code: str) -> None:
    app = MiniApp()
    refusals: list[str] = []

    @app.tool("app.go")
    async def go(call: ToolCall) -> dict[str, Any]:
        try:
            await app.capabilities.request(capability, reason=reason, arguments={"text": "x"})
        except Refused as refused:
            refusals.append(refused.code)
        return {}

    manifest = {
        "app_scope": "app", "version": "1.0.0", "subscriptions": [], "requested_capabilities": requested,
        "tools": [{"id": "app.go", "input_schema": {}, "output_schema": {}}],
    }  # fmt: skip
    async with FakeKernel(app, manifest=manifest) as kernel:
        await (await kernel.call("app.go", {})).result()
    assert refusals == [code]


async def test_a_foreign_call_is_not_found() -> None:
    app = MiniApp()
    refusals: list[str] = []

    @app.tool("app.go")
    async def go(call: ToolCall) -> dict[str, Any]:
        call.call_id = "another"
        try:
            await app.capabilities.request("clipboard.write", reason="r", arguments={"text": "x"}, call=call)
        except Refused as refused:
            refusals.append(refused.code)
        return {}

    async with FakeKernel(app) as kernel:
        await kernel.call("app.go", {})
        await kernel.wait_until(lambda: bool(refusals))
    assert refusals == ["call_not_found"]


def test_a_result_says_whether_it_was_done() -> None:
    assert CapabilityResult(request_id="r", capability="c", status="done").is_done
    assert not CapabilityResult(request_id="r", capability="c", status="unknown", code="unknown").is_done
