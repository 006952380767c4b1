"""MiniApp over the real wire: starts, calls, messages, cancel, stop, and what a broken kernel does to it."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from lineup_sdk import MiniApp, Refused, ToolCall, ToolFailed
from lineup_sdk.app import InboxMessage, LifecycleStopping, MiniAppContext, Unsendable
from lineup_sdk.channel import Channel
from lineup_sdk.protocol.framing import FrameReader, ProtocolViolation, encode_frame
from lineup_sdk.protocol.limits import MAX_FRAME_BYTES, MAX_LOG_TEXT_BYTES, MAX_STATE_BYTES, MAX_WORKER_FRAME_BYTES
from lineup_sdk.protocol.messages import Chunk, Reply, ToolCalled, Welcome, to_frame
from lineup_sdk.requests import MAX_IN_FLIGHT
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
async def test_a_start_says_subscribe_and_started_in_one_write_after_the_start_handler() -> None:
    app = echo_app()
    order = []

    @app.on_start
    async def start() -> None:
        order.append(await app.state.load())

    async with scripted_kernel(app) as (frames, sock):
        assert [f["type"] for f in await frames()] == ["state.load"]
        sock.send(encoded(Reply(id=1, value={"state": {"n": 1}})))
        assert [f["type"] for f in await frames()] == ["tools.subscribe", "lifecycle.started"]
    assert order == [{"n": 1}]


@pytest.mark.clause("5.2")
async def test_an_app_with_message_handlers_subscribes_to_its_inbox_before_it_is_started() -> None:
    app = echo_app()

    @app.on_message("t")
    async def handle(message: InboxMessage) -> None:
        del message

    async with scripted_kernel(app) as (frames, _):
        assert [f["type"] for f in await frames()] == ["tools.subscribe", "inbox.subscribe", "lifecycle.started"]


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


# --- calls


@pytest.mark.clause("6.5")
async def test_accept_and_a_fast_result_leave_in_one_write() -> None:
    async with scripted_kernel(echo_app()) as (frames, sock):
        await frames()
        for n in range(20):
            sock.send(encoded(ToolCalled(call_id=f"call_{n}", tool_id="a.echo", input={"text": "x"}, attempts=0)))
            assert [f["type"] for f in await frames()] == ["tool.accept", "tool.complete"]


@pytest.mark.clause("6.5")
async def test_a_result_of_a_handler_completes_its_call() -> None:
    async with FakeKernel(echo_app()) as kernel:
        call = await kernel.call("a.echo", {"text": "hello"})
        assert await call.result() == {"text": "hello"}


@pytest.mark.clause("6.5")
async def test_a_call_that_runs_is_not_started_twice() -> None:
    app = MiniApp()
    starts = []

    @app.tool("a.wait")
    async def wait(call: ToolCall) -> dict:
        starts.append(call.call_id)
        await trio.sleep_forever()
        return {}

    async with FakeKernel(app) as kernel:
        call = await kernel.call("a.wait", {})
        await call.wait_running()
        kernel.send(call.called())
        await kernel.ping()
        await trio.testing.wait_all_tasks_blocked()
        assert starts == [call.call_id]


@pytest.mark.clause("6.5")
async def test_when_the_accept_is_refused_the_handler_is_cancelled_and_nothing_is_sent() -> None:
    app = MiniApp()
    ends = []

    @app.tool("a.wait")
    async def wait(call: ToolCall) -> dict:
        try:
            await trio.sleep_forever()
        finally:
            ends.append(call.is_ended)
        return {}

    async with scripted_kernel(app) as (frames, sock):
        await frames()
        sock.send(encoded(ToolCalled(call_id="call_x", tool_id="a.wait", input={}, attempts=0)))
        (accept,) = await frames()
        receipt = {"accepted": False, "code": "call_already_final", "at": ""}
        sock.send(encoded(Reply(id=accept["id"], receipt=receipt)))
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(BlockingIOError):
            sock.recv(1)
    assert ends == [True]


@pytest.mark.clause("6.5")
async def test_tool_failed_ends_the_call_with_its_reason_also_out_of_a_nursery() -> None:
    app = MiniApp()

    @app.tool("a.fail")
    async def fail(call: ToolCall) -> dict:
        async with trio.open_nursery():
            raise ToolFailed("no_such_thing", "There is no such thing.")

    async with FakeKernel(app) as kernel:
        outcome = await (await kernel.call("a.fail", {})).wait_outcome()
    assert (outcome.status, outcome.reason, outcome.message) == ("failed", "no_such_thing", "There is no such thing.")


def broken_handlers() -> MiniApp:
    app = MiniApp()

    @app.tool("a.raise")
    async def raise_(call: ToolCall) -> dict:
        raise ValueError("marker-7141")

    @app.tool("a.group")
    async def group(call: ToolCall) -> dict:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(raise_, call)
            nursery.start_soon(raise_, call)
        return {}

    @app.tool("a.none")
    async def none(call: ToolCall) -> None:
        return None

    @app.tool("a.unsendable")
    async def unsendable(call: ToolCall) -> dict:
        return {"n": float("nan")}

    @app.tool("a.bad_reason")
    async def bad_reason(call: ToolCall) -> dict:
        raise ToolFailed("A whole sentence, marker-7141.")

    return app


@pytest.mark.clause("6.5")
@pytest.mark.parametrize("tool_id", ["a.raise", "a.group", "a.none", "a.unsendable", "a.bad_reason"])
async def test_a_broken_handler_fails_its_call_and_its_exception_never_travels(tool_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    async with FakeKernel(broken_handlers()) as kernel:
        outcome = await (await kernel.call(tool_id, {})).wait_outcome()
        await kernel.ping()
        assert kernel.log == []
    assert (outcome.status, outcome.reason, outcome.message) == ("failed", "handler_error", None)
    assert capsys.readouterr().err != ""


async def test_a_call_of_a_tool_without_a_handler_fails() -> None:
    async with FakeKernel(echo_app()) as kernel:
        outcome = await (await kernel.call("a.unknown", {})).wait_outcome()
    assert outcome.reason == "no_handler"


@pytest.mark.clause("6.5")
async def test_a_refused_result_leaves_the_call_open_for_another_try() -> None:
    app = MiniApp()

    @app.tool("a.try")
    async def try_(call: ToolCall) -> dict:
        with pytest.raises(Refused, match="tool_output_invalid"):
            await call.complete({"bad": 1})
        return {"good": 1}

    async with FakeKernel(app, manifest=manifest_of("a.try"), is_valid=lambda schema, value: "bad" not in value) as kernel:
        call = await kernel.call("a.try", {})
        assert await call.result() == {"good": 1}
        assert call.refusals == ["tool_output_invalid"]


@pytest.mark.clause("6.5")
async def test_a_returned_result_that_is_refused_fails_the_call_because_nobody_is_left_to_mend_it() -> None:
    app = echo_app()

    @app.tool("a.big")
    async def big(call: ToolCall) -> dict:
        return {"text": "x" * call.input["size"]}

    def fits(schema: dict, value: dict) -> bool:
        return value.get("text") != "bad"

    @app.tool("a.bad")
    async def bad(call: ToolCall) -> dict:
        return {"text": "bad"}

    async with FakeKernel(app, manifest=manifest_of("a.bad", "a.big", "a.echo"), is_valid=fits) as kernel:
        assert (await (await kernel.call("a.big", {"size": 50_000})).wait_outcome()).reason == "output_too_large"
        assert (await (await kernel.call("a.big", {"size": 70_000})).wait_outcome()).reason == "output_too_large"
        assert (await (await kernel.call("a.bad", {})).wait_outcome()).reason == "output_invalid"


@pytest.mark.clause("6.5")
async def test_after_an_ending_nothing_the_handler_does_is_sent() -> None:
    app = MiniApp()
    codes = []

    @app.tool("a.twice")
    async def twice(call: ToolCall) -> dict:
        await call.complete({"n": 1})
        for again in (call.complete({"n": 2}), call.fail("late"), call.cancel(), call.progress(percent=1)):
            with pytest.raises(Refused) as caught:
                await again
            codes.append(caught.value.code)
        return {"n": 3}

    async with FakeKernel(app) as kernel:
        call = await kernel.call("a.twice", {})
        assert await call.result() == {"n": 1}
        await kernel.wait_until(lambda: len(call.refusals) == 4)
        await kernel.ping()
        await trio.testing.wait_all_tasks_blocked()
    assert codes == ["call_already_final"] * 4


@pytest.mark.clause("6.5")
async def test_progress_waits_for_its_turn_instead_of_being_refused() -> None:
    app = MiniApp()

    @app.tool("a.work")
    async def work(call: ToolCall) -> dict:
        for percent in range(6):
            assert await call.progress(percent=percent)
        return {}

    async with FakeKernel(app) as kernel:
        call = await kernel.call("a.work", {})
        assert await call.result() == {}
        assert [p["percent"] for p in call.progress] == [0, 1, 2, 3, 4, 5]
        assert call.refusals == []


@pytest.mark.clause("6.5")
@pytest.mark.parametrize("call_id", ["call_of_another", ""])
async def test_a_call_that_is_not_ours_is_not_found(call_id: str) -> None:
    app = MiniApp()

    @app.tool("a.meddle")
    async def meddle(call: ToolCall) -> dict:
        assert (await app.tools.get(call.call_id))["status"] == "running"
        for ask in (app.tools.get(call_id), app.tools.complete(call_id, {}), app.tools.fail(call_id, "x"), app.tools.cancel(call_id)):
            with pytest.raises(Refused, match="call_not_found"):
                await ask
        return {}

    async with FakeKernel(app) as kernel:
        assert await (await kernel.call("a.meddle", {})).result() == {}


# --- cancel, expiry


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


async def test_a_full_store_delays_the_ending_and_loses_nothing(autojump_clock: trio.testing.MockClock) -> None:
    app = echo_app()
    async with scripted_kernel(app) as (frames, sock):
        await frames()
        sock.send(encoded(ToolCalled(call_id="call_1", tool_id="a.echo", input={"text": "x"}, attempts=0)))
        accept, complete = await frames()
        refused = {"accepted": False, "code": "store_full", "at": ""}
        sock.send(encoded(Reply(id=accept["id"], receipt={"accepted": True, "at": ""})))
        sock.send(encoded(Reply(id=complete["id"], receipt=refused)))
        (again,) = await frames()
        assert {**again, "id": 0} == {**complete, "id": 0}


# --- inbox


@pytest.mark.clause("5.1")
async def test_messages_are_handled_in_order_and_acknowledged_after_their_handler() -> None:
    app = MiniApp()
    handled = []

    @app.on_message("t")
    async def handle(message: InboxMessage) -> None:
        await trio.lowlevel.checkpoint()
        handled.append(message.body["n"])

    async with FakeKernel(app) as kernel:
        rows = [await kernel.deliver("t", {"n": n}) for n in range(10)]
        for row in rows:
            await row.wait_acknowledged()
        assert handled == list(range(10))
        assert {row.delivery_count for row in rows} == {1}


@pytest.mark.clause("5.3")
async def test_a_message_whose_handler_raised_stays_and_does_not_stop_the_next(capsys: pytest.CaptureFixture[str]) -> None:
    app = MiniApp()

    @app.on_message("t")
    async def handle(message: InboxMessage) -> None:
        if message.body["n"] == 0:
            raise ValueError

    async with FakeKernel(app) as kernel:
        bad = await kernel.deliver("t", {"n": 0})
        good = await kernel.deliver("t", {"n": 1})
        await good.wait_acknowledged()
        assert not bad.is_acknowledged
    assert "ValueError" in capsys.readouterr().err


@pytest.mark.clause("5.2")
async def test_a_message_can_be_listed_and_acknowledged_once() -> None:
    app = MiniApp()

    @app.tool("a.drain")
    async def drain(call: ToolCall) -> dict:
        page = await app.inbox.list()
        first = page.messages[0]
        rest = await app.inbox.list(after=first.message_id)
        answers = [await first.acknowledge(), await first.acknowledge(), await app.inbox.acknowledge("msg_unknown")]
        return {"count": len(page.messages), "more": page.has_more, "rest": len(rest.messages), "answers": answers}

    async with FakeKernel(app) as kernel:
        for n in range(102):
            await kernel.deliver("t", {"n": n})
        result = await (await kernel.call("a.drain", {})).result()
    assert result == {"count": 100, "more": True, "rest": 100, "answers": [True, False, False]}


async def test_a_message_delivered_twice_to_one_life_is_handled_once() -> None:
    app = MiniApp()
    handled = []
    go_on = trio.Event()

    @app.on_message("t")
    async def handle(message: InboxMessage) -> None:
        handled.append(message.message_id)
        await go_on.wait()

    async with scripted_kernel(app) as (frames, sock):
        await frames()
        delivered = {"type": "inbox.delivered", "message_id": "m", "topic": "t", "body": {}, "delivery_count": 1}
        sock.send(encoded_frame(delivered) + encoded_frame({**delivered, "delivery_count": 2}))
        await trio.testing.wait_all_tasks_blocked()
        go_on.set()
        assert [f["type"] for f in await frames()] == ["inbox.acknowledge"]
    assert handled == ["m"]


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
        await kernel.stop(deadline_ms=50)


# --- the wire under an app


async def test_a_ping_is_answered_while_handlers_wait() -> None:
    app = MiniApp()

    @app.tool("a.wait")
    async def wait(call: ToolCall) -> dict:
        await trio.sleep_forever()
        return {}

    async with FakeKernel(app) as kernel:
        call = await kernel.call("a.wait", {})
        await call.wait_running()
        await kernel.ping()


@pytest.mark.clause("2.2")
@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        ({"type": "tool.exploded"}, "type"),
        ({"type": "ping"}, "field_missing"),
        ({"type": "ping", "n": 1, "x": 1}, "field"),
        ({"type": "ping", "n": "1"}, "field_kind"),
        ({"type": "reply", "id": 99, "receipt": {"accepted": True, "at": ""}}, "reply_id"),
        ({"type": "context.changed", "state": "floating"}, "context"),
        (to_frame(Chunk(of="x", data=b"", last=True)), "out_of_place"),
        (to_frame(Welcome(wire=1, epoch="e", context=CONTEXT)), "out_of_place"),
    ],
)
async def test_a_kernel_that_breaks_the_wire_ends_the_app_with_a_protocol_violation(frame: dict, reason: str) -> None:
    async with FakeKernel(echo_app()) as kernel:
        kernel.send_frame(frame)
        failure = await kernel.wait_app_ended()
    assert isinstance(failure, ProtocolViolation)
    assert failure.reason == reason


@pytest.mark.clause("2.6")
@pytest.mark.parametrize(
    "welcome",
    [
        Welcome(wire=2, epoch="e", context=CONTEXT),
        Welcome(wire=1, epoch="e", context={**CONTEXT, "user": "Ada"}),
        Welcome(wire=1, epoch="e", context={**CONTEXT, "state": "stopped"}),
        Welcome(wire=1, epoch="e", context={**CONTEXT, "app_scope": 1}),
        Welcome(wire=1, epoch="e", context={"app_scope": "a"}),
    ],
)
async def test_a_welcome_of_another_wire_or_context_is_refused(welcome: Welcome) -> None:
    ours, theirs = socket.socketpair()
    channel = Channel(ours, max_in_bytes=MAX_FRAME_BYTES, max_out_bytes=MAX_WORKER_FRAME_BYTES)
    with theirs, pytest.raises(ProtocolViolation, match=r"wire_version|context"):
        await MiniApp().serve(channel, welcome)
    channel.close()


async def test_the_end_of_the_channel_ends_the_app_quietly_and_whoever_waits_is_told() -> None:
    async with scripted_kernel(echo_app()) as (frames, sock):
        await frames()
        sock.shutdown(socket.SHUT_RDWR)


async def test_frames_that_came_with_the_welcome_are_taken_first() -> None:
    ours, theirs = socket.socketpair()
    channel = Channel(ours, max_in_bytes=MAX_FRAME_BYTES, max_out_bytes=MAX_WORKER_FRAME_BYTES)
    reader = Channel(theirs, max_in_bytes=MAX_FRAME_BYTES, max_out_bytes=MAX_FRAME_BYTES)
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            early = [{"type": "ping", "n": 5}, {"type": "context.changed", "state": "background"}]
            app = echo_app()
            nursery.start_soon(app.serve, channel, Welcome(wire=1, epoch="e", context=CONTEXT), early)
            frames: list[dict] = []
            while {"type": "pong", "n": 5} not in frames:
                frames += await reader.receive()
            assert app.context.state == "background"
            reader.close()
    channel.close()


@pytest.mark.clause("16")
async def test_requests_in_flight_are_bounded_and_go_on_as_replies_come() -> None:
    app = MiniApp()

    @app.tool("a.many")
    async def many(call: ToolCall) -> dict:
        async with trio.open_nursery() as nursery:
            for _ in range(2 * MAX_IN_FLIGHT):
                nursery.start_soon(app.state.load)
        return {}

    async with scripted_kernel(app) as (frames, sock):
        await frames()
        sock.send(encoded(Reply(id=1, receipt={"accepted": True, "at": ""})))
        sock.send(encoded(Reply(id=2, receipt={"accepted": True, "at": ""})))
        sock.send(encoded(ToolCalled(call_id="call_1", tool_id="a.many", input={}, attempts=0)))
        await trio.testing.wait_all_tasks_blocked()
        owed = [f["id"] for f in await frames()]
        assert len(owed) == MAX_IN_FLIGHT
        sock.send(encoded(Reply(id=owed[1], value={"state": None})))
        assert [f["type"] for f in await frames()] == ["state.load"]


async def test_a_cancelled_wait_keeps_its_slot_until_the_reply_comes() -> None:
    app = MiniApp()

    @app.tool("a.impatient")
    async def impatient(call: ToolCall) -> dict:
        with trio.move_on_after(0):
            await app.state.load()
        return {}

    async with FakeKernel(app) as kernel:
        for _ in range(2 * MAX_IN_FLIGHT):
            assert await (await kernel.call("a.impatient", {})).result() == {}


async def test_an_app_is_served_once_at_a_time() -> None:
    app = echo_app()
    async with FakeKernel(app):
        ours, theirs = socket.socketpair()
        channel = Channel(ours, max_in_bytes=MAX_FRAME_BYTES, max_out_bytes=MAX_FRAME_BYTES)
        with theirs, pytest.raises(RuntimeError, match="already"):
            await app.serve(channel, Welcome(wire=1, epoch="e", context=CONTEXT))
        channel.close()


# --- a kernel that says only what the test says, over a socket that keeps the borders of writes


def encoded_frame(frame: dict) -> bytes:
    return encode_frame(frame, MAX_FRAME_BYTES)


def encoded(message: object) -> bytes:
    return encoded_frame(to_frame(message))


@asynccontextmanager
async def scripted_kernel(app: MiniApp) -> AsyncIterator[tuple]:
    """Yield (frames, socket): `await frames()` returns the frames of the app's next write."""
    ours, sock = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.setblocking(False)
    channel = Channel(ours, max_in_bytes=MAX_FRAME_BYTES, max_out_bytes=MAX_WORKER_FRAME_BYTES)

    async def frames() -> list[dict]:
        await trio.lowlevel.wait_readable(sock)
        reader = FrameReader(MAX_WORKER_FRAME_BYTES)
        reader.feed(sock.recv(1_000_000))
        came = []
        while (frame := reader.next_frame()) is not None:
            came.append(frame)
        return came

    with sock, trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(app.serve, channel, Welcome(wire=1, epoch="e", context=CONTEXT))
            yield frames, sock
            nursery.cancel_scope.cancel()
    channel.close()


def manifest_of(*tool_ids: str) -> dict:
    schema = {"type": "object", "additionalProperties": False}
    tools = [{"id": i, "input_schema": schema, "output_schema": schema, "hints": {}} for i in tool_ids]
    return {"app_scope": "a", "version": "1.0.0", "tools": tools, "subscriptions": []}
