"""One run in which everything happens that a promise speaks of: what the teeth of the checks are tried on."""

from __future__ import annotations

from kernel.core.events import Death
from kernel.core.records import Source
from kernel.protocol import agent as a
from kernel.protocol.host_interactions import InteractionMove
from tests.model.base import ADMIN
from tests.model.test_model import Anything


def sound_run() -> Anything:
    """A model after all of it; its rows and its trace break no promise."""
    model = Anything()
    model.begin(is_used=True)
    model.all_come_up(takes_all=True)
    _messages_and_calls(model)
    _questions(model)
    _surface_and_capability(model)
    _deaths(model)
    model.drain(Source.AGENT)
    model.check()
    return model


def _messages_and_calls(model: Anything) -> None:
    model.send_to_an_app("board", 3, "note")
    model.acknowledge_messages("board", 2)
    model.work_on_a_new_call("board.draw", 10.0, "complete")
    model.acknowledge(9)
    model.acknowledge_oddly("foreign", 0)
    model.work_on_a_new_call("notes.add", None, "fail")
    model.work_on_a_new_call("board.peek", None, None)
    model.invoke("board.peek", 0, is_stale=True, wait=None)
    model.invoke("board.none", 0, is_stale=False, wait=None)
    revision = model.view.inventory.revision
    bad = a.ToolInvoke(envelope=None, call_id="bad", tool_id="board.draw", inventory_revision=revision, input={"x": "no"})
    model.kernel.say(model.agent(), bad)
    for what in ("text", "type", "version", "conversation"):
        model.send_something_else(what, 60)
    model.work_on_a_new_call("notes.open", None, None)
    model.take_back(0, "cancel")
    model.kernel.pass_time(6_000)  # the cancelled call's grace and the time of board.peek are over
    model.kernel.reap()
    model.all_come_up(takes_all=True)


def _questions(model: Anything) -> None:
    model.ask("interaction.notice", None, None)
    model.ask("interaction.confirm", None, "modal")
    asked = model.question(0)
    assert asked is not None
    model.kernel.say(ADMIN, InteractionMove(interaction_id=asked.interaction_id, place="inline"))
    model.answer(0, 0, None, 2)
    model.ask("interaction.input", 900, None)
    model.kernel.pass_time(1_000)
    model.ask_the_person("interaction.confirm", 0, has_parent=False, wait=None)
    model.answer(0, 0, None, 1)
    model.ask_the_person("interaction.choice", 0, has_parent=False, wait=None)
    model.take_a_question_back(0)
    model.acknowledge_messages("asker", 4)


def _surface_and_capability(model: Anything) -> None:
    surface = model.view.surfaces.open_ones()[0]
    view = next(iter(model.kernel.views.values()))
    model.work_in_a_surface(0, 0, "mount", 0, 0)
    model.work_in_a_surface(0, 0, "patch", 0, 0)
    model.work_in_a_surface(0, 0, "event", 0, 0)
    assert model.view.surfaces.by_number(surface.number).mounted_view_id == view.view_id
    model.update_the_surface("board", "a", 1)
    model.keep_bytes("board", b"a")
    model.use_a_capability("notes", is_text=False, place=0, has_parent=False, decision="once", is_done=True)


def _deaths(model: Anything) -> None:
    for _ in range(4):
        model.come_up("notes")
        model.process_dies("notes", Death.CRASH)
        model.kernel.pass_time(2_000)
    model.work_on_a_new_call("asker.work", None, None)
    model.move_an_app("asker", "close all")  # the kernel asks, and gets a yes
    model.kernel.reap()
    model.switch("board.once", is_on=False)
    model.process_dies("board", Death.CRASH)
    model.kernel_starts_again("killed")
    model.all_come_up(takes_all=True)
    model.attach_a_view("view-2-headless", can=False)
    model.kernel.attach(Source.AGENT)
    model.work_on_a_new_call("board.draw", 10.0, None)
