"""Pending rows are found in memory or in their table: nobody can tell which (kernel/store_outbox.py, rule 3)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kernel.core.machines import CallStatus, OutboxState
from kernel.core.records import OutboxKind, OutboxRow, Source, replace
from kernel.store_memory import MAX_ENDED_CALLS, MAX_HELD_BYTES, HeldRows, OpenCalls
from tests.store.world import World, call, outbox_row

FINAL = outbox_row(1, OutboxKind.FINAL, call_number=7)
OLDER = outbox_row(2, OutboxKind.PROGRESS, call_number=8)
NEWER = outbox_row(3, OutboxKind.PROGRESS, call_number=9)
PERSONS = outbox_row(4, destination=Source.PERSON)
ROWS = (FINAL, OLDER, NEWER, PERSONS)


@pytest.fixture(params=["held", "read"])
def reopened(request: pytest.FixtureRequest, world: World) -> Callable[[], World]:
    """Leaves a world as it is, or starts its kernel anew: after a start no row is held."""

    def again() -> World:
        if request.param == "read":
            world.reopen()
        return world

    return again


@pytest.mark.clause("11.3")
def test_a_pending_row_is_found_by_message_by_call_and_in_order(world: World, reopened: Callable[[], World]) -> None:
    world.turn(*ROWS, numbers=9)
    view = reopened().store.view
    assert view.outbox_row(OLDER.message_id) == OLDER
    assert view.final_row(7) == FINAL
    assert view.pending_progress_row(9) == NEWER
    assert view.pending_progress_row(7) is None
    assert view.outbox_pending(Source.AGENT, 1, 10) == [OLDER, NEWER]
    assert view.outbox_pending(Source.AGENT, 0, 2) == [FINAL, OLDER]
    assert view.outbox_pending(Source.PERSON, 0, 10) == [PERSONS]
    assert view.outbox_rows_of_call(7) == [FINAL]


@pytest.mark.clause("11.3")
def test_an_acknowledged_row_is_pending_no_longer_and_pending_again_in_its_old_place_when_it_is_sent_again(
    world: World, reopened: Callable[[], World]
) -> None:
    world.turn(*ROWS, numbers=9)
    acknowledged = replace(OLDER, state=OutboxState.ACKNOWLEDGED)
    world.turn(acknowledged)
    view = reopened().store.view
    assert view.outbox_row(OLDER.message_id) is None
    assert view.outbox_rows_of_call(8) == [acknowledged]
    assert view.pending_progress_row(8) is None
    assert view.outbox_pending(Source.AGENT, 0, 10) == [FINAL, NEWER]
    world.turn(OLDER)
    assert world.store.view.outbox_pending(Source.AGENT, 0, 10) == [FINAL, OLDER, NEWER]


def test_a_removed_row_is_found_nowhere(world: World, reopened: Callable[[], World]) -> None:
    world.turn(*ROWS, numbers=9)
    world = reopened()
    world.turn(removed=(NEWER.number,))
    assert world.store.view.outbox_row(NEWER.message_id) is None
    assert world.store.view.pending_progress_row(9) is None


def test_rows_beyond_the_bytes_that_may_be_held_are_read_from_their_table(world: World) -> None:
    big = [outbox_row(n, envelope_cbor=bytes(MAX_HELD_BYTES // 2)) for n in (1, 2, 3)]
    for row in big:
        world.turn(row, numbers=1)
    memory = world.store._memory
    assert (len(memory.held_rows), len(memory.pending_rows)) == (2, 3)
    assert world.store.view.outbox_pending(Source.AGENT, 0, 10) == big
    assert world.store.view.outbox_row(big[2].message_id) == big[2]
    world.turn(*(replace(row, state=OutboxState.ACKNOWLEDGED) for row in big))
    assert memory.knows_pending


def test_what_is_held_counts_again_as_room_once_it_is_dropped() -> None:
    held = HeldRows()
    whole = outbox_row(1, envelope_cbor=bytes(MAX_HELD_BYTES))
    other: OutboxRow = replace(whole, number=2, message_id="other")
    held.hold(whole)
    held.hold(other)
    assert held.by_number(2) is None
    held.drop(1)
    held.hold(other)
    assert held.by_number(2) == other


def test_only_the_newest_calls_that_wait_for_their_acknowledgement_are_kept() -> None:
    calls = OpenCalls()
    for number in range(1, MAX_ENDED_CALLS + 2):
        calls.follow(call(number, status=CallStatus.SUBMITTED, result_cbor=b"\xa0"))
    calls.unwritten = {}
    assert calls.by_number(1) is None
    assert calls.by_number(2) is not None
    calls.follow(call(2, status=CallStatus.COMPLETED, result_cbor=b"\xa0"))
    calls.unwritten = {}
    assert calls.by_number(2) is None
