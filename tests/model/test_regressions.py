"""What the model once found, each as the few steps that it takes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernel.core.events import Death
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol.codes import Code
from tests.model.test_model import Anything


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
