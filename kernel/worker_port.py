"""The kernel's end of every worker channel: frames in become turns, effects become frames (SPEC 2.2-2.6).

Rules:
1. Who speaks is known by the channel: Origin is made once, when the instance gets its process.
2. A broken frame, an unknown type or a flood of refusals ends this channel and nothing else.
3. A worker that is over its budget is not read for a while; one that does not read is cut when its queue is full.
4. All frames of one read are posted together, so that accept and a quick result share one commit. Their receipts may wait for the
   write of something else: mostly the next call.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import trio

from kernel import log
from kernel.artifact_store import ArtifactStore, Upload
from kernel.artifact_uploads import Uploads, Whole
from kernel.budget import YIELD_SECONDS, Budget
from kernel.core.decision import Detail, Origin, SendToWorker, Speaker
from kernel.core.events import ArtifactReceived, DeniedRequest
from kernel.core.grants import grants_for
from kernel.core.lifecycle import MODE
from kernel.core.manifest import Kind
from kernel.core.records import Instance, replace
from kernel.core.surface_effects import SendArtifact, TellSurfaceChanged, chunks_of
from kernel.logring import LogRings
from kernel.protocol.strict import Denied, parse_worker
from kernel.registry import SourceFile
from kernel.store_view import StoreView
from kernel.turns import Outcome, Turn
from lineup_sdk.channel import Channel, ChannelClosed, ChannelOverflow
from lineup_sdk.protocol.framing import ProtocolViolation, decode_item
from lineup_sdk.protocol.limits import WINDOW_BYTES, WIRE_VERSION
from lineup_sdk.protocol.messages import (
    Chunk,
    Hello,
    JsonObject,
    LogWrite,
    Message,
    Ping,
    Pong,
    Reply,
    ToolAccept,
    ToolComplete,
    Welcome,
    to_frame,
)
from lineup_sdk.protocol.surface_messages import ArtifactPut, SurfaceChanged, SurfaceClose, SurfaceOpen, SurfaceRead, SurfaceUpdate

CONTENT_SECONDS_PER_BYTE = 10e-9  # what writing out a state costs the kernel, measured; booked on the worker's budget


@dataclass(slots=True)
class Worker:
    """One process of one life, as the port sees it."""

    origin: Origin
    channel: Channel
    budget: Budget
    uploads: Uploads
    pings: int = 0  # the n of the newest ping
    pongs: int = 0  # the n of the newest pong
    held_until: float = 0.0  # over its budget, it is not read before this monotonic time
    frames_in: int = 0
    is_violation: bool = False
    is_dirty: bool = False
    is_late: bool = False  # a reply waits for the next write
    is_surface_told: bool = False  # it heard of a change and has not looked since
    owed_seconds: float = 0.0  # of the kernel's time, for content it asked for: booked at its next frames
    whole: Whole | None = None  # an upload that its newest frame ended


class WorkerPort:
    """See the head of the file."""

    def __init__(
        self,
        post: Callable[..., None],
        view: StoreView,
        sources: Mapping[str, Sequence[SourceFile]],
        rings: LogRings,
        artifacts: ArtifactStore,
    ) -> None:
        self._post = post
        self._view = view
        self._sources = sources
        self._rings = rings
        self._artifacts = artifacts
        self._settling: dict[tuple[int, int | None], Upload] = {}  # kept bytes whose turn is not decided, by channel and request
        self._workers: dict[int, Worker] = {}
        self._by_instance: dict[str, Worker] = {}
        self._next_channel = 1
        self._dirty: list[Worker] = []
        self._late: list[Worker] = []

    # ------------------------------------------------------------------ a worker's life

    def attach(self, instance: Instance, channel: Channel) -> Worker:
        """Give a sealed process its instance: welcome, then its source in chunks."""
        manifest = self._view.manifests[instance.app_scope]
        origin = Origin(
            speaker=Speaker.WORKER,
            channel=self._next_channel,
            instance_id=instance.instance_id,
            app_scope=instance.app_scope,
            life=instance.life,
            grants=grants_for(manifest, self._view.is_allowed),
        )
        self._next_channel += 1
        worker = Worker(origin=origin, channel=channel, budget=Budget(time.monotonic()), uploads=Uploads(self._artifacts))
        self._workers[origin.channel] = worker
        self._by_instance[instance.instance_id] = worker
        self._welcome(worker, instance)
        return worker

    def _welcome(self, worker: Worker, instance: Instance) -> None:
        manifest = self._view.manifests[instance.app_scope]
        files = self._sources[instance.app_scope]
        assert manifest.entry is not None
        context: JsonObject = {
            "app_scope": instance.app_scope,
            "instance_id": instance.instance_id,
            "conversation_id": instance.conversation_id,
            "app_version": instance.app_version,
            "state": "starting",
        }
        if manifest.kind is Kind.SYSTEM:
            context["mode"] = MODE
        entry = {
            "entry": manifest.entry.main,
            "files": [{"name": file.name, "size": file.size, "sha256": file.sha256} for file in manifest.entry.worker_files],
        }
        self._put(worker, Welcome(wire=WIRE_VERSION, epoch=self._view.epoch, context=context, source=entry))
        data_of = {file.name: file.data for file in files}
        for listed in manifest.entry.worker_files:
            self._put_chunks(worker, listed.name, data_of[listed.name])

    def _put_chunks(self, worker: Worker, name: str, data: bytes) -> None:
        for chunk in chunks_of(name, data):
            self._put(worker, chunk)

    async def serve(self, worker: Worker) -> None:
        """Read the worker until its channel ends, by either side; worker.is_violation says whether it broke the wire."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(worker.channel.run_flusher)
                nursery.start_soon(self._read, worker, nursery.cancel_scope)
        except* (ChannelClosed, ChannelOverflow):
            pass
        finally:
            self._detach(worker)

    async def _read(self, worker: Worker, until: trio.CancelScope) -> None:
        try:
            while True:
                bodies = await worker.channel.receive_bodies()
                wait_seconds = await self._take(worker, bodies)
                if wait_seconds:
                    worker.held_until = time.monotonic() + wait_seconds
                    await trio.sleep(wait_seconds)  # the budget's back-pressure: a worker is slowed, not refused
        except (ProtocolViolation, ChannelOverflow):
            worker.is_violation = True
        except ChannelClosed:
            pass
        until.cancel()

    async def _take(self, worker: Worker, bodies: Sequence[bytes]) -> float:
        turns: list[Turn] = []
        began = time.monotonic()
        spent = 0.0
        for body in bodies:
            turns.extend(self._turns_of(worker, body))
            if worker.whole is not None:
                spent += time.monotonic() - began
                self._post(*turns, await self._keep(worker, worker.whole))
                turns = []
                began = time.monotonic()
            if time.monotonic() - began > YIELD_SECONDS:
                spent += time.monotonic() - began
                self._post(*turns)
                turns = []
                await trio.lowlevel.checkpoint()
                began = time.monotonic()
        now = time.monotonic()
        spent += now - began
        if turns:
            self._post(*turns)
        worker.frames_in += len(bodies)
        if worker.is_violation:
            raise ProtocolViolation("refusals")
        owed, worker.owed_seconds = worker.owed_seconds, 0.0
        return worker.budget.spend(now, len(bodies), spent + owed)

    async def _keep(self, worker: Worker, whole: Whole) -> Turn:
        """Make an upload durable before the turn that records it (INV-51)."""
        worker.whole = None
        command = await whole.command()
        origin = self._origin(worker, whole.request_id)
        if whole.upload is not None:
            self._settling[origin.channel, origin.request_id] = whole.upload
        return Turn(command=command, origin=origin)

    def _turns_of(self, worker: Worker, body: bytes) -> list[Turn]:
        try:
            message, request_id = parse_worker(decode_item(body))
        except Denied as denied:
            request_id, message = denied.request_id, None
        if message is None:
            return [Turn(command=DeniedRequest(), origin=self._origin(worker, request_id))]
        if isinstance(message, Hello):  # it opened the channel, and there is no row for it: never a command
            raise ProtocolViolation("out_of_place")
        if isinstance(message, Pong):
            if message.n <= worker.pings:  # one that was not asked for yet answers nothing
                worker.pongs = max(worker.pongs, message.n)
            return []
        if isinstance(message, LogWrite):
            self._rings.write(worker.origin.instance_id, message.stream, message.text)
            return []
        if isinstance(message, Chunk):
            worker.whole = worker.uploads.take(message)
            return []
        if isinstance(message, ArtifactPut):
            worker.whole = worker.uploads.begin(message, request_id)
            return []
        return [Turn(command=message, origin=self._origin(worker, request_id))]

    def _origin(self, worker: Worker, request_id: int | None) -> Origin:
        return replace(worker.origin, request_id=request_id)

    def _detach(self, worker: Worker) -> None:
        worker.channel.close()
        worker.uploads.close()
        self._workers.pop(worker.origin.channel, None)
        if self._by_instance.get(worker.origin.instance_id) is worker:
            del self._by_instance[worker.origin.instance_id]

    # ------------------------------------------------------------------ after a commit

    def send(self, effect: SendToWorker) -> None:
        """Effect: a message for one life; dropped when that life is gone, because the next one gets its own."""
        worker = self._by_instance.get(effect.instance_id)
        if worker is not None and worker.origin.life == effect.life:
            self._put(worker, effect.message)

    def reply(self, outcome: Outcome) -> None:
        """Answer the request of a turn that is committed."""
        self._settle(outcome)
        worker = self._workers.get(outcome.turn.origin.channel)
        request_id = outcome.turn.origin.request_id
        if worker is None:
            return
        self._note_look(worker, outcome)
        if request_id is not None:
            if outcome.accepted and outcome.value is not None:
                self._put(worker, Reply(id=request_id, value=outcome.value))
            else:
                self._put(worker, Reply(id=request_id, receipt=receipt(outcome)), is_late=_may_linger(outcome))
        if outcome.is_violation:
            worker.is_violation = True
            worker.channel.close()

    def _settle(self, outcome: Outcome) -> None:
        """The turn about kept bytes is decided; those it refused go, unless somebody else has the same."""
        origin, command = outcome.turn.origin, outcome.turn.command
        upload = self._settling.pop((origin.channel, origin.request_id), None) if isinstance(command, ArtifactReceived) else None
        if upload is None or not isinstance(command, ArtifactReceived):
            return
        upload.settle()
        if not outcome.accepted and not self._view.artifacts.needs(command.sha256):
            self._artifacts.drop(command.sha256)

    def _note_look(self, worker: Worker, outcome: Outcome) -> None:
        if isinstance(outcome.turn.command, SurfaceClose | SurfaceOpen | SurfaceRead | SurfaceUpdate):
            worker.is_surface_told = False
            worker.owed_seconds += (outcome.value or {}).get("size", 0) * CONTENT_SECONDS_PER_BYTE

    def tell_surface_changed(self, effect: TellSurfaceChanged) -> None:
        """Effect: one `surface.changed` to a worker, and no other until it has looked."""
        worker = self._by_instance.get(effect.instance_id)
        if worker is not None and worker.origin.life == effect.life and not worker.is_surface_told:
            worker.is_surface_told = True
            self._put(worker, SurfaceChanged(version=effect.version))

    def send_artifact(self, effect: SendArtifact) -> None:
        """Effect: a window of kept bytes, in chunks; one that is too short says that they are lost."""
        worker = self._by_instance.get(effect.instance_id)
        if worker is None or worker.origin.life != effect.life:
            return
        began = time.monotonic()
        data = self._artifacts.read(effect.sha256, effect.size, effect.offset, WINDOW_BYTES) or b""
        for chunk in chunks_of(effect.of, data):
            self._put(worker, chunk)
        worker.owed_seconds += time.monotonic() - began

    def ping(self, worker: Worker, n: int) -> None:
        """Ask whether the worker's event loop turns."""
        worker.pings = n
        self._put(worker, Ping(n=n))
        self.flush()

    def stop(self, worker: Worker, message: Message) -> None:
        """Tell a worker to finish."""
        self._put(worker, message)
        self.flush()

    def flush(self) -> None:
        """Write what this pass queued; what a socket does not take waits for its flusher."""
        dirty, self._dirty = self._dirty, []
        for worker in dirty:
            worker.is_dirty = False
            _flush(worker.channel)

    def flush_late(self) -> None:
        """Write what waited for the next write."""
        late, self._late = self._late, []
        for worker in late:
            worker.is_late = False
            _flush(worker.channel)

    def _put(self, worker: Worker, message: Message, *, is_late: bool = False) -> None:
        try:
            worker.channel.queue(to_frame(message))  # effects and replies are flushed at the end of their pass
        except (ChannelClosed, ChannelOverflow):
            worker.channel.close()
            return
        except ProtocolViolation:  # our own frame is too big for the wire; never the end of the kernel
            log.trouble("worker.frame_too_big", instance_id=worker.origin.instance_id)
            worker.channel.close()
            return
        if is_late and not worker.is_late:
            worker.is_late = True
            self._late.append(worker)
        elif not (is_late or worker.is_dirty):
            worker.is_dirty = True
            self._dirty.append(worker)


def _flush(channel: Channel) -> None:
    try:
        channel.flush()
    except ChannelClosed:
        channel.close()


def _may_linger(outcome: Outcome) -> bool:
    """The receipt of an accepted beginning or end of a call: its App has nothing more to do about it."""
    return outcome.accepted and isinstance(outcome.turn.command, ToolAccept | ToolComplete)


def receipt(outcome: Outcome) -> JsonObject:
    """CommandReceipt of a turn."""
    said: JsonObject = {"accepted": outcome.accepted, "at": outcome.at}
    if outcome.code is not None:
        said["code"] = outcome.code.value
    if isinstance(outcome.detail, Detail):
        said["detail"] = outcome.detail.as_json()
    return said
