"""kill -9 at every named moment of every turn of a call's path (SPEC 6.8, 12; STYLE 48)."""

from __future__ import annotations

import signal
from contextlib import suppress

import pytest
import trio

from lineup_sdk.channel import ChannelClosed
from lineup_sdk.protocol.messages import JsonObject
from tests import invariants
from tests.processes.call_states import finals_of
from tests.processes.conftest import Starter
from tests.processes.kernel_under_test import KernelUnderTest, opened_copy
from tests.processes.peers import Agent, ChannelEnded, new_name

BEFORE = ("Booted", "AgentAttached")
AFTER = ("tools.subscribe", "lifecycle.started", "tool.accept", "tool.progress", "tool.complete", "outbox.acknowledge")
MOMENTS = (
    *((command, moment) for command in BEFORE for moment in ("applied", "committed")),
    ("ToolInvoke", "applied"),
    ("RouteCall", "applied"),  # what follows from an invoke is decided in its commit
    ("ToolInvoke", "committed"),
    *((command, moment) for command in AFTER for moment in ("applied", "committed")),
)


def program(moment: str, command: str = "-", notes: str = "-") -> tuple[str, ...]:
    return ("-m", "tests.faults.dying_kernel", moment, command, notes)


@pytest.mark.clause("6.8")
@pytest.mark.invariant("09")
@pytest.mark.invariant("15")
@pytest.mark.invariant("16")
@pytest.mark.invariant("20")
async def test_a_call_whose_kernel_is_killed_once_at_every_moment_completes_once(start: Starter, nursery: trio.Nursery) -> None:
    agents: list[Agent] = []
    envelope: JsonObject = {}
    for command, moment in MOMENTS:
        kernel = start(program=program(moment, command))
        agent = await _agent_of(kernel, nursery)
        if agent is not None:
            agents.append(agent)
            envelope = envelope or _call_of(agent)
            with suppress(ChannelEnded, ChannelClosed):
                await agent.resend(envelope)
        assert await _end_of(kernel) == -signal.SIGKILL, (command, moment)
        with opened_copy(kernel.home) as db:
            assert invariants.check_all(db) == [], (command, moment)

    kernel = start()
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    agents.append(agent)
    await agent.resend(envelope)
    call_id = envelope["payload"]["call_id"]
    assert (await agent.result(call_id))["result"] == {"count": 1}
    await person.status(call_id, "completed")
    assert person.calls[call_id]["attempts"] == 0
    assert len({name for one in agents for name in finals_of(one).get(call_id, ())}) == 1
    await kernel.kill_all()
    with opened_copy(kernel.home) as db:
        assert invariants.check_all(db) == []


async def _end_of(kernel: KernelUnderTest) -> int | None:
    """How it ended, None when its moment did not come."""
    with suppress(trio.TooSlowError):
        return await kernel.wait_exited()
    return None


async def _agent_of(kernel: KernelUnderTest, nursery: trio.Nursery) -> Agent | None:
    """An Agent at the door, if the kernel lives until then."""
    if (await kernel.first_view(nursery)).is_closed:
        return None
    with suppress(ChannelEnded, ChannelClosed, OSError):
        agent = await kernel.agent(nursery)
        return agent if agent.of_type("welcome") else None
    return None


def _call_of(agent: Agent) -> JsonObject:
    payload = {"call_id": new_name("call"), "tool_id": "fixture.report", "inventory_revision": agent.revision, "input": {"percents": [50]}}
    return agent.envelope("tool.call", payload)


@pytest.mark.clause("12")
@pytest.mark.invariant("60")
async def test_a_turn_that_breaks_stops_the_kernel_and_nobody_is_told_a_lie(start: Starter, nursery: trio.Nursery) -> None:
    """No receipt for what was not committed; after the next start the same envelope is new and runs once."""
    kernel = start(program=program("broken", "ToolInvoke"))
    await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    envelope = _call_of(agent)
    agent.submit(envelope)
    await agent.wait_closed()
    assert agent.receipts(envelope["message_id"]) == []
    assert await kernel.wait_exited() == 1
    assert '"code": "unknown"' in kernel.log.read_text()

    kernel = start()
    await kernel.first_view(nursery)
    again = await kernel.agent(nursery)
    assert (await again.resend(envelope))["accepted"]
    assert (await again.result(envelope["payload"]["call_id"]))["status"] == "completed"


@pytest.mark.clause("12")
@pytest.mark.invariant("60")
async def test_a_turn_that_finds_no_room_is_done_when_there_is_some_and_answered_once(start: Starter, nursery: trio.Nursery) -> None:
    """The Agent waits and loses neither its channel nor its call."""
    kernel = start(program=program("full", "ToolInvoke"))
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    envelope = _call_of(agent)
    agent.submit(envelope)
    call_id = envelope["payload"]["call_id"]
    assert (await agent.result(call_id))["status"] == "completed"
    assert [receipt["accepted"] for receipt in agent.receipts(envelope["message_id"])] == [True]
    assert "store.full" in kernel.log.read_text()
    await person.status(call_id, "completed")
    await kernel.kill_all()
    with opened_copy(kernel.home) as db:
        assert invariants.check_all(db) == []
