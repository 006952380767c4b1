"""Parked messages in the person's hands (SPEC 5.4)."""

from __future__ import annotations

import pytest

from kernel.core.machines import InboxState
from kernel.core.records import InboxRow
from kernel.protocol.agent import APP_MESSAGE, AppMessageReceived
from kernel.protocol.host_upkeep import InboxDrop, InboxRetry
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol.codes import Code
from tests.core.stories import world_of
from tests.core.world import AGENT, PERSON, Outcome, World, envelope


def world_with_parked() -> tuple[World, int]:
    """A message that was there at two crashes, and its number."""
    world = world_of({"instances": [{"app": "board"}, {"app": "notes"}]})
    outer = envelope("m1", APP_MESSAGE, app_scope="board")
    world.say(AGENT, AppMessageReceived(envelope=outer, topic="board.note", body={"text": "poison"}))
    for _ in range(2):
        world.die("ins_board")
        world.start("ins_board")
    [row] = world.rows(InboxRow)
    assert row.state is InboxState.PARKED
    return world, row.number


def delivered(outcome: Outcome) -> list[str]:
    return [message.message_id for _, message in outcome.sent if isinstance(message, m.InboxDelivered)]


@pytest.mark.clause("5.4")
def test_a_parked_message_is_delivered_again_when_the_person_says_so() -> None:
    world, number = world_with_parked()
    outcome = world.say(PERSON, InboxRetry(number=number))
    assert (outcome.value, delivered(outcome)) == ({"instance_id": "ins_board"}, ["m1"])
    assert world.tell("ins_board", m.InboxAcknowledge(message_id="m1")).value == {"acknowledged": True}


@pytest.mark.clause("5.4")
def test_a_retried_message_goes_alone_and_is_parked_again_at_its_next_crash_with_all_its_tries_and_crashes() -> None:
    world, number = world_with_parked()
    outer = envelope("m2", APP_MESSAGE, app_scope="board")
    world.wait(61_000)
    world.tell("ins_board", m.InboxSubscribe())
    retried = world.say(PERSON, InboxRetry(number=number))
    behind = world.say(AGENT, AppMessageReceived(envelope=outer, topic="board.note", body={}))
    assert (delivered(retried), delivered(behind)) == (["m1"], [])
    world.die("ins_board")
    [row, _] = sorted(world.rows(InboxRow), key=lambda row: row.number)
    assert (row.state, row.delivery_count, row.crash_count) == (InboxState.PARKED, 3, 3)
    assert delivered(world.start("ins_board")) == ["m2"]


@pytest.mark.clause("5.4")
def test_a_dropped_message_is_gone_for_good() -> None:
    world, number = world_with_parked()
    assert world.say(PERSON, InboxDrop(number=number)).code is None
    assert world.say(PERSON, InboxRetry(number=number)).code is Code.CALL_NOT_FOUND
    assert world.say(PERSON, InboxDrop(number=number)).code is Code.CALL_NOT_FOUND
    assert world.tell("ins_board", m.InboxAcknowledge(message_id="m1")).value == {"acknowledged": False}


@pytest.mark.clause("5.4")
def test_a_message_that_is_not_parked_cannot_be_retried_or_dropped() -> None:
    world = world_of({"instances": [{"app": "board"}]})
    outer = envelope("m1", APP_MESSAGE, app_scope="board")
    world.say(AGENT, AppMessageReceived(envelope=outer, topic="board.note", body={}))
    [row] = world.rows(InboxRow)
    assert world.say(PERSON, InboxRetry(number=row.number)).code is Code.CALL_NOT_FOUND
    assert world.say(PERSON, InboxDrop(number=row.number)).code is Code.CALL_NOT_FOUND


@pytest.mark.clause("5.4")
def test_rows_of_a_closed_instance_go_to_the_next_instance_of_that_app_on_request() -> None:
    world = world_of({"instances": [{"app": "board"}]})
    outer = envelope("m1", APP_MESSAGE, app_scope="board")
    world.say(AGENT, AppMessageReceived(envelope=outer, topic="board.note", body={}))
    [row] = world.rows(InboxRow)
    world.close("ins_board")
    world.die("ins_board")
    assert world.say(PERSON, InboxRetry(number=row.number)).code is Code.APP_INSTANCE_NOT_FOUND
    world.invoke("c1", "board.open", {})
    newer = world.current("board").instance_id
    outcome = world.say(PERSON, InboxRetry(number=row.number))
    assert outcome.value == {"instance_id": newer}
    assert delivered(world.start(newer)) == ["m1"]
