"""kill -9, again and again, at a moment that a seed chooses: of kernels, and of what a kernel runs. Real processes, real sealed workers.

    python -m tests.faults.kill_loops kernels FIRST COUNT     one home; a kernel is started, worked with, killed; nothing of its tree stays
    python -m tests.faults.kill_loops workers FIRST COUNT     one kernel; workers are killed while they have calls, now and then the zygote,
                                                              or a host's channel is cut; zombies and descriptors are counted

Prints one JSON object. All rows keep every promise after each death of a kernel, and after each COUNT of workers.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import trio

from kernel.protocol.host import InstancesList, KernelStatus
from lineup_sdk.channel import ChannelClosed
from tests import invariants
from tests.faults.real_points import _causes
from tests.processes import peers
from tests.processes.kernel_under_test import KernelUnderTest, opened_copy, sub_reaper
from tests.processes.peers import Agent, ChannelEnded, Person
from tests.processes.written_app import FIXTURE, write_raw_app

SCOPES = tuple(f"app{number}" for number in range(6))
ZYGOTE_EVERY = 20  # rounds
MOST_ZYGOTES = 2  # of one kernel: three deaths in a minute are what they may have
HOST_EVERY = 7
SPARES = 2
_GONE = (ChannelEnded, ChannelClosed, OSError)

Loop = Callable[[Path, random.Random, int], Awaitable[tuple[Counter[str], list[str]]]]


def _promises(home: Path) -> list[str]:
    with opened_copy(home) as db:
        return invariants.check_all(db)


async def kernels(folder: Path, chance: random.Random, count: int) -> tuple[Counter[str], list[str]]:
    """One home and one kernel after the other on it."""
    counts: Counter[str] = Counter()
    broken: list[str] = []
    for _ in range(count):
        kernel = KernelUnderTest.start(folder / "home", folder / "kernel.log", apps=[FIXTURE])
        try:
            async with trio.open_nursery() as nursery:
                person = await kernel.first_view(nursery)
                if person.is_closed:
                    return counts, [*broken, f"a start is refused: {kernel.log.read_text()[-300:]}"]
                nursery.start_soon(_work_until_it_ends, kernel, nursery)
                await trio.sleep(chance.random() * 0.6)  # not a wait for anything: the moment of the death
                tree = kernel.tree()
                kernel.kill()
                await kernel.wait_exited()
                await tree.wait_gone()
                nursery.cancel_scope.cancel()
        finally:
            kernel.close()
        counts["done"] += 1
        broken += _promises(folder / "home")
    return counts, broken


async def _work_until_it_ends(kernel: KernelUnderTest, nursery: trio.Nursery) -> None:
    with suppress(*_GONE):
        agent = await kernel.agent(nursery)
        while True:
            await agent.invoke("fixture.report", {"percents": [50]})
            await agent.send("app.message", {"topic": "fixture.note", "body": {"text": "a"}}, app_scope="fixture")


async def workers(folder: Path, chance: random.Random, count: int) -> tuple[Counter[str], list[str]]:
    """One kernel whose workers die."""
    counts: Counter[str] = Counter()
    apps = [write_raw_app(folder, scope) for scope in SCOPES]
    kernel = KernelUnderTest.start(folder / "home", folder / "kernel.log", apps=apps)
    broken: list[str] = []
    try:
        async with trio.open_nursery() as nursery:
            await kernel.first_view(nursery)
            person = await kernel.join(nursery)
            agent = await kernel.agent(nursery)
            for scope in SCOPES:
                await agent.result(await agent.invoke(f"{scope}.heard", {"json": ""}))
            before = await _settled(kernel, person)
            while counts["done"] < count:
                await _one_death(kernel, person, agent, chance, counts, nursery)
            for scope in SCOPES:
                await agent.result(await agent.invoke(f"{scope}.heard", {"json": ""}))
            grown = await _settled(kernel, person) - before
            broken += invariants.PROCESS_CHECKS["42"]([], zombies=_zombies(kernel), fd_growth=max(0, grown - 2 * SPARES))
            tree = kernel.tree()
            kernel.kill()
            await kernel.wait_exited()
            await tree.wait_gone()
            nursery.cancel_scope.cancel()
        broken += _promises(folder / "home")
    except BaseExceptionGroup as error:
        broken.append(f"{error}{_causes(error)}"[:1500])
        broken.append(f"the kernel's end: {kernel._popen.poll()}; its log: {kernel.log.read_text()[-600:]}")
    finally:
        kernel.close()
    return counts, broken


async def _one_death(
    kernel: KernelUnderTest, person: Person, agent: Agent, chance: random.Random, counts: Counter[str], nursery: trio.Nursery
) -> None:
    scope = chance.choice(SCOPES)
    call_id = await agent.invoke(f"{scope}.heard", {"json": ""})
    pids = [one["pid"] for one in (await person.ask(InstancesList()))["workers"]]
    counts["rounds"] += 1
    if counts["rounds"] % ZYGOTE_EVERY == 0 and counts["zygotes"] < MOST_ZYGOTES:
        psutil.Process(kernel.pid).children()[0].kill()
        counts["zygotes"] += 1
    elif counts["rounds"] % HOST_EVERY == 0:
        (await kernel.join(nursery, label="short-lived")).close()
        counts["hosts"] += 1
    mine = {child.pid for child in psutil.Process(kernel.pid).children(recursive=True)}
    for pid in chance.sample(pids, min(len(pids), 2)):
        if pid in mine:  # what has ended is named -1, and a number may be somebody else's by now
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                counts["done"] += 1
    await agent.result(call_id)  # completed by another life, or failed: answered


async def _settled(kernel: KernelUnderTest, person: Person) -> int:
    await person.ask(KernelStatus())
    return psutil.Process(kernel.pid).num_fds()


def _zombies(kernel: KernelUnderTest) -> int:
    return sum(child.status() == psutil.STATUS_ZOMBIE for child in psutil.Process(kernel.pid).children(recursive=True))


LOOPS: dict[str, Loop] = {"kernels": kernels, "workers": workers}


def main(kind: str, first: int, count: int) -> dict[str, Any]:
    """Run one loop."""
    peers.SECONDS = 90.0
    with sub_reaper(), tempfile.TemporaryDirectory(prefix="lineup-kills-") as name:
        counts: Counter[str] = Counter()
        try:
            counts, broken = trio.run(LOOPS[kind], Path(name), random.Random(first), count)
        except BaseExceptionGroup as error:
            broken = [f"{error}{_causes(error)}"[:1500]]
    return {"done": 0, **counts, "violations": {f"{kind} from {first}": "; ".join(broken)} if broken else {}}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))) + "\n")
