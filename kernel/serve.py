"""One kernel from start to end: opens the home and the store, wires the parts, serves until it is stopped or abandoned.

Rules:
1. Parts meet here only: turns gets one table, effect type to handler; siblings never call each other.
2. Nothing is served before the sandbox is whole, the store is open and Booted is committed.
3. The end is tidy or it is not; the next start makes no difference between the two.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trio

from kernel import backup, log, memory_watch
from kernel.agent_port import AgentPort
from kernel.artifact_store import ArtifactStore
from kernel.clock import Clock, new_epoch
from kernel.contents import Contents
from kernel.core.decision import FeedTimeline, KernelBug, KillWorker, PumpOutbox, SendToWorker, Speaker, StartWorker, StopKernel, StopWorker
from kernel.core.events import ArtifactsLost, BackupEnded, Booted, MemoryRanShort, StateRestored, SweepBodies
from kernel.core.manifest import ManifestInvalid
from kernel.core.records import Record
from kernel.core.surface_effects import DropBytes, SendArtifact, SendToView, TellSurfaceChanged
from kernel.core.upkeep_effects import MakeBackup
from kernel.drafts import Drafts
from kernel.home import Home
from kernel.host_port import HostPort
from kernel.launch import Executed
from kernel.listener import Listener, say_goodbye
from kernel.logring import LogRings
from kernel.presence import Presence
from kernel.queries import Facts
from kernel.registry import Registry, load_registry
from kernel.store import Store, StoreRefused
from kernel.store_start import forget_restore
from kernel.supervisor import Supervisor
from kernel.timeline_feed import TimelineFeed
from kernel.turns import KERNEL, Handlers, Outcome, Turn, Turns
from kernel.worker_port import WorkerPort
from kernel.zygote import SandboxIncomplete
from lineup_sdk.channel import Channel
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.limits import MAX_FRAME_BYTES
from lineup_sdk.protocol.messages import JsonObject

SWEEP_SECONDS = 3600.0
SWEEP_PAUSE_SECONDS = 0.1  # between two turns of a sweep, so that it never fills a commit that somebody waits for
_ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How this kernel is run. idle_seconds: how long it stays after the last view and Agent are gone (SPEC 2.9)."""

    home: Path
    app_folders: Sequence[Path] = ()
    idle_seconds: float = 60.0
    retention_days: int = 90  # how long bodies are kept that nobody waits for (SPEC 16)
    early: Executed | None = None  # a zygote that was executed already


class Refused(Exception):
    """The kernel cannot start; code and hint say why and what to do."""

    def __init__(self, code: Code, hint: str, detail: JsonObject | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.hint = hint
        self.detail = detail or {}


Opened = tuple[Home, Registry, Store]


class Kernel:
    """All parts of one kernel."""

    def __init__(self, settings: Settings, opened: Opened, nursery: trio.Nursery) -> None:
        self._settings = settings
        self._nursery = nursery
        self._unseen: list[Record] = []  # committed, and the views do not know
        self.home, registry, self.store = opened
        self.clock = Clock()
        self.store.rebase_deadlines(self.clock.boot_id, self.clock.boottime_ms())
        self.presence = Presence()
        self.artifacts = ArtifactStore(self.home.folder / "artifacts")
        view, rings = self.store.view, LogRings()
        facts = Facts(view=view, rings=rings, presence=self.presence, drafts=Drafts(view), machine=self._machine)
        self.worker_port = WorkerPort(self._post, view, registry.sources, rings, self.artifacts)
        self.timeline_feed = TimelineFeed(view, self.worker_port.send, self.worker_port.flush)
        contents = Contents(view=view, artifacts=self.artifacts, surfaces=registry.surfaces)
        self.host_port = HostPort(self._post, facts, contents)
        self.agent_port = AgentPort(self._post, view, self.presence)
        self.supervisor = Supervisor(self._post, view, self.worker_port, nursery, settings.early)
        self.listener = Listener(self.home.socket, self.home.pairing, self.host_port, self.agent_port)
        self.turns = Turns(self.store, self.clock, self._handlers())

    def _handlers(self) -> Handlers:
        return Handlers(
            effects={
                DropBytes: self._drop_bytes,
                KillWorker: self.supervisor.kill,
                MakeBackup: self._make_backup,
                PumpOutbox: self._pump,
                SendArtifact: self.worker_port.send_artifact,
                SendToView: self.host_port.send,
                SendToWorker: self.worker_port.send,
                StartWorker: self.supervisor.start,
                FeedTimeline: self.timeline_feed.open,
                StopKernel: self._stop,
                StopWorker: self.supervisor.stop,
                TellSurfaceChanged: self.worker_port.tell_surface_changed,
            },
            reply=self._reply,
            committed=self._committed,
            flush=self._flush,
            flush_late=self._flush_late,
            starving=self._starving,
            fed=self._fed,
        )

    def _post(self, *turns: Turn) -> None:
        self.turns.post(*turns)

    def _reply(self, outcome: Outcome) -> None:
        match outcome.turn.origin.speaker:
            case Speaker.AGENT:
                self.agent_port.reply(outcome)
            case Speaker.VIEW:
                self.host_port.reply(outcome)
            case Speaker.WORKER:
                self.worker_port.reply(outcome)
            case Speaker.KERNEL:
                raise KernelBug("the kernel's own turns have nobody to answer")

    def _committed(self, records: Sequence[Record]) -> None:
        self._unseen.extend(records)

    def _pump(self, effect: PumpOutbox) -> None:
        self.agent_port.pump(effect)
        self.host_port.pump(effect)

    def _flush(self) -> None:
        self.worker_port.flush()
        self.agent_port.flush()
        if self._unseen:  # looked at only now: somebody waits for those frames
            unseen, self._unseen = self._unseen, []
            self.host_port.committed(unseen)
            self.timeline_feed.committed(unseen)
        self.host_port.flush()

    def _flush_late(self) -> None:
        self.worker_port.flush_late()
        self.agent_port.flush_late()

    def _starving(self) -> None:
        log.trouble("store.full", code=Code.STORE_FULL)
        self.agent_port.stop_reading()

    def _fed(self) -> None:
        log.event("store.recovered")
        self.agent_port.read_on()

    def _stop(self, effect: StopKernel) -> None:
        del effect
        self._nursery.start_soon(self._end)

    def _make_backup(self, effect: MakeBackup) -> None:
        self._nursery.start_soon(self._back_up, effect)

    async def _back_up(self, effect: MakeBackup) -> None:
        try:
            facts = await backup.make(self.store, self.home.folder / "artifacts", Path(effect.path))
            ended = BackupEnded(view_id=effect.view_id, facts=facts)
        except backup.BackupFailed as failure:
            ended = BackupEnded(view_id=effect.view_id, code=failure.code, detail=failure.detail.as_json())
        self._post(Turn(command=ended, origin=KERNEL))

    def _drop_bytes(self, effect: DropBytes) -> None:
        for sha256 in effect.sha256s:
            if not self.store.view.artifacts.needs(sha256):
                self.artifacts.drop(sha256)

    def _memory_ran_short(self) -> None:
        self._post(Turn(command=MemoryRanShort(), origin=KERNEL))

    async def _end(self) -> None:
        self._flush()
        await self.listener.farewell(Code.UNAVAILABLE, "the kernel was stopped")
        self._nursery.cancel_scope.cancel()

    def _machine(self) -> JsonObject:
        layers = [{"name": layer.name, "ok": layer.ok, "detail": layer.detail} for layer in self.supervisor.layers]
        machine: JsonObject = {"layers": layers, "retention_days": self._settings.retention_days, "workers": self.supervisor.facts()}
        return machine | ({"store": Code.STORE_FULL.value} if self.turns.is_starved else {})

    async def run(self, inherited: socket.socket | None) -> None:
        """Serve until stopped or abandoned. Raises: SandboxIncomplete, StorageFailed, KernelBug."""
        await self._nursery.start(self.supervisor.run)
        self._nursery.start_soon(self.turns.run)
        self._nursery.start_soon(self.timeline_feed.run)
        self._nursery.start_soon(memory_watch.watch, self._memory_ran_short)
        if self.store.is_restored:
            self._post(Turn(command=StateRestored(), origin=KERNEL))
        self._post(Turn(command=Booted(), origin=KERNEL))
        forget_restore(self.home.folder)
        lost = self.artifacts.sweep(self.store.view.artifacts.contents())
        if lost:
            self._post(Turn(command=ArtifactsLost(numbers=lost), origin=KERNEL))
        await self._nursery.start(self.listener.run)
        self._nursery.start_soon(self._sweep)
        log.event("kernel.ready")
        if inherited is not None:
            self._nursery.start_soon(self._serve_inherited, inherited)
        await self.presence.wait_abandoned(self._settings.idle_seconds)
        log.event("kernel.abandoned")
        self._nursery.cancel_scope.cancel()

    async def _sweep(self) -> None:
        """Give up old bodies once an hour, a bounded turn at a time."""
        while True:
            before = datetime.now(UTC) - timedelta(days=self._settings.retention_days)
            while not self.turns.is_starved and self.store.view.retention.has_any(before):
                self._post(Turn(command=SweepBodies(before=before), origin=KERNEL))
                await trio.sleep(SWEEP_PAUSE_SECONDS)
            await trio.sleep(SWEEP_SECONDS)

    async def _serve_inherited(self, inherited: socket.socket) -> None:
        await self.listener.serve(inherited, is_trusted=True)


def _open(settings: Settings) -> Opened:
    """Open everything that can refuse. Raises: Refused."""
    home = None
    try:
        home = Home(settings.home)
        registry = load_registry(_ROOT / "manifests", _ROOT / "workers", home.app_folders(settings.app_folders))
        store = Store.open(
            home.database,
            manifests=registry.manifests,
            make_epoch=new_epoch,
            make_id=lambda kind, epoch: f"{kind}_{epoch}_{new_epoch()}",
            now=lambda: datetime.now(UTC),
        )
    except BaseException as error:
        if home is not None:
            home.close()
        if isinstance(error, StoreRefused):
            raise Refused(error.code, error.hint) from error
        if isinstance(error, ManifestInvalid):
            where: JsonObject = {"pointer": error.pointer, "expected": error.reason}
            raise Refused(Code.MANIFEST_INVALID, f"mend the {error.role}", where) from error
        raise
    return home, registry, store


async def serve(settings: Settings, inherited: socket.socket | None) -> None:
    """Run one kernel to its end. Raises: Refused, StorageFailed, KernelBug."""
    try:
        opened = _open(settings)
    except BaseException:
        if settings.early is not None:
            settings.early.give_up()
        raise
    try:
        async with trio.open_nursery() as nursery:
            await Kernel(settings, opened, nursery).run(inherited)
    except* SandboxIncomplete as group:
        missing = _only(group)
        detail: JsonObject = {"layer": missing.layer, "reason": missing.reason}
        raise Refused(Code.SANDBOX_INCOMPLETE, missing.hint, detail) from None
    finally:
        opened[2].close()


def _only(group: BaseExceptionGroup[SandboxIncomplete]) -> SandboxIncomplete:
    first = group.exceptions[0]
    return first if isinstance(first, SandboxIncomplete) else _only(first)


async def tell_refusal(inherited: socket.socket, refused: Refused) -> None:
    """Say on the launcher's channel why the kernel does not start."""
    channel = Channel(inherited, max_in_bytes=MAX_FRAME_BYTES, max_out_bytes=MAX_FRAME_BYTES)
    with suppress(OSError):
        await say_goodbye(channel, refused.code, {"hint": refused.hint, **refused.detail})
    channel.close()
