"""The inbox of a MiniApp: in order, acknowledged once, nothing lost to a handler that raised."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio
import trio.testing

from lineup_sdk import MiniApp, ToolCall
from lineup_sdk.app import InboxMessage
from lineup_sdk.protocol.messages import Reply
from lineup_sdk.testing import FakeKernel

CONTEXT = {"app_scope": "a", "instance_id": "i", "conversation_id": "c", "app_version": "1.0.0", "state": "starting"}


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


async def test_a_message_delivered_twice_to_one_life_is_handled_once(scripted_kernel: Callable) -> None:
    app = MiniApp()
    handled = []
    go_on = trio.Event()

    @app.on_message("t")
    async def handle(message: InboxMessage) -> None:
        handled.append(message.message_id)
        await go_on.wait()

    async with scripted_kernel(app) as kernel:
        await kernel.frames()
        delivered = {"type": "inbox.delivered", "message_id": "m", "topic": "t", "body": {}, "delivery_count": 1}
        kernel.send_frames(delivered, {**delivered, "delivery_count": 2})
        await trio.testing.wait_all_tasks_blocked()
        go_on.set()
        (acknowledge,) = await kernel.frames()
        kernel.send(Reply(id=acknowledge["id"], value={"acknowledged": True}))
        await trio.testing.wait_all_tasks_blocked()
    assert handled == ["m"]
