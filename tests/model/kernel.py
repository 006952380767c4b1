"""A kernel of real core, turns, store and door, with everything around it made up: clock, ids, processes, receivers.

    kernel = ModelKernel(folder)
    kernel.say(origin, command, ...)        one pass of the event loop: the first commits alone, the rest together
    kernel.die_at = 3; kernel.say(...)      the kernel dies at the third point of that pass, and starts again over what is durable

Rules:
1. Nothing here decides. It keeps what the machine would: which processes live, what is on which channel, what time it is.
2. Points of death: before a turn is written, before the commit, after the commit, before each effect.
3. Everything durable and everything that left goes into `trace`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, get_args

import trio

from kernel import backup
from kernel.agent_port import AgentPort
from kernel.core import decision as d
from kernel.core.decision import Origin, Speaker
from kernel.core.events import Booted, Death, StateRestored, WorkerExited
from kernel.core.grants import grants_for
from kernel.core.machines import InstanceState
from kernel.core.records import Record, Source
from kernel.core.surface_effects import SendArtifact, SendToView, TellSurfaceChanged
from kernel.presence import Presence
from kernel.store import Store
from kernel.store_start import forget_restore
from kernel.turns import KERNEL, Handlers, Outcome, Turn, Turns
from lineup_sdk.protocol.surface_messages import SurfaceChanged
from tests.invariants import watch_inv_10
from tests.model.apps import APPS
from tests.model.around import AgentEnd, Died, FakeClock, Process, Recorder
from tests.store.stored import STORED, rows_of
from tests.trace import Answered, Framed, Opened, Processed, Shown, Trace


class ModelKernel:
    """See the head of the file."""

    make_clock: Callable[[], FakeClock] = FakeClock

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = self.make_clock()
        self.trace = Trace()
        self.commands: dict[int, object] = {}  # by id() of the origin that speaks; kept alive by _origins
        self.die_at: int | None = None
        self.disk_is_full = False
        self.deaths = 0
        self._origins: list[Origin] = []
        self._epochs = count(1)
        self._connections = count(1)
        self._backup: Path | None = None
        self.door: AgentEnd | None = None
        self._channels = count(1)
        self.views: dict[str, Origin] = {}
        self.open()

    # ------------------------------------------------------------------ start and end

    def open(self) -> None:
        """Start over what is durable, with room on the disk; a death in the start starts again."""
        self.disk_is_full = False
        self.store = self._open_store()
        watch_inv_10(self.store._db._connection)
        records = tuple(record for kind in STORED for record in rows_of(self.store, kind)) if self.store.is_restored else ()
        self.trace.add(Opened(epoch=self.store.view.epoch, is_restored=self.store.is_restored, records=records))
        self.store.rebase_deadlines(self.clock.boot_id, self.clock.boottime)
        if self.door is not None:
            self.door.close()
        self.processes: dict[str, Process] = {}
        self.views.clear()
        self.store.view.has_view = True
        self.door = None
        self.is_stopping = False
        self._exits: list[WorkerExited] = []
        self.agent_port = AgentPort(self._post, self.store.view, Presence())
        self.turns = Turns(self._recorder(), self.clock, self._handlers())  # type: ignore[arg-type]
        restored = [(KERNEL, StateRestored())] if self.store.is_restored else []
        self.say_all([*restored, (KERNEL, Booted())])
        forget_restore(self.folder)

    def _recorder(self) -> Recorder:
        return Recorder(self.store, self)

    def _open_store(self) -> Store:
        return Store.open(
            self.folder / "kernel.db",
            manifests=APPS,
            make_epoch=lambda: f"e{next(self._epochs)}",
            make_id=lambda kind, epoch: f"{kind}_{epoch}_main",
            now=lambda: self.clock.now,
        )

    def restart(self) -> None:
        """Die between two passes, and start again."""
        self.store.abandon()
        self.open()

    def stop_and_start(self) -> None:
        """End tidily, and start again."""
        self.store.close()
        self.open()

    def end(self) -> None:
        """End for good."""
        self.store.abandon()
        if self.door is not None:
            self.door.close()

    def back_up(self) -> None:
        """Keep a copy of the database as it is now."""
        self.store.close()
        self._backup = self.folder / "backup"
        shutil.copyfile(self.folder / "kernel.db", self._backup)
        self.open()

    def restore(self) -> bool:
        """Put the copy in place, if there is one; the kept head stays what it was."""
        if self._backup is None:
            return False
        self.store.close()
        (self.folder / "kernel.db-wal").unlink(missing_ok=True)
        shutil.copyfile(self._backup, self.folder / "kernel.db")
        self.open()
        return True

    def back_up_with_the_tool(self) -> None:
        """Make a backup as `lineup backup` does, of the open store."""
        shutil.rmtree(self._made_backup, ignore_errors=True)
        trio.run(backup.make, self.store, self.folder / "artifacts", self._made_backup)

    def restore_with_the_tool(self) -> None:
        """Put that backup in place as `lineup restore` does, if there is one, and start on it."""
        if self._made_backup.exists():
            self.store.close()
            backup.restore(self.folder, self._made_backup)
            self.open()

    @property
    def _made_backup(self) -> Path:
        return self.folder / "made"

    def free_the_disk(self) -> None:
        """There is room again, and the kernel finds it."""
        self.disk_is_full = False
        if self.turns.is_starved:
            self._guarded(self.turns._feed)

    def point(self) -> None:
        """A place where the kernel may die. Raises: Died."""
        if self.die_at is not None:
            self.die_at -= 1
            if self.die_at <= 0:
                self.die_at = None
                raise Died

    # ------------------------------------------------------------------ turns

    def say(self, origin: Origin, *commands: object) -> list[Outcome]:
        """Say these in one pass; the answers that came, in order. A death starts the kernel again."""
        return self.say_all([(origin, command) for command in commands])

    def say_itself(self, command: object) -> list[Outcome]:
        """A command of the kernel's own."""
        return self.say(KERNEL, command)

    def say_later(self, origin: Origin, command: object) -> None:
        """Say what may wait for the commit of something else."""
        self._post(self._turn(origin, command, may_wait=True))

    def say_all(self, said: Sequence[tuple[Origin, object]]) -> list[Outcome]:
        """Say these in one pass, by several."""
        answered = len(self.trace.events)
        self._guarded(lambda: self._pass([self._turn(origin, command) for origin, command in said]))
        return [event.outcome for event in self.trace.events[answered:] if isinstance(event, Answered)]

    def _pass(self, turns: Sequence[Turn]) -> None:
        """The first alone, the others in one commit, as an event loop that reads them at once would."""
        self._post(*turns[:1])
        if turns[1:]:
            self._post(*turns[1:])  # the same pass: they wait for the next
            self.turns._drain()

    def _next_pass(self) -> None:
        self.turns._pass.number += 1

    def _turn(self, origin: Origin, command: object, *, may_wait: bool = False) -> Turn:
        spoken = replace(origin)
        self._origins.append(spoken)
        self.commands[id(spoken)] = command
        return Turn(command=command, origin=spoken, may_wait=may_wait)

    def _post(self, *turns: Turn) -> None:
        self.turns.post(*turns)

    def pass_time(self, milliseconds: int) -> None:
        """Let time pass and wake the kernel if it asked for that. Raises: AssertionError when something is due and it did not ask."""
        self.clock.move(milliseconds)
        due_ms = self.store.view.next_deadline_ms()
        is_due = due_ms is not None and due_ms <= self.clock.boottime
        asked_ms = self.turns._deadline_ms
        is_awake = asked_ms is not None and asked_ms <= self.clock.boottime
        assert self.turns.is_starved or not is_due or is_awake, "something is due and nobody wakes the kernel"
        self._guarded(self.turns.check_deadlines)

    # ------------------------------------------------------------------ what leaves

    def _handlers(self) -> Handlers:
        known: dict[type, Callable[[Any], None]] = {
            d.StartWorker: self._start,
            d.StopWorker: self._stop,
            d.KillWorker: self._kill,
            d.SendToWorker: lambda effect: self._frame(effect.instance_id, effect.life, effect.message),
            d.PumpOutbox: self.agent_port.pump,
            d.StopKernel: self._stop_kernel,
            SendToView: self._show,
            TellSurfaceChanged: self._tell_surface_changed,
            SendArtifact: lambda effect: None,
        }
        effects = {kind: self._dying(known.get(kind, lambda effect: None)) for kind in get_args(d.Effect)}
        return Handlers(
            effects=effects,
            reply=self._dying(self._reply),
            committed=self._committed,
            flush=self._flush,
            starving=lambda: watch_inv_10(self.store._db._connection),  # it is another one now
        )

    def _dying(self, handler: Callable[[Any], None]) -> Callable[[Any], None]:
        def handle(effect: Any) -> None:
            self.point()
            handler(effect)

        return handle

    def _reply(self, outcome: Outcome) -> None:
        self.trace.add(Answered(outcome=outcome))
        if outcome.turn.origin.speaker is Speaker.AGENT:
            self.agent_port.reply(outcome)

    def _flush(self) -> None:
        self.agent_port.flush()
        if self.door is not None:
            self.door.read()

    def _committed(self, records: Sequence[Record]) -> None:
        del records

    def _stop_kernel(self, effect: d.StopKernel) -> None:
        del effect
        self.is_stopping = True

    def _show(self, effect: SendToView) -> None:
        if effect.view_id in self.views:
            self.trace.add(Shown(view_id=effect.view_id, message=effect.message))

    # ------------------------------------------------------------------ processes

    def _start(self, effect: d.StartWorker) -> None:
        self.trace.add(Processed(verb="start", instance_id=effect.instance_id, life=effect.life))
        assert effect.instance_id not in self.processes, "a life begins before the one before it has ended"
        self.processes[effect.instance_id] = Process(life=effect.life, ready_ms=self.clock.boottime + effect.delay_ms)

    def _stop(self, effect: d.StopWorker) -> None:
        self.trace.add(Processed(verb="stop", instance_id=effect.instance_id, life=effect.life))
        process = self._process(effect.instance_id, effect.life)
        if process is not None:
            process.is_planned = True
        else:
            self._post(self._turn(KERNEL, WorkerExited(instance_id=effect.instance_id, life=effect.life, death=Death.KILLED)))

    def _kill(self, effect: d.KillWorker) -> None:
        self.trace.add(Processed(verb="kill", instance_id=effect.instance_id, life=effect.life))
        if self._process(effect.instance_id, effect.life) is not None:
            self._end(effect.instance_id, Death.KILLED)

    def _process(self, instance_id: str, life: int) -> Process | None:
        process = self.processes.get(instance_id)
        return process if process is not None and process.life == life else None

    def _end(self, instance_id: str, death: Death) -> None:
        """The process is gone; that it is reaped is said in a later pass."""
        process = self.processes.pop(instance_id)
        self._exits.append(WorkerExited(instance_id=instance_id, life=process.life, death=Death.KILLED if process.is_planned else death))

    def die(self, instance_id: str, death: Death) -> None:
        """End a process, and say so."""
        if instance_id in self.processes:
            self._end(instance_id, death)
        self.reap()

    def reap(self) -> None:
        """Say every exit that was not said yet, and let what the kernel ends come to its end."""
        for instance_id, process in list(self.processes.items()):
            if process.is_planned:
                self._end(instance_id, Death.KILLED)
        while self._exits:
            self.say(KERNEL, self._exits.pop(0))

    def come_up(self, instance_id: str) -> Origin | None:
        """Give the process its instance, if the store still wants that life; who speaks on its channel from now on."""
        process = self.processes.get(instance_id)
        if process is None or process.ready_ms > self.clock.boottime:
            return None
        if process.origin is None:
            instance = self.store.view.instance(instance_id)
            assert instance is not None
            if instance.life != process.life or instance.state is not InstanceState.STARTING or process.is_planned:
                process.is_planned = True
                self.reap()
                return None
            grants = grants_for(APPS[instance.app_scope], self.store.view.is_allowed)
            process.origin = Origin(
                speaker=Speaker.WORKER,
                channel=next(self._channels),
                request_id=1,
                instance_id=instance_id,
                app_scope=instance.app_scope,
                life=process.life,
                grants=grants,
            )
        return process.origin

    def worker(self, instance_id: str) -> Origin | None:
        """Who speaks on the channel of the instance's process; None while it has none."""
        process = self.processes.get(instance_id)
        return process.origin if process is not None else None

    def _frame(self, instance_id: str, life: int, message: Any) -> None:
        process = self._process(instance_id, life)
        if process is not None and process.origin is not None:
            scope = process.origin.app_scope
            self.trace.add(Framed(instance_id=instance_id, app_scope=scope, life=life, message=message))

    def _tell_surface_changed(self, effect: TellSurfaceChanged) -> None:
        self._frame(effect.instance_id, effect.life, SurfaceChanged(version=effect.version))

    # ------------------------------------------------------------------ the Agent

    def attach(self, source: Source) -> None:
        """An Agent opens the door; whoever had it is gone."""
        self.leave()
        door = self.door = AgentEnd(self, source, next(self._connections))
        self._guarded(lambda: self.agent_port._open(door.channel, source))

    def leave(self) -> None:
        """The Agent closes the door."""
        if self.door is not None and self.agent_port._door is not None:
            door = self.agent_port._door
            self.door.close()
            self.door = None
            self._guarded(lambda: self.agent_port._leave(door))

    def agent(self) -> Origin | None:
        """Who speaks at the door."""
        return self.agent_port._door.origin if self.agent_port._door is not None else None

    def _guarded(self, act: Callable[[], object]) -> None:
        """Do something in a pass of its own; a death starts the kernel again."""
        try:
            self._next_pass()
            act()
        except Died:
            self.deaths += 1
            if self.door is not None:
                self.door.read()
            self.restart()
