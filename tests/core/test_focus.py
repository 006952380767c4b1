"""Who is in front, who rests, and who comes back (SPEC 8.2, 8.3)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kernel.core.decision import StartWorker
from kernel.core.events import Death, MemoryRanShort
from kernel.core.limits import PERSON_ACT_WINDOW_MS
from kernel.core.machines import CallStatus, InstanceState
from kernel.protocol import host as h
from kernel.protocol.host_sessions import AppOpen, ModeRequest
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol import system_messages as y
from lineup_sdk.protocol.codes import Code
from tests.core.promises import broken
from tests.core.system_app import chat_of, idle, opened, states, world_with_chat
from tests.core.world import KERNEL, PERSON, World

STARTING, FOREGROUND, BACKGROUND, SUSPENDED = (
    InstanceState.STARTING,
    InstanceState.FOREGROUND,
    InstanceState.BACKGROUND,
    InstanceState.SUSPENDED,
)


# ------------------------------------------------------------------------------------ chat


@pytest.mark.clause("8.2")
def test_chat_is_there_from_the_first_start_and_in_front_whenever_nothing_stands_above_it() -> None:
    world = world_with_chat()
    assert states(world) == {"chat": FOREGROUND}
    opened(world, "board")
    assert states(world) == {"chat": BACKGROUND, "board": FOREGROUND}
    assert world.view.focus().instance_ids == (world.current("board").instance_id,)
    world.tell(world.current("board").instance_id, m.LifecycleRequestBackground())
    assert states(world) == {"chat": FOREGROUND, "board": BACKGROUND}
    opened(world, "board")
    world.say(PERSON, h.FocusRaise(instance_id="chat"))
    assert states(world) == {"chat": FOREGROUND, "board": BACKGROUND}
    opened(world, "board")
    world.say(PERSON, h.FocusRaise(instance_id=chat_of(world).instance_id))
    assert states(world) == {"chat": FOREGROUND, "board": BACKGROUND}


@pytest.mark.clause("8.2")
def test_chat_is_closed_by_nobody_and_never_suspended() -> None:
    world = world_with_chat()
    chat = chat_of(world).instance_id
    assert world.tell(chat, m.LifecycleRequestClose()).code is Code.LIFECYCLE_DENIED
    assert world.close(chat).code is Code.LIFECYCLE_DENIED
    assert world.say(PERSON, h.AppDisable(name="chat")).code is Code.LIFECYCLE_DENIED
    opened(world, "board")
    assert idle(world) == []
    world.say(KERNEL, MemoryRanShort())
    assert states(world) == {"chat": BACKGROUND, "board": FOREGROUND}


@pytest.mark.clause("8.3")
def test_chat_crashes_and_fails_like_any_other_and_everything_goes_on_without_it() -> None:
    world = world_with_chat()
    first = chat_of(world).instance_id
    for delay_ms in (0, 1_000, 2_000):
        restarted = [effect for effect in world.die(first).effects if isinstance(effect, StartWorker)]
        assert [effect.delay_ms for effect in restarted] == [delay_ms]
        world.start(first)
        assert chat_of(world).state is FOREGROUND
    world.die(first)
    assert world.instance(first).state is InstanceState.FAILED
    opened(world, "board")
    assert world.say(PERSON, h.MessageSend(text="is anybody there?")).code is None
    call = world.running("c1", "board.peek")
    assert world.tell(call, m.ToolComplete(call_id="c1", result={"ok": True})).code is None
    assert broken(world.view) == []
    world.say(PERSON, h.FocusRaise(instance_id="chat"))
    second = chat_of(world)
    assert second.instance_id != first
    assert second.app_session_id == world.instance(first).app_session_id
    world.start(second.instance_id)
    assert states(world) == {"chat": FOREGROUND, "board": BACKGROUND}


@pytest.mark.clause("8.3")
def test_a_start_brings_chat_back_whatever_is_in_front_and_makes_it_anew_when_it_failed() -> None:
    world = world_with_chat()
    opened(world, "board")
    started = [world.instance(effect.instance_id).app_scope for effect in world.boot().effects if isinstance(effect, StartWorker)]
    assert sorted(started) == ["board", "chat"]
    world.die(chat_of(world).instance_id, Death.VIOLATION)
    assert world.view.current_instance("chat") is None
    world.boot()
    assert chat_of(world).state is STARTING


@pytest.mark.clause("3")
@pytest.mark.parametrize("mode", ["audio", "video"])
def test_the_conversation_has_no_mode_but_im(mode: str) -> None:
    world = world_with_chat()
    chat = chat_of(world).instance_id
    assert world.tell(chat, y.LifecycleRequestMode(mode=mode)).code is Code.MODE_UNAVAILABLE
    assert world.say(PERSON, ModeRequest(mode=mode)).code is Code.MODE_UNAVAILABLE
    assert world.tell(chat, y.LifecycleRequestMode(mode="im")).code is None
    opened(world, "board")
    assert world.tell(world.current("board").instance_id, y.LifecycleRequestMode(mode="im")).code is Code.CAPABILITY_DENIED


# ------------------------------------------------------------------------------------ acts of the person, waiting calls


@pytest.mark.clause("8.2")
def test_from_the_background_an_app_comes_forward_only_within_5_s_of_the_persons_act_on_it() -> None:
    for wait_ms, code in ((PERSON_ACT_WINDOW_MS, None), (PERSON_ACT_WINDOW_MS + 1, Code.LIFECYCLE_DENIED)):
        world = world_with_chat()
        opened(world, "board", "notes")
        world.wait(wait_ms)
        world.say(PERSON, h.FocusRaise(instance_id="chat"))
        assert world.tell(world.current("board").instance_id, m.LifecycleRequestForeground()).code is code
        assert world.tell(chat_of(world).instance_id, m.LifecycleRequestForeground()).code is None


@pytest.mark.clause("8.2")
def test_chat_itself_comes_forward_only_after_the_persons_act_on_it() -> None:
    world = world_with_chat()
    chat = chat_of(world).instance_id
    opened(world, "board")
    assert world.tell(chat, m.LifecycleRequestForeground()).code is Code.LIFECYCLE_DENIED
    world.say(PERSON, h.FocusRaise(instance_id="chat"))
    opened(world, "board")
    assert world.tell(chat, m.LifecycleRequestForeground()).code is None
    assert states(world) == {"chat": FOREGROUND, "board": BACKGROUND}


@pytest.mark.clause("8.2")
def test_an_act_before_a_start_of_the_machine_is_none() -> None:
    world = world_with_chat()
    opened(world, "board")
    world.say(PERSON, h.FocusRaise(instance_id="chat"))
    world.boot_id = "boot-2"
    assert world.tell(world.current("board").instance_id, m.LifecycleRequestForeground()).code is Code.LIFECYCLE_DENIED


def by_raise(world: World, board: str) -> None:
    world.say(PERSON, h.FocusRaise(instance_id=board))


def by_open(world: World, board: str) -> None:
    world.say(PERSON, AppOpen(app_scope="board"))


def by_another_call(world: World, board: str) -> None:
    world.invoke("c2", "board.show")


def by_close_above(world: World, board: str) -> None:
    world.say(PERSON, h.AppClose(instance_id=world.current("notes").instance_id))


def by_failure_above(world: World, board: str) -> None:
    world.die(world.current("notes").instance_id, Death.VIOLATION)


def by_background_above(world: World, board: str) -> None:
    world.tell(world.current("notes").instance_id, m.LifecycleRequestBackground())


def by_own_request(world: World, board: str) -> None:
    by_raise(world, board)
    opened(world, "notes")
    world.tell(board, m.LifecycleRequestForeground())


def by_restart(world: World, board: str) -> None:
    by_raise(world, board)
    world.boot()
    world.start(board)


PATHS = [by_raise, by_open, by_another_call, by_close_above, by_failure_above, by_background_above, by_own_request, by_restart]


@pytest.mark.clause("6.9")
@pytest.mark.parametrize("path", PATHS)
def test_a_call_that_needs_the_front_is_delivered_when_its_app_comes_there_by_any_path(path: Callable[[World, str], None]) -> None:
    world = world_with_chat()
    opened(world, "notes", "board", "notes")  # the board right below
    board = world.current("board").instance_id
    world.die(board)  # not yet up again when the call comes
    assert world.invoke("c1", "board.present").code is None
    opened(world, "notes")  # the person moves away before the delivery
    world.start(board)
    assert world.call("c1").delivered_life is None
    path(world, board)
    assert world.call("c1").delivered_life == world.instance(board).life


@pytest.mark.clause("6.8")
@pytest.mark.clause("6.9")
@pytest.mark.parametrize("is_kernel", [False, True])
def test_a_call_that_was_at_work_behind_is_delivered_again_behind(is_kernel: bool) -> None:
    world = world_with_chat()
    opened(world, "board")
    board = world.current("board").instance_id
    world.running("c1", "board.present")
    opened(world, "notes")  # the person moves away while it works
    if is_kernel:
        world.boot()
    else:
        world.die(board)
    assert world.call("c1").status is CallStatus.WAITING_FOR_APP
    world.start(board)
    assert world.instance(board).state is BACKGROUND
    assert world.call("c1").delivered_life == world.instance(board).life


@pytest.mark.clause("6.9")
@pytest.mark.parametrize("touch", [by_raise, by_open])
def test_a_call_gives_the_front_back_at_its_end_unless_the_person_touched_its_app(touch: Callable[[World, str], None]) -> None:
    for is_touched in (False, True):
        world = world_with_chat()
        opened(world, "board", "notes")
        board = world.running("c1", "board.open")
        if is_touched:
            touch(world, board)
        world.tell(board, m.ToolComplete(call_id="c1", result={"ok": True}))
        assert states(world)["notes"] is (BACKGROUND if is_touched else FOREGROUND)
