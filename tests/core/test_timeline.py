"""What person and Agent say to each other."""

from __future__ import annotations

import pytest

from kernel.core.records import Key, OutboxRow, Source, TimelineMessage, decode_body
from kernel.protocol import host as h
from kernel.protocol.agent import MESSAGE_TEXT, TASK_UPDATE, TaskUpdated, TextReceived
from lineup_sdk.protocol.codes import Code
from tests.core.stories import world_of
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
