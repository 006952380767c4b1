"""What the model once found, each as the few steps that it takes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernel.core.events import Death
from kernel.core.machines import InstanceState
from kernel.core.records import Instance, Source
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol.codes import Code
from tests.invariants_of_traced_instances import check_inv_39
from tests.invariants_of_traces import check_inv_33
from tests.model.test_model import Anything
from tests.trace import Sent


@pytest.fixture
def model() -> Iterator[Anything]:
    """A home in use; every promise is looked at when the test is over."""
    made = Anything()
    made.begin(is_used=True)
    made.check()
    yield made
    made.teardown()


@pytest.mark.clause("8.4")
@pytest.mark.invariant("37")
def test_a_conversation_that_failed_is_not_started_as_an_app_and_never_enters_the_focus_stack(model: Anything) -> None:
    model.process_dies("chat", Death.VIOLATION)
    outcomes = model.move_an_app("chat", "empty")
    assert [outcome.code for outcome in outcomes] == [Code.LIFECYCLE_DENIED]


@pytest.mark.clause("4.6")
def test_a_message_of_a_restored_backup_comes_again_to_a_life_that_had_it_before_the_restore(model: Anything) -> None:
    model.all_come_up(takes_all=False)
    model.send_something_else("again", 1)
    model.kernel_starts_again("back up")
    model.all_come_up(takes_all=False)
    model.kernel_starts_again("restore")
    model.all_come_up(takes_all=False)
    [*_, before, after] = [one for one in model.kernel.trace.framed() if isinstance(one.message, m.InboxDelivered)]
    assert (before.message.message_id, before.instance_id) == (after.message.message_id, after.instance_id)
    assert after in list(model.kernel.trace.since_restore().framed())


@pytest.mark.clause("8.3")
@pytest.mark.invariant("41")
def test_crashes_that_a_restore_took_back_are_not_counted(model: Anything) -> None:
    model.kernel_starts_again("back up")
    model.process_dies("chat", Death.CRASH)
    model.kernel_starts_again("restore")
    model.process_dies_again_and_again("chat")
    assert model.instance("chat") is not None


@pytest.mark.clause("7.2")
@pytest.mark.invariant("28")
def test_a_question_that_is_moved_after_another_boot_is_the_same_question(model: Anything) -> None:
    model.ask("interaction.choice", 40_000, None)
    before = model.question(0)
    model.kernel_starts_again("machine")
    model.move(0, "inline")
    after = model.question(0)
    assert before is not None
    assert after is not None
    assert (after.interaction_id, after.shown_digest, after.status) == (before.interaction_id, before.shown_digest, before.status)


@pytest.mark.clause("6.3")
@pytest.mark.invariant("33")
def test_a_result_that_is_asked_for_again_leaves_behind_newer_rows(model: Anything) -> None:
    """Seeds 1090, 1297 and 1542 of the long runs: the check took this for a broken order."""
    model.open_the_door(Source.AGENT)
    model.work_on_a_new_call("board.once", None, "complete")
    asked = model.view.calls(limit=1)[0]
    model.acknowledge_some(99)
    model.open_the_door(Source.AGENT)
    model.work_on_a_new_call("board.once", None, "complete")
    place = [call.call_id for call in model.view.calls(limit=9)].index(asked.call_id)
    model.invoke_again(place, 0)
    sent = [event for event in model.kernel.trace.events if isinstance(event, Sent)]
    numbers = [one.number for one in sent if one.connection == sent[-1].connection]
    assert numbers[-1] < numbers[-2]
    assert check_inv_33(model.kernel.trace) == []


@pytest.mark.clause("8.3")
@pytest.mark.invariant("39")
def test_an_app_that_is_stopping_may_be_answered(model: Anything) -> None:
    """Seeds 1220 and 1237 of the long runs: the check took the answer for what stopped the App."""
    model.move_an_app("asker", "open")
    model.all_come_up(takes_all=True)
    model.ask_the_person(kind="interaction.confirm", place=0, has_parent=False, wait=None)
    instance = model.instance("asker")
    assert instance is not None
    model.switch("asker", is_on=False)
    stopping = model.view.instance(instance.instance_id)
    assert stopping is not None
    assert stopping.state is InstanceState.STOPPING
    model.answer(0, 0, None, 1)
    [answered] = [one for one in model.kernel.trace.decided() if one.name == "interaction.answer"]
    assert [one.state for one in answered.puts_of(Instance)] == [InstanceState.STOPPING]
    assert check_inv_39(model.kernel.trace) == []
