"""App sessions: opened, closed, gone on with, started empty (SPEC 8.4)."""

from __future__ import annotations

import pytest

from kernel.core.events import Death
from kernel.core.machines import InstanceState
from kernel.core.records import AppSession, SavedState, TimelineMessage, decode_body
from kernel.protocol import host as h
from kernel.protocol.agent import MESSAGE_TEXT, TextReceived
from kernel.protocol.host_sessions import AppOpen, AppStartEmpty, SessionsContinue
from kernel.protocol.host_surfaces import SurfaceMount, SurfacePatch
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol import surface_messages as s
from lineup_sdk.protocol.codes import Code
from tests.core.promises import broken
from tests.core.system_app import chat_of, states, world_with_chat
from tests.core.world import AGENT, PERSON, World, envelope


def opened(world: World, app: str) -> str:
    value = world.say(PERSON, AppOpen(app_scope=app)).value
    assert value is not None
    instance_id = str(value["instance_id"])
    world.start(instance_id)
    return instance_id


def closed(world: World, instance_id: str) -> str:
    world.close(instance_id)
    world.die(instance_id, Death.KILLED)
    return world.instance(instance_id).app_session_id


def session(world: World, app_session_id: str) -> AppSession:
    found = world.view.sessions.by_id(app_session_id)
    assert found is not None
    return found


@pytest.mark.clause("8.4")
def test_a_session_holds_what_both_sides_said_while_its_app_was_in_front_and_chat_holds_none() -> None:
    world = world_with_chat()
    world.say(PERSON, h.MessageSend(text="before"))
    board = opened(world, "board")
    world.say(PERSON, h.MessageSend(text="to the board"))
    world.say(AGENT, TextReceived(envelope=envelope("m1", MESSAGE_TEXT), text="I see it"))
    world.say(PERSON, h.FocusRaise(instance_id="chat"))
    world.say(PERSON, h.MessageSend(text="after"))
    mine = world.instance(board).app_session_id
    said = {decode_body(entry.body_cbor)["text"]: entry.app_session_id for entry in world.rows(TimelineMessage)}
    assert said == {"before": None, "to the board": mine, "I see it": mine, "after": None}


@pytest.mark.clause("8.4")
def test_a_closed_session_is_history_that_nothing_is_written_to() -> None:
    world = world_with_chat()
    board = opened(world, "board")
    world.tell(board, m.StateSave(state={"kept": 1}))
    app_session_id = closed(world, board)
    before = (session(world, app_session_id), world.view.saved_state(app_session_id))
    assert world.tell(board, m.StateSave(state={"late": 1})).code is Code.APP_INSTANCE_NOT_FOUND
    world.say(PERSON, h.MessageSend(text="after the end"))
    other = opened(world, "board")
    world.tell(other, m.StateSave(state={"new": 1}))
    assert (session(world, app_session_id), world.view.saved_state(app_session_id)) == before
    assert [entry.app_session_id for entry in world.rows(TimelineMessage)] == [None]


@pytest.mark.clause("8.4")
def test_going_on_opens_a_new_session_linked_to_the_old_with_a_copy_of_what_it_remembered() -> None:
    world = world_with_chat()
    board = opened(world, "board")
    world.tell(board, m.StateSave(state={"kept": 1}))
    old = closed(world, board)
    done = world.say(PERSON, SessionsContinue(app_session_id=old))
    assert (done.code, done.processes) == (None, ["start"])
    assert done.audit == ["session.continued", "instance.created", "focus.raised"]
    assert done.value is not None
    new = session(world, done.value["app_session_id"])
    assert (new.continues, new.closed_at, new.app_session_id != old) == (old, None, True)
    world.start(done.value["instance_id"])
    assert world.tell(done.value["instance_id"], m.StateLoad()).value == {"state": {"kept": 1}}
    world.tell(done.value["instance_id"], m.StateSave(state={"kept": 2}))
    assert [decode_body(one.state_cbor) for one in world.rows(SavedState)] == [{"kept": 1}, {"kept": 2}]
    assert session(world, old).closed_at is not None
    assert states(world)["board"] is InstanceState.FOREGROUND


@pytest.mark.clause("8.4")
def test_an_open_session_is_gone_on_with_by_opening_its_app_and_another_is_refused_meanwhile() -> None:
    world = world_with_chat()
    old = closed(world, opened(world, "board"))
    board = opened(world, "board")
    world.say(PERSON, h.FocusRaise(instance_id="chat"))
    mine = world.instance(board).app_session_id
    assert world.say(PERSON, SessionsContinue(app_session_id=old)).code is Code.LIFECYCLE_DENIED
    assert world.say(PERSON, SessionsContinue(app_session_id=mine)).value == {"instance_id": board, "app_session_id": mine}
    assert states(world)["board"] is InstanceState.FOREGROUND
    for unknown in ("ses_e1_nobody", world.instance(chat_of(world).instance_id).app_session_id):
        assert world.say(PERSON, SessionsContinue(app_session_id=unknown)).code is Code.APP_INSTANCE_NOT_FOUND


@pytest.mark.clause("8.4")
def test_after_a_failure_the_app_opens_with_what_it_remembered_or_empty() -> None:
    for is_empty in (False, True):
        world = world_with_chat()
        board = opened(world, "board")
        world.tell(board, m.StateSave(state={"kept": 1}))
        assert world.say(PERSON, AppStartEmpty(app_scope="board")).code is Code.LIFECYCLE_DENIED  # it lives
        world.die(board, Death.VIOLATION)
        left = world.instance(board).app_session_id
        command = AppStartEmpty(app_scope="board") if is_empty else AppOpen(app_scope="board")
        done = world.say(PERSON, command)
        assert done.value is not None
        again = done.value["instance_id"]
        world.start(again)
        assert world.tell(again, m.StateLoad()).value == {"state": None if is_empty else {"kept": 1}}
        assert (world.instance(again).app_session_id == left) is not is_empty
        assert (session(world, left).closed_at is not None) is is_empty
        assert broken(world.view) == []
        if is_empty:  # what was left can be gone on with later
            closed(world, again)
            assert world.say(PERSON, SessionsContinue(app_session_id=left)).code is None


@pytest.mark.clause("8.4")
def test_what_cannot_be_opened_is_refused_with_its_reason_and_leaves_nothing() -> None:
    world = world_with_chat()
    board = opened(world, "board")
    world.say(PERSON, h.AppClose(instance_id=board))
    world.say(PERSON, h.AppDisable(name="notes"))
    before = world.view.copy()
    refused = {
        "board": Code.LIFECYCLE_DENIED,  # its process is still closing
        "notes": Code.APP_DISABLED,
        "nothing": Code.APP_INSTANCE_NOT_FOUND,
        "runtime": Code.APP_INSTANCE_NOT_FOUND,
        "interaction": Code.APP_INSTANCE_NOT_FOUND,
    }
    for scope, code in refused.items():
        assert world.say(PERSON, AppOpen(app_scope=scope)).code is code
        assert world.say(PERSON, AppStartEmpty(app_scope=scope)).code is code
    assert world.view.tables == before.tables


@pytest.mark.clause("8.4")
def test_opening_chat_is_going_to_it() -> None:
    world = world_with_chat()
    opened(world, "board")
    assert world.say(PERSON, AppOpen(app_scope="chat")).value == {"instance_id": chat_of(world).instance_id}
    assert states(world) == {"chat": InstanceState.FOREGROUND, "board": InstanceState.BACKGROUND}
    assert world.say(PERSON, AppStartEmpty(app_scope="chat")).code is Code.LIFECYCLE_DENIED


@pytest.mark.clause("8.4")
def test_going_on_brings_a_copy_of_the_surface_which_its_app_opens_and_the_old_one_stays_as_it_was() -> None:
    world = world_with_chat()
    board = opened(world, "board")
    world.tell(board, s.SurfaceOpen())
    world.tell(board, s.SurfaceUpdate(base_version=0, patch={"title": "Plan", "strokes": {"a": 1}}))
    old = world.view.surfaces.of_session(closed(world, board))
    assert old is not None
    kept = world.view.surfaces.state(old.number)
    value = world.say(PERSON, SessionsContinue(app_session_id=old.app_session_id)).value
    assert value is not None
    again = value["instance_id"]
    world.start(again)
    assert world.tell(again, s.SurfaceOpen()).value == {"version": old.version}
    copied = world.view.surfaces.of_session(value["app_session_id"])
    assert copied is not None
    assert (copied.surface_id != old.surface_id, copied.closed_at) == (True, None)
    assert world.view.surfaces.state(copied.number) == kept
    assert world.tell(again, s.SurfaceUpdate(base_version=old.version, patch={"title": "New"})).code is None
    assert world.view.surfaces.state(old.number) == kept
    assert world.view.surfaces.by_id(old.surface_id) == old


@pytest.mark.clause("8.4")
def test_starting_empty_closes_the_surface_of_the_session_that_is_left() -> None:
    world = world_with_chat()
    board = opened(world, "board")
    world.tell(board, s.SurfaceOpen())
    world.die(board, Death.VIOLATION)
    value = world.say(PERSON, AppStartEmpty(app_scope="board")).value
    assert value is not None
    left = world.view.surfaces.of_session(world.instance(board).app_session_id)
    assert left is not None
    assert left.closed_at is not None
    world.start(value["instance_id"])
    assert world.tell(value["instance_id"], s.SurfaceOpen()).value == {"version": 0}


@pytest.mark.clause("6.9")
@pytest.mark.clause("8.2")
def test_what_the_person_does_in_a_surface_is_a_touch_of_its_app() -> None:
    world = world_with_chat()
    opened(world, "notes")
    board = world.running("c1", "board.open")
    world.tell(board, s.SurfaceOpen())
    surface = world.view.surfaces.of_session(world.instance(board).app_session_id)
    assert surface is not None
    mounted = world.say(PERSON, SurfaceMount(surface_id=surface.surface_id)).value
    assert mounted is not None
    patch = SurfacePatch(surface_id=surface.surface_id, mount_epoch=mounted["mount_epoch"], base_version=0, patch={"a": 1})
    assert world.say(PERSON, patch).code is None
    world.tell(board, m.ToolComplete(call_id="c1", result={"ok": True}))
    assert states(world)["board"] is InstanceState.FOREGROUND  # the call raised it, and the person has touched it since
    world.say(PERSON, h.FocusRaise(instance_id="chat"))
    assert world.tell(board, m.LifecycleRequestForeground()).code is None
