"""Real kernels and real workers that die by kill -9: a few places and moments of what `make torture` runs through whole."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import psutil
import pytest
import trio

from tests.faults import kill_loops, real_points
from tests.faults.crash_points import POINTS, targets
from tests.faults.real_points import RUNS
from tests.processes.conftest import Starter
from tests.processes.kernel_under_test import KernelUnderTest

ROOT = Path(__file__).parents[2]
KERNELS = 52
WORKERS = 200
HOSTS = 24
PLACES = 12


def _of_today() -> list[int]:
    """A few runs that the sources of the kernel choose."""
    text = "".join(path.read_text("utf-8") for path in sorted((ROOT / "kernel").rglob("*.py")))
    return random.Random(text).sample(range(len(RUNS)), PLACES)


@pytest.mark.clause("12")
@pytest.mark.invariant("42")
@pytest.mark.invariant("60")
def test_what_a_kernel_said_before_it_died_at_a_place_is_true_after_it() -> None:
    found = real_points.main(_of_today())
    assert found["violations"] == {}
    assert (found["done"], found["orphans"], found["zombies"]) == (PLACES, 0, 0)


def test_every_place_is_there() -> None:
    from tests.faults.crash_points import _find

    for name in POINTS:
        for is_model in (False, True):
            for target in targets(name, is_model=is_model):
                assert callable(_find(target)[2])


@pytest.mark.clause("12")
@pytest.mark.invariant("02")
@pytest.mark.invariant("16")
@pytest.mark.invariant("42")
def test_kernels_that_are_killed_at_any_moment_leave_nothing_of_their_tree_and_lose_nothing() -> None:
    found = kill_loops.main("kernels", 1, KERNELS)
    assert found["violations"] == {}
    assert found["done"] == KERNELS
    assert 0 < found["in_their_start"] < KERNELS
    assert found["executed"]
    assert found["accepted"]
    assert [found[name] for name in kill_loops.COUNTED] == [0, 0, 0]


@pytest.mark.clause("8.3")
async def test_a_zygote_that_is_killed_in_its_birth_is_one_death_of_a_zygote_and_not_the_end(start: Starter, nursery: trio.Nursery) -> None:
    kernel = start()
    await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    grown = _children(kernel)
    _kill(grown)
    with trio.fail_after(60):
        while not (born := _children(kernel) - grown):
            await trio.lowlevel.checkpoint()
    _kill(born)
    assert (await agent.result(await agent.invoke("other.heard", {"json": ""})))["status"] == "completed"
    assert kernel.log.read_text().count('"zygote.died"') == 2


def _children(kernel: KernelUnderTest) -> set[int]:
    return {child.pid for child in psutil.Process(kernel.pid).children()}


def _kill(pids: set[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.clause("8.3")
@pytest.mark.invariant("41")
@pytest.mark.invariant("42")
def test_workers_that_are_killed_leave_no_zombie_and_no_descriptor() -> None:
    found = kill_loops.main("workers", 1, WORKERS)
    assert found["violations"] == {}
    assert found["done"] >= WORKERS
    assert found["zygotes"]
    assert [found[name] for name in kill_loops.COUNTED] == [0, 0, 0]


@pytest.mark.clause("2.9")
@pytest.mark.invariant("42")
@pytest.mark.invariant("49")
def test_hosts_that_are_killed_leave_nothing_and_their_kernel_takes_no_notice() -> None:
    found = kill_loops.main("hosts", 1, HOSTS)
    assert found["violations"] == {}
    assert found["done"] == HOSTS
    assert found["mounts"]
    assert found["in_their_start"]
    assert [found[name] for name in kill_loops.COUNTED] == [0, 0, 0]
