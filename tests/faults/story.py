"""A story in which everything happens that a crash point or a broken promise is about, told in rules of the model: each act is sound
whatever became of the one before it, so the kernel may die, or be a broken one, anywhere in it."""

from __future__ import annotations

from collections.abc import Callable

from kernel.core.events import Death
from kernel.protocol.host import KernelStop
from tests.model.base import ADMIN
from tests.model.test_model import Anything

Act = Callable[[Anything], object]


def _stop(machine: Anything) -> None:
    machine.kernel.say(ADMIN, KernelStop())
    machine.kernel.stop_and_start()


STORY: tuple[Act, ...] = (
    lambda m: m.all_come_up(takes_all=True),
    lambda m: m.send_to_an_app("board", 3, "note"),
    lambda m: m.acknowledge_messages("board", 2),
    lambda m: m.work_on_a_new_call("board.draw", 10.0, "complete"),
    lambda m: m.acknowledge_some(9),
    lambda m: m.work_on_a_new_call("notes.add", None, "fail"),
    lambda m: m.work_on_a_new_call("board.peek", None, None),
    lambda m: m.take_back(0, "cancel"),
    lambda m: m.ask("interaction.notice", None, None),
    lambda m: m.ask("interaction.confirm", None, "modal"),
    lambda m: m.answer(0, 0, None, 2),
    lambda m: m.ask("interaction.input", 900, None),
    lambda m: m.time_passes(1_100),
    lambda m: m.ask("interaction.choice", None, None),
    lambda m: m.take_back(0, "dismiss"),
    lambda m: m.ask_the_person("interaction.confirm", 0, has_parent=False, wait=None),
    lambda m: m.answer(0, 1, None, 1),
    lambda m: m.move_an_app("board", "raise"),
    lambda m: m.work_on_the_surface("board", "open"),
    lambda m: m.work_in_a_surface(0, 0, "mount", 0, 0),
    lambda m: m.work_in_a_surface(0, 0, "patch", 0, 0),
    lambda m: m.update_the_surface("notes", "a", 1),
    lambda m: m.keep_bytes("board", b"a"),
    lambda m: m.attach_a_view("view-3-console", can=True),
    lambda m: m.use_a_capability("notes", is_text=False, place=0, has_parent=False, decision="once", is_done=True),
    lambda m: m.process_dies("board", Death.CRASH),
    lambda m: m.time_passes(2_500),
    lambda m: m.acknowledge_some(9),
    lambda m: m.kernel_starts_again("killed"),
    lambda m: m.all_come_up(takes_all=True),
    _stop,
)
