"""Workers of one kernel that are killed while they have calls, many Apps side by side; now and then the zygote, or a host's channel ends.

Rules:
1. Each call is answered: by another life of its App, or with the failure of an App that died too often.
2. Nothing is killed but what a kernel of this run runs: a number is held by a pidfd before it is believed.
3. At the end the kernel has no zombie below it and no descriptor more than before; all rows keep every promise.
"""

from __future__ import annotations

import os
import random
import signal
from contextlib import suppress
from pathlib import Path

import psutil
import trio

from kernel.protocol.host import InstancesList
from tests.faults.kill_loops import Found
from tests.faults.settling import settled_descriptors
from tests.processes.kernel_under_test import KernelUnderTest
from tests.processes.peers import Agent, Person
from tests.processes.written_app import write_raw_app

MOST_APPS = 32  # half of the instances a kernel may run
DEATHS_OF_AN_APP = 4  # at least, so that one fails and comes anew
MOST_ZYGOTES = 2  # of one kernel: three deaths in a minute are what they may have
ZYGOTE_EVERY = 40  # deaths of workers
HOST_EVERY = 10
_ZYGOTE = ("lineup-stub", "lineup-zygote")
LATEST_SECONDS = 0.03  # after a call was sent: a worker dies before it hears of it, at it, or after it


class _Kernel:
    """The one kernel, and who speaks to it."""

    def __init__(self, found: Found, kernel: KernelUnderTest, nursery: trio.Nursery) -> None:
        self.found = found
        self.kernel = kernel
        self.nursery = nursery
        self.left = found.count

    async def greet(self, scopes: list[str]) -> None:
        """Everybody comes, and every App runs."""
        await self.kernel.first_view(self.nursery)
        self.person: Person = await self.kernel.join(self.nursery)
        self.agent: Agent = await self.kernel.agent(self.nursery)
        await self.wake(scopes)

    async def wake(self, scopes: list[str]) -> None:
        """Every App answers a call."""
        for call_id in [await self.agent.invoke(f"{scope}.heard", {"json": ""}) for scope in scopes]:
            await self.agent.result(call_id)

    async def kill_one_app_again_and_again(self, scope: str, chance: random.Random) -> None:
        """A call, and the death of its worker at some moment of it."""
        while self.left > 0:
            call_id = await self.agent.invoke(f"{scope}.heard", {"json": ""})
            await trio.sleep(chance.random() * LATEST_SECONDS)  # not a wait for anything: the moment of the death
            if self._kill(await self._worker_of(scope)):
                self.left -= 1
                self.found.counts["done"] += 1
                await self._kill_something_else(chance)
            await self.agent.result(call_id)

    async def _worker_of(self, scope: str) -> int:
        listed = await self.person.ask(InstancesList())
        ours = {one["instance_id"] for one in listed["instances"] if one["app_scope"] == scope}
        return next((one["pid"] for one in listed["workers"] if one["instance_id"] in ours), 0)

    def _kill(self, pid: int) -> bool:
        """kill -9 of what is three below the kernel: stub, zygote, worker."""
        with suppress(OSError):
            fd = os.pidfd_open(pid)
            try:
                if _parent_of(_parent_of(_parent_of(pid))) == self.kernel.pid:
                    signal.pidfd_send_signal(fd, signal.SIGKILL)
                    return True
            finally:
                os.close(fd)
        return False

    async def _kill_something_else(self, chance: random.Random) -> None:
        counts = self.found.counts
        if counts["done"] % ZYGOTE_EVERY == 0 and counts["zygotes"] < MOST_ZYGOTES:
            counts["zygotes"] += self._kill_the_zygote(chance)
        elif counts["done"] % HOST_EVERY == 0:
            (await self.kernel.join(self.nursery, label="short-lived")).close()
            counts["hosts"] += 1

    def _kill_the_zygote(self, chance: random.Random) -> int:
        """One of its two processes; 0 while the next one is being born."""
        with suppress(psutil.NoSuchProcess):
            both = [one for one in psutil.Process(self.kernel.pid).children(recursive=True) if one.name() in _ZYGOTE]
            if both:
                chance.choice(both).kill()
                return 1
        return 0


def _parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


async def run(found: Found) -> None:
    """Kill so many workers."""
    scopes = [f"app{number}" for number in range(min(MOST_APPS, found.count // DEATHS_OF_AN_APP))]
    apps = [write_raw_app(found.folder, scope) for scope in scopes]
    kernel = found.start("home", apps)
    try:
        async with trio.open_nursery() as nursery:
            one = _Kernel(found, kernel, nursery)
            await one.greet(scopes)
            before = await settled_descriptors(kernel.pid, one.person.still)
            async with trio.open_nursery() as lanes:
                for number, scope in enumerate(scopes):
                    lanes.start_soon(one.kill_one_app_again_and_again, scope, found.chance(number))
            await one.wake(scopes)
            await found.of_rest(kernel, one.person.still, before)
            await found.end(kernel)
            nursery.cancel_scope.cancel()
    finally:
        kernel.close()
    found.of_rows(kernel.home)
