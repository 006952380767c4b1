"""How a request for a capability ends when host or kernel die, whose time it is, and the trace of every frame to a host (SPEC 10)."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from kernel.core import events
from kernel.core.capability_records import CapabilityRequest
from kernel.core.limits import (
    HOST_ACTION_MS,
)
from kernel.core.machines import CAPABILITY_OPEN, CapabilityStatus
from kernel.protocol import host as h
from kernel.protocol import host_capabilities as hc
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol.codes import Code
from tests.core.capability_desk import NOTICE, Desk, desk, view
from tests.core.world import KERNEL, PERSON

# --------------------------------------------------------------------------------- unknown


@pytest.mark.clause("10")
@pytest.mark.invariant("52")
def test_a_host_that_leaves_before_it_answered_leaves_an_unknown_end_and_no_other_is_asked() -> None:
    world = desk()
    world.attach("view-2", "clipboard.write")
    first, second = world.asked(), world.asked()
    world.answer(first, "once")
    world.answer(second, "once", by="view-2")
    world.leave("view-1")
    assert world.status(first) is CapabilityStatus.UNKNOWN
    assert world.status(second) is CapabilityStatus.GRANTED
    assert len(world.executed) == 2
    assert [(one["status"], one["code"]) for one in world.results()] == [("unknown", "unknown")]


@pytest.mark.clause("10")
@pytest.mark.clause("12")
@pytest.mark.invariant("52")
def test_what_a_dead_kernel_granted_is_unknown_and_what_it_asked_is_asked_still() -> None:
    world = desk()
    granted, asked = world.asked(), world.asked("notification.show", NOTICE)
    world.answer(granted, "once")
    frames = list(world.frames)
    world.boot()
    assert world.status(granted) is CapabilityStatus.UNKNOWN
    assert world.status(asked) is CapabilityStatus.ASKED
    assert world.frames == frames
    world.boot()
    assert world.frames == frames
    assert [one["status"] for one in world.results()] == ["unknown"]
    world.start(world.current("board").instance_id)
    world.attach("view-1", "notification.show")
    world.answer(asked, "once")
    assert world.executed[-1] == ("view-1", asked)


@pytest.mark.clause("10")
def test_a_yes_that_was_written_and_never_sent_is_not_sent_by_the_next_start() -> None:
    world = desk()
    request_id = world.asked()
    shown = world.request(request_id).shown_digest.hex()
    world.only(view("view-1"), hc.ConsentAnswer(request_id=request_id, decision="once", shown=shown))  # its frame never left
    world.boot()
    assert world.executed == []
    assert world.status(request_id) is CapabilityStatus.UNKNOWN


@pytest.mark.clause("10")
def test_attached_views_are_of_one_run() -> None:
    world = desk()
    world.boot()
    world.start(world.current("board").instance_id)
    assert world.ask().code is Code.CAPABILITY_UNSUPPORTED


@pytest.mark.clause("6.8")
@pytest.mark.clause("10")
@pytest.mark.parametrize("end", ["restart", "crash"])
def test_a_call_that_is_delivered_again_finds_no_question_of_its_lost_process_and_its_time_goes_on(end: str) -> None:
    world = desk()
    world.running("c1", "board.peek")
    of_call, of_none = world.asked(parent_call_id="c1"), world.asked()
    board = world.current("board")
    if end == "restart":
        world.boot()
    else:
        world.say(KERNEL, events.WorkerExited(instance_id=board.instance_id, life=board.life, death=events.Death.CRASH))
    assert [world.status(of_call), world.status(of_none)] == [CapabilityStatus.CANCELLED, CapabilityStatus.ASKED]
    assert [(one["request_id"], one["status"]) for one in world.results()] == [(of_call, "cancelled")]
    assert (world.call("c1").human_waits, world.call("c1").held_ms) == (0, None)
    assert world.call("c1").deadline is not None
    assert world.answer(of_call, "once").code is Code.CAPABILITY_DENIED
    assert world.executed == []


# --------------------------------------------------------------------------------- the call it belongs to


@pytest.mark.clause("6.6")
@pytest.mark.clause("10")
@pytest.mark.parametrize("decision", ["once", "deny"])
def test_the_time_in_which_the_person_is_asked_is_not_the_calls(decision: str) -> None:
    world = desk()
    world.running("c1", "board.peek")
    limit = world.call("c1").deadline
    assert limit is not None
    left = limit.at_ms - world.boottime_ms
    world.wait(1_000)
    request_id = world.asked(parent_call_id="c1")
    assert world.call("c1").deadline is None
    world.pass_time(3_600_000)
    assert world.call("c1").error_code is None
    world.answer(request_id, decision)
    resumed = world.call("c1").deadline
    assert resumed is not None
    assert resumed.at_ms - world.boottime_ms == left - 1_000
    if decision == "once":  # the host's time is machine time
        world.wait(500)
        world.report(request_id)
        assert world.call("c1").deadline == resumed


@pytest.mark.clause("10")
def test_a_parent_call_is_an_own_open_one_and_a_foreign_id_answers_as_an_unknown_one() -> None:
    world = desk()
    world.running("n1", "notes.open")
    world.running("c1", "board.peek")
    world.tell(world.current("board").instance_id, m.ToolFail(call_id="c1", reason="no"))
    world.say(PERSON, h.FocusRaise(instance_id=world.current("board").instance_id))
    foreign, unknown = world.ask(parent_call_id="n1"), world.ask(parent_call_id="nobody")
    assert (foreign.code, foreign.detail) == (unknown.code, unknown.detail) == (Code.CALL_NOT_FOUND, foreign.detail)
    assert world.ask(parent_call_id="c1").code is Code.CALL_ALREADY_FINAL


# --------------------------------------------------------------------------------- the trace


@pytest.mark.clause("10")
@pytest.mark.invariant("52")
def test_every_frame_to_a_host_has_an_earlier_durable_grant_of_its_own() -> None:
    """A crash at each point of each story: a host is asked at most once a request, and only for what is granted on disk by then."""
    steps = ("ask", "answer", "report", "leave", "boot", "revoke", "due")
    beginning = desk()
    for order in permutations(steps, 3):
        world = replace(beginning, view=beginning.view.copy(), frames=[])
        waiting = [world.asked()]
        for step in order:
            durable = {one.request_id for one in world.rows(CapabilityRequest) if one.scope is not None}
            before = len(world.executed)
            act(world, step, waiting)
            now = {one.request_id for one in world.rows(CapabilityRequest) if one.scope is not None}
            for _, request_id in world.executed[before:]:
                assert request_id in now - durable  # granted in the very turn that asked the host, and in no other
        asked_hosts = [request_id for _, request_id in world.executed]
        assert len(asked_hosts) == len(set(asked_hosts))
        for request in world.rows(CapabilityRequest):
            assert (request.status in CAPABILITY_OPEN) == (request.arguments_cbor is not None)
        ended = [one.request_id for one in world.rows(CapabilityRequest) if one.status not in CAPABILITY_OPEN]
        assert sorted(result["request_id"] for result in world.results()) == sorted(ended)


def act(world: Desk, step: str, waiting: list[str]) -> None:
    newest = waiting[-1]
    match step:
        case "ask":
            outcome = world.ask()
            if outcome.value is not None:
                waiting.append(outcome.value["request_id"])
        case "answer":
            world.answer(newest, "always")
        case "report":
            world.report(newest)
        case "leave":
            world.leave("view-1")
        case "boot":
            world.boot()
            world.start(world.current("board").instance_id)
            world.attach("view-1", "clipboard.write")
        case "revoke":
            world.say(PERSON, hc.PermissionsRevoke(app_scope="board", capability="clipboard.write"))
        case "due":
            world.pass_time(HOST_ACTION_MS)
