"""The limits of inbox and outbox, at their edge and one past it (SPEC 16); test_limits.py sees that none is left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernel.core import limits
from kernel.core.machines import InboxState, InstanceState, OutboxState
from kernel.core.records import InboxRow, OutboxKind, OutboxRow
from kernel.protocol import host as h
from lineup_sdk.protocol import limits as wire
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol.codes import Code
from tests.core.crowded import board_world, message, seed
from tests.core.world import AGENT, PERSON, World

# ------------------------------------------------------------------------------------ inbox


def _stored_row(world: World) -> InboxRow:
    message(world, "first")
    row: InboxRow = world.rows(InboxRow)[0]
    return row


@pytest.mark.clause("16")
def test_a_full_inbox_refuses_and_loses_nothing() -> None:
    world = board_world(state=InstanceState.BACKGROUND.value)
    template = replace(_stored_row(world), state=InboxState.PARKED)
    seed(world, template, limits.MAX_INBOX_ROWS - 2, message_id=lambda number: f"seeded_{number}")
    assert message(world, "last").code is None
    assert message(world, "over").code is Code.LIMIT_EXCEEDED
    assert world.view.inbox_size("ins_board")[0] == limits.MAX_INBOX_ROWS
    world.tell("ins_board", m.InboxAcknowledge(message_id="last"))
    assert message(world, "over").code is None


@pytest.mark.clause("16")
def test_an_inbox_refuses_more_bytes_than_it_may_hold() -> None:
    world = board_world()
    template = replace(_stored_row(world), body_cbor=bytes(limits.MAX_INBOX_BYTES - 1_000), state=InboxState.PARKED)
    seed(world, template, 1, message_id=lambda number: f"seeded_{number}")
    assert message(world, "fits", 900).code is None
    assert message(world, "over", 900).code is Code.LIMIT_EXCEEDED


@pytest.mark.clause("16")
def test_so_many_messages_are_on_their_way_and_the_next_waits_for_an_acknowledgement() -> None:
    world = board_world()
    sent = [message(world, f"m{number:02}").sent_types for number in range(limits.INBOX_WINDOW + 1)]
    assert sent == [["inbox.delivered"]] * limits.INBOX_WINDOW + [[]]
    acknowledged = world.tell("ins_board", m.InboxAcknowledge(message_id="m05"))
    assert [message.message_id for _, message in acknowledged.sent if isinstance(message, m.InboxDelivered)] == ["m16"]


@pytest.mark.clause("16")
def test_a_message_that_was_there_at_two_crashes_is_parked() -> None:
    world = board_world()
    message(world, "poison")
    for crash in range(1, limits.MAX_MESSAGE_CRASHES + 1):
        world.die("ins_board")
        world.start("ins_board")
        state = InboxState.DELIVERABLE if crash < limits.MAX_MESSAGE_CRASHES else InboxState.PARKED
        assert world.rows(InboxRow)[0].state is state


# ------------------------------------------------------------------------------------ outbox


def _fill_outbox(world: World, free: int) -> None:
    world.invoke("filler", "runtime.status")
    template = replace(world.rows(OutboxRow)[-1], kind=OutboxKind.MESSAGE, call_number=None)
    taken = world.view.outbox_pending_count() + world.view.open_call_count()
    first, count = world.next_number, limits.MAX_OUTBOX_ROWS - taken - free
    world.view.tables[OutboxRow] |= dict.fromkeys(range(first, first + count), template)  # only their number counts
    world.next_number += count


@pytest.mark.clause("16")
def test_a_full_outbox_refuses_all_but_the_endings_of_open_calls() -> None:
    calls = [{"call_id": f"c{number}", "tool_id": "board.draw"} for number in range(4)]
    world = board_world(*calls)
    _fill_outbox(world, free=0)
    assert world.say(PERSON, h.MessageSend(text="hello")).code is Code.LIMIT_EXCEEDED
    assert world.invoke("new", "board.peek").code is Code.LIMIT_EXCEEDED
    assert world.tell("ins_board", m.ToolProgress(call_id="c0", percent=1.0)).code is Code.LIMIT_EXCEEDED
    assert world.view.call_by_id("new") is None
    assert world.tell("ins_board", m.ToolComplete(call_id="c0", result={"ok": True})).code is None
    assert world.tell("ins_board", m.ToolFail(call_id="c1", reason="no")).code is None
    assert world.pass_time(60_000).audit == ["call.expired", "call.expired"]
    assert world.view.outbox_pending_count() == limits.MAX_OUTBOX_ROWS


@pytest.mark.clause("16")
def test_the_last_free_slots_are_given_out_and_no_more() -> None:
    world = board_world({"call_id": "c1", "tool_id": "board.draw"})
    _fill_outbox(world, free=2)
    assert world.tell("ins_board", m.ToolProgress(call_id="c1", percent=1.0)).code is None
    assert world.tell("ins_board", m.ToolProgress(call_id="c1", percent=2.0)).code is None  # in place of the first
    assert world.say(PERSON, h.MessageSend(text="hello")).code is None
    assert world.say(PERSON, h.MessageSend(text="hello")).code is Code.LIMIT_EXCEEDED


@pytest.mark.clause("16")
def test_asking_again_for_delivered_rows_cannot_fill_the_outbox_beyond_its_limit() -> None:
    world = board_world()
    world.invoke("c1", "runtime.status")
    row = world.rows(OutboxRow)[-1]
    world.say(AGENT, h.OutboxAcknowledge(message_id=row.message_id))
    _fill_outbox(world, free=0)
    assert world.invoke("c1", "runtime.status").code is Code.LIMIT_EXCEEDED
    assert world.view.outbox_row(row.message_id) == replace(row, state=OutboxState.ACKNOWLEDGED)
    assert world.invoke("filler", "runtime.status").code is None  # it waits already


@pytest.mark.clause("16")
def test_a_text_of_the_person_has_one_to_so_many_code_points() -> None:
    world = board_world()
    assert world.say(PERSON, h.MessageSend(text="😀" * wire.MAX_TEXT_LENGTH)).code is None
    assert world.say(PERSON, h.MessageSend(text="😀" * (wire.MAX_TEXT_LENGTH + 1))).code is Code.LIMIT_EXCEEDED
    assert world.say(PERSON, h.MessageSend(text="")).code is Code.LIMIT_EXCEEDED
