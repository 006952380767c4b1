"""What `lineup doctor` shows of the sandbox: every layer of the seal, tried now on this machine, and the cost of the processes.

Use: `await examine()` starts a zygote of its own, so it works with and without a running kernel; `process_facts` reads any process.
Rules:
1. Data only; the command line prints it.
2. Nothing is guessed: a layer that was not reached is listed as untried, a figure the system refuses is None.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import psutil
import trio

from kernel.spares import Ready, spawn_ready
from kernel.zygote import SandboxIncomplete, SpawnFailed, Zygote
from lineup_sdk.protocol.control import LAYERS, Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessFacts:
    """One process as the system shows it. Sizes in bytes; uss = private memory; None = this user may not ask."""

    role: str
    pid: int
    rss_bytes: int
    uss_bytes: int | None
    cpu_seconds: float
    open_descriptors: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """layers = as reported, in order; untried = names never reached. is_complete = workers can run here."""

    layers: tuple[Layer, ...]
    untried: tuple[str, ...]
    start_ms: float  # the zygote, from exec to ready
    spawn_ms: float | None  # one process, from asking to its hello
    processes: tuple[ProcessFacts, ...]
    spawn_failure: str = ""

    @property
    def is_complete(self) -> bool:
        """True when every layer is there and a sealed process was started."""
        return not self.untried and all(layer.ok for layer in self.layers) and not self.spawn_failure


async def examine() -> Diagnosis:
    """Start a zygote and one sealed process, look, and end both."""
    started_at = time.perf_counter()
    found: list[Diagnosis] = []
    async with trio.open_nursery() as nursery:
        try:
            zygote = await Zygote.open(nursery)
        except SandboxIncomplete as error:
            return _incomplete(error, _ms_since(started_at))
        try:
            found.append(await _look(zygote, _ms_since(started_at)))
        finally:
            zygote.close()
            with trio.CancelScope(shield=True):
                await zygote.wait_dead()
    return found[0]


async def _look(zygote: Zygote, start_ms: float) -> Diagnosis:
    asked_at = time.perf_counter()
    ready: Ready | None = None
    failure = ""
    try:
        ready = await spawn_ready(zygote)
    except SpawnFailed as error:
        failure = error.reason
    spawn_ms = _ms_since(asked_at) if ready else None
    pids = [("zygote", zygote.inner_pid)] + ([("worker", ready.process.pid)] if ready else [])
    facts = tuple(f for role, pid in pids if (f := process_facts(role, pid)))
    if ready:
        ready.channel.close()
        await ready.process.wait_exited()
    return Diagnosis(layers=zygote.layers, untried=(), start_ms=start_ms, spawn_ms=spawn_ms, processes=facts, spawn_failure=failure)


def _incomplete(error: SandboxIncomplete, start_ms: float) -> Diagnosis:
    layers = error.layers
    if all(layer.ok for layer in layers):  # it never reported itself
        layers = (*layers, Layer(name=error.layer, ok=False, detail=error.reason, hint=error.hint))
    reported = {layer.name for layer in layers}
    untried = tuple(name for name in LAYERS if name not in reported)
    return Diagnosis(layers=layers, untried=untried, start_ms=start_ms, spawn_ms=None, processes=())


def process_facts(role: str, pid: int) -> ProcessFacts | None:
    """Read one process; None when it is gone."""
    try:
        process = psutil.Process(pid)
        times = process.cpu_times()
        return ProcessFacts(
            role=role,
            pid=pid,
            rss_bytes=process.memory_info().rss,
            uss_bytes=_uss(process),
            cpu_seconds=times.user + times.system,
            open_descriptors=_descriptors(process),
        )
    except psutil.NoSuchProcess:
        return None


def _uss(process: psutil.Process) -> int | None:
    try:
        return int(process.memory_full_info().uss)
    except psutil.AccessDenied:  # the zygote and its children are undumpable
        return None


def _descriptors(process: psutil.Process) -> int | None:
    try:
        return int(process.num_fds())
    except psutil.AccessDenied:
        return None


def _ms_since(then: float) -> float:
    return (time.perf_counter() - then) * 1000
