"""Web hosts of one kernel that are killed at any moment, of their start too, with a page attached and a surface mounted; one after the
other in several lanes, the first of which has the demo Agent below it.

Rules:
1. The kernel takes no notice: between two deaths of a lane a call is answered, and whoever else looks on is told of it.
2. What a host held goes with it: its view, its mounts (the next page gets a mount that nobody had), all that it started.
3. At the end the kernel has no zombie below it and no descriptor more than before; all rows keep every promise.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Mapping
from contextlib import closing, suppress

import trio

from kernel.protocol.host import CallInvoke, KernelStatus
from lineup_sdk.protocol.messages import JsonObject
from tests.faults.kill_loops import Found
from tests.faults.settling import settled_descriptors
from tests.hosts import lineup
from tests.processes import orphans, peers
from tests.processes.kernel_under_test import KernelUnderTest
from tests.processes.peers import Person
from tests.processes.warm_parent import WarmParent
from tests.processes.written_app import FIXTURE
from tests.web.raw_page import Closed, RawPage, attached, wait_change
from tests.web.web_host import READY

LANES = 4
EXECUTED_EVERY = 8  # rounds of a lane: this one is no fork
IN_ITS_START = 0.35  # of the deaths come before it is ready
START_SECONDS = 0.5
ON_ITS_WAY = 0.25  # of the others come before the board is shown, or about then
WAY_SECONDS = 0.3
WORK_SECONDS = 0.05
EVENTS = 4
_GONE = (Closed, OSError, trio.BrokenResourceError)


class _Kernel:
    """The one kernel, and who looks on."""

    def __init__(self, found: Found, kernel: KernelUnderTest, hosts: WarmParent) -> None:
        self.found = found
        self.kernel = kernel
        self.hosts = hosts
        self.mounts: set[str] = set()

    async def greet(self, nursery: trio.Nursery) -> None:
        """Somebody looks on and has a board opened."""
        await self.kernel.first_view(nursery)
        self.witness: Person = await self.kernel.join(nursery)
        await self._call("whiteboard.open", {"board_id": "b", "title": "Board"}, "running")

    async def _call(self, tool_id: str, given: JsonObject, status: str) -> None:
        """Call a tool by hand: the door is the demo Agent's."""
        value = await self.witness.ask(CallInvoke(tool_id=tool_id, input=given))
        await self.witness.status(value["call_id"], status)

    async def rounds(self, number: int, count: int) -> None:
        """A lane: so many hosts, one after the other."""
        chance = self.found.chance(number)
        for round_number in range(count):
            await self._die(number, chance, is_executed=round_number % EXECUTED_EVERY == number)
            await self._call("fixture.echo", {"text": "still here"}, "completed")

    async def _die(self, number: int, chance: random.Random, *, is_executed: bool) -> None:
        host = self._start(is_demo=number == 0, is_executed=is_executed)
        assert host.stdout is not None
        self.found.known |= {host.pid, self.hosts.pid}
        try:
            async with trio.lowlevel.FdStream(os.dup(host.stdout.fileno())) as said, trio.open_nursery() as nursery:
                seconds = START_SECONDS
                if chance.random() < IN_ITS_START:
                    self.found.counts["in_their_start"] += 1
                else:
                    seconds = await self._begin_work(await _ready(said), nursery, chance)
                await trio.sleep(chance.random() * seconds)  # not a wait for anything: the moment of the death
                host.kill()
                nursery.cancel_scope.cancel()
        finally:
            host.kill()
            await trio.to_thread.run_sync(host.wait)
            self.found.known.discard(host.pid)
            host.stdout.close()
        self.found.of_processes(left=await orphans.wait_orphans(self.found.known))
        self.found.counts.update(done=1, executed=is_executed)

    def _start(self, *, is_demo: bool, is_executed: bool) -> subprocess.Popen[bytes]:
        words = ["--home", str(self.kernel.home), "run", "--no-open", *(["--demo"] if is_demo else [])]
        with (self.found.folder / "host.log").open("ab") as log:
            how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": log}
            return subprocess.Popen([*lineup.PROGRAM, *words], **how) if is_executed else self.hosts.popen(words, **how)

    async def _begin_work(self, ready: Mapping[str, str], nursery: trio.Nursery, chance: random.Random) -> float:
        """Let a page come. Returns within how many seconds the host is to die: on the page's way to the board, or while it is shown."""
        is_shown = trio.Event()
        nursery.start_soon(self._look, ready, is_shown)
        if chance.random() < ON_ITS_WAY:
            return WAY_SECONDS
        with trio.fail_after(peers.SECONDS):
            await is_shown.wait()
        return WORK_SECONDS

    async def _look(self, ready: Mapping[str, str], is_shown: trio.Event) -> None:
        """A page comes, shows the board and says something in it, until its host is gone."""
        with suppress(*_GONE):
            async with attached(ready["origin"], ready["token"]) as page:
                self.found.counts["pages"] += 1
                await self._show(page, is_shown)
                await page.wait_closed()

    async def _show(self, page: RawPage, is_shown: trio.Event) -> None:
        board = await wait_change(page, "surface", app_scope="whiteboard")
        mounted = (await page.op("surface.mount", surface_id=board["surface_id"]))["value"]
        if mounted["mount"] in self.mounts:
            self.found.broken.append("INV-49: a mount was given twice")
        self.mounts.add(mounted["mount"])
        self.found.counts["mounts"] += 1
        is_shown.set()
        for number in range(EVENTS):
            await page.op("surface.event", mount=mounted["mount"], name="nothing", body={"number": number})

    async def views(self) -> int:
        """How many look on now."""
        return int((await self.witness.ask(KernelStatus()))["views"])


async def _ready(said: trio.lowlevel.FdStream) -> Mapping[str, str]:
    line = b""
    with trio.fail_after(peers.SECONDS):
        while not line.endswith(b"\n"):
            part = await said.receive_some()
            assert part, f"a host ended before it was ready: {line!r}"
            line += part
    found = READY.match(line.decode())
    assert found is not None, line
    return found.groupdict()


async def run(found: Found) -> None:
    """Kill so many hosts."""
    kernel = found.start("home", [FIXTURE])
    try:
        with closing(WarmParent(lineup.MODULE)) as hosts:
            async with trio.open_nursery() as nursery:
                one = _Kernel(found, kernel, hosts)
                await one.greet(nursery)
                before, views = await settled_descriptors(kernel.pid, one.witness.still), await one.views()
                async with trio.open_nursery() as lanes:
                    for number in range(LANES):
                        lanes.start_soon(one.rounds, number, len(range(number, found.count, LANES)))
                await found.of_rest(kernel, one.witness.still, before)
                found.broken += [] if await one.views() == views else [f"a view outlives its host: {await one.views()} of {views}"]
                await found.end(kernel)
                nursery.cancel_scope.cancel()
    finally:
        kernel.close()
    found.of_rows(kernel.home)
