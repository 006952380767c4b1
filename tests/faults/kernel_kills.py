"""Kernels that are killed at any moment, of their start too: several homes side by side, and one kernel after the other on each.

Rules:
1. After each death nothing of its tree is left, every promise about the rows holds, and all that was accepted is there.
2. At the end a kernel is left alive: every accepted call has one result, told as often as the Agents asked, but one.
3. A lane has a home and lots of its own; that others work beside it only shifts its moments.
4. A death is in the start, on the way to the first receipt, or after it: however slow the machine, most kernels have accepted something.
"""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass, field

import trio

from lineup_sdk.channel import ChannelClosed
from tests.faults.kill_loops import Found
from tests.faults.settling import settled_descriptors
from tests.processes import peers
from tests.processes.call_states import finals_of
from tests.processes.kernel_under_test import KernelUnderTest, opened_copy
from tests.processes.peers import Agent, ChannelEnded, Person, new_name
from tests.processes.written_app import FIXTURE

LANES = 4
EXECUTED_EVERY = 8  # rounds of a lane: this one is no fork
IN_ITS_START = 0.35  # of the deaths come before it is ready
ON_ITS_WAY = 0.25  # of the others come before it has accepted anything, or about then
START_SECONDS = 0.6
WAY_SECONDS = 0.4
WORK_SECONDS = 0.4
_GONE = (ChannelEnded, ChannelClosed, OSError)


@dataclass
class _Lane:
    """One home, and what its kernels said."""

    found: Found
    number: int
    chance: random.Random = field(init=False)
    agents: list[Agent] = field(default_factory=list)
    calls: set[str] = field(default_factory=set)  # that were accepted
    messages: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.chance = self.found.chance(self.number)
        self.name = f"home-{self.number}"
        self.home = self.found.folder / self.name

    async def die(self, round_number: int) -> None:
        """One kernel from its start to its death."""
        is_executed = round_number % EXECUTED_EVERY == self.number
        kernel = self.found.start(self.name, [FIXTURE], is_executed=is_executed)
        try:
            async with trio.open_nursery() as nursery:
                seconds = START_SECONDS
                if self.chance.random() < IN_ITS_START:
                    self.found.counts["in_their_start"] += 1
                else:
                    await self._come_up(kernel, nursery)
                    seconds = await self._begin_work(kernel, nursery)
                await trio.sleep(self.chance.random() * seconds)  # not a wait for anything: the moment of the death
                await self.found.end(kernel)
                nursery.cancel_scope.cancel()
        finally:
            kernel.close()
        self.found.counts.update(done=1, executed=is_executed)
        self._look()

    async def _come_up(self, kernel: KernelUnderTest, nursery: trio.Nursery) -> Person:
        person = await kernel.first_view(nursery)
        if person.is_closed:
            raise AssertionError(f"a start is refused: {kernel.log.read_text()[-300:]}")
        return person

    async def _begin_work(self, kernel: KernelUnderTest, nursery: trio.Nursery) -> float:
        """Let an Agent come. Returns within how many seconds the kernel is to die."""
        has_receipt = trio.Event()
        nursery.start_soon(self._work_until_it_ends, kernel, nursery, has_receipt)
        if self.chance.random() < ON_ITS_WAY:
            return WAY_SECONDS
        with trio.fail_after(peers.SECONDS):
            await has_receipt.wait()
        return WORK_SECONDS

    async def _work_until_it_ends(self, kernel: KernelUnderTest, nursery: trio.Nursery, has_receipt: trio.Event) -> None:
        with suppress(*_GONE):
            agent = await kernel.agent(nursery)
            self.agents.append(agent)
            while True:
                await self._invoke(agent)
                has_receipt.set()
                body = {"topic": "fixture.note", "body": {"text": "a"}}
                receipt = await agent.send("app.message", body, app_scope="fixture")
                self.messages |= {receipt["message_id"]} if receipt["accepted"] else set()

    async def _invoke(self, agent: Agent) -> None:
        call_id = new_name("call")
        payload = {"call_id": call_id, "tool_id": "fixture.report", "inventory_revision": agent.revision, "input": {"percents": [50]}}
        if (await agent.send("tool.call", payload))["accepted"]:
            self.calls.add(call_id)

    def _look(self) -> None:
        if (self.home / "kernel.db").exists():
            self.found.of_rows(self.home)
        if not self.calls | self.messages:
            return
        with opened_copy(self.home) as db:
            lost = self.calls - {name for (name,) in db.execute("SELECT call_id FROM tool_call")}
            lost |= self.messages - {name for (name,) in db.execute("SELECT message_id FROM inbox_row")}
        self.found.broken += [f"INV-02: {name} was accepted and is gone" for name in sorted(lost)]

    async def live(self) -> None:
        """The last kernel of the home: it is not killed before all that was accepted has come to its end (rule 2)."""
        kernel = self.found.start(self.name, [FIXTURE])
        try:
            async with trio.open_nursery() as nursery:
                person = await self._come_up(kernel, nursery)
                before = await settled_descriptors(kernel.pid, person.still)
                agent = await kernel.agent(nursery)
                self.agents.append(agent)
                await self._take_results(agent)
                agent.close()
                await agent.wait_closed()
                await self.found.of_rest(kernel, person.still, before)
                await self.found.end(kernel)
                nursery.cancel_scope.cancel()
        finally:
            kernel.close()
        self._look()

    async def _take_results(self, agent: Agent) -> None:
        def finals() -> dict[str, set[str]]:
            told: dict[str, set[str]] = {}
            for one in self.agents:
                for call_id, names in finals_of(one).items():
                    told.setdefault(call_id, set()).update(names)
            return told

        await agent.until(lambda: finals().keys() >= self.calls)
        self.found.broken += [f"INV-16: call {call_id} has {len(names)} results" for call_id, names in finals().items() if len(names) != 1]


async def run(found: Found) -> None:
    """Kill so many kernels."""
    lanes = [_Lane(found, number) for number in range(min(LANES, found.count))]
    async with trio.open_nursery() as nursery:
        for lane in lanes:
            nursery.start_soon(_one_lane, lane, len(range(lane.number, found.count, len(lanes))))
    found.counts.update(accepted=sum(len(lane.calls) + len(lane.messages) for lane in lanes))


async def _one_lane(lane: _Lane, rounds: int) -> None:
    for number in range(rounds):
        await lane.die(number)
    await lane.live()
