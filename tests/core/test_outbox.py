"""What leaves: fixed bytes, acknowledged by their own receiver only."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernel.core.decision import PumpOutbox
from kernel.core.events import AgentAttached
from kernel.core.machines import CallStatus, OutboxState
from kernel.core.records import Door, OutboxKind, OutboxRow, Source, decode_body
from kernel.protocol import host as h
from tests.core.world import AGENT, DEMO, PERSON, World


def ended_world() -> tuple[World, OutboxRow]:
    world = World()
    world.boot()
    world.invoke("c1", "runtime.status")
    return world, world.rows(OutboxRow)[-1]


@pytest.mark.invariant("35")
def test_an_acknowledgement_by_another_than_the_receiver_or_of_an_unknown_id_changes_nothing() -> None:
    world, row = ended_world()
    for origin, message_id in ((DEMO, row.message_id), (PERSON, row.message_id), (AGENT, "msg_e1_unknown")):
        done = world.say(origin, h.OutboxAcknowledge(message_id=message_id))
        assert (done.code, done.puts, done.audit) == (None, [], [])
    assert world.call("c1").status is CallStatus.SUBMITTED


@pytest.mark.invariant("33")
def test_a_row_that_is_asked_for_again_has_the_same_id_and_bytes_and_names_itself_to_the_pump() -> None:
    world, row = ended_world()
    world.say(AGENT, h.OutboxAcknowledge(message_id=row.message_id))
    again = world.invoke("c1", "runtime.status")
    assert world.view.outbox_row(row.message_id) == row
    assert again.effects == [PumpOutbox(destination=Source.AGENT, resend_number=row.number)]
    assert world.call("c1").status is CallStatus.COMPLETED


@pytest.mark.clause("11.3")
def test_a_row_that_was_refused_for_good_is_not_sent_again() -> None:
    world, row = ended_world()
    refused = replace(row, state=OutboxState.REFUSED)
    world.view.tables[OutboxRow][row.number] = refused
    again = world.invoke("c1", "runtime.status")
    assert (again.code, again.effects) == (None, [])
    assert world.view.outbox_row(row.message_id) == refused


@pytest.mark.clause("11.1")
def test_an_envelope_says_what_it_is_in_the_one_form() -> None:
    _, row = ended_world()
    envelope = decode_body(row.envelope_cbor)
    assert set(envelope) == {"type", "message_id", "conversation_id", "created_at", "payload", "app_scope"}
    assert (envelope["message_id"], envelope["created_at"]) == (row.message_id, "2030-01-02T03:04:05.000Z")


@pytest.mark.clause("4.4")
def test_an_agent_that_attaches_gets_the_inventory_once_in_place_of_one_it_never_took() -> None:
    world = World()
    world.boot()
    for _ in range(3):
        world.say(AGENT, AgentAttached())
    rows = [row for row in world.rows(OutboxRow) if row.kind is OutboxKind.INVENTORY]
    assert len(rows) == 1
    payload = decode_body(rows[0].envelope_cbor)["payload"]
    assert payload == {"inventory_revision": world.view.inventory.revision, **world.view.inventory.content}


@pytest.mark.clause("11.4")
def test_the_person_talks_to_the_agent_that_attached_last_and_each_keeps_its_own_rows() -> None:
    world = World()
    world.boot()
    world.say(PERSON, h.MessageSend(text="to the agent"))
    world.say(DEMO, AgentAttached())
    world.say(PERSON, h.MessageSend(text="to the demo"))
    messages = [
        (row.destination, decode_body(row.envelope_cbor)["payload"]["text"])
        for row in world.rows(OutboxRow)
        if row.kind is OutboxKind.MESSAGE
    ]
    assert messages == [(Source.AGENT, "to the agent"), (Source.DEMO, "to the demo")]
    assert world.rows(Door) == [Door(destination=Source.DEMO)]
