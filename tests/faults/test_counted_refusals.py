"""Refusals that were counted get their one row, also when another deadline came first (SPEC 16)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trio
import trio.testing

from kernel.clock import Clock
from kernel.core.builtin import RUNTIME
from kernel.core.decision import ArmDeadline, Origin, Speaker, Stamp
from kernel.protocol.host import CallCancel
from kernel.refusals import WINDOW_MS
from kernel.store import Store
from kernel.turns import Handlers, Turn, Turns
from tests.processes.kernel_under_test import opened_copy

VIEW = Origin(speaker=Speaker.VIEW, channel=-1, view_id="view-1-test")
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


class TrioClock(Clock):
    """Machine time that goes with the test's own clock."""

    def boottime_ms(self) -> int:
        return int(trio.current_time() * 1000)

    def stamp(self, first_number: int) -> Stamp:
        now = NOW + timedelta(milliseconds=self.boottime_ms())
        return Stamp(now=now, boot_id="boot", boottime_ms=self.boottime_ms(), token="0" * 32, first_number=first_number)


def counted_rows(home: Path) -> list[tuple[object, ...]]:
    with opened_copy(home) as db:
        return list(db.execute("SELECT code, count FROM audit WHERE event = 'command.refused' AND count IS NOT NULL"))


@pytest.mark.clause("16")
async def test_counted_refusals_get_their_row_a_minute_after_the_first(
    tmp_path: Path, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    store = Store.open(
        tmp_path / "kernel.db",
        manifests={RUNTIME.app_scope: RUNTIME},
        make_epoch=lambda: "e1",
        make_id=lambda kind, epoch: f"{kind}_{epoch}_00",
        now=lambda: NOW,
    )
    handlers = Handlers(effects={}, reply=lambda outcome: None, committed=lambda records: None, flush=lambda: None)
    turns = Turns(store, TrioClock(), handlers)
    nursery.start_soon(turns.run)
    await trio.testing.wait_all_tasks_blocked()
    for _ in range(5):
        turns.post(Turn(command=CallCancel(call_id="unknown"), origin=VIEW))
    turns._arm(ArmDeadline(at_ms=int(trio.current_time() * 1000) + 10_000).at_ms)  # something else is due in between
    await trio.sleep(WINDOW_MS / 1000 - 1)
    assert counted_rows(tmp_path) == []
    await trio.sleep(2)
    assert counted_rows(tmp_path) == [("call_not_found", 4)]
    await trio.sleep(3 * WINDOW_MS / 1000)
    assert counted_rows(tmp_path) == [("call_not_found", 4)]
    store.close()
