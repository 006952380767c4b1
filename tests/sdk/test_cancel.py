"""Tool calls in a MiniApp that are cancelled, or ended elsewhere, while their handler works."""

from __future__ import annotations

import pytest
import trio

from lineup_sdk import MiniApp, ToolCall
from lineup_sdk.testing import FakeKernel


@pytest.mark.clause("6.7")
async def test_a_cancel_request_stops_the_handler_and_cancels_the_call() -> None:
    app = MiniApp()
    cleaned = []

    @app.tool("a.wait")
    async def wait(call: ToolCall) -> dict:
        try:
            await trio.sleep_forever()
        finally:
            cleaned.append(call.is_cancel_requested)
        return {}

    async with FakeKernel(app) as kernel:
        call = await kernel.call("a.wait", {})
        await call.wait_running()
        await kernel.cancel(call)
        assert (await call.wait_outcome()).status == "cancelled"
    assert cleaned == [True]


@pytest.mark.clause("6.7")
async def test_a_handler_that_handles_cancel_is_told_and_ends_the_call_itself() -> None:
    app = MiniApp()

    @app.tool("a.wait", handles_cancel=True)
    async def wait(call: ToolCall) -> dict:
        await call.wait_cancel_requested()
        await call.cancel_seen()
        return {"kept": True}

    async with FakeKernel(app) as kernel:
        call = await kernel.call("a.wait", {})
        await call.wait_running()
        await kernel.cancel(call)
        assert await call.result() == {"kept": True}
        assert call.is_cancel_seen


@pytest.mark.clause("6.6")
async def test_a_call_that_ended_elsewhere_stops_its_handler_quietly(capsys: pytest.CaptureFixture[str]) -> None:
    app = MiniApp()
    cleaned = trio.Event()

    @app.tool("a.wait", handles_cancel=True)
    async def wait(call: ToolCall) -> dict:
        try:
            await trio.sleep_forever()
        finally:
            cleaned.set()
        return {}

    async with FakeKernel(app) as kernel:
        call = await kernel.call("a.wait", {}, time_left_ms=10)
        await call.wait_running()
        await kernel.end(call, "expired")
        with trio.fail_after(30):
            await cleaned.wait()
        await kernel.ping()
        assert call.refusals == []
    assert capsys.readouterr().err == ""
