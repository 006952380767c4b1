"""MiniApp: registering handlers, the start, the context, state, log, lifecycle, the stop."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio
import trio.testing

from lineup_sdk import MiniApp, Refused, ToolCall
from lineup_sdk.app import InboxMessage, LifecycleStopping, MiniAppContext, Unsendable
from lineup_sdk.protocol.limits import MAX_LOG_TEXT_BYTES, MAX_STATE_BYTES, MAX_WORKER_FRAME_BYTES
from lineup_sdk.protocol.messages import Reply, ToolCalled
from lineup_sdk.testing import AppEnded, FakeKernel

CONTEXT = {"app_scope": "a", "instance_id": "i", "conversation_id": "c", "app_version": "1.0.0", "state": "starting"}


def echo_app() -> MiniApp:
    app = MiniApp()

    @app.tool("a.echo")
    async def echo(call: ToolCall) -> dict:
        return {"text": call.input["text"]}

    return app


# --- registering


def test_handlers_belong_to_the_object_they_were_registered_on() -> None:
    assert echo_app().tool_ids == {"a.echo"}
    assert MiniApp().tool_ids == frozenset()


def test_a_second_handler_and_one_that_is_not_async_are_refused() -> None:
    app = echo_app()
    with pytest.raises(ValueError, match="already"):
        app.tool("a.echo")(app.tools.get)
    with pytest.raises(TypeError, match="async def"):
        app.tool("a.other")(lambda call: {})
    app.on_start(app.lifecycle.request_foreground)
    with pytest.raises(ValueError, match="already"):
        app.on_start(app.lifecycle.request_foreground)


async def test_before_it_is_served_an_app_has_no_context_and_no_kernel_to_ask() -> None:
    app = MiniApp()
    with pytest.raises(RuntimeError, match="not being served"):
        _ = app.context
    with pytest.raises(RuntimeError, match="not being served"):
        await app.state.load()
    with pytest.raises(RuntimeError, match="not being served"):
        app.log.info("early")


@pytest.mark.clause("3")
def test_an_author_cannot_make_a_context() -> None:
    with pytest.raises(TypeError):
        MiniAppContext(**CONTEXT)


# --- start


@pytest.mark.clause("2.6")
async def test_a_start_says_subscribe_and_started_in_one_write_after_the_start_handler(scripted_kernel: Callable) -> None:
    app = echo_app()
    order = []

    @app.on_start
    async def start() -> None:
        order.append(await app.state.load())

    async with scripted_kernel(app) as kernel:
        assert [f["type"] for f in await kernel.frames()] == ["state.load"]
        kernel.send(Reply(id=1, value={"state": {"n": 1}}))
        assert [f["type"] for f in await kernel.frames()] == ["tools.subscribe", "lifecycle.started"]
    assert order == [{"n": 1}]


@pytest.mark.clause("5.2")
async def test_an_app_with_message_handlers_subscribes_to_its_inbox_before_it_is_started(scripted_kernel: Callable) -> None:
    app = echo_app()

    @app.on_message("t")
    async def handle(message: InboxMessage) -> None:
        del message

    async with scripted_kernel(app) as kernel:
        assert [f["type"] for f in await kernel.frames()] == ["tools.subscribe", "inbox.subscribe", "lifecycle.started"]


async def test_a_start_handler_that_raises_ends_the_app_with_that_error() -> None:
    app = MiniApp()

    @app.on_start
    async def start() -> None:
        raise ZeroDivisionError

    with pytest.raises(AppEnded) as caught:
        async with FakeKernel(app):
            pass
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


async def test_the_context_is_what_the_welcome_carried_and_follows_the_state() -> None:
    app = echo_app()
    seen: list[str] = []

    @app.on_context_changed
    async def changed(context: MiniAppContext) -> None:
        seen.append(context.state)
        app.log.info("seen")

    async with FakeKernel(app, context={"app_scope": "a", "mode": "im"}) as kernel:
        assert (app.context.app_scope, app.context.mode, app.context.state) == ("a", "im", "starting")
        await kernel.set_state("foreground")
        await kernel.wait_until(lambda: len(kernel.log) == 1)
        await kernel.set_state("background")
        await kernel.wait_until(lambda: len(kernel.log) == 2)
        assert app.context.state == "background"
    assert seen == ["foreground", "background"]


# --- state, log, lifecycle


@pytest.mark.clause("8.5")
async def test_saved_state_comes_back_and_one_that_is_too_large_is_refused_and_changes_nothing() -> None:
    app = MiniApp()

    @app.tool("a.save")
    async def save(call: ToolCall) -> dict:
        assert await app.state.load() is None
        await app.state.save({"n": 1})
        for size in (MAX_STATE_BYTES, MAX_WORKER_FRAME_BYTES):
            with pytest.raises(Refused, match="limit_exceeded"):
                await app.state.save({"text": "x" * size})
        with pytest.raises(Unsendable, match="value_kind"):
            await app.state.save({"set": {1}})
        return await app.state.load() or {}

    async with FakeKernel(app) as kernel:
        assert await (await kernel.call("a.save", {})).result() == {"n": 1}


@pytest.mark.clause("2.10")
async def test_a_log_line_is_cut_at_the_bound_and_never_in_the_middle_of_a_character() -> None:
    app = MiniApp()

    @app.tool("a.log")
    async def log(call: ToolCall) -> dict:
        app.log.debug("d")
        app.log.warning("w")
        app.log.error("\U0001f600" * MAX_LOG_TEXT_BYTES)
        return {}

    async with FakeKernel(app) as kernel:
        await (await kernel.call("a.log", {})).result()
        assert kernel.log[:2] == [("log", "debug: d\n"), ("log", "warning: w\n")]
        text = kernel.log[2][1]
    assert MAX_LOG_TEXT_BYTES - 4 <= len(text.encode()) <= MAX_LOG_TEXT_BYTES
    assert set(text.removeprefix("error: ")) == {"\U0001f600"}


@pytest.mark.clause("8.2")
async def test_lifecycle_requests_are_asked_and_a_close_with_open_calls_is_refused() -> None:
    app = MiniApp()

    @app.tool("a.ask")
    async def ask(call: ToolCall) -> dict:
        await app.lifecycle.request_foreground()
        await app.lifecycle.request_background()
        with pytest.raises(Refused, match="lifecycle_denied"):
            await app.lifecycle.request_close("done")
        return {}

    @app.on_message("close")
    async def close(message: InboxMessage) -> None:
        await app.lifecycle.request_close("done")

    async with FakeKernel(app) as kernel:
        assert await (await kernel.call("a.ask", {})).result() == {}
        await (await kernel.deliver("close", {})).wait_acknowledged()
        types = [r.TYPE for r in kernel.lifecycle_requests]
    assert types == ["lifecycle.request_foreground", "lifecycle.request_background", "lifecycle.request_close"]


@pytest.mark.clause("8.2")
async def test_a_stop_runs_the_stop_handler_which_can_still_ask() -> None:
    app = MiniApp()
    stops = []

    @app.on_stopping
    async def stopping(message: LifecycleStopping) -> None:
        stops.append(message.reason)
        await app.state.save({"saved": "at the end"})

    async with FakeKernel(app) as kernel:
        await kernel.stop("suspend")
        assert kernel.saved_state == {"saved": "at the end"}
    assert stops == ["suspend"]


async def test_a_stop_handler_that_never_ends_is_cut_at_the_deadline(autojump_clock: trio.testing.MockClock) -> None:
    app = MiniApp()

    @app.on_stopping
    async def stopping(message: LifecycleStopping) -> None:
        await trio.sleep_forever()

    async with FakeKernel(app) as kernel:
        began = trio.current_time()
        await kernel.stop(deadline_ms=50)
        assert trio.current_time() - began == pytest.approx(0.05)  # of a clock that only waits move


async def test_a_handler_that_shields_a_request_does_not_hold_up_the_end(scripted_kernel: Callable) -> None:
    app = MiniApp()

    @app.tool("a.stubborn")
    async def stubborn(call: ToolCall) -> dict:
        with trio.CancelScope(shield=True):
            await app.state.save({})
        return {}

    async with scripted_kernel(app) as kernel:
        await kernel.frames()
        kernel.send(ToolCalled(call_id="call_1", tool_id="a.stubborn", input={}, attempts=0))
        assert [f["type"] for f in await kernel.frames()] == ["tool.accept", "state.save"]
        kernel.send_frames({"type": "lifecycle.stopping", "reason": "close", "deadline_ms": 1000})
        await trio.lowlevel.wait_readable(kernel.sock)
        assert kernel.sock.recv(1) == b""
