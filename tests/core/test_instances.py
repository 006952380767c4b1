"""Instances, their lives and sessions, and who is in front."""

from __future__ import annotations

import pytest

from kernel.core.decision import StartWorker
from kernel.core.events import Death, WorkerExited
from kernel.core.machines import InboxState, InstanceState
from kernel.core.records import AppSession, InboxRow, Instance
from kernel.protocol import host as h
from kernel.protocol.host_sessions import AppOpen
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol.codes import Code
from tests.core.dict_view import MANIFESTS, manifest_of
from tests.core.stories import world_of
from tests.core.world import KERNEL, PERSON, World


def opened() -> tuple[World, str]:
    world = World()
    world.boot()
    return world, world.running("c1", "board.peek")


@pytest.mark.clause("8.4")
def test_a_close_ends_the_app_session_and_a_failure_does_not() -> None:
    world, first = opened()
    world.tell(first, m.StateSave(state={"kept": 1}))
    world.die(first, Death.VIOLATION)
    second = world.running("c2", "board.peek")
    assert second != first
    assert world.instance(second).app_session_id == world.instance(first).app_session_id
    assert world.tell(second, m.StateLoad()).value == {"state": {"kept": 1}}
    world.close(second)
    world.die(second, Death.KILLED)
    third = world.running("c3", "board.peek")
    assert world.instance(third).app_session_id != world.instance(first).app_session_id
    assert world.tell(third, m.StateLoad()).value == {"state": None}
    assert [one.closed_at is not None for one in world.rows(AppSession)] == [True, False]


@pytest.mark.clause("6.10")
@pytest.mark.invariant("40")
def test_the_end_of_a_tool_closes_neither_the_app_nor_its_session() -> None:
    for message in (m.ToolComplete(call_id="c1", result={"ok": True}), m.ToolFail(call_id="c1", reason="no"), m.ToolCancel(call_id="c1")):
        world, board = opened()
        done = world.tell(board, message)
        assert (done.code, done.processes) == (None, [])
        assert world.instance(board).state is InstanceState.BACKGROUND
        assert world.rows(AppSession)[0].closed_at is None


@pytest.mark.invariant("21")
def test_nothing_an_older_life_says_or_suffers_changes_anything() -> None:
    world, board = opened()
    world.die(board)
    world.start(board)
    world.tell(board, m.ToolAccept(call_id="c1"))
    before = world.view.copy()
    said = [m.ToolComplete(call_id="c1", result={"ok": True}), m.ToolProgress(call_id="c1", percent=1.0), m.LifecycleRequestClose()]
    said += [m.StateSave(state={}), m.InboxAcknowledge(message_id="x"), m.ToolsSubscribe(), m.LifecycleStarted(), m.StateLoad()]
    for message in said:
        assert world.say(world.worker(board, life=1), message).code is Code.APP_INSTANCE_NOT_FOUND
    for life in (1, 3):
        assert world.say(KERNEL, WorkerExited(instance_id=board, life=life, death=Death.CRASH)).puts == []
    assert world.say(KERNEL, WorkerExited(instance_id="ins_e1_nobody", life=1, death=Death.CRASH)).puts == []
    assert world.view.tables == before.tables


@pytest.mark.clause("8.3")
def test_deaths_that_the_kernel_wanted_or_the_zygote_died_of_count_as_no_crash() -> None:
    world, board = opened()
    for _ in range(9):
        restarted = [effect for effect in world.die(board, Death.ZYGOTE).effects if isinstance(effect, StartWorker)]
        assert [effect.delay_ms for effect in restarted] == [0]
        world.die(board, Death.KILLED)
    assert (world.instance(board).state, world.call("c1").attempts) == (InstanceState.STARTING, 0)
    assert world.instance(board).life == 19


@pytest.mark.clause("5.4")
def test_rows_of_an_instance_that_ended_wait_parked_for_the_person() -> None:
    def fail(world: World) -> None:
        world.die("ins_board", Death.VIOLATION)

    def close(world: World) -> None:
        world.say(PERSON, h.AppClose(instance_id="ins_board"))

    inbox = [{"app": "board", "message_id": "m1"}, {"app": "board", "message_id": "m2"}]
    for end in (fail, close):
        world = world_of({"instances": [{"app": "board"}], "inbox": inbox})
        end(world)
        world.die("ins_board", Death.KILLED)
        assert {row.state for row in world.rows(InboxRow)} == {InboxState.PARKED}


@pytest.mark.clause("8.1")
def test_a_revived_instance_runs_the_version_that_is_there_now() -> None:
    world = world_of({"instances": [{"app": "board", "state": "suspended"}]})
    newer = manifest_of("board", version="2.0.0")
    world.boot(manifests=MANIFESTS | {"board": newer})
    world.invoke("c1", "board.peek")
    board = world.instance("ins_board")
    assert (board.app_version, board.bundle_digest, board.life) == ("2.0.0", newer.bundle_digest, 2)


@pytest.mark.clause("8.1")
def test_an_app_that_is_starting_can_be_closed_and_its_start_changes_nothing_any_more() -> None:
    world = World()
    world.boot()
    world.say(PERSON, AppOpen(app_scope="board"))
    board = world.current("board").instance_id
    assert world.instance(board).state is InstanceState.STARTING
    assert world.close(board).processes == ["stop"]
    assert world.tell(board, m.LifecycleStarted()).puts == []
    assert world.instance(board).state is InstanceState.STOPPING
    world.die(board, Death.KILLED)
    assert world.instance(board).state is InstanceState.STOPPED


@pytest.mark.clause("8.1")
@pytest.mark.invariant("38")
def test_an_instance_id_is_never_used_again() -> None:
    world, _ = opened()
    for number in range(4):
        board = world.current("board").instance_id
        world.close(board)
        world.die(board, Death.KILLED)
        world.invoke(f"again{number}", "board.peek")
    ids = [one.instance_id for one in world.rows(Instance)]
    assert len(set(ids)) == len(ids) == 5


@pytest.mark.clause("8.2")
@pytest.mark.invariant("39")
def test_asking_for_what_is_so_already_changes_nothing() -> None:
    world, board = opened()
    for message in (m.LifecycleStarted(), m.ToolsSubscribe(), m.InboxSubscribe(), m.LifecycleRequestBackground()):
        done = world.tell(board, message)
        assert (done.code, done.puts, done.audit, done.effects) == (None, [], [], [])


@pytest.mark.clause("8.2")
def test_the_person_revives_a_suspended_app_by_bringing_it_to_the_front() -> None:
    world = world_of({"instances": [{"app": "notes", "state": "foreground"}, {"app": "board", "state": "suspended"}], "focus": ["notes"]})
    assert world.say(PERSON, h.FocusRaise(instance_id="ins_board")).processes == ["start"]
    assert world.view.focus().instance_ids == ("ins_notes", "ins_board")
    world.start("ins_board")
    assert world.instance("ins_board").state is InstanceState.FOREGROUND
    assert world.instance("ins_notes").state is InstanceState.BACKGROUND


@pytest.mark.clause("6.9")
def test_a_call_that_named_its_instance_counts_as_open_for_it_before_it_is_routed() -> None:
    world = world_of(
        {
            "instances": [{"app": "board"}],
            "calls": [{"call_id": "c1", "tool_id": "board.peek", "status": "received", "delivered_life": None}],
        }
    )
    assert world.say(PERSON, h.AppClose(instance_id="ins_board")).audit == ["interaction.opened", "interaction.presented"]
    assert world.close("ins_board").audit == ["interaction.submitted", "call.cancelled", "instance.closing"]
