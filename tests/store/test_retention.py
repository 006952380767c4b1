"""Old bodies as rows: what is found, what goes, what stays (SPEC 16)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from kernel.core import retention
from kernel.core.decision import Origin, Speaker
from kernel.core.events import SweepBodies
from kernel.core.machines import CallStatus, InboxState, OutboxState
from kernel.core.records import OutboxKind, Source, key_digest
from kernel.explain import explain
from kernel.projection import session_summary
from lineup_sdk.protocol.codes import Code
from tests.core.test_retention import DAY_MS, acknowledge_all
from tests.core.test_retention import sweep as sweep_world
from tests.core.test_retention_of_questions import CONFIRM, answer, worked_in
from tests.invariants import check_all
from tests.store.stored import StoredWorld
from tests.store.world import NOW, World, call, inbox_row, instance, key_of, message, outbox_row, session

KERNEL = Origin(speaker=Speaker.KERNEL)
BEFORE = NOW + timedelta(days=1)
LATER = NOW + timedelta(days=2)


def sweep(world: World) -> int:
    """One turn of a sweep; how many rows went."""
    world.store.begin()
    stamp = world.stamp()
    decision = retention.sweep(world.store.view, KERNEL, stamp, SweepBodies(before=BEFORE))
    world.store.apply(decision, stamp=stamp, origin=KERNEL, command="SweepBodies")
    world.store.commit()
    return int((decision.value or {})["swept"])


@pytest.mark.clause("16")
def test_what_ended_and_arrived_goes_and_the_key_says_how_it_ended(world: World) -> None:
    failed = call(3, CallStatus.FAILED, error_code=Code.TOOL_FAILED)
    running = call(4, CallStatus.RUNNING)
    unheard = call(5, CallStatus.FAILED, error_code=Code.TOOL_FAILED)
    young = call(6, CallStatus.FAILED, error_code=Code.TOOL_FAILED, updated_at=LATER, created_at=LATER)
    calls = (failed, running, unheard, young)
    world.turn(session(1), instance(2), *calls, *map(key_of, calls), numbers=20)
    world.turn(
        outbox_row(7, OutboxKind.FINAL, call_number=3, state=OutboxState.ACKNOWLEDGED),
        outbox_row(8, OutboxKind.FINAL, call_number=5),
        outbox_row(9, state=OutboxState.ACKNOWLEDGED),
        outbox_row(10),
        outbox_row(15, message_id="text-15", destination=Source.AGENT),
        inbox_row(12, state=InboxState.ACKNOWLEDGED),
        inbox_row(13),
        message(14),
        message(15),
        message(16, created_at=LATER),
    )
    assert [world.store.view.retention.has_any(BEFORE), sweep(world), sweep(world), sweep(world)] == [True, 4, 0, 0]
    assert not world.store.view.retention.has_any(BEFORE)
    for is_restarted in (False, True):
        view = (world.reopen() if is_restarted else world.store).view
        assert view.call(3) is None
        assert view.call_by_id("call-3") is None
        assert [view.call(number) for number in (4, 5, 6)] == [running, unheard, young]
        key = view.key(key_digest("call", failed.conversation_id, failed.call_id))
        assert key == replace(key_of(failed), outcome="failed tool_failed")
        assert [view.outbox_row(f"msg_e1_{number:02x}") is None for number in (7, 8, 9, 10)] == [True, False, True, False]
        assert [entry.number for entry, _ in view.messages()] == [15, 16]
        assert [row.number for row in view.inbox_rows("ins_e1_01", 0, 10)] == [13]


TABLES = ("artifact", "interaction", "saved_state", "surface", "surface_patch", "surface_snapshot", "timeline_message", "tool_call")


@pytest.mark.clause("16")
@pytest.mark.parametrize("is_restarted", [True, False])
def test_questions_and_what_closed_sessions_held_go_and_can_still_be_explained(tmp_path: Path, is_restarted: bool) -> None:
    world = StoredWorld(tmp_path)
    world.boot()
    world.invoke("c1", "interaction.confirm", CONFIRM)
    asked = answer(world, "c1")
    acknowledge_all(world)
    session_id = worked_in(world)
    world.wait(91 * DAY_MS)
    while sweep_world(world).value != {"swept": 0}:
        assert check_all(world.store._db._connection) == []
        if is_restarted:
            world.boot()
    assert not world.view.retention.has_any(world.now - timedelta(days=90))
    assert {table: world.store._db.run(f"SELECT count(*) FROM {table}")[0][0] for table in TABLES} == dict.fromkeys(TABLES, 0)
    told = explain(world.view, "c1")
    assert (told["kind"], told["state"], told["sentences"][0]["text"]) == (
        "call",
        "completed",
        "This was a call; it was completed. Its body is not kept any more.",
    )
    assert "call.received" in [row["event"] for row in told["audit"]]
    assert explain(world.view, asked.interaction_id)["state"] == "completed"
    shown = session_summary(world.view, world.view.sessions.by_id(session_id))
    assert (shown["state"], shown["messages"]) == ("closed", 0)
    world.store.close()
