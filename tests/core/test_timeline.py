"""What person and Agent say to each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernel.core.decision import FeedTimeline, PumpOutbox
from kernel.core.machines import CallStatus, OutboxState
from kernel.core.records import Key, OutboxRow, Source, TimelineMessage, decode_body
from kernel.core.timeline import ROW_REFUSED
from kernel.protocol import host as h
from kernel.protocol.agent import MESSAGE_TEXT, TASK_UPDATE, TaskUpdated, TextReceived
from kernel.protocol.host_sessions import OutboxRefuse
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol import system_messages as y
from lineup_sdk.protocol.codes import Code
from tests.core.stories import world_of
from tests.core.system_app import chat_of, world_with_chat
from tests.core.world import AGENT, DEMO, PERSON, envelope


@pytest.mark.clause("8.4")
@pytest.mark.clause("9.3")
def test_a_message_belongs_to_the_app_session_that_is_in_front() -> None:
    world = world_of({"instances": [{"app": "board", "state": "foreground"}], "focus": ["board"]})
    world.say(AGENT, TextReceived(envelope=envelope("m1", MESSAGE_TEXT), text="over the board"))
    world.say(PERSON, h.FocusRaise(instance_id="chat"))
    world.say(PERSON, h.MessageSend(text="in the chat"))
    world.say(DEMO, TaskUpdated(envelope=envelope("m2", TASK_UPDATE), task={"task_id": "t"}))
    rows = [(one.author, one.type, decode_body(one.body_cbor), one.app_session_id) for one in world.rows(TimelineMessage)]
    assert rows == [
        (Source.AGENT, MESSAGE_TEXT, {"text": "over the board"}, "ses_board"),
        (Source.PERSON, MESSAGE_TEXT, {"text": "in the chat"}, None),
        (Source.DEMO, TASK_UPDATE, {"task_id": "t"}, None),
    ]


@pytest.mark.clause("11.5")
def test_what_the_person_says_is_one_message_and_one_row_under_one_id() -> None:
    world = world_of({})
    value = world.say(PERSON, h.MessageSend(text="hello")).value
    assert value is not None
    message, row = world.rows(TimelineMessage)[0], world.rows(OutboxRow)[-1]
    assert value["message_id"] == message.message_id == row.message_id
    assert (message.number, decode_body(row.envelope_cbor)["payload"]) == (row.number, {"text": "hello"})


@pytest.mark.clause("11.2")
@pytest.mark.invariant("4")
def test_an_envelope_counts_once_and_its_id_is_never_free_again() -> None:
    world = world_of({})
    text = TextReceived(envelope=envelope("m1", MESSAGE_TEXT, content="a"), text="a")
    assert [world.say(AGENT, text).audit for _ in range(3)] == [["message.received"], [], []]
    other = TextReceived(envelope=envelope("m1", MESSAGE_TEXT, content="b"), text="b")
    refused = world.say(AGENT, other)
    assert (refused.code, refused.puts) == (Code.CALL_ID_CONFLICT, [])
    assert len(world.rows(TimelineMessage)) == 1
    assert len(world.view.tables[Key]) == 1


@pytest.mark.clause("3")
def test_an_envelope_of_another_conversation_is_refused_and_leaves_its_id_free() -> None:
    world = world_of({})
    foreign = envelope("m1", MESSAGE_TEXT, conversation_id="cnv_e1_other")
    refused = world.say(AGENT, TextReceived(envelope=foreign, text="a"))
    assert (refused.code, refused.puts, refused.audit) == (Code.CAPABILITY_DENIED, [], ["command.refused"])
    assert world.say(AGENT, TextReceived(envelope=envelope("m1", MESSAGE_TEXT), text="a")).code is None


# ------------------------------------------------------------------------------------ the system App, and rows that are refused


@pytest.mark.clause("11.5")
def test_what_the_system_app_sends_is_the_same_command_as_the_persons_own() -> None:
    world = world_with_chat()
    chat = chat_of(world).instance_id
    sent = world.tell(chat, y.ConversationSendText(text="hello"))
    assert sent.audit == world.say(PERSON, h.MessageSend(text="hello")).audit == ["message.sent"]
    bodies = [(entry.author, entry.type, entry.body_cbor) for entry in world.rows(TimelineMessage)]
    assert bodies[0] == bodies[1]
    assert sent.value == {"message_id": world.rows(OutboxRow)[-2].message_id}
    assert world.tell(chat, y.ConversationSendText(text="")).code is Code.LIMIT_EXCEEDED
    world.die(chat)
    assert world.say(world.worker(chat, life=1), y.ConversationSendText(text="late")).code is Code.APP_INSTANCE_NOT_FOUND
    assert len(world.rows(TimelineMessage)) == 2


@pytest.mark.clause("11.5")
def test_an_act_that_is_delivered_twice_sends_once() -> None:
    world = world_with_chat()
    chat = chat_of(world).instance_id
    once = world.tell(chat, y.ConversationSendText(text="hello", key="k1"))
    twice = world.tell(chat, y.ConversationSendText(text="hello", key="k1"))
    assert (twice.code, twice.value, twice.puts) == (None, once.value, [])
    assert world.tell(chat, y.ConversationSendText(text="other", key="k1")).code is Code.CALL_ID_CONFLICT
    assert world.tell(chat, y.ConversationSendText(text="hello", key="k2")).code is None
    assert len(world.rows(TimelineMessage)) == 2


@pytest.mark.clause("9.3")
def test_the_system_app_folds_an_entry_and_changes_nothing_else_of_it() -> None:
    world = world_with_chat()
    chat = chat_of(world).instance_id
    world.say(PERSON, h.MessageSend(text="hello"))
    entry = world.rows(TimelineMessage)[0]
    done = world.tell(chat, y.TimelinePlace(number=entry.number, folded=True))
    assert (done.value, done.puts, done.audit) == ({"placed": True}, [replace(entry, is_folded=True)], ["timeline.placed"])
    again = world.tell(chat, y.TimelinePlace(number=entry.number, folded=True))
    assert (again.value, again.puts) == ({"placed": True}, [])
    assert world.tell(chat, y.TimelinePlace(number=entry.number + 99, folded=True)).value == {"placed": False}


@pytest.mark.clause("3")
def test_the_timeline_is_fed_to_the_system_app_alone_and_to_its_present_life() -> None:
    world = world_with_chat()
    chat = chat_of(world).instance_id
    assert world.tell(chat, y.TimelineSubscribe()).effects == [FeedTimeline(instance_id=chat, life=1)]
    board = world.running("c1", "board.peek")
    for message in (y.TimelineSubscribe(), y.TimelinePlace(number=1, folded=True), y.ConversationSendText(text="I am the person")):
        refused = world.tell(board, message)
        assert (refused.code, refused.puts, refused.effects) == (Code.CAPABILITY_DENIED, [], [])


@pytest.mark.clause("11.3")
def test_a_message_that_its_receiver_refuses_says_so_and_the_next_row_goes() -> None:
    world = world_of({})
    world.say(PERSON, h.MessageSend(text="one"))
    world.say(PERSON, h.MessageSend(text="two"))
    first, second = world.rows(OutboxRow)[-2:]
    done = world.say(AGENT, OutboxRefuse(message_id=first.message_id, code="too_long"))
    assert (done.code, done.audit, done.effects) == (None, ["outbox.refused"], [PumpOutbox(destination=AGENT.source)])
    row = world.view.outbox_row(first.message_id)
    assert row == replace(first, state=OutboxState.REFUSED, refused_code="too_long")
    assert list(world.view.outbox_pending(AGENT.source, first.number - 1, 9)) == [second]
    assert len(world.rows(TimelineMessage)) == 2  # it stands on the message itself
    for message in (OutboxRefuse(message_id=first.message_id, code="x"), h.OutboxAcknowledge(message_id=first.message_id)):
        assert world.say(AGENT, message).puts == []  # it has its end


@pytest.mark.clause("11.3")
@pytest.mark.invariant("35")
def test_a_refused_result_is_shown_to_the_person_and_its_call_is_never_said_to_be_completed() -> None:
    world = world_of({"instances": [{"app": "board"}], "calls": [{"call_id": "c1", "tool_id": "board.draw"}]})
    world.tell("ins_board", m.ToolComplete(call_id="c1", result={"ok": True}))
    row = world.view.final_row(world.call("c1").number)
    assert row is not None
    foreign = OutboxRefuse(message_id=row.message_id, code="unreadable")
    assert world.say(PERSON, foreign).puts == []  # another's row
    world.say(AGENT, foreign)
    assert world.call("c1").status is CallStatus.SUBMITTED
    shown = world.rows(TimelineMessage)[-1]
    assert (shown.type, decode_body(shown.body_cbor)["state"]) == (ROW_REFUSED, "unreadable")
    assert shown.message_id != row.message_id
