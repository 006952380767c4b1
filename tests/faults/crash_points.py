"""Every named place at which the kernel may be made to die: the crash points CP01 to CP26, each before and after what stands there.

    plant("result_validated", "before", die)      the next time that place is passed, die() is called; once

The product holds nothing of this, not even a call that does nothing: a test plants the point around the method that stands there, before
anything runs. test_real_deaths.py sees that each place is there, test_simulation.py and real_points.py that it is passed, so a renamed
method cannot take a point away.
Rules:
1. A place is a turn (its rows are being written), a commit (of a transaction that holds a turn), a statement of one, or a call.
2. Where the kernel of the model has made-up neighbours (worker port, host port, supervisor), it is passed in them (`model`).
3. A point without `model` exists in a real kernel only; without `real`, nowhere else but there.
Bundles are not built: CP22 is passed with the bytes of artifacts, which are written the same way; CP23 has no place yet.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal

Side = Literal["before", "after"]
Act = Callable[[], None]
Filter = Callable[..., bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One place. turn, commit, statement: the name of a command; call: a method, as "module:Class.method"."""

    number: str
    kind: Literal["turn", "commit", "statement", "call"]
    name: str
    model: str | None = None  # of a call: the method of the model's kernel
    when: Filter = lambda *args, **more: True


def _is_message(name: str) -> Filter:
    """A call whose arguments carry a message of this wire type."""

    def is_it(_: Any, *arguments: Any, **more: Any) -> bool:
        messages = [getattr(one, "message", one) for one in (*arguments, *more.values())]
        return any(getattr(one, "TYPE", None) == name for one in messages)

    return is_it


def _is_from_agent(_: Any, *turns: Any) -> bool:
    return any(turn.origin.speaker.value == "agent" for turn in turns)


def _has_row(port: Any) -> bool:
    return port._door is not None and bool(port._door.in_flight or port._must_pump)


def _turn(number: str, name: str) -> Point:
    return Point(number=number, kind="turn", name=name)


def _commit(number: str, name: str) -> Point:
    return Point(number=number, kind="commit", name=name)


def _call(number: str, name: str, model: str | None = None, when: Filter = lambda *args, **more: True) -> Point:
    return Point(number=number, kind="call", name=name, model=model, when=when)


def _same(number: str, name: str, when: Filter = lambda *args, **more: True) -> Point:
    return _call(number, name, name, when)


_MODEL = "tests.model.kernel:ModelKernel"
POINTS: dict[str, Point] = {
    "relay_frame_read": _same("01", "kernel.turns:Turns.post", _is_from_agent),
    "message_stored": _commit("02", "DeliverMessages"),
    "message_delivered": _call("02", "kernel.worker_port:WorkerPort.send", f"{_MODEL}._frame", _is_message("inbox.delivered")),
    "half_a_frame": _call("03", "kernel.worker_port:WorkerPort.flush"),  # before: half of what waits is written
    "acknowledgement_read": _turn("04", "inbox.acknowledge"),
    "acknowledgement_stored": _commit("05", "inbox.acknowledge"),
    "call_recorded": _commit("06", "ToolInvoke"),
    "call_routed": _turn("06", "RouteCall"),
    "process_wanted": _call("07", "kernel.supervisor:Supervisor.start", f"{_MODEL}._start"),
    "fork_asked": _call("08", "kernel.zygote:Zygote._send"),
    "sealed": _call("09", "kernel.zygote:Zygote._finish_spawn"),
    "result_validated": _turn("10", "tool.complete"),
    "result_statement": Point(number="11", kind="statement", name="tool.complete"),
    "result_stored": _commit("12", "tool.complete"),
    "row_sent": _same("13", "kernel.agent_port:AgentPort.flush", _has_row),
    "row_acknowledged": _turn("14", "outbox.acknowledge"),
    "question_presented": _turn("15", "PresentInteraction"),
    "answer": _turn("16", "interaction.answer"),
    "answer_stored": _commit("16", "interaction.answer"),
    "dismissal": _turn("16", "InteractionDismissAsked"),
    "time_passed": _turn("16", "TimePassed"),
    "notice_accepted": _turn("17", "NoticePresented"),
    "focus_stored": _commit("18", "focus.raise"),
    "change_shown": _call("18", "kernel.host_port:HostPort.committed", f"{_MODEL}._committed"),
    "surface_opened": _commit("19", "surface.open"),
    "surface_mounted": _commit("19", "surface.mount"),
    "patch_stored": _commit("20", "surface.patch"),
    "consent_stored": _commit("21", "consent.answer"),
    "capability_executed": _call("21", "kernel.host_port:HostPort.send", f"{_MODEL}._show", _is_message("capability.execute")),
    "capability_done": _turn("21", "provider.result"),
    "bytes_named": _call("22", "kernel.artifact_store:ArtifactStore.keep"),
    "bytes_recorded": _turn("22", "artifact.put"),
    "checkpoint": _same("24", "kernel.database:Database.checkpoint"),
    "head_kept": _same("24", "kernel.audit:HeadFile.write"),
    "migration": _same("24", "kernel.migrations:migrate"),
    "log_folded": _same("25", "kernel.database:Database.fold"),
    "stop_decided": _turn("25", "kernel.stop"),
    "boot_read": _same("26", "kernel.store_start:Start._load"),
    "boot_rebased": _same("26", "kernel.store:Store.rebase_deadlines"),
    "boot_decided": _turn("26", "Booted"),
    "boot_stored": _commit("26", "Booted"),
}
IN_THE_MODEL = tuple(name for name, point in POINTS.items() if point.kind != "call" or point.model is not None)


class Planted:
    """One point that waits for its moment. skip: how often it is passed before that."""

    def __init__(self, point: Point, side: Side, act: Act, skip: int) -> None:
        self._point = point
        self._side = side
        self._act = act
        self.skip = skip
        self.passed = 0
        self.has_acted = False
        self._is_armed = True
        self._names: list[str] = []  # of the turns of the transaction under way

    def disarm(self) -> None:
        """Faults are over: whoever passes it from now on lives."""
        self._is_armed = False

    def pass_by(self) -> None:
        """The place is passed."""
        self.passed += 1
        if self.passed > self.skip and self._is_armed and not self.has_acted:
            self.has_acted = True
            self._act()

    def around(self, function: Callable[..., Any], is_here: Callable[..., bool]) -> Callable[..., Any]:
        """The function with the point around it."""

        @wraps(function)
        def called(*arguments: Any, **more: Any) -> Any:
            is_it = is_here(*arguments, **more)
            if is_it and self._side == "before":
                self.pass_by()
            result = function(*arguments, **more)
            if is_it and self._side == "after":
                self.pass_by()
            return result

        @wraps(function)
        async def awaited(*arguments: Any, **more: Any) -> Any:
            is_it = is_here(*arguments, **more)
            if is_it and self._side == "before":
                self.pass_by()
            result = await function(*arguments, **more)
            if is_it and self._side == "after":
                self.pass_by()
            return result

        return awaited if inspect.iscoroutinefunction(function) else called

    # ------------------------------------------------------------------ of a transaction

    def is_its_turn(self, *_: Any, command: str, **more: Any) -> bool:
        """A turn of this name is written."""
        self._names.append(command)
        return self._point.kind == "turn" and command == self._point.name

    def is_its_commit(self, *_: Any) -> bool:
        """The transaction that is made durable holds such a turn."""
        names, self._names = self._names, []
        return self._point.kind == "commit" and self._point.name in names

    def is_its_statement(self, *_: Any) -> bool:
        """A statement of a transaction that holds such a turn: of the turn, or of the commit, which writes calls, audit and clock."""
        return self._point.kind == "statement" and self._point.name in self._names

    def forget(self, *_: Any) -> bool:
        """Another transaction begins."""
        self._names = []
        return False


def _find(target: str) -> tuple[Any, str, Any]:
    module, _, path = target.partition(":")
    owner: Any = importlib.import_module(module)
    *holders, name = path.split(".")
    for holder in holders:
        owner = getattr(owner, holder)
    return owner, name, getattr(owner, name)


def targets(name: str, *, is_model: bool) -> list[str]:
    """The methods a point stands around."""
    point = POINTS[name]
    if point.kind == "call":
        return [point.model if is_model and point.model else point.name]
    return {
        "turn": ["kernel.store:Store.apply", "kernel.store:Store.commit"],
        "commit": ["kernel.store:Store.apply", "kernel.store:Store.commit"],
        "statement": [
            "kernel.store:Store.begin",
            "kernel.store:Store.apply",
            "kernel.database:Database.run",
            "kernel.database:Database.run_many",
        ],
    }[point.kind]


def plant(name: str, side: Side, act: Act, *, skip: int = 0, is_model: bool = False) -> tuple[Planted, Callable[[], None]]:
    """Put a point in its place. Returns it, and what takes it away again."""
    point = POINTS[name]
    planted = Planted(point, side, act, skip)
    checks = {"apply": planted.is_its_turn, "begin": planted.forget, "commit": planted.is_its_commit}
    undone: list[tuple[Any, str, Any]] = []
    for target in targets(name, is_model=is_model):
        owner, method, real = _find(target)
        check = point.when if point.kind == "call" else checks.get(method, planted.is_its_statement)
        setattr(owner, method, planted.around(real, check))
        undone.append((owner, method, real))

    def take_away() -> None:
        for owner, method, real in undone:
            setattr(owner, method, real)

    return planted, take_away
