"""A call that needs one instance too many waits in routing (kernel/core/routing.py, rule 6)."""

from __future__ import annotations

import pytest

from kernel.core.events import Death, RouteCall
from kernel.core.machines import CallStatus, InstanceState
from kernel.core.records import OutboxRow
from kernel.protocol import host as h
from kernel.protocol.agent import ToolCancelAsked
from lineup_sdk.protocol.codes import Code
from tests.core.crowded import full_world
from tests.core.world import AGENT, KERNEL, PERSON, World

pytestmark = [pytest.mark.clause("6.2"), pytest.mark.clause("16")]


def waiting(*calls: tuple[str, str]) -> World:
    world = full_world()
    for call_id, tool_id in calls or [("c1", "board.open")]:
        assert world.invoke(call_id, tool_id).code is None
        assert world.call(call_id).status is CallStatus.ROUTING
    return world


def statuses(world: World, *call_ids: str) -> list[CallStatus]:
    return [world.call(call_id).status for call_id in call_ids]


@pytest.mark.invariant("26")
def test_a_waiting_call_starts_nothing_and_is_written_once() -> None:
    world = waiting()
    before = world.view.copy()
    assert world.say(KERNEL, RouteCall(number=world.call("c1").number)).puts == []
    assert world.view.tables == before.tables
    assert world.view.current_instance("board") is None


@pytest.mark.parametrize("end", ["close", "disable", "fail"])
def test_the_end_of_any_instance_makes_room_for_the_oldest(end: str) -> None:
    world = waiting(("c1", "board.open"), ("c2", "notes.open"), ("c3", "board.peek"))
    if end == "close":
        world.close("ins_notes00")
    elif end == "disable":
        world.say(PERSON, h.AppDisable(name="notes00"))
    else:
        world.say(PERSON, h.FocusRaise(instance_id="ins_notes00"))
        world.die("ins_notes00", Death.VIOLATION)
    assert statuses(world, "c1", "c2", "c3") == [CallStatus.WAITING_FOR_APP, CallStatus.ROUTING, CallStatus.WAITING_FOR_APP]
    world.close("ins_notes01")
    assert world.call("c2").status is CallStatus.WAITING_FOR_APP


def test_room_that_the_oldest_cannot_use_goes_to_the_next() -> None:
    world = waiting(("c1", "board.peek"), ("c2", "notes.open"))
    world.wait(5_000)  # nobody has looked at the clock of board.peek yet
    world.close("ins_notes00")
    assert statuses(world, "c1", "c2") == [CallStatus.EXPIRED, CallStatus.WAITING_FOR_APP]


@pytest.mark.clause("6.6")
def test_its_own_clock_ends_the_wait() -> None:
    world = waiting(("c1", "board.peek"))
    assert world.pass_time(5_000).audit == ["call.expired"]
    assert (world.call("c1").error_code, len(world.rows(OutboxRow)) > 0) == (Code.EXPIRED, True)
    assert world.close("ins_notes00").audit == ["instance.stopped"]


@pytest.mark.clause("6.7")
def test_a_cancel_ends_the_wait_at_once() -> None:
    world = waiting()
    assert world.say(AGENT, ToolCancelAsked(envelope=None, call_id="c1")).audit == ["call.cancelled"]
    world.close("ins_notes00")
    assert world.view.current_instance("board") is None


@pytest.mark.clause("4.5")
def test_the_persons_switch_ends_the_wait() -> None:
    world = waiting()
    assert world.say(PERSON, h.AppDisable(name="board")).audit[:2] == ["switch.disabled", "call.failed"]
    assert world.call("c1").error_code is Code.APP_DISABLED


@pytest.mark.clause("12")
def test_a_start_keeps_the_wait_and_takes_it_up_when_there_is_room() -> None:
    world = waiting()
    world.boot()
    assert world.call("c1").status is CallStatus.ROUTING
    world.only(PERSON, h.AppClose(instance_id="ins_notes00"))  # the kernel dies before what follows
    assert world.instance("ins_notes00").state is InstanceState.STOPPED
    assert world.call("c1").status is CallStatus.ROUTING
    world.boot()
    assert world.call("c1").status is CallStatus.WAITING_FOR_APP


def test_a_call_that_names_an_instance_waits_for_no_other() -> None:
    world = full_world()
    assert world.invoke("c1", "board.open", instance_id="ins_gone").code is Code.APP_INSTANCE_NOT_FOUND
