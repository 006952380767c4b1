"""Apps do not know of each other: what one sees is the same with a neighbour and without, and another's id answers as no id does."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kernel.core.events import Death
from kernel.turns import Outcome
from lineup_sdk.protocol import interaction_messages as i
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol import surface_messages as s
from tests.invariants_of_traced_questions import check_inv_45, seen_by
from tests.model.test_model import Anything

Step = Callable[[Anything], object]

_OF_THE_SPY: list[Step] = [
    lambda model: model.tell("asker", s.SurfaceOpen(), m.StateSave(state={"n": 1})),
    lambda model: model.send_to_an_app("asker", 2, "note"),
    lambda model: model.work_on_a_new_call("asker.work", 10.0, "complete"),
    lambda model: model.ask_the_person("interaction.confirm", 0, has_parent=False, wait=None),
    lambda model: model.tell("asker", s.SurfaceUpdate(base_version=0, patch={"a": 1}), m.StateLoad()),
    lambda model: model.work_on_a_new_call("asker.work", None, None),
    lambda model: model.acknowledge_messages("asker", 4),
    lambda model: model.process_dies("asker", Death.CRASH),
    lambda model: model.tell("asker", m.InboxList()),
]
_OF_THE_NEIGHBOUR: list[Step] = [
    lambda model: model.work_on_a_new_call("board.draw", 10.0, "complete"),
    lambda model: model.send_to_an_app("board", 3, "note"),
    lambda model: model.update_the_surface("board", "a", 1),
    lambda model: model.work_on_a_new_call("notes.add", None, None),
    lambda model: model.keep_bytes("board", b"a"),
    lambda model: model.use_a_capability("notes", is_text=False, place=0, has_parent=False, decision="once", is_done=True),
    lambda model: model.process_dies("board", Death.CRASH),
    lambda model: model.tell("board", m.StateSave(state={"n": 2})),
    lambda model: model.tell("notes", m.InboxList()),
]


@pytest.fixture
def models() -> Iterator[list[Anything]]:
    """Two homes in use, in which the same was done so far."""
    made = [Anything(), Anything()]
    for model in made:
        model.begin(is_used=True)
    yield made
    for model in made:
        model.teardown()


@pytest.mark.clause("3")
@pytest.mark.invariant("45")
def test_an_app_sees_the_same_with_a_neighbour_at_work_and_without(models: list[Anything]) -> None:
    crowded, alone = models
    for step, other in zip(_OF_THE_SPY, _OF_THE_NEIGHBOUR, strict=True):
        other(crowded)
        alone.made = crowded.made  # the Agent's ids are not what is compared
        step(crowded)
        step(alone)
    assert len(seen_by(alone.kernel.trace, "asker")) > 20
    assert check_inv_45(crowded.kernel.trace, alone.kernel.trace, "asker") == []


@pytest.mark.invariant("45")
def test_an_app_that_can_tell_is_told(models: list[Anything]) -> None:
    models[0].send_to_an_app("asker", 1, "note")
    assert check_inv_45(models[0].kernel.trace, models[1].kernel.trace, "asker") != []


def _said(outcomes: list[Outcome]) -> list[object]:
    return [(outcome.accepted, outcome.code, outcome.value, outcome.detail) for outcome in outcomes]


@pytest.mark.clause("5.2")
@pytest.mark.clause("6.5")
@pytest.mark.invariant("05")
@pytest.mark.invariant("17")
@pytest.mark.invariant("25")
def test_the_ids_of_another_answer_exactly_as_ids_that_nothing_has(models: list[Anything]) -> None:
    model = models[0]
    model.send_to_an_app("board", 1, "note")
    message_id = f"x{model.made}"
    model.work_on_a_new_call("board.draw", 10.0, None)
    model.ask("interaction.confirm", None, None)
    model.keep_bytes("board", b"a")
    call = next(one for one in model.view.calls(state="open") if one.app_scope == "board")
    asked = model.question(0)
    assert asked is not None
    artifact_id = model.kernel.store._db.run("SELECT artifact_id FROM artifact")[0][0]
    for of_another, of_nothing in (
        (m.ToolsGet(call_id=call.call_id), m.ToolsGet(call_id="nothing")),
        (m.ToolAccept(call_id=call.call_id), m.ToolAccept(call_id="nothing")),
        (m.ToolProgress(call_id=call.call_id, percent=1.0), m.ToolProgress(call_id="nothing", percent=1.0)),
        (m.ToolComplete(call_id=call.call_id, result={"ok": True}), m.ToolComplete(call_id="nothing", result={"ok": True})),
        (m.ToolFail(call_id=call.call_id, reason="no"), m.ToolFail(call_id="nothing", reason="no")),
        (m.ToolCancel(call_id=call.call_id), m.ToolCancel(call_id="nothing")),
        (m.InboxAcknowledge(message_id=message_id), m.InboxAcknowledge(message_id="nothing")),
        (m.InboxList(after=message_id), m.InboxList(after="nothing")),
        (i.UiGet(interaction_id=asked.interaction_id), i.UiGet(interaction_id="nothing")),
        (i.UiCancel(interaction_id=asked.interaction_id), i.UiCancel(interaction_id="nothing")),
        (s.ArtifactGet(artifact_id=artifact_id, offset=0), s.ArtifactGet(artifact_id="nothing", offset=0)),
    ):
        assert _said(model.tell("asker", of_another)) == _said(model.tell("asker", of_nothing)), of_another
