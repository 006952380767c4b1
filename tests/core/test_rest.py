"""Who rests, when, and how it comes back; and the same with many Apps, long times and deaths in between (SPEC 8.1-8.3)."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta

import pytest

from kernel.core.decision import ArmDeadline, SendToWorker, StopWorker
from kernel.core.events import Death, MemoryRanShort
from kernel.core.limits import IDLE_AFTER_MS, MAX_FOCUS_DEPTH, MAX_INSTANCES, PERSON_ACT_WINDOW_MS, STOP_DEADLINE_MS
from kernel.core.machines import InstanceState
from kernel.core.records import Instance, ToolCall
from kernel.protocol import host as h
from kernel.protocol.agent import APP_MESSAGE, AppMessageReceived
from kernel.protocol.host_sessions import AppOpen
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol.codes import Code
from tests.core.dict_view import manifest_of, renamed
from tests.core.promises import broken, broken_between
from tests.core.system_app import CHAT, WITH_CHAT, chat_of, idle, opened, states, world_with_chat
from tests.core.world import AGENT, KERNEL, PERSON, World, envelope

STARTING, FOREGROUND, BACKGROUND, SUSPENDED = (
    InstanceState.STARTING,
    InstanceState.FOREGROUND,
    InstanceState.BACKGROUND,
    InstanceState.SUSPENDED,
)


# ------------------------------------------------------------------------------------ idle, memory, depth


@pytest.mark.clause("8.3")
def test_an_idle_app_is_told_then_stopped_and_comes_back_with_what_it_saved() -> None:
    world = world_with_chat()
    opened(world, "board", "notes")
    board = world.current("board").instance_id
    suspended = world.pass_time(IDLE_AFTER_MS)
    assert [message.state for _, message in suspended.sent if isinstance(message, m.ContextChanged)] == ["suspended"]
    kinds = [type(effect) for effect in suspended.effects if isinstance(effect, SendToWorker | StopWorker)]
    assert kinds == [SendToWorker, StopWorker]  # told before its process ends
    assert states(world) == {"chat": BACKGROUND, "board": SUSPENDED, "notes": FOREGROUND}
    assert world.tell(board, m.StateSave(state={"kept": 1})).code is None  # its last words
    world.die(board, Death.KILLED)
    opened(world, "board")
    assert world.instance(board).life == 2
    assert world.tell(board, m.StateLoad()).value == {"state": {"kept": 1}}
    assert states(world) == {"chat": BACKGROUND, "board": FOREGROUND, "notes": BACKGROUND}


@pytest.mark.clause("8.3")
def test_an_app_with_an_open_call_is_never_idle_and_its_time_begins_when_the_call_ends() -> None:
    world = world_with_chat()
    board = world.running("c1", "board.open")
    world.say(PERSON, h.FocusRaise(instance_id="chat"))
    assert idle(world) == []
    ended = world.tell(board, m.ToolComplete(call_id="c1", result={"ok": True}))
    assert [effect.at_ms for effect in ended.effects if isinstance(effect, ArmDeadline)] == [world.boottime_ms + IDLE_AFTER_MS]
    world.pass_time(IDLE_AFTER_MS - 1)
    assert world.instance(board).state is BACKGROUND
    world.pass_time(1)
    assert world.instance(board).state is SUSPENDED


@pytest.mark.clause("8.3")
def test_each_look_wakes_the_kernel_for_the_next_one_that_would_be_idle() -> None:
    world = world_with_chat()
    opened(world, "board")
    world.wait(60_000)
    opened(world, "notes")
    world.say(PERSON, h.FocusRaise(instance_id="chat"))  # both rest from now on, the board since a minute
    looked = world.pass_time(IDLE_AFTER_MS - 60_000)
    assert states(world)["board"] is SUSPENDED or states(world)["board"] is BACKGROUND
    armed = [effect.at_ms for effect in looked.effects if isinstance(effect, ArmDeadline)]
    while armed:
        world.wait(min(armed) - world.boottime_ms)
        armed = [effect.at_ms for effect in world.pass_time().effects if isinstance(effect, ArmDeadline)]
    assert states(world) == {"chat": FOREGROUND, "board": SUSPENDED, "notes": SUSPENDED}


@pytest.mark.clause("8.3")
def test_what_an_app_does_for_itself_keeps_it_not_awake_and_a_message_does() -> None:
    world = world_with_chat()
    opened(world, "board")
    board = world.current("board").instance_id
    world.say(PERSON, h.FocusRaise(instance_id="chat"))
    world.wait(IDLE_AFTER_MS - 1)
    world.tell(board, m.StateSave(state={"busy": True}))
    assert world.pass_time(1).processes == ["stop"]
    world.die(board, Death.KILLED)

    world.say(AGENT, AppMessageReceived(envelope=envelope("m1", APP_MESSAGE, app_scope="board"), topic="board.note", body={}))
    world.start(board)
    world.wait(IDLE_AFTER_MS - 1)
    world.tell(board, m.InboxAcknowledge(message_id="m1"))
    assert world.pass_time(1).processes == []
    assert world.pass_time(IDLE_AFTER_MS).processes == ["stop"]


@pytest.mark.clause("8.1")
def test_short_memory_takes_the_process_of_the_app_that_was_unused_for_longest_one_at_a_time() -> None:
    world = world_with_chat()
    opened(world, "board")
    world.wait(1)
    opened(world, "notes")
    world.wait(1)
    world.say(PERSON, h.FocusRaise(instance_id="chat"))
    world.wait(1)
    world.say(AGENT, AppMessageReceived(envelope=envelope("m1", APP_MESSAGE, app_scope="board"), topic="board.note", body={}))
    world.tell(world.current("board").instance_id, m.InboxAcknowledge(message_id="m1"))
    world.say(KERNEL, MemoryRanShort())
    assert states(world) == {"chat": FOREGROUND, "board": BACKGROUND, "notes": SUSPENDED}
    world.running("c1", "board.peek")
    world.say(KERNEL, MemoryRanShort())
    assert states(world)["board"] is BACKGROUND


@pytest.mark.clause("8.2")
@pytest.mark.invariant("37")
def test_what_falls_out_of_a_stack_of_32_is_suspended_unless_it_has_an_open_call() -> None:
    apps = [f"app{number}" for number in range(MAX_FOCUS_DEPTH + 2)]
    world = world_with_chat(WITH_CHAT | {app: renamed("board", app) for app in apps})
    busy = world.running("c1", "app1.peek")
    opened(world, *apps)
    assert len(world.view.focus().instance_ids) == MAX_FOCUS_DEPTH
    assert world.current("app0").state is SUSPENDED
    assert world.instance(busy).state is BACKGROUND
    assert world.current(apps[-1]).state is FOREGROUND
    assert broken(world.view) == []


# ------------------------------------------------------------------------------------ a life that is still finishing


def finishing() -> tuple[World, str]:
    """The board is suspended and its process has not ended yet."""
    world = world_with_chat()
    opened(world, "board")
    world.say(PERSON, h.FocusRaise(instance_id="chat"))
    assert idle(world) == ["board"]
    return world, world.current("board").instance_id


def call(world: World) -> None:
    world.invoke("c1", "board.peek")


def message(world: World) -> None:
    world.say(AGENT, AppMessageReceived(envelope=envelope("m1", APP_MESSAGE, app_scope="board"), topic="board.note", body={}))


def open_it(world: World) -> None:
    world.say(PERSON, AppOpen(app_scope="board"))


def raise_it(world: World) -> None:
    world.say(PERSON, h.FocusRaise(instance_id=world.current("board").instance_id))


@pytest.mark.clause("8.3")
@pytest.mark.parametrize("want", [call, message, open_it, raise_it])
def test_whoever_wants_a_suspended_app_waits_for_the_last_words_of_its_process(want: Callable[[World], None]) -> None:
    world, board = finishing()
    before = world.view.copy()
    want(world)
    assert (world.instance(board).state, world.instance(board).life) == (SUSPENDED, 1)
    assert broken(world.view) == []
    assert broken_between(before, world.view) == []
    assert world.tell(board, m.StateSave(state={"last": "words"})).code is None
    assert world.die(board, Death.KILLED).processes == ["start"]
    world.start(board)
    assert world.tell(board, m.StateLoad()).value == {"state": {"last": "words"}}
    assert world.instance(board).state in {FOREGROUND, BACKGROUND}


@pytest.mark.clause("8.3")
def test_a_suspended_app_that_nobody_wants_stays_suspended_and_its_exit_is_no_crash() -> None:
    for death in Death:
        world, board = finishing()
        assert world.die(board, death).processes == []
        assert (world.instance(board).state, world.instance(board).crashes_ms) == (SUSPENDED, ())
        assert world.die(board, death).puts == []


@pytest.mark.clause("8.3")
@pytest.mark.invariant("36")
def test_a_start_knows_that_no_process_finishes_any_more() -> None:
    world, board = finishing()
    call(world)
    world.boot()
    assert (world.instance(board).state, world.instance(board).is_ending) == (STARTING, False)
    world, board = finishing()
    world.boot()
    assert (world.instance(board).state, world.instance(board).is_ending) == (SUSPENDED, False)
    assert world.say(PERSON, AppOpen(app_scope="board")).processes == ["start"]


@pytest.mark.clause("8.1")
def test_a_suspended_app_is_closed_at_once_though_its_process_still_finishes() -> None:
    world, board = finishing()
    assert world.say(PERSON, h.AppClose(instance_id=board)).code is None
    assert world.instance(board).state is InstanceState.STOPPED
    assert world.die(board, Death.KILLED).puts == []
    open_it(world)
    assert world.current("board").instance_id != board


# ------------------------------------------------------------------------------------ many, long, and cut off


@pytest.mark.clause("16")
def test_a_thousand_opens_leave_everything_bounded_and_every_refusal_said() -> None:
    apps = [f"app{number}" for number in range(MAX_INSTANCES + 6)]
    world = world_with_chat(WITH_CHAT | {app: renamed("notes", app) for app in apps})
    dice = random.Random(8)
    refused = 0
    for number in range(1_000):
        app = dice.choice(apps)
        outcome = world.say(PERSON, AppOpen(app_scope=app))
        assert outcome.code in {None, Code.LIMIT_EXCEEDED}
        refused += outcome.code is not None
        if outcome.code is None and world.current(app).state is STARTING:
            world.start(world.current(app).instance_id)
        if number % 40 == 0 and outcome.code is None:
            world.say(PERSON, h.AppClose(instance_id=world.current(app).instance_id))
            for one in world.view.current_instances():
                if one.state is InstanceState.STOPPING or one.is_ending:
                    world.die(one.instance_id, Death.KILLED)
        if number % 50 == 0:
            assert broken(world.view) == []
    assert refused > 0
    assert len(world.view.current_instances()) <= MAX_INSTANCES + 1  # chat has a place of its own
    assert len(world.view.focus().instance_ids) <= MAX_FOCUS_DEPTH
    assert chat_of(world).state is BACKGROUND


@pytest.mark.clause("16")
def test_chat_has_a_place_of_its_own_beside_the_64() -> None:
    apps = [f"app{number}" for number in range(MAX_INSTANCES)]
    world = world_with_chat(WITH_CHAT | {app: renamed("notes", app) for app in apps})
    opened(world, *apps)
    assert world.say(PERSON, AppOpen(app_scope="board")).code is Code.LIMIT_EXCEEDED
    world.die(chat_of(world).instance_id, Death.VIOLATION)
    world.say(PERSON, h.FocusRaise(instance_id="chat"))
    assert chat_of(world).state is STARTING


@pytest.mark.clause("6.6")
@pytest.mark.invariant("19")
@pytest.mark.parametrize("hours", [1, -1])
def test_a_jump_of_the_wall_clock_suspends_nobody_ends_nothing_and_grants_nothing(hours: int) -> None:
    world = world_with_chat()
    opened(world, "board", "notes")
    world.running("c1", "board.draw", {"x": 1})
    world.wait(PERSON_ACT_WINDOW_MS + 1)
    world.now += timedelta(hours=hours)
    assert world.pass_time().processes == []
    assert world.call("c1").error_code is None
    assert world.tell(world.current("board").instance_id, m.LifecycleRequestForeground()).code is Code.LIFECYCLE_DENIED


@pytest.mark.clause("8.3")
def test_ten_hours_of_sleep_suspend_the_idle_once_and_leave_the_front_and_the_open_calls() -> None:
    world = world_with_chat(WITH_CHAT | {"other": renamed("board", "other")})
    opened(world, "notes", "other", "board")
    other = world.running("c1", "other.open")  # launch: it has no clock, and comes to the front
    opened(world, "board")
    slept = world.pass_time(10 * 3_600_000)
    assert [world.instance(effect.instance_id).app_scope for effect in slept.effects if isinstance(effect, StopWorker)] == ["notes"]
    assert world.pass_time().processes == []
    assert states(world) == {"chat": BACKGROUND, "notes": SUSPENDED, "other": BACKGROUND, "board": FOREGROUND}
    assert world.instance(other).is_ending is False
    assert world.call("c1").error_code is None
    assert STOP_DEADLINE_MS < IDLE_AFTER_MS


def close_board(world: World) -> tuple[object, object]:
    return PERSON, h.AppClose(instance_id=world.current("board").instance_id)


def raise_notes(world: World) -> tuple[object, object]:
    return PERSON, h.FocusRaise(instance_id=world.current("notes").instance_id)


def go_to_chat(world: World) -> tuple[object, object]:
    return PERSON, h.FocusRaise(instance_id="chat")


def open_frame(world: World) -> tuple[object, object]:
    return PERSON, AppOpen(app_scope="frame")


def ask_background(world: World) -> tuple[object, object]:
    board = world.current("board").instance_id
    return world.worker(board), m.LifecycleRequestBackground()


def switch_board_off(world: World) -> tuple[object, object]:
    return PERSON, h.AppDisable(name="board")


CHANGES = [close_board, raise_notes, go_to_chat, open_frame, ask_background, switch_board_off]


@pytest.mark.clause("12")
@pytest.mark.invariant("37")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("victim", ["kernel", "chat", "board", "notes"])
@pytest.mark.parametrize("is_before", [True, False])
def test_a_crash_around_each_change_of_focus_leaves_one_in_front_and_loses_nothing(
    change: Callable[[World], tuple[object, object]], victim: str, is_before: bool
) -> None:
    world = world_with_chat(WITH_CHAT | {"frame": manifest_of("notes") if "frame" not in WITH_CHAT else WITH_CHAT["frame"]})
    opened(world, "notes", "board")
    world.running("c1", "notes.add")

    def crash() -> None:
        if victim == "kernel":
            world.boot()
        elif (found := world.view.current_instance(victim)) is not None and found.state is not SUSPENDED:
            world.die(found.instance_id)

    seen = world.view.copy()
    if is_before:
        crash()
    origin, command = change(world)
    world.only(origin, command)  # what follows from it is not done any more when the kernel dies
    crash()
    for _ in range(2):
        for one in world.view.current_instances():
            if one.state is InstanceState.STOPPING or one.is_ending:
                world.die(one.instance_id, Death.KILLED)
            elif one.state is STARTING:
                world.start(one.instance_id)
    assert broken(world.view) == []
    assert broken_between(seen, world.view) == []
    front = [one for one in world.rows(Instance) if one.state is FOREGROUND]
    assert len(front) == 1
    assert world.call("c1").error_code is None or change is switch_board_off
    assert len(world.rows(ToolCall)) == 1
    assert chat_of(world).app_version == CHAT.version
