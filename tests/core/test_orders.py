"""Every order of the things that can end a call: one outcome, one final row, the later ones told so, no result lost."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pytest

from kernel.core.events import Death, WorkerExited
from kernel.core.machines import CALL_OPEN, CallStatus
from kernel.core.records import OutboxKind, OutboxRow, ToolCall, decode_body
from kernel.protocol import host as h
from kernel.protocol.agent import ToolCancelAsked
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol.codes import Code
from tests.core.stories import world_of
from tests.core.world import AGENT, KERNEL, PERSON, Outcome, World

GRACE_MS = 2_000
DEADLINE_MS = 60_000


def complete(world: World) -> Outcome:
    return world.tell("ins_board", m.ToolComplete(call_id="c1", result={"ok": True}))


def fail(world: World) -> Outcome:
    return world.tell("ins_board", m.ToolFail(call_id="c1", reason="no_ink"))


def app_cancels(world: World) -> Outcome:
    return world.tell("ins_board", m.ToolCancel(call_id="c1"))


def agent_cancels(world: World) -> Outcome:
    asked = world.say(AGENT, ToolCancelAsked(envelope=None, call_id="c1"))
    world.pass_time(GRACE_MS)
    return asked


def expire(world: World) -> Outcome:
    return world.pass_time(DEADLINE_MS)


def crash(world: World) -> Outcome:
    return world.say(KERNEL, WorkerExited(instance_id="ins_board", life=1, death=Death.CRASH))


Ending = Callable[[World], Outcome]
OUTCOME: dict[Ending, tuple[CallStatus, Code | None]] = {
    complete: (CallStatus.SUBMITTED, None),
    fail: (CallStatus.FAILED, Code.TOOL_FAILED),
    app_cancels: (CallStatus.CANCELLED, Code.CANCELLED),
    agent_cancels: (CallStatus.CANCELLED, Code.CANCELLED),
    expire: (CallStatus.EXPIRED, Code.EXPIRED),
    crash: (CallStatus.FAILED, Code.APP_CRASHED),
}
BY_WORKER = {complete, fail, app_cancels}


def running_world(**fields: object) -> World:
    return world_of({"instances": [{"app": "board"}], "calls": [{"call_id": "c1", "tool_id": "board.draw", "attempts": 2, **fields}]})


def finals(world: World) -> list[OutboxRow]:
    return [row for row in world.rows(OutboxRow) if row.kind is OutboxKind.FINAL]


def late_code(ending: Ending, *, is_crashed: bool) -> Code | None:
    if ending in BY_WORKER:
        return Code.CALL_NOT_FOUND if is_crashed else Code.CALL_ALREADY_FINAL
    return Code.CALL_ALREADY_FINAL if ending is agent_cancels else None


@pytest.mark.invariant("10")
@pytest.mark.invariant("16")
@pytest.mark.invariant("21")
def test_in_every_order_the_first_ending_wins_and_the_later_ones_change_nothing() -> None:
    start = running_world()
    for order in permutations(OUTCOME):
        world = start.copy()
        assert order[0](world).code is None
        ended, rows = world.call("c1"), finals(world)
        assert (ended.status, ended.error_code) == OUTCOME[order[0]]
        assert len(rows) == 1
        is_crashed = order[0] is crash
        for ending in order[1:]:
            assert ending(world).code is late_code(ending, is_crashed=is_crashed), order
            is_crashed = is_crashed or ending is crash
        assert world.call("c1") == ended, order
        assert finals(world) == rows, order


@pytest.mark.invariant("20")
def test_a_result_that_came_first_is_what_the_agent_gets_whatever_follows() -> None:
    for second in OUTCOME:
        world = running_world()
        complete(world)
        second(world)
        call = world.call("c1")
        assert call.result_cbor is not None
        assert decode_body(call.result_cbor) == {"ok": True}
        assert decode_body(finals(world)[0].envelope_cbor)["payload"] == {"call_id": "c1", "status": "completed", "result": {"ok": True}}


@pytest.mark.clause("6.2")
def test_of_two_endings_at_one_instant_one_counts() -> None:
    """Deadline and grace are over at the same millisecond, and everything else happens in it too."""
    start = running_world()
    start.wait(DEADLINE_MS - GRACE_MS)
    start.say(AGENT, ToolCancelAsked(envelope=None, call_id="c1"))
    start.wait(GRACE_MS)
    at_once: list[Ending] = [complete, fail, app_cancels, lambda world: world.pass_time(0), crash]
    for first, second in permutations(at_once, 2):
        world = start.copy()
        first(world)
        ended = world.call("c1")
        assert ended.status not in CALL_OPEN
        second(world)
        assert world.call("c1") == ended
        assert len(finals(world)) == 1


@pytest.mark.clause("6.7")
def test_a_result_within_the_grace_wins_and_one_after_it_does_not() -> None:
    for waited_ms, status in ((GRACE_MS - 1, CallStatus.SUBMITTED), (GRACE_MS, CallStatus.CANCELLED)):
        world = running_world()
        world.say(AGENT, ToolCancelAsked(envelope=None, call_id="c1"))
        world.pass_time(waited_ms)
        complete(world)
        assert world.call("c1").status is status


@pytest.mark.clause("6.8")
@pytest.mark.parametrize("ending", [complete, fail, app_cancels, agent_cancels, expire])
def test_after_a_crash_that_it_survives_a_call_ends_once_in_its_new_life(ending: Ending) -> None:
    world = running_world(attempts=0)
    crash(world)
    old = world.worker("ins_board", life=1)
    assert world.say(old, m.ToolComplete(call_id="c1", result={"ok": True})).code is Code.APP_INSTANCE_NOT_FOUND
    assert world.call("c1").status is CallStatus.WAITING_FOR_APP
    world.start("ins_board")
    world.tell("ins_board", m.ToolAccept(call_id="c1"))
    assert ending(world).code is None
    assert (world.call("c1").status, world.call("c1").error_code) == OUTCOME[ending]
    assert world.call("c1").attempts == 1
    assert len(finals(world)) == 1


@pytest.mark.clause("6.2")
@pytest.mark.parametrize("status", ["received", "routing", "waiting_for_app"])
def test_a_call_that_no_worker_has_ends_once_too(status: str) -> None:
    def cancel(world: World) -> Outcome:
        return world.say(PERSON, h.CallCancel(call_id="c1"))

    def disable(world: World) -> Outcome:
        return world.say(PERSON, h.AppDisable(name="board"))

    outcomes = {cancel: CallStatus.CANCELLED, disable: CallStatus.FAILED, expire: CallStatus.EXPIRED}
    for order in permutations(outcomes):
        named = None if status != "waiting_for_app" else "ins_board"
        world = running_world(status=status, delivered_life=None, instance_id=named)
        for ending in order:
            ending(world)
        assert world.call("c1").status is outcomes[order[0]]
        assert len(finals(world)) == 1
        assert len(world.rows(ToolCall)) == 1


@pytest.mark.clause("6.2")
def test_acknowledging_the_final_row_completes_a_result_and_nothing_else() -> None:
    for ending, (status, _) in OUTCOME.items():
        world = running_world()
        ending(world)
        world.say(AGENT, h.OutboxAcknowledge(message_id=finals(world)[0].message_id))
        assert world.call("c1").status is (CallStatus.COMPLETED if status is CallStatus.SUBMITTED else status)
