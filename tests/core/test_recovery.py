"""A start brings everything back, and a start cut off and done again ends the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kernel.core.decision import ArmDeadline, StartWorker, StopKernel
from kernel.core.machines import CallStatus, InstanceState
from kernel.core.records import InboxRow, Instance, OutboxKind, OutboxRow, PublishedInventory
from kernel.protocol import host as h
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol.codes import Code
from tests.core.dict_view import MANIFESTS, manifest_of
from tests.core.stories import world_of
from tests.core.world import PERSON, World

FINISHED_BY_A_BOOT = {"life", "tools_subscribed", "inbox_subscribed"}
STATES = ["starting", "foreground", "background", "suspended", "stopping"]


def stored(world: World) -> dict[str, Any]:
    """All records, without what every start counts up."""
    found: dict[str, Any] = {}
    for kind, table in world.view.tables.items():
        for key, record in table.items():
            found[f"{kind.__name__} {key!r}"] = replace(record, life=0) if isinstance(record, Instance) else record
    return found


@pytest.mark.clause("12")
@pytest.mark.invariant("36")
@pytest.mark.parametrize("board", STATES)
@pytest.mark.parametrize("notes", ["starting", "background", "stopping"])
@pytest.mark.parametrize("focus", [[], ["board"], ["board", "notes"]])
def test_starting_twice_is_starting_once(board: str, notes: str, focus: list[str]) -> None:
    if board == "stopping":
        focus = [app for app in focus if app != "board"]
    if notes == "stopping":
        focus = [app for app in focus if app != "notes"]
    calls = (
        []
        if board in {"stopping", "suspended"}
        else [{"call_id": "c1", "tool_id": "board.draw"}, {"call_id": "c2", "tool_id": "board.once"}]
    )
    world = world_of({"instances": [{"app": "board", "state": board}, {"app": "notes", "state": notes}], "focus": focus, "calls": calls})
    world.boot()
    once = stored(world)
    for instance in world.rows(Instance):
        wanted = instance.app_scope in focus[-1:] or (instance.app_scope == "board" and calls)
        assert instance.state is (InstanceState.STARTING if wanted else InstanceState.SUSPENDED)
    started = [effect for effect in world.boot().effects if isinstance(effect, StartWorker)]
    assert stored(world) == once
    assert [effect.life for effect in started] == [world.instance(effect.instance_id).life for effect in started]
    assert len({effect.instance_id for effect in started}) == len(started)


@pytest.mark.clause("6.8")
@pytest.mark.invariant("20")
def test_a_call_in_each_state_still_completes_after_a_death_of_the_kernel() -> None:
    for status in ("received", "routing", "waiting_for_app", "delivered", "running"):
        world = World()
        world.boot()
        world.invoke("c1", "board.peek")
        call = world.call("c1")
        instance_id = call.instance_id
        assert instance_id is not None
        if status in {"received", "routing"}:
            call = replace(call, status=CallStatus(status), instance_id=None)
            world.view.tables[type(call)][call.number] = call
        if status in {"delivered", "running"}:
            world.start(instance_id)
        if status == "running":
            world.tell(instance_id, m.ToolAccept(call_id="c1"))
        world.boot()
        world.start(instance_id)
        assert world.tell(instance_id, m.ToolAccept(call_id="c1")).code is None, status
        assert world.tell(instance_id, m.ToolComplete(call_id="c1", result={"ok": True})).code is None
        assert world.call("c1").attempts == 0
        assert len([row for row in world.rows(OutboxRow) if row.kind is OutboxKind.FINAL]) == 1


@pytest.mark.clause("12")
def test_an_app_that_is_gone_takes_its_calls_with_it_and_the_one_behind_it_comes_to_the_front() -> None:
    for order in (["notes", "board"], ["board", "notes"]):
        instances = [{"app": app, "state": "foreground" if app == "board" else "background"} for app in order]
        world = world_of({"instances": instances, "focus": ["notes", "board"], "calls": [{"call_id": "c1", "tool_id": "board.draw"}]})
        started = world.boot(manifests={scope: one for scope, one in MANIFESTS.items() if scope != "board"})
        assert (world.call("c1").status, world.call("c1").error_code) == (CallStatus.FAILED, Code.APP_DISABLED)
        assert world.instance("ins_board").state is InstanceState.STOPPED
        assert world.view.focus().instance_ids == ("ins_notes",)
        assert [effect.instance_id for effect in started.effects if isinstance(effect, StartWorker)] == ["ins_notes"]
        assert world.instance("ins_notes").state is InstanceState.STARTING


@pytest.mark.clause("12")
def test_several_apps_that_are_gone_end_and_none_of_them_gets_a_process() -> None:
    """The end of one brings the next to the front, which is gone as well."""
    for order in (["notes", "board"], ["board", "notes"]):
        instances = [{"app": app, "state": "foreground" if app == order[-1] else "background"} for app in ("board", "notes")]
        world = world_of({"instances": instances, "focus": order})
        started = world.boot(manifests={scope: one for scope, one in MANIFESTS.items() if scope not in order})
        assert [world.instance(f"ins_{app}").state for app in order] == [InstanceState.STOPPED] * 2
        assert [
            effect for effect in started.effects if isinstance(effect, StartWorker) and effect.instance_id in {"ins_board", "ins_notes"}
        ] == []


@pytest.mark.clause("4.4")
@pytest.mark.invariant("53")
def test_other_manifests_make_a_new_revision_once_and_the_agent_is_told() -> None:
    world = World()
    first = world.boot()
    assert [message["type"] for message in first.outbox] == ["lineup.v1.client.inventory"]
    assert world.boot().outbox == []
    changed = MANIFESTS | {"board": manifest_of("board", tools=[])}
    assert len(world.boot(manifests=changed).outbox) == 1
    assert world.boot(manifests=changed).outbox == []
    assert len(world.boot(manifests=MANIFESTS).outbox) == 1
    assert [one.number for one in world.rows(PublishedInventory)] == [1, 2, 3]


@pytest.mark.clause("5.3")
@pytest.mark.invariant("2")
def test_messages_that_were_not_acknowledged_come_again_in_order_and_no_crash_is_counted() -> None:
    inbox = [{"app": "board", "message_id": f"m{number}", "delivered_life": 1, "delivery_count": 1} for number in range(3)]
    world = world_of({"instances": [{"app": "board", "state": "foreground"}], "focus": ["board"], "inbox": inbox})
    world.tell("ins_board", m.InboxAcknowledge(message_id="m1"))
    world.boot()
    delivered = [message for _, message in world.start("ins_board").sent if isinstance(message, m.InboxDelivered)]
    assert [(message.message_id, message.delivery_count) for message in delivered] == [("m0", 2), ("m2", 2)]
    assert {row.crash_count for row in world.rows(InboxRow)} == {0}


@pytest.mark.clause("6.6")
def test_the_kernel_wakes_for_the_earliest_deadline_that_it_found() -> None:
    calls = [{"call_id": "c1", "tool_id": "board.draw"}, {"call_id": "c2", "tool_id": "board.draw", "deadline_ms": 9_000}]
    world = world_of({"instances": [{"app": "board"}], "calls": calls})
    armed = [effect.at_ms for effect in world.boot().effects if isinstance(effect, ArmDeadline)]
    assert armed == [world.boottime_ms + 9_000]


@pytest.mark.clause("2.9")
def test_the_person_stops_the_kernel_and_nothing_is_ended_by_it() -> None:
    world = world_of({"instances": [{"app": "board"}], "calls": [{"call_id": "c1", "tool_id": "board.draw"}]})
    done = world.say(PERSON, h.KernelStop())
    assert (done.effects, done.puts, done.audit) == ([StopKernel()], [], ["kernel.stopping"])
