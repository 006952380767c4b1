"""Floods, silence and endless refusals: slowed, cut or ended, with everybody else at work (SPEC 16)."""

from __future__ import annotations

import json
from typing import Any

import psutil
import pytest
import trio

from kernel.protocol.host import CallCancel, CallInvoke, CallsShow, InstancesList
from tests.invariants_of_processes import check_inv_47
from tests.processes.kernel_under_test import KernelUnderTest, opened_copy
from tests.processes.peers import Agent, Person

MIB = 1024 * 1024
FLOOD = 14_000  # frames: seven seconds' worth


def burst(frame: dict[str, Any], count: int, *, has_id: bool = True) -> dict[str, str]:
    return {"json": json.dumps({"frame": frame, "count": count, "has_id": has_id})}


async def require_others_at_work(agent: Agent) -> None:
    assert "result" in await agent.result(await agent.invoke("fixture.echo", {"text": "still here"}))


def require_alone(kernel: KernelUnderTest, person: Person, attacker: str, resident: int, bound_bytes: int) -> None:
    """Nobody ended with the attacker, and the kernel's memory stayed in bound. How long others wait is no matter of a test."""
    ended = [name for name, one in person.instances.items() if one["state"] == "failed"]
    grown = psutil.Process(kernel.pid).memory_info().rss - resident
    assert check_inv_47(ended, attacker, (), 0, grown, bound_bytes) == []


@pytest.mark.clause("16")
@pytest.mark.invariant("47")
async def test_a_flood_of_frames_is_slowed_and_the_app_lives(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    """Longer than the watchdog's patience: a worker that is not read for a while is not a silent one."""
    person = await warm.join(nursery)
    agent = await warm.agent(nursery)
    resident = psutil.Process(warm.pid).memory_info().rss
    call_id = await agent.invoke("flooder.burst", burst({"type": "pong", "n": 0}, FLOOD, has_id=False))
    await person.status(call_id, "running")
    instance_id = person.calls[call_id]["instance_id"]

    async def frames() -> int:
        workers = (await person.ask(InstancesList()))["workers"]
        return int(next(one["frames"] for one in workers if one["instance_id"] == instance_id))

    with trio.fail_after(60):
        while await frames() < FLOOD:
            await require_others_at_work(agent)
    assert person.calls[call_id]["attempts"] == 0
    assert person.instances[instance_id]["state"] == "background"
    require_alone(warm, person, instance_id, resident, 32 * MIB)
    await person.ask(CallCancel(call_id=call_id))
    assert (await agent.result(call_id))["status"] == "cancelled"


@pytest.mark.clause("16")
@pytest.mark.invariant("47")
async def test_a_worker_that_asks_and_does_not_read_is_cut_at_the_bound_of_its_queue(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    person = await warm.join(nursery)
    agent = await warm.agent(nursery)
    resident = psutil.Process(warm.pid).memory_info().rss
    call_id = await agent.invoke("deaf.deaf", {"json": "400"})
    await person.until(lambda: person.calls.get(call_id, {}).get("attempts"))
    require_alone(warm, person, person.calls[call_id]["instance_id"], resident, 64 * MIB)
    await require_others_at_work(agent)
    await person.ask(CallCancel(call_id=call_id))
    assert (await agent.result(call_id))["status"] == "cancelled"


@pytest.mark.clause("16")
async def test_a_hundred_identical_refusals_of_a_worker_fail_its_instance(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    person = await warm.join(nursery)
    agent = await warm.agent(nursery)
    wrong = {"type": "tools.get", "call_id": "unknown"}
    asked = {"json": json.dumps([wrong] * 99)}
    said = json.loads((await agent.result(await agent.invoke("flooder.send", asked)))["result"]["json"])
    assert [one["code"] for one in said] == ["call_not_found"] * 99
    with opened_copy(warm.home) as db:
        sql = "SELECT count(*) FROM audit WHERE event = 'command.refused' AND command = 'tools.get' AND code = 'call_not_found'"
        rows = db.execute(sql + " AND instance_id LIKE ?", (await _instance_id(person, "flooder"),)).get
    assert rows == 1
    call_id = await agent.invoke("flooder.burst", burst(wrong, 1))
    assert (await agent.result(call_id))["code"] == "app_crashed"
    assert (await person.instance("flooder", "failed"))["error"] == "protocol_violation"
    await require_others_at_work(agent)


async def _instance_id(person: Person, scope: str) -> str:
    return str((await person.instance(scope, "background"))["instance_id"])


@pytest.mark.clause("16")
async def test_a_hundred_identical_refusals_of_a_view_or_an_agent_close_its_channel(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    witness = await warm.join(nursery)
    person = await warm.join(nursery)
    for _ in range(99):
        assert (await person.ask(CallCancel(call_id="unknown")))["code"] == "call_not_found"
    person.put(CallCancel(call_id="unknown"), 1000)
    await person.wait_closed()
    assert person.goodbye == "protocol_violation"

    agent = await warm.agent(nursery)
    for _ in range(99):
        assert (await agent.send("tool.cancel", {"call_id": "unknown"}))["code"] == "call_not_found"
    agent.submit(agent.envelope("tool.cancel", {"call_id": "unknown"}))
    await agent.wait_closed()
    assert agent.goodbye == "protocol_violation"
    assert not witness.is_closed
    await require_others_at_work(await warm.agent(nursery))


@pytest.mark.clause("2.6")
async def test_a_flood_of_questions_of_one_view_does_not_hold_up_the_others(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    flooding = await warm.join(nursery, "admin")
    agent = await warm.agent(nursery)
    for number in range(3_000):
        flooding.channel.send({"type": CallsShow.TYPE, "id": number + 1, "call_id": "unknown"})
    flooding.channel.flush()
    await require_others_at_work(agent)
    assert len(flooding.of_type("reply")) < 3_000
    await flooding.until(lambda: len(flooding.of_type("reply")) == 3_000)


@pytest.mark.clause("11.3")
async def test_progress_that_was_replaced_while_it_was_out_takes_no_place_in_the_window(
    warm: KernelUnderTest, nursery: trio.Nursery
) -> None:
    """More rows than the window holds are replaced before the Agent says that it has them."""
    agent = await warm.agent(nursery, acknowledges=False)
    reports = [{"type": "tool.progress", "call_id": "THIS", "percent": n} for n in range(4)]
    asked = {"json": json.dumps([{"type": "tool.accept", "call_id": "THIS"}, *reports])}
    acknowledged = 0
    for _ in range(3):
        for call_id in [await agent.invoke("other.send", asked) for _ in range(40)]:
            await agent.result(call_id)
        for envelope in agent.envelopes[acknowledged:]:
            agent.acknowledge(envelope["message_id"])
        acknowledged = len(agent.envelopes)
    assert acknowledged > 300
    await require_others_at_work(agent)


@pytest.mark.clause("16")
async def test_open_calls_of_an_app_are_bounded(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    person = await warm.join(nursery)
    agent = await warm.agent(nursery)
    calls = [await agent.invoke("witness.hold", {"json": "[]"}) for _ in range(64)]
    refused = await agent.invoke("witness.hold", {"json": "[]"})
    assert (await agent.result(refused))["code"] == "limit_exceeded"
    by_hand = await person.ask(CallInvoke(tool_id="witness.hold", input={"json": "[]"}))
    assert by_hand["code"] == "limit_exceeded"
    await agent.go("witness")
    for call_id in calls:
        assert (await agent.result(call_id))["status"] == "completed"
