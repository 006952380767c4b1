"""Every limit of kernel/core/limits.py, at its edge and one past it (SPEC 16)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernel.core import limits
from kernel.core.decision import StartWorker, StopWorker
from kernel.core.events import RouteCall
from kernel.core.machines import CallStatus, InstanceState
from kernel.core.records import InboxRow
from kernel.protocol import host as h
from kernel.protocol.agent import APP_MESSAGE, AppMessageReceived, ToolCancelAsked
from kernel.protocol.host_interactions import PolicySet
from kernel.protocol.host_sessions import AppOpen
from lineup_sdk.protocol import limits as wire
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.interaction_messages import UiRequest
from tests.core.crowded import board_world, full_world, message, peek_of, seed_calls
from tests.core.dict_view import MANIFESTS, DictView, renamed
from tests.core.stories import world_of
from tests.core.world import AGENT, KERNEL, PERSON, World, envelope

CROSSED: set[str] = set()
CROSSED_AT_THE_BORDER = {"MAX_ID_LENGTH"}  # ids are measured before there is a command
CROSSED_BESIDE = {  # in the file of their noun
    "CLOSE_QUESTION_MS": "test_own_questions.py",
    "COMPACT_PATCH_BYTES": "test_surfaces.py",
    "HOST_ACTION_MS": "test_capabilities.py",
    "MAX_ARTIFACTS_OF_SESSION": "test_artifacts.py",
    "MAX_ARTIFACT_BYTES_OF_SESSION": "test_artifacts.py",
    "MAX_CAPABILITY_REASON": "test_capabilities.py",
    "MAX_EVENT_NAME": "test_surfaces.py",
    "INBOX_WINDOW": "test_limits_of_messages.py",
    "MAX_INBOX_BYTES": "test_limits_of_messages.py",
    "MAX_INBOX_ROWS": "test_limits_of_messages.py",
    "MAX_MESSAGE_CRASHES": "test_limits_of_messages.py",
    "MAX_OPEN_CAPABILITY_REQUESTS": "test_capabilities.py",
    "MAX_OPEN_CAPABILITY_REQUESTS_OF_INSTANCE": "test_capabilities.py",
    "MAX_OUTBOX_ROWS": "test_limits_of_messages.py",
    "MAX_PATCHES": "test_surfaces.py",
    "MAX_SURFACE_MEMBERS": "test_surfaces.py",
    "SWEPT_A_TURN": "test_retention.py",
}

Test = Callable[..., None]


def crosses(*names: str) -> Callable[[Test], Test]:
    CROSSED.update(names)
    return pytest.mark.clause("16")


# ------------------------------------------------------------------------------------ calls


@crosses("MAX_OPEN_CALLS")
def test_one_open_call_too_many_in_all_is_rejected() -> None:
    world = board_world({"call_id": "c1", "tool_id": "board.peek"})
    seed_calls(world, limits.MAX_OPEN_CALLS - 2, instance_id="ins_other")
    assert world.invoke("last", "board.peek").code is None
    assert world.view.open_call_count() == limits.MAX_OPEN_CALLS
    refused = world.invoke("over", "board.peek")
    assert (refused.code, refused.audit) == (Code.LIMIT_EXCEEDED, ["call.rejected"])
    assert world.view.open_call_count() == limits.MAX_OPEN_CALLS


@crosses("MAX_OPEN_CALLS_OF_INSTANCE")
def test_one_open_call_too_many_of_an_instance_is_rejected() -> None:
    world = board_world({"call_id": "c1", "tool_id": "board.peek"})
    seed_calls(world, limits.MAX_OPEN_CALLS_OF_INSTANCE - 2)
    assert world.invoke("last", "board.peek").code is None
    assert world.invoke("over", "board.peek").code is Code.LIMIT_EXCEEDED
    assert len(world.view.open_calls("ins_board")) == limits.MAX_OPEN_CALLS_OF_INSTANCE


@crosses("MAX_OPEN_CALLS_OF_INSTANCE")
def test_calls_accepted_together_before_there_was_an_instance_meet_its_limit_at_routing() -> None:
    world = World()
    world.boot()
    for number in range(limits.MAX_OPEN_CALLS_OF_INSTANCE + 1):
        assert world.only(AGENT, peek_of(world, f"c{number}")).code is None
    for call in world.view.unrouted_calls():
        world.say(KERNEL, RouteCall(number=call.number))
    assert len(world.view.open_calls(world.current("board").instance_id)) == limits.MAX_OPEN_CALLS_OF_INSTANCE
    last = world.call(f"c{limits.MAX_OPEN_CALLS_OF_INSTANCE}")
    assert (last.status, last.error_code) == (CallStatus.REJECTED, Code.LIMIT_EXCEEDED)


@crosses("MAX_ATTEMPTS")
def test_the_third_crash_with_a_call_ends_it() -> None:
    world = board_world({"call_id": "c1", "tool_id": "board.draw"})
    for crash in range(1, limits.MAX_ATTEMPTS + 1):
        world.die("ins_board")
        assert world.call("c1").attempts == crash
        if crash < limits.MAX_ATTEMPTS:
            assert world.call("c1").status is CallStatus.WAITING_FOR_APP
            world.start("ins_board")
            world.tell("ins_board", m.ToolAccept(call_id="c1"))
    assert (world.call("c1").status, world.call("c1").error_code) == (CallStatus.FAILED, Code.APP_CRASHED)
    assert world.instance("ins_board").state is InstanceState.STARTING


@crosses("DEFAULT_TIMEOUT_MS", "MAX_TIMEOUT_MS")
@pytest.mark.parametrize(
    ("tool_id", "expires_at", "allowed_ms"),
    [
        ("board.draw", None, limits.DEFAULT_TIMEOUT_MS),
        ("board.peek", None, 5_000),
        ("board.open", None, None),
        ("board.open", "2030-01-02T03:05:05Z", 60_000),
        ("board.open", "2030-01-09T03:04:05Z", limits.MAX_TIMEOUT_MS),
        ("board.draw", "2030-01-02T03:04:06.5Z", 1_500),
        ("board.draw", "2030-01-09T03:04:05Z", limits.DEFAULT_TIMEOUT_MS),
        ("board.draw", "2030-01-02T05:04:06+02:00", 1_000),
    ],
)
def test_the_earlier_of_both_clocks_wins_within_the_cap(tool_id: str, expires_at: str | None, allowed_ms: int | None) -> None:
    world = board_world()
    given = {"x": 1} if tool_id == "board.draw" else {}
    assert world.invoke("c1", tool_id, given, expires_at=expires_at).code is None
    deadline = world.call("c1").deadline
    assert (deadline.at_ms - world.boottime_ms if deadline else None) == allowed_ms


@crosses("CANCEL_GRACE_MS", "CANCEL_GRANTED_MS")
def test_a_cancel_has_its_grace_and_once_thirty_seconds_more() -> None:
    world = board_world({"call_id": "c1", "tool_id": "board.draw"})
    world.say(AGENT, ToolCancelAsked(envelope=None, call_id="c1"))
    world.pass_time(limits.CANCEL_GRACE_MS - 1)
    world.tell("ins_board", m.ToolCancelSeen(call_id="c1"))
    world.pass_time(limits.CANCEL_GRANTED_MS - 1)
    world.tell("ins_board", m.ToolCancelSeen(call_id="c1"))
    assert world.call("c1").status is CallStatus.RUNNING
    assert world.pass_time(1).processes == ["kill"]
    assert world.call("c1").status is CallStatus.CANCELLED


@crosses("DUE_CALLS_A_TURN")
def test_so_many_due_calls_end_in_one_turn_and_the_rest_in_the_next() -> None:
    world = board_world({"call_id": "c1", "tool_id": "board.draw"})
    seed_calls(world, limits.DUE_CALLS_A_TURN)
    assert world.pass_time(60_000).audit == ["call.expired"] * limits.DUE_CALLS_A_TURN
    deadline_ms = world.view.next_deadline_ms()
    assert deadline_ms is not None
    assert deadline_ms <= world.boottime_ms
    assert world.pass_time().audit == ["call.expired"]
    assert world.view.next_deadline_ms() is None


@crosses()
def test_a_fifth_report_within_a_second_is_refused_also_after_the_machine_started_anew() -> None:
    world = board_world({"call_id": "c1", "tool_id": "board.draw"})
    codes = [world.tell("ins_board", m.ToolProgress(call_id="c1", percent=1.0)).code for _ in range(wire.PROGRESS_PER_SECOND + 1)]
    assert codes == [None] * wire.PROGRESS_PER_SECOND + [Code.LIMIT_EXCEEDED]
    world.boot_id, world.boottime_ms = "boot-2", 500
    assert world.tell("ins_board", m.ToolProgress(call_id="c1", percent=2.0)).code is None


@crosses()
def test_an_input_or_result_or_message_too_big_or_too_deep_for_a_worker_is_refused() -> None:
    world = board_world({"call_id": "c1", "tool_id": "board.draw"})
    assert world.invoke("big", "board.draw", {"x": "x" * wire.MAX_BODY_BYTES}).code is Code.TOOL_INPUT_INVALID
    deep: Any = {}
    for _ in range(wire.MAX_BODY_DEPTH):
        deep = {"x": deep}
    assert world.invoke("deep", "board.draw", deep).code is Code.TOOL_INPUT_INVALID
    assert world.tell("ins_board", m.ToolComplete(call_id="c1", result={"ok": "x" * wire.MAX_BODY_BYTES})).code is Code.LIMIT_EXCEEDED
    assert message(world, "big", wire.MAX_BODY_BYTES).code is Code.LIMIT_EXCEEDED
    outer = envelope("deep", APP_MESSAGE, app_scope="board")
    assert world.say(AGENT, AppMessageReceived(envelope=outer, topic="board.note", body=deep)).code is Code.LIMIT_EXCEEDED
    assert world.rows(InboxRow) == []


@crosses()
def test_a_saved_state_is_at_most_so_big() -> None:
    world = board_world()
    assert world.tell("ins_board", m.StateSave(state={"a": "x" * (wire.MAX_STATE_BYTES - 6)})).code is None
    assert world.tell("ins_board", m.StateSave(state={"a": "x" * (wire.MAX_STATE_BYTES - 5)})).code is Code.LIMIT_EXCEEDED
    loaded = world.tell("ins_board", m.StateLoad()).value
    assert loaded is not None
    assert len(loaded["state"]["a"]) == wire.MAX_STATE_BYTES - 6


@crosses("MAX_OPEN_INTERACTIONS")
def test_one_question_to_the_person_too_many_is_refused_whoever_asks() -> None:
    confirm = {"title": "Send?", "prompt": "Send the report."}
    world = world_of({"instances": [{"app": "asker"}]})
    world.say(PERSON, PolicySet(name="standard-interaction:asker", allowed=True))
    own = UiRequest(request={"kind": "confirm"} | confirm)
    assert world.tell("ins_asker", own).code is None
    for number in range(limits.MAX_OPEN_INTERACTIONS - 2):  # accepted, and not opened yet
        command = replace(peek_of(world, f"c{number}"), tool_id="interaction.confirm", input=confirm)
        assert world.only(AGENT, command).code is None
    assert world.tell("ins_asker", own).code is None
    assert world.tell("ins_asker", own).code is Code.LIMIT_EXCEEDED
    refused = world.invoke("over", "interaction.confirm", confirm)
    assert (refused.code, refused.audit) == (Code.LIMIT_EXCEEDED, ["call.rejected"])
    for call in world.view.unrouted_calls():
        world.say(KERNEL, RouteCall(number=call.number))
    assert len(world.view.open_interactions()) == limits.MAX_OPEN_INTERACTIONS


# ------------------------------------------------------------------------------------ instances


@crosses("MAX_INSTANCES")
def test_a_call_for_one_instance_too_many_waits_and_the_person_is_refused() -> None:
    world = full_world()
    waiting = world.invoke("c1", "board.open")
    assert (waiting.code, waiting.audit, waiting.processes) == (None, ["call.received"], [])
    assert world.call("c1").status is CallStatus.ROUTING
    assert world.say(PERSON, AppOpen(app_scope="board")).code is Code.LIMIT_EXCEEDED
    assert world.invoke("c2", "notes00.open").processes == ["start"]  # one that is there needs no room
    assert world.close("ins_notes01").processes == ["start"]
    assert world.call("c1").status is CallStatus.WAITING_FOR_APP


@crosses("MAX_FOCUS_DEPTH", "STOP_DEADLINE_MS")
def test_the_oldest_falls_out_of_a_full_focus_stack_and_is_suspended_unless_it_is_at_work() -> None:
    names = [f"notes{number:02}" for number in range(limits.MAX_FOCUS_DEPTH + 2)]
    world = World(view=DictView(MANIFESTS | {name: renamed("notes", name) for name in names}))
    world.boot()
    ids = []
    for name in names[:-2]:
        world.invoke(name, f"{name}.open")
        ids.append(world.current(name).instance_id)
        world.start(ids[-1])
        if name != names[1]:
            world.tell(ids[-1], m.ToolFail(call_id=name, reason="done"))
    assert len(world.view.focus().instance_ids) == limits.MAX_FOCUS_DEPTH
    fallen = world.invoke("next", f"{names[-2]}.open")
    assert world.instance(ids[0]).state is InstanceState.SUSPENDED
    stops = [effect for effect in fallen.effects if isinstance(effect, StopWorker)]
    assert [(stop.instance_id, stop.reason, stop.deadline_ms) for stop in stops] == [(ids[0], "suspend", limits.STOP_DEADLINE_MS)]
    assert (ids[0], m.ContextChanged(state="suspended")) in fallen.sent
    world.invoke("another", f"{names[-1]}.open")
    assert world.instance(ids[1]).state is InstanceState.BACKGROUND  # it has an open call
    assert len(world.view.focus().instance_ids) == limits.MAX_FOCUS_DEPTH
    assert ids[1] not in world.view.focus().instance_ids


@crosses("MAX_CRASHES_IN_WINDOW", "CRASH_WINDOW_MS", "RESTART_DELAYS_MS")
def test_the_fourth_crash_in_a_minute_fails_the_instance_and_a_slower_one_does_not() -> None:
    for pause_ms, state in ((19_999, InstanceState.FAILED), (20_000, InstanceState.STARTING)):
        world = board_world()
        delays = []
        for _ in range(limits.MAX_CRASHES_IN_WINDOW):
            delays += [effect.delay_ms for effect in world.die("ins_board").effects if isinstance(effect, StartWorker)]
            world.wait(pause_ms)
        assert tuple(delays) == limits.RESTART_DELAYS_MS
        assert limits.CRASH_WINDOW_MS == 60_000
        world.die("ins_board")
        assert world.instance("ins_board").state is state


@crosses()
def test_crashes_before_the_machine_started_anew_do_not_count() -> None:
    world = board_world()
    for _ in range(limits.MAX_CRASHES_IN_WINDOW):
        world.die("ins_board")
    world.boot_id = "boot-2"
    world.die("ins_board")
    assert world.instance("ins_board").state is InstanceState.STARTING


@crosses("PERSON_ACT_WINDOW_MS")
def test_the_persons_act_counts_for_five_seconds_of_the_same_boot() -> None:
    for waited_ms, boot_id, code in ((0, "boot-1", None), (1, "boot-1", Code.LIFECYCLE_DENIED), (0, "boot-2", Code.LIFECYCLE_DENIED)):
        world = board_world()
        world.say(PERSON, h.FocusRaise(instance_id="ins_board"))
        world.say(PERSON, h.FocusRaise(instance_id="chat"))
        world.wait(limits.PERSON_ACT_WINDOW_MS + waited_ms)
        world.boot_id = boot_id
        assert world.tell("ins_board", m.LifecycleRequestForeground()).code is code


@crosses("IDLE_AFTER_MS")
def test_an_unused_app_in_the_background_is_suspended_after_so_long_and_not_before() -> None:
    world = world_of({"instances": [{"app": "board"}]})
    for instance_id in ("ins_board", "chat"):
        world.say(PERSON, h.FocusRaise(instance_id=instance_id))
    assert world.pass_time(limits.IDLE_AFTER_MS - 1).processes == []
    assert world.pass_time(1).processes == ["stop"]
    assert world.instance("ins_board").state is InstanceState.SUSPENDED


def test_every_limit_is_crossed_by_a_test() -> None:
    names = {name for name in vars(limits) if name.isupper()}
    assert names == CROSSED | CROSSED_AT_THE_BORDER | set(CROSSED_BESIDE)
    assert all(name in Path(__file__).with_name(file).read_text("utf-8") for name, file in CROSSED_BESIDE.items())
