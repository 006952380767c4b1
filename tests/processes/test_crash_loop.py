"""Apps and zygotes that die again and again: bounded, told, and nobody else's trouble (SPEC 8.3)."""

from __future__ import annotations

import json
import os
import signal

import psutil
import pytest
import trio

from kernel.protocol.host import CallCancel, InstancesList, KernelStatus
from tests.processes.conftest import Starter
from tests.processes.kernel_under_test import KernelUnderTest
from tests.processes.peers import Agent, Person


async def pid_of(person: Person, scope: str) -> int:
    """The process of an App's instance, once it has one."""
    while True:
        listed = await person.ask(InstancesList())
        ids = [one["instance_id"] for one in listed["instances"] if one["app_scope"] == scope]
        pids = [one["pid"] for one in listed["workers"] if one["instance_id"] in ids]
        if pids:
            return int(pids[0])


async def hold(agent: Agent, person: Person, scope: str) -> str:
    call_id = await agent.invoke(f"{scope}.hold", {"json": "[]"})
    await person.instance(scope, "background")
    return call_id


@pytest.mark.clause("6.8")
async def test_a_call_whose_worker_crashes_twice_completes_in_the_third_life(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    agent = await warm.agent(nursery)
    twice = await agent.invoke("fixture.crash", {"times": 2})
    assert (await agent.result(twice))["result"] == {"attempts": 2}


@pytest.mark.clause("8.3")
@pytest.mark.invariant("41")
async def test_the_fourth_crash_within_a_minute_fails_the_instance_and_nothing_else(start: Starter, nursery: trio.Nursery) -> None:
    kernel = start()
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    other = await hold(agent, person, "other")
    endless = await agent.invoke("fixture.crash", {"times": 100})
    waiting = await agent.invoke("fixture.slow", {"key": "never"})
    failed = await agent.result(endless)
    assert (failed["status"], failed["code"]) == ("failed", "app_crashed")
    assert (await person.status(endless, "failed"))["attempts"] == 3
    # Three crashes are on record; one more ends the instance, and the call that waits in it.
    again = await agent.invoke("fixture.crash", {"times": 100})
    gone = await person.instance("fixture", "failed")
    assert gone["error"] == "app_crashed"
    for call_id in (again, waiting):
        assert (await agent.result(call_id))["code"] == "app_crashed"
    assert person.calls[other]["status"] == "waiting_for_app"
    await agent.go("other")
    assert (await agent.result(other))["status"] == "completed"
    assert "result" in await agent.result(await agent.invoke("fixture.echo", {"text": "a new instance"}))


@pytest.mark.clause("8.3")
async def test_a_broken_seal_fails_the_instance_at_once(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    person = await warm.join(nursery)
    agent = await warm.agent(nursery)
    other = await hold(agent, person, "other")
    call_id = await agent.invoke("rude.seal", {"json": ""})
    failed = await person.instance("rude", "failed")
    assert failed["error"] == "protocol_violation"
    assert (await agent.result(call_id))["code"] == "app_crashed"
    await person.status(call_id, "failed")
    assert person.calls[call_id]["attempts"] == 0
    await agent.go("other")
    assert (await agent.result(other))["status"] == "completed"


@pytest.mark.clause("8.3")
async def test_zygote_deaths_restart_all_count_for_no_instance_and_end_the_kernel_at_the_fourth(
    start: Starter, nursery: trio.Nursery
) -> None:
    kernel = start()
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    call_id = await hold(agent, person, "raw")
    for victim in ("outer", "inner", "outer"):
        await pid_of(person, "raw")
        outer = psutil.Process(kernel.pid).children()[0]
        (outer if victim == "outer" else outer.children()[0]).send_signal(signal.SIGKILL)
        await person.instance("raw", "starting")
        await person.instance("raw", "background")
    assert person.calls[call_id]["attempts"] == 0
    outer = psutil.Process(kernel.pid).children()[0]
    tree = kernel.tree()
    outer.send_signal(signal.SIGKILL)
    assert await kernel.wait_exited() == 1
    await tree.wait_gone()
    assert '"sandbox_incomplete"' in kernel.log.read_text()

    kernel = start()
    await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    await agent.go("raw")
    assert (await agent.result(call_id))["status"] == "completed"


@pytest.mark.clause("16")
@pytest.mark.invariant("47")
async def test_an_app_that_never_returns_to_its_loop_stops_nobody_else_and_is_ended(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    person = await warm.join(nursery)
    agent = await warm.agent(nursery)
    await agent.result(await agent.invoke("fixture.echo", {"text": "started"}))
    spinning = await agent.invoke("fixture.spin", {})
    await person.status(spinning, "waiting_for_app", "running")  # delivered; an accept that was not flushed does not get out any more
    assert "result" in await agent.result(await agent.invoke("other.heard", {"json": ""}))
    assert (await person.ask(CallCancel(call_id=spinning)))["accepted"]
    ended = await agent.result(spinning)
    assert (ended["status"], ended["report"]["cancel"]) == ("cancelled", "stopped")
    assert "result" in await agent.result(await agent.invoke("fixture.echo", {"text": "a new process"}))
    assert person.calls[spinning]["attempts"] == 0


@pytest.mark.clause("16")
async def test_a_stopped_worker_is_found_and_its_call_is_given_to_the_next(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    """The watchdog: neither an answer nor CPU time for 5 s; answers given before they were asked for are none."""
    person = await warm.join(nursery)
    agent = await warm.agent(nursery)
    forged = [{"type": "pong", "n": 2**52, "quiet": True}]
    await agent.result(await agent.invoke("witness.send", {"json": json.dumps(forged)}))
    call_id = await hold(agent, person, "witness")
    os.kill(await pid_of(person, "witness"), signal.SIGSTOP)
    await person.instance("witness", "starting")
    await person.instance("witness", "background")
    await agent.go("witness")
    assert (await agent.result(call_id))["status"] == "completed"
    assert (await person.status(call_id, "completed"))["attempts"] == 1
    assert (await person.ask(KernelStatus()))["open_calls"] >= 0
