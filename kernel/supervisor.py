"""Gives instances their processes and learns how they end: zygote, spares, watchdog (SPEC 8.3, 16).

Rules:
1. An effect names an instance and a life; a process is given out only while the store still wants just that life.
2. Whatever ends a channel ends its process, and the process is reaped before WorkerExited is said: no life overlaps the next.
3. A death that the kernel planned is no crash; neither is one that the zygote took along.
4. The zygote may die three times in 60 s, in its birth too; the next time the kernel stops and says sandbox_incomplete.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import psutil
import trio

from kernel import log
from kernel.core.decision import KillWorker, StartWorker, StopWorker, View
from kernel.core.events import Death, WorkerExited
from kernel.core.machines import InstanceState
from kernel.core.records import Instance
from kernel.launch import Executed
from kernel.spares import Ready, Spares
from kernel.turns import KERNEL, Turn
from kernel.worker_port import Worker, WorkerPort
from kernel.zygote import Exit, SandboxIncomplete, SpawnedProcess, SpawnFailed, Zygote, ZygoteUnborn
from lineup_sdk.protocol.control import Layer
from lineup_sdk.protocol.messages import JsonObject, LifecycleStopping

START_SECONDS = 5.0  # from the welcome to lifecycle.started
PING_SECONDS = 2.5
LOOK_SECONDS = 1.0
SILENCE_SECONDS = 5.0
CPU_SECONDS = 60.0  # of one process without a return to its event loop
ZYGOTE_DEATHS = 3
ZYGOTE_WINDOW_SECONDS = 60.0


@dataclass(slots=True)
class _Life:
    """One process of one instance, from the wish to its end."""

    instance_id: str
    life: int
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)  # around the wait for a process
    process: SpawnedProcess | None = None
    worker: Worker | None = None
    is_planned: bool = False  # the kernel ends it on purpose


class Supervisor:
    """See the head of the file."""

    def __init__(
        self, post: Callable[..., None], view: View, port: WorkerPort, nursery: trio.Nursery, early: Executed | None = None
    ) -> None:
        self._post = post
        self._view = view
        self._port = port
        self._nursery = nursery
        self._early = early  # the first zygote, if it was executed already
        self._lives: dict[tuple[str, int], _Life] = {}
        self._zygote: Zygote | None = None
        self._spares: Spares | None = None
        self._has_spares = trio.Event()
        self.layers: tuple[Layer, ...] = ()

    # ------------------------------------------------------------------ the zygote

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep a zygote alive. Raises: SandboxIncomplete when a layer is missing or it dies too often."""
        deaths: list[float] = []
        while True:
            await self._live(task_status)
            task_status = trio.TASK_STATUS_IGNORED
            now = time.monotonic()
            deaths = [*(at for at in deaths if now - at < ZYGOTE_WINDOW_SECONDS), now]
            log.trouble("zygote.died", count=len(deaths))
            if len(deaths) > ZYGOTE_DEATHS:
                raise SandboxIncomplete("zygote", "it died four times in a minute", "see kernel.log and run `lineup doctor`")

    async def _live(self, task_status: trio.TaskStatus[None]) -> None:
        """One zygote from its birth to its death. Raises: SandboxIncomplete when a layer is missing."""
        async with trio.open_nursery() as nursery:
            early, self._early = self._early, None
            try:
                self._zygote = await Zygote.open(nursery, early)
            except ZygoteUnborn:
                if not self.layers:  # none has ever stood on this machine
                    raise
                return  # a death like any other (rule 4)
            self.layers = self._zygote.layers
            self._spares = Spares(self._zygote)
            nursery.start_soon(self._spares.run)
            self._has_spares.set()
            task_status.started()
            await self._zygote.wait_dead()
            self._has_spares = trio.Event()
            nursery.cancel_scope.cancel()

    # ------------------------------------------------------------------ effects

    def start(self, effect: StartWorker) -> None:
        """Effect: give the instance a process."""
        life = _Life(effect.instance_id, effect.life)
        self._lives[effect.instance_id, effect.life] = life
        self._nursery.start_soon(self._run_life, life, effect.delay_ms / 1000)

    def stop(self, effect: StopWorker) -> None:
        """Effect: let the process finish, kill it after the deadline."""
        life = self._lives.get((effect.instance_id, effect.life))
        if life is None:
            self._post(Turn(command=WorkerExited(instance_id=effect.instance_id, life=effect.life, death=Death.KILLED), origin=KERNEL))
            return
        life.is_planned = True
        life.scope.cancel()
        if life.worker is not None:
            self._port.stop(life.worker, LifecycleStopping(reason=effect.reason, deadline_ms=effect.deadline_ms))
            self._nursery.start_soon(self._kill_after, life, effect.deadline_ms / 1000)

    def kill(self, effect: KillWorker) -> None:
        """Effect: end the process now."""
        life = self._lives.get((effect.instance_id, effect.life))
        if life is not None:
            life.is_planned = True
            life.scope.cancel()
            if life.process is not None:
                life.process.kill()

    async def _kill_after(self, life: _Life, seconds: float) -> None:
        if life.process is None:
            return
        with trio.move_on_after(seconds):
            await life.process.wait_exited()
            return
        life.process.kill()

    # ------------------------------------------------------------------ one life

    async def _run_life(self, life: _Life, delay_seconds: float) -> None:
        death = Death.KILLED
        try:
            with life.scope:
                await trio.sleep(delay_seconds)  # the wait between restarts (SPEC 8.3)
                ready = await self._take_process(life)
            if life.process is not None:
                death = await self._run_process(life, ready)
        except SpawnFailed as failure:
            log.trouble("spawn.failed", reason=failure.reason, instance_id=life.instance_id)
            death = Death.CRASH
        del self._lives[life.instance_id, life.life]
        exited = WorkerExited(instance_id=life.instance_id, life=life.life, death=death)
        self._post(Turn(command=exited, origin=KERNEL))

    async def _take_process(self, life: _Life) -> Ready:
        while True:
            await self._has_spares.wait()
            assert self._spares is not None
            try:
                ready = await self._spares.take()
            except SpawnFailed as failure:
                if failure.reason == "zygote_dead":
                    await trio.lowlevel.checkpoint()
                    continue
                raise
            life.process = ready.process
            return ready

    async def _run_process(self, life: _Life, ready: Ready) -> Death:
        instance = self._wanted(life)
        if instance is None:
            ready.channel.close()
            ready.process.kill()
            await ready.process.wait_exited()
            return Death.KILLED
        worker = life.worker = self._port.attach(instance, ready.channel)
        self._port.flush()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._require_start, life)
            nursery.start_soon(self._watch, life, worker)
            await self._port.serve(worker)
            nursery.cancel_scope.cancel()
        ready.process.kill()
        ended = await ready.process.wait_exited()
        death = _death_of(life, worker, ended)
        log.event("worker.ended", instance_id=life.instance_id, life=life.life, death=death, reason=ended.kind, exit_status=ended.status)
        return death

    def _wanted(self, life: _Life) -> Instance | None:
        instance = self._view.instance(life.instance_id)
        is_wanted = instance is not None and instance.life == life.life and instance.state is InstanceState.STARTING
        return instance if is_wanted and not life.is_planned else None

    async def _require_start(self, life: _Life) -> None:
        await trio.sleep(START_SECONDS)
        instance = self._view.instance(life.instance_id)
        if instance is not None and instance.state is InstanceState.STARTING and life.process is not None:
            log.trouble("worker.start_deadline", instance_id=life.instance_id, life=life.life)
            life.process.kill()

    async def _watch(self, life: _Life, worker: Worker) -> None:
        """Ping, and kill what neither answers nor works, or works for too long without coming back."""
        assert life.process is not None
        n = 0
        while True:
            await trio.sleep(PING_SECONDS)
            n += 1
            self._port.ping(worker, n)
            began = seen = _cpu_seconds(life.process.pid)
            silent_since = time.monotonic()
            while worker.pongs < n:
                await trio.sleep(LOOK_SECONDS)
                used = _cpu_seconds(life.process.pid)
                now = time.monotonic()
                if used > seen or now < worker.held_until + LOOK_SECONDS:  # what is not read cannot be heard
                    seen, silent_since = used, now
                is_silent = now - silent_since >= SILENCE_SECONDS
                if worker.pongs < n and (is_silent or used - began >= CPU_SECONDS):
                    log.trouble("worker.watchdog", instance_id=life.instance_id, reason="silent" if is_silent else "cpu")
                    life.process.kill()
                    return

    # ------------------------------------------------------------------ for doctor and status

    def facts(self) -> list[JsonObject]:
        """What the machine says of the live workers: instance, pid, CPU seconds, resident bytes, frames read."""
        return [_facts_of(life, life.worker, life.process.pid) for life in self._lives.values() if life.worker and life.process]


def _death_of(life: _Life, worker: Worker, ended: Exit) -> Death:
    if life.is_planned:
        return Death.KILLED
    if worker.is_violation or ended.kind == "sigsys":
        return Death.VIOLATION
    return Death.ZYGOTE if ended.kind == "lost" else Death.CRASH


def _cpu_seconds(pid: int) -> float:
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0  # it is gone; its channel says so too
    return float(times.user + times.system)


def _facts_of(life: _Life, worker: Worker, pid: int) -> JsonObject:
    facts: JsonObject = {"instance_id": life.instance_id, "life": life.life, "pid": pid, "frames": worker.frames_in}
    try:
        process = psutil.Process(pid)
        facts |= {"cpu_seconds": _cpu_seconds(pid), "resident_bytes": int(process.memory_info().rss)}
    except psutil.Error:
        facts["gone"] = True
    return facts
