"""Bodies go after their time; what is waited for stays, and an id is never used twice (SPEC 16)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kernel.core.events import SweepBodies
from kernel.core.limits import SWEPT_A_TURN
from kernel.core.machines import CallStatus, InboxState
from kernel.core.records import InboxRow, Key, OutboxKind, OutboxRow, TimelineMessage, ToolCall
from kernel.protocol.agent import APP_MESSAGE, AppMessageReceived, TextReceived
from kernel.protocol.host import OutboxAcknowledge
from kernel.protocol.host_upkeep import InboxDrop
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol.codes import Code
from tests.core.stories import world_of
from tests.core.world import AGENT, KERNEL, PERSON, Outcome, World, envelope

STAR, MOON = {"x": 1}, {"x": 2}
DAY_MS = 24 * 60 * 60 * 1000


def sweep(world: World, days: int = 90) -> Outcome:
    return world.say(KERNEL, SweepBodies(before=world.now - timedelta(days=days)))


def acknowledge_all(world: World) -> None:
    for row in world.rows(OutboxRow):
        world.say(AGENT, OutboxAcknowledge(message_id=row.message_id))


def world_with_an_ended_call() -> World:
    world = world_of({"instances": [{"app": "board"}]})
    world.running("c1", "board.draw", STAR)
    assert world.tell("ins_board", m.ToolFail(call_id="c1", reason="no")).code is None
    return world


@pytest.mark.clause("16")
def test_a_call_of_before_goes_with_its_rows_and_only_its_outcome_is_kept() -> None:
    world = world_with_an_ended_call()
    number = world.call("c1").number
    acknowledge_all(world)
    world.wait(91 * DAY_MS)
    assert sweep(world).audit == ["retention.swept"]
    assert world.rows(ToolCall) == []
    assert [row for row in world.rows(OutboxRow) if row.call_number == number] == []
    [key] = [key for key in world.view.tables[Key].values() if key.number == number]
    assert key.outcome == "failed tool_failed"
    assert sweep(world).audit == []


@pytest.mark.clause("16")
@pytest.mark.clause("6.4")
def test_the_same_call_again_is_answered_by_its_outcome_and_never_run_again() -> None:
    world = world_with_an_ended_call()
    acknowledge_all(world)
    world.wait(91 * DAY_MS)
    sweep(world)
    outcome = world.invoke("c1", "board.draw", STAR)
    assert (outcome.code, outcome.audit, outcome.sent) == (None, ["call.repeated"], [])
    [said] = outcome.outbox
    assert said["payload"] == {
        "call_id": "c1",
        "status": "failed",
        "code": "tool_failed",
        "report": {"hint": "the result is not kept any more"},
    }
    assert world.rows(ToolCall) == []
    assert world.invoke("c1", "board.draw", MOON).code is Code.CALL_ID_CONFLICT
    assert world.rows(ToolCall) == []


@pytest.mark.clause("16")
def test_what_is_younger_or_waited_for_stays() -> None:
    world = world_with_an_ended_call()
    world.wait(89 * DAY_MS)
    acknowledge_all(world)
    sweep(world)
    assert world.call("c1").status is CallStatus.FAILED

    waiting = world_with_an_ended_call()  # nobody acknowledged its end
    waiting.running("c2", "board.draw", STAR)
    waiting.wait(400 * DAY_MS)
    sweep(waiting)
    assert {call.call_id for call in waiting.rows(ToolCall)} == {"c1", "c2"}
    assert [row for row in waiting.rows(OutboxRow) if row.kind is OutboxKind.FINAL]


@pytest.mark.clause("16")
@pytest.mark.clause("11.2")
def test_messages_go_and_their_ids_stay_used() -> None:
    world = World()
    world.boot()
    outer = envelope("m1", content="hello")
    assert world.say(AGENT, TextReceived(envelope=outer, text="hello")).code is None
    world.wait(91 * DAY_MS)
    sweep(world)
    assert world.rows(TimelineMessage) == []
    assert world.say(AGENT, TextReceived(envelope=outer, text="hello")).code is None
    assert world.rows(TimelineMessage) == []
    assert world.say(AGENT, TextReceived(envelope=envelope("m1", content="other"), text="other")).code is Code.CALL_ID_CONFLICT


@pytest.mark.clause("16")
def test_only_messages_for_apps_that_were_taken_over_or_dropped_go() -> None:
    world = world_of({"instances": [{"app": "board"}], "inbox": [{"app": "board", "message_id": "parked", "state": InboxState.PARKED}]})
    for name in ("taken", "left"):
        outer = envelope(name, APP_MESSAGE, app_scope="board")
        world.say(AGENT, AppMessageReceived(envelope=outer, topic="board.note", body={}))
    world.tell("ins_board", m.InboxAcknowledge(message_id="taken"))
    world.wait(91 * DAY_MS)
    sweep(world)
    assert {row.message_id for row in world.rows(InboxRow)} == {"parked", "left"}
    [parked] = [row for row in world.rows(InboxRow) if row.message_id == "parked"]
    world.say(PERSON, InboxDrop(number=parked.number))
    sweep(world)
    assert {row.message_id for row in world.rows(InboxRow)} == {"left"}


@pytest.mark.clause("16")
def test_a_sweep_is_bounded() -> None:
    world = World()
    world.boot()
    for number in range(SWEPT_A_TURN + 1):
        world.say(AGENT, TextReceived(envelope=envelope(f"m{number}", content=str(number)), text="hello"))
    world.wait(91 * DAY_MS)
    assert sweep(world).value == {"swept": SWEPT_A_TURN}
    assert len(world.rows(TimelineMessage)) == 1
    assert sweep(world).value == {"swept": 1}
    assert sweep(world).value == {"swept": 0}
