"""A wait of the suite: a crowded machine makes it longer, a worker that does not do its part makes it end."""

from __future__ import annotations

import signal
from copy import copy

import pytest
import trio

from conformance.case import Broken
from conformance.plays import read_plays
from conformance.scripted_kernel import Session
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
