"""Tool calls in a MiniApp: accepted at once, one ending, and what a broken handler does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from lineup_sdk import MiniApp, Refused, ToolCall, ToolFailed
from lineup_sdk.app import Unsendable
from lineup_sdk.protocol.messages import Reply, ToolCalled
from lineup_sdk.testing import FakeKernel

CONTEXT = {"app_scope": "a", "instance_id": "i", "conversation_id": "c", "app_version": "1.0.0", "state": "starting"}


def echo_app() -> MiniApp:
    app = MiniApp()

    @app.tool("a.echo")
    async def echo(call: ToolCall) -> dict:
        return {"text": call.input["text"]}

    return app


# --- calls


@pytest.mark.clause("6.5")
async def test_accept_and_a_fast_result_leave_in_one_write(scripted_kernel: Callable) -> None:
    async with scripted_kernel(echo_app()) as kernel:
        await kernel.frames()
        for n in range(20):
            kernel.send(ToolCalled(call_id=f"call_{n}", tool_id="a.echo", input={"text": "x"}, attempts=0))
            assert [f["type"] for f in await kernel.frames()] == ["tool.accept", "tool.complete"]


@pytest.mark.clause("6.5")
async def test_handlers_begin_in_the_order_in_which_their_calls_came() -> None:
    app = MiniApp()
    begun: list[int] = []

    @app.tool("a.note")
    async def note(call: ToolCall) -> dict:
        begun.append(call.input["n"])
        await trio.lowlevel.checkpoint()
        return {}

    async with FakeKernel(app) as kernel:
        for first in range(0, 200, 20):
            calls = [await kernel.call("a.note", {"n": n}) for n in range(first, first + 20)]  # delivered together
            for call in calls:
                await call.result()
    assert begun == list(range(200))


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
async def test_when_the_accept_is_refused_the_handler_is_cancelled_and_nothing_is_sent(scripted_kernel: Callable) -> None:
    app = MiniApp()
    ends = []

    @app.tool("a.wait")
    async def wait(call: ToolCall) -> dict:
        try:
            await trio.sleep_forever()
        finally:
            ends.append(call.is_ended)
        return {}

    async with scripted_kernel(app) as kernel:
        await kernel.frames()
        kernel.send(ToolCalled(call_id="call_x", tool_id="a.wait", input={}, attempts=0))
        (accept,) = await kernel.frames()
        receipt = {"accepted": False, "code": "call_already_final", "at": ""}
        kernel.send(Reply(id=accept["id"], receipt=receipt))
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(BlockingIOError):
            kernel.sock.recv(1)
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
async def test_a_call_that_is_not_ours_is_not_found() -> None:
    app = MiniApp()
    call_id = "call_of_another"

    @app.tool("a.meddle")
    async def meddle(call: ToolCall) -> dict:
        assert (await app.tools.get(call.call_id))["status"] == "running"
        for ask in (app.tools.get(call_id), app.tools.complete(call_id, {}), app.tools.fail(call_id, "x"), app.tools.cancel(call_id)):
            with pytest.raises(Refused, match="call_not_found"):
                await ask
        return {}

    async with FakeKernel(app) as kernel:
        assert await (await kernel.call("a.meddle", {})).result() == {}


# --- what no wire admits


_BEYOND = [
    (lambda app, call: app.tools.get(""), "field_bound", "/call_id", "1 to 128 characters"),
    (lambda app, call: app.tools.get("c" * 129), "field_bound", "/call_id", "1 to 128 characters"),
    (lambda app, call: app.tools.get(None), "field_missing", "/call_id", "str"),
    (lambda app, call: app.inbox.acknowledge(""), "field_bound", "/message_id", "1 to 128 characters"),
    (lambda app, call: app.inbox.list(after=""), "field_bound", "/after", "1 to 128 characters"),
    (lambda app, call: call.progress(message="x" * 1_001), "field_bound", "/message", "0 to 1000 characters"),
    (lambda app, call: call.progress(percent="50"), "field_kind", "/percent", "float"),
    (lambda app, call: call.complete([]), "field_kind", "/result", "dict"),
    (lambda app, call: call.fail("It broke."), "field_bound", "/reason", "a text of the form [a-z0-9_]{1,64}"),
    (lambda app, call: call.cancel("x" * 1_001), "field_bound", "/reason", "0 to 1000 characters"),
    (lambda app, call: app.lifecycle.request_close("x" * 1_001), "field_bound", "/reason", "0 to 1000 characters"),
    (lambda app, call: app.lifecycle.request_mode("smoke"), "field_bound", "/mode", "a text of the form im|audio|video"),
    (lambda app, call: app.artifacts.put(b"x", "text/plain; charset=utf-8"), "field_bound", "/media_type", "a text of the form [a-z0-9"),
    (lambda app, call: app.artifacts.get(""), "field_bound", "/artifact_id", "1 to 128 characters"),
    (lambda app, call: app.surface.update({}, base_version=-1), "field_bound", "/base_version", "an integer from 0 to"),
    (lambda app, call: app.capabilities.request("", reason="why", arguments={}), "field_bound", "/capability", "1 to 128 characters"),
]


@pytest.mark.clause("2.2")
@pytest.mark.parametrize(("ask", "reason", "pointer", "expected"), _BEYOND)
async def test_an_argument_the_kernel_would_end_the_app_for_is_refused_where_it_is_given(
    ask: Callable[[MiniApp, ToolCall], Awaitable[object]], reason: str, pointer: str, expected: str
) -> None:
    app = MiniApp()

    @app.tool("a.work")
    async def work(call: ToolCall) -> dict:
        with pytest.raises(Unsendable) as caught:
            await ask(app, call)
        return {"reason": caught.value.reason, "pointer": caught.value.pointer, "expected": caught.value.expected}

    async with FakeKernel(app) as kernel:
        said = await (await kernel.call("a.work", {})).result()
        assert (said["reason"], said["pointer"]) == (reason, pointer)
        assert said["expected"].startswith(expected)
        assert kernel.refusals == []  # it never left


@pytest.mark.clause("6.5")
@pytest.mark.parametrize("way", ["raised", "asked"])
async def test_the_message_of_a_failure_is_cut_so_that_the_failure_arrives(way: str) -> None:
    app = MiniApp()

    @app.tool("a.work")
    async def work(call: ToolCall) -> dict:
        if way == "raised":
            raise ToolFailed("broken", "x" * 5_000)
        await call.fail("broken", "x" * 5_000)
        return {}

    async with FakeKernel(app) as kernel:
        outcome = await (await kernel.call("a.work", {})).wait_outcome()
        assert (outcome.status, outcome.reason, outcome.message) == ("failed", "broken", "x" * 999 + "\N{HORIZONTAL ELLIPSIS}")


# --- a kernel without room


async def test_a_full_store_delays_the_ending_and_loses_nothing(scripted_kernel: Callable, autojump_clock: trio.testing.MockClock) -> None:
    app = echo_app()
    async with scripted_kernel(app) as kernel:
        await kernel.frames()
        kernel.send(ToolCalled(call_id="call_1", tool_id="a.echo", input={"text": "x"}, attempts=0))
        accept, complete = await kernel.frames()
        refused = {"accepted": False, "code": "store_full", "at": ""}
        kernel.send(Reply(id=accept["id"], receipt={"accepted": True, "at": ""}))
        kernel.send(Reply(id=complete["id"], receipt=refused))
        (again,) = await kernel.frames()
        assert {**again, "id": 0} == {**complete, "id": 0}


def manifest_of(*tool_ids: str) -> dict:
    schema = {"type": "object", "additionalProperties": False}
    tools = [{"id": i, "input_schema": schema, "output_schema": schema, "hints": {}} for i in tool_ids]
    return {"app_scope": "a", "version": "1.0.0", "tools": tools, "subscriptions": []}
