"""Messages for Apps: in order, own ones only, a page at a time."""

from __future__ import annotations

import pytest

from kernel.core.records import InboxRow
from kernel.protocol.agent import APP_MESSAGE, AppMessageReceived
from lineup_sdk.protocol import limits as wire
from lineup_sdk.protocol import messages as m
from tests.core.stories import world_of
from tests.core.world import AGENT, World, envelope


def world_with(*message_ids: str, size: int = 0) -> World:
    world = world_of({"instances": [{"app": "board"}, {"app": "notes"}]})
    for message_id in message_ids:
        outer = envelope(message_id, APP_MESSAGE, app_scope="board")
        world.say(AGENT, AppMessageReceived(envelope=outer, topic="board.note", body={"text": "x" * size}))
    return world


def listed(world: World, app: str = "board", after: str | None = None) -> tuple[list[str], bool]:
    value = world.tell(f"ins_{app}", m.InboxList(after=after)).value
    assert value is not None
    return [message["message_id"] for message in value["messages"]], value["more"]


@pytest.mark.clause("5.2")
def test_a_list_comes_in_pages_and_goes_on_after_any_own_message() -> None:
    ids = [f"m{number:02}" for number in range(20)]
    world = world_with(*ids)
    first, more = listed(world)
    assert (first, more) == (ids[:16], True)
    assert listed(world, after=first[-1]) == (ids[16:], False)
    world.tell("ins_board", m.InboxAcknowledge(message_id="m15"))
    assert listed(world, after="m15") == (ids[16:], False)
    assert listed(world, after="nothing")[0] == ids[:15] + ids[16:17]


@pytest.mark.clause("2.1")
def test_a_page_fits_a_frame_and_holds_at_least_one_message() -> None:
    world = world_with(*(f"m{number:02}" for number in range(14)), size=47 * 1024)
    seen: list[str] = []
    more = True
    while more:
        page, more = listed(world, after=seen[-1] if seen else None)
        assert 0 < len(page) * 48 * 1024 < wire.MAX_FRAME_BYTES
        seen += page
    assert len(seen) == 14


@pytest.mark.clause("5.2")
@pytest.mark.invariant("5")
def test_another_instance_sees_and_acknowledges_nothing_and_cannot_tell_that_it_exists() -> None:
    world = world_with("m1")
    before = world.view.copy()
    assert listed(world, "notes") == ([], False)
    assert listed(world, "notes", after="m1") == ([], False)
    foreign = world.tell("ins_notes", m.InboxAcknowledge(message_id="m1"))
    unknown = world.tell("ins_notes", m.InboxAcknowledge(message_id="m9"))
    assert (foreign.value, foreign.audit) == (unknown.value, unknown.audit) == ({"acknowledged": False}, [])
    assert world.view.tables[InboxRow] == before.tables[InboxRow]


@pytest.mark.clause("5.1")
@pytest.mark.invariant("1")
def test_a_message_is_stored_in_one_turn_and_delivered_in_the_next() -> None:
    world = world_with()
    outer = envelope("m1", APP_MESSAGE, app_scope="board")
    stored = world.only(AGENT, AppMessageReceived(envelope=outer, topic="board.note", body={}))
    assert stored.sent == []
    assert [row.delivery_count for row in world.rows(InboxRow)] == [0]


@pytest.mark.clause("5.3")
@pytest.mark.invariant("3")
def test_every_life_gets_what_is_not_acknowledged_in_order_and_nothing_else() -> None:
    world = world_with("m1", "m2", "m3")
    world.tell("ins_board", m.InboxAcknowledge(message_id="m2"))
    world.die("ins_board")
    got = [message.message_id for _, message in world.start("ins_board").sent if isinstance(message, m.InboxDelivered)]
    assert got == ["m1"]  # one at a time after a crash
    taken = world.tell("ins_board", m.InboxAcknowledge(message_id="m1"))
    assert [(message.message_id, message.delivery_count) for _, message in taken.sent if isinstance(message, m.InboxDelivered)] == [
        ("m3", 2)
    ]
