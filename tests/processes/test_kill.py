"""kill -9 of the kernel, of the zygote and of every worker while calls stand in each of their states (SPEC 6.8, 8.3, 12)."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest
import trio

from kernel.protocol.host import InstancesList, KernelStatus, KernelStop
from tests import invariants
from tests.processes.call_states import attempts_of, finals_of, hold_all, release_all, require_outcomes
from tests.processes.conftest import Starter
from tests.processes.kernel_under_test import KernelUnderTest, opened_copy
from tests.processes.peers import Person


def require_promises(home: Path) -> None:
    with opened_copy(home) as db:
        assert invariants.check_all(db) == []


async def workers_of(person: Person) -> list[int]:
    """The processes of all Apps but chat, which comes and goes by its own rules."""
    listed = await person.ask(InstancesList())
    ours = {one["instance_id"] for one in listed["instances"] if one["app_scope"] != "chat"}
    return [one["pid"] for one in listed["workers"] if one["instance_id"] in ours]


@pytest.mark.clause("6.8")
@pytest.mark.invariant("16")
@pytest.mark.invariant("20")
@pytest.mark.invariant("36")
@pytest.mark.invariant("42")
async def test_no_call_is_lost_or_doubled_when_the_kernel_is_killed(start: Starter, nursery: trio.Nursery) -> None:
    kernel = start()
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery, acknowledges=False)
    held = await hold_all(person, agent)
    before = finals_of(agent)
    await kernel.kill_all()
    require_promises(kernel.home)

    kernel = start()
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    await release_all(agent)
    await require_outcomes(person, agent, held)
    after = finals_of(agent)
    assert all(len(ids) == 1 for ids in after.values())
    assert after[held.submitted] == before[held.submitted]
    assert attempts_of(person, held.running, held.delivered) == [0, 0]  # a kernel's death is no crash of the App
    await kernel.kill_all()
    require_promises(kernel.home)


@pytest.mark.clause("6.8")
@pytest.mark.clause("8.3")
async def test_no_call_is_lost_or_doubled_when_the_zygote_is_killed(start: Starter, nursery: trio.Nursery) -> None:
    kernel = start()
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery, acknowledges=False)
    held = await hold_all(person, agent)
    zygote = psutil.Process(kernel.pid).children()[0]
    tree = kernel.tree()
    tree.forget(kernel.pid)
    zygote.send_signal(signal.SIGKILL)
    await tree.wait_gone()

    agent.acknowledges = True
    for envelope in agent.envelopes:
        agent.acknowledge(envelope["message_id"])
    await release_all(agent)
    await require_outcomes(person, agent, held)
    assert all(len(ids) == 1 for ids in finals_of(agent).values())
    assert attempts_of(person, held.running, held.delivered) == [0, 0]
    assert all(one["state"] != "failed" for one in person.instances.values())
    await kernel.kill_all()
    require_promises(kernel.home)


@pytest.mark.clause("6.8")
async def test_no_call_is_lost_or_doubled_when_every_worker_is_killed(start: Starter, nursery: trio.Nursery) -> None:
    kernel = start()
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery, acknowledges=False)
    held = await hold_all(person, agent)
    pids = await workers_of(person)
    assert len(pids) == 5
    for pid in pids:
        os.kill(pid, signal.SIGKILL)

    agent.acknowledges = True
    for envelope in agent.envelopes:
        agent.acknowledge(envelope["message_id"])
    await release_all(agent)
    await require_outcomes(person, agent, held)
    assert all(len(ids) == 1 for ids in finals_of(agent).values())
    assert attempts_of(person, held.running, held.delivered) == [1, 1]
    await kernel.kill_all()
    require_promises(kernel.home)


@pytest.mark.clause("2.9")
@pytest.mark.invariant("42")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
async def test_nothing_of_the_tree_outlives_the_kernel(start: Starter, nursery: trio.Nursery, number: int) -> None:
    kernel = start()
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    for scope in ("raw", "other"):
        await agent.result(await agent.invoke(f"{scope}.heard", {"json": ""}))
    assert len(await workers_of(person)) == 2
    tree = kernel.tree()
    assert len(tree.namespaces) == 1
    kernel.kill(number)
    assert await kernel.wait_exited() != 0
    await tree.wait_gone()


@pytest.mark.invariant("42")
async def test_what_runs_later_is_never_taken_for_what_a_dead_kernel_left(start: Starter, nursery: trio.Nursery) -> None:
    """The number of a namespace that is gone is given to the next one."""
    first = start()
    await first.first_view(nursery)
    tree = first.tree()
    first.kill()
    await first.wait_exited()
    for fd in tree.fds:
        await trio.lowlevel.wait_readable(fd)
    second = start()
    await second.first_view(nursery)
    later = second.tree()
    assert [os.fstat(fd).st_ino for fd in tree.namespaces.values()] == list(tree.namespaces)  # held, so not given away
    assert not later.namespaces.keys() & tree.namespaces.keys()
    assert tree.left() == []
    later.let_go()
    await tree.wait_gone()


@pytest.mark.clause("2.9")
async def test_a_kernel_that_is_stopped_takes_everything_with_it(start: Starter, nursery: trio.Nursery) -> None:
    kernel = start()
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    await agent.result(await agent.invoke("raw.heard", {"json": ""}))
    tree = kernel.tree()
    assert (await person.ask(KernelStop()))["accepted"]
    assert await kernel.wait_exited() == 0
    await tree.wait_gone()


@pytest.mark.invariant("42")
async def test_worker_deaths_leave_no_zombie_and_no_descriptor_in_the_kernel(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    person = await warm.join(nursery)
    agent = await warm.agent(nursery)

    async def settled() -> int:
        """Descriptors of the kernel once its spares are back."""
        process = psutil.Process(warm.pid)
        await person.ask(KernelStatus())
        return process.num_fds()

    await agent.result(await agent.invoke("other.heard", {"json": ""}))
    await settled()
    counts = []
    for _ in range(3):
        instance = await person.instance("other", "background")
        facts = (await person.ask(InstancesList()))["workers"]
        os.kill(next(one["pid"] for one in facts if one["instance_id"] == instance["instance_id"]), signal.SIGKILL)
        await person.instance("other", "starting")
        await agent.result(await agent.invoke("other.heard", {"json": ""}))
        counts.append(await settled())
    assert max(counts) - min(counts) <= 4  # spares that are on their way hold a pair each
    states = [child.status() for child in psutil.Process(warm.pid).children(recursive=True)]
    assert psutil.STATUS_ZOMBIE not in states
