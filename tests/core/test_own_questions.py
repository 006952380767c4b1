"""What the kernel itself asks: whether an App at work may be closed (kernel/core/own_questions.py)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernel.core.events import Death, PresentInteraction
from kernel.core.limits import CLOSE_QUESTION_MS, MAX_OPEN_INTERACTIONS
from kernel.core.machines import CallStatus, InstanceState, InteractionStatus
from kernel.core.records import Interaction, InteractionSource, Place, TimelineMessage, decode_body
from kernel.protocol import host as h
from kernel.protocol.host_interactions import InteractionAnswer, InteractionMove
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol.codes import Code
from tests.core.stories import interaction_of
from tests.core.world import KERNEL, PERSON, Outcome, World

CONFIRM = {"title": "Sure?", "prompt": "Say."}


def at_work() -> tuple[World, str]:
    world = World()
    world.boot()
    return world, world.running("c1", "board.open")


def asked_world() -> tuple[World, str, Interaction]:
    world, board = at_work()
    asked = world.say(PERSON, h.AppClose(instance_id=board))
    assert asked.code is None
    return world, board, interaction_of(world, "@runtime")


def answer(world: World, asked: Interaction, approved: bool = True, view_id: str = "view-1-console") -> Outcome:
    said = InteractionAnswer(interaction_id=asked.interaction_id, answer={"approved": approved}, shown_digest=asked.shown_digest.hex())
    return world.say(replace(PERSON, view_id=view_id), said)


@pytest.mark.clause("7.1")
@pytest.mark.invariant("24")
def test_the_kernels_question_is_its_own_and_is_in_no_timeline_and_on_no_workers_channel() -> None:
    world, board = at_work()
    outcome = world.say(PERSON, h.AppClose(instance_id=board))
    asked = interaction_of(world, "@runtime")
    assert outcome.value == {"asked": asked.interaction_id}
    assert (asked.source, asked.owner_instance_id, asked.call_number) == (InteractionSource.RUNTIME_POLICY, None, None)
    assert (asked.status, asked.place, asked.app_session_id) == (
        InteractionStatus.PRESENTED,
        Place.MODAL,
        world.instance(board).app_session_id,
    )
    assert decode_body(asked.request_cbor)["prompt"] == "Board is at work on 1 call. Closing it cancels what is not done."
    assert outcome.sent == []
    assert world.rows(TimelineMessage) == []


@pytest.mark.clause("8.2")
def test_a_yes_cancels_the_calls_and_closes_in_the_turn_of_the_answer() -> None:
    world, board, asked = asked_world()
    outcome = answer(world, asked)
    assert len(outcome.decisions) == 1
    assert outcome.audit == ["interaction.submitted", "call.cancelled", "instance.closing"]
    assert world.call("c1").status is CallStatus.CANCELLED
    assert world.instance(board).state is InstanceState.STOPPING
    assert interaction_of(world, "@runtime").status is InteractionStatus.COMPLETED


@pytest.mark.clause("8.2")
def test_a_no_leaves_everything_as_it_is_and_the_next_close_asks_anew() -> None:
    world, board, asked = asked_world()
    before = world.instance(board)
    assert answer(world, asked, approved=False).audit == ["interaction.submitted"]
    assert (world.instance(board), world.call("c1").status) == (before, CallStatus.RUNNING)
    world.say(PERSON, h.AppClose(instance_id=board))
    assert interaction_of(world, "@runtime").interaction_id != asked.interaction_id


@pytest.mark.clause("8.2")
def test_without_an_answer_it_expires_and_nothing_closes() -> None:
    world, board, asked = asked_world()
    world.pass_time(CLOSE_QUESTION_MS - 1)
    assert interaction_of(world, "@runtime").status is InteractionStatus.PRESENTED
    world.pass_time(1)
    assert interaction_of(world, "@runtime").status is InteractionStatus.EXPIRED
    assert world.instance(board).state is InstanceState.FOREGROUND
    assert answer(world, asked).code is Code.INTERACTION_ALREADY_FINAL


@pytest.mark.clause("7.3")
@pytest.mark.invariant("22")
@pytest.mark.parametrize("first", [True, False])
def test_two_views_answer_and_the_first_wins(first: bool) -> None:
    world, board, asked = asked_world()
    assert answer(world, asked, first, "view-2-web").code is None
    assert answer(world, asked, not first, "view-1-console").code is Code.INTERACTION_ALREADY_FINAL
    assert interaction_of(world, "@runtime").answered_by_view == "view-2-web"
    assert (world.instance(board).state is InstanceState.STOPPING) is first


@pytest.mark.clause("8.2")
def test_asked_twice_there_is_one_question() -> None:
    world, board, asked = asked_world()
    again = world.say(PERSON, h.AppClose(instance_id=board))
    assert (again.value, again.audit) == ({"asked": asked.interaction_id}, [])
    assert len(world.rows(Interaction)) == 1


@pytest.mark.clause("12")
@pytest.mark.parametrize("is_presented", [True, False])
def test_a_start_brings_the_question_back_and_a_yes_still_closes(is_presented: bool) -> None:
    world, board = at_work()
    world.only(PERSON, h.AppClose(instance_id=board))
    asked = interaction_of(world, "@runtime")
    if is_presented:
        world.say(KERNEL, PresentInteraction(interaction_id=asked.interaction_id))
    world.boot()
    assert interaction_of(world, "@runtime").status is InteractionStatus.PRESENTED
    assert answer(world, asked).audit == ["interaction.submitted", "call.cancelled", "instance.closing"]
    assert world.instance(board).state is InstanceState.STOPPING


@pytest.mark.clause("12")
def test_a_death_right_after_the_yes_leaves_the_answer_the_cancelled_call_and_a_close_that_did_not_happen() -> None:
    world, board, asked = asked_world()
    answer(world, asked)
    world.boot()
    assert interaction_of(world, "@runtime").status is InteractionStatus.COMPLETED
    assert world.call("c1").status is CallStatus.CANCELLED
    assert world.instance(board).state is not InstanceState.STOPPED
    assert world.say(PERSON, h.AppClose(instance_id=board)).value is None  # nothing is open any more


@pytest.mark.clause("8.2")
@pytest.mark.parametrize("way", ["disabled", "violation", "itself"])
def test_a_question_about_an_app_that_ends_another_way_is_taken_back(way: str) -> None:
    world, board, asked = asked_world()
    if way == "disabled":
        world.say(PERSON, h.AppDisable(name="board"))
    elif way == "violation":
        world.die(board, Death.VIOLATION)
    else:
        world.tell(board, m.ToolComplete(call_id="c1", result={"ok": True}))
        assert world.tell(board, m.LifecycleRequestClose()).code is None
    assert interaction_of(world, "@runtime").status is InteractionStatus.CANCELLED
    assert answer(world, asked).code is Code.INTERACTION_ALREADY_FINAL


@pytest.mark.clause("8.2")
def test_a_yes_closes_the_app_that_crashed_and_comes_up_again() -> None:
    world, board, asked = asked_world()
    world.die(board)
    assert world.instance(board).state is InstanceState.STARTING
    answer(world, asked)
    assert world.instance(board).state is InstanceState.STOPPING


@pytest.mark.clause("7.2")
def test_it_can_be_moved_like_any_other() -> None:
    world, _, asked = asked_world()
    assert world.say(PERSON, InteractionMove(interaction_id=asked.interaction_id, place="inline")).value == {"place": "inline"}


@pytest.mark.clause("16")
def test_with_too_many_questions_open_the_close_is_refused() -> None:
    world, board = at_work()
    for number in range(MAX_OPEN_INTERACTIONS):
        world.invoke(f"q{number}", "interaction.confirm", CONFIRM)
    assert world.say(PERSON, h.AppClose(instance_id=board)).code is Code.LIMIT_EXCEEDED
