"""The look at the machine's memory."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from kernel.memory_watch import LOOK_SECONDS, MIN_AVAILABLE_BYTES, available_bytes, watch


@pytest.mark.clause("8.1")
async def test_short_memory_is_told_at_every_look_that_finds_it_and_at_no_other(autojump_clock: trio.testing.MockClock) -> None:
    found = [MIN_AVAILABLE_BYTES, MIN_AVAILABLE_BYTES - 1, 0, MIN_AVAILABLE_BYTES]
    looks, told = iter(found), []
    with trio.move_on_after((len(found) + 0.5) * LOOK_SECONDS):
        await watch(lambda: told.append(trio.current_time()), read=lambda: next(looks))
    assert [round(at / LOOK_SECONDS) for at in told] == [2, 3]


def test_the_machine_says_how_much_it_has() -> None:
    assert available_bytes() > 0
