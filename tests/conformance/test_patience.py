"""A wait of the suite: a crowded machine makes it longer, a worker that does not do its part makes it end."""

from __future__ import annotations

import signal
from copy import copy

import pytest
import trio

from conformance.case import Broken
from conformance.plays import read_plays
from conformance.scripted_kernel import MAX_HEARD, Session
from conformance.sealed import Cage, open_cage
from conformance.targets import SealedTarget
from conformance.world import World
from tests.conformance.plain_app import plain_app

PATIENCE_SECONDS = 0.5
_GOOD = "from good_worker import GoodWorker\n\napp = GoodWorker()\n"


def _world(cage: Cage, nursery: trio.Nursery, code: str = _GOOD) -> World:
    app = plain_app(code)
    target = SealedTarget(app=app, cage=cage, title="one")
    return World(target=target, plays=copy(read_plays(app)), nursery=nursery, patience=PATIENCE_SECONDS)


async def _go_on_later(session: Session) -> None:
    await trio.sleep(2 * PATIENCE_SECONDS)  # as long as a wait that would be too short
    signal.pidfd_send_signal(session.process.pidfd, signal.SIGCONT)


@pytest.mark.clause("2.7")
async def test_a_worker_that_got_no_turn_is_waited_for(nursery: trio.Nursery) -> None:
    async with open_cage() as cage:
        world = _world(cage, nursery)
        play = world.role("answers")
        session = await world.start_for(play)
        signal.pidfd_send_signal(session.process.pidfd, signal.SIGSTOP)
        nursery.start_soon(_go_on_later, session)
        call = world.new_call(session, play.tool_id, play.input)
        assert (await world.ended(session, call)).status == "submitted"
        await world.close()


@pytest.mark.clause("2.7")
async def test_a_worker_that_had_its_turn_and_did_nothing_is_not(nursery: trio.Nursery) -> None:
    async with open_cage() as cage:
        world = _world(cage, nursery)
        play = world.role("stays_open")
        session = await world.start_for(play)
        call = world.new_call(session, play.tool_id, play.input)
        with pytest.raises(Broken, match="waited"):
            await world.ended(session, call)
        await world.close()


_FLOODS = """
from good_worker import GoodWorker
from lineup_sdk.protocol.messages import LogWrite
import trio

class Worker(GoodWorker):
    async def after_start(self):
        while True:
            for _ in range(100):
                self.send(LogWrite(stream="log", text="more"))
            await trio.lowlevel.checkpoint()

app = Worker()
"""
_NEVER_RESTS = """
from good_worker import GoodWorker
from lineup_sdk.protocol.messages import LifecycleRequestBackground

class Worker(GoodWorker):
    def pong(self, n):
        super().pong(n)
        self.nursery.start_soon(self.ask, LifecycleRequestBackground())

app = Worker()
"""
_LOGS_AT_EACH_PING = """
from good_worker import GoodWorker
from lineup_sdk.protocol.messages import LogWrite

class Worker(GoodWorker):
    def pong(self, n):
        self.send(LogWrite(stream="log", text="still here"))
        super().pong(n)

app = Worker()
"""


async def test_a_worker_that_floods_is_not_listened_to_for_ever(nursery: trio.Nursery) -> None:
    async with open_cage() as cage:
        world = _world(cage, nursery, _FLOODS)
        session = await world.start()
        with pytest.raises(Broken, match="flood"):
            await session.until(lambda: False, "what never comes", 60)
        assert len(session.trace) <= MAX_HEARD + 100
        await world.close()


async def test_a_wait_for_quiet_ends_when_a_worker_never_stops_talking(nursery: trio.Nursery) -> None:
    async with open_cage() as cage:
        world = _world(cage, nursery, _NEVER_RESTS)
        session = await world.start()
        with trio.fail_after(60), pytest.raises(Broken, match="never stops talking"):
            await session.settle()
        await world.close()


async def test_a_worker_that_writes_to_its_log_all_the_time_is_quiet(nursery: trio.Nursery) -> None:
    async with open_cage() as cage:
        world = _world(cage, nursery, _LOGS_AT_EACH_PING)
        await (await world.start()).require_alive("after nothing was done to it")
        await world.close()
