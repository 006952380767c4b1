"""A view that stays: attached, mirrored, and attached again when the kernel dies (SPEC 2.6, 2.9). Console and headless stand on it.

Use: `await nursery.start(view.run)`; then `view.mirror`, `await view.wait_change()`, `await view.request(message)`.
Rules:
1. A link that ends without a goodbye is a dead kernel: it is started again, within the launcher's limit. A link that lags or loses
   step is opened again. Any other goodbye, or a kernel.stop of this view's own, is meant: the view ends and `ended` says why.
2. While there is no link the mirror keeps its last picture and `phase` says that it is old.
3. A request made while there is no link waits for the next one; one whose link ends raises LinkLost and is not sent again.
4. A watcher hears every event of the current link, in order, after the mirror took it, and when that link is gone.
5. Rows of a call of this view's own are acknowledged as they come: what they say is in the deltas too.
"""

from __future__ import annotations

from typing import Literal, Protocol

import trio

from hosts.link import Event, HostLink, LinkLost, Refused, hello
from hosts.mirror import Mirror, OutOfStep, apply, from_snapshot
from hosts.providers import CannotDo, Providers
from kernel.protocol.host import Delta, EnvelopeSent, Goodbye, HostHello, KernelStop, OutboxAcknowledge, Snapshot
from kernel.protocol.host_capabilities import CapabilityExecute, CapabilityStop
from kernel.protocol.host_surfaces import ArtifactRead
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject, Message

Phase = Literal["connecting", "up", "ended"]

_COME_BACK = frozenset({Code.LIMIT_EXCEEDED, Code.PROTOCOL_VIOLATION})  # said to a view that lagged or lost step


async def _read_artifact(link: HostLink, artifact_id: str) -> tuple[JsonObject, bytes]:
    """What is said of an artifact and every byte of it, window by window. Raises: CannotDo when they are not there, LinkLost."""
    value: JsonObject = {}
    data, size = b"", 1
    while len(data) < size:
        try:
            value, window = await link.fetch(ArtifactRead(artifact_id=artifact_id, offset=len(data)))
        except Refused as refused:
            raise CannotDo("bytes_lost") from refused
        data, size = data + window, int(value["size"])
        if not window and size:
            raise CannotDo("bytes_lost")
    return value, data


class Attaching(Protocol):
    """What brings a view to its kernel: a Launcher, or one that leaves the starting to another."""

    async def attach(self, nursery: trio.Nursery, greeting: HostHello) -> HostLink: ...


class Watcher(Protocol):
    """Who wants to hear more than that something changed. Neither method may wait or raise."""

    def heard(self, event: Event) -> None: ...
    def link_lost(self) -> None: ...


class View:
    """See the head of the file."""

    def __init__(self, launcher: Attaching, label: str, providers: Providers | None = None, watcher: Watcher | None = None) -> None:
        self.mirror = Mirror()
        self.phase: Phase = "connecting"
        self.ended: Goodbye | None = None
        self.restarts = 0
        self.view_id = ""  # the kernel's name of the current link
        self._launcher = launcher
        self._label = label
        self._providers = providers or Providers({})
        self._watcher = watcher
        self._link: HostLink | None = None
        self._has_stopped_it = False
        self._changed = trio.Event()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Stay attached until the kernel is stopped; started once the first snapshot is in.

        Raises: KernelUnreachable when it cannot be started (again), Refused when it does not take this view.
        """
        is_started = False
        async with trio.open_nursery() as nursery:
            while self.phase != "ended":
                greeting = hello("view", label=self._label, providers=self._providers.names or None)
                link = await self._launcher.attach(nursery, greeting)
                try:
                    async for event in link.events:
                        self._take(link, event)
                        if isinstance(event, CapabilityExecute):
                            nursery.start_soon(self._provide, link, event)
                        if not is_started:
                            is_started = True
                            task_status.started()
                finally:
                    self._drop(link)

    def _take(self, link: HostLink, event: Event) -> None:
        try:
            match event:
                case Snapshot():
                    self.mirror, self.phase, self._link = from_snapshot(event), "up", link
                    self.view_id = link.welcome.view_id
                case Delta():
                    apply(self.mirror, event)
                case CapabilityStop():
                    self._providers.stop(event.request_id)
                case EnvelopeSent():
                    link.send(OutboxAcknowledge(message_id=str(event.envelope.get("message_id"))))
                case _:
                    pass  # frames of surfaces and the like: for the watcher
        except OutOfStep:
            link.close()
            return
        except LinkLost:
            return
        if self._watcher is not None:
            self._watcher.heard(event)
        self._tell()

    async def _provide(self, link: HostLink, execute: CapabilityExecute) -> None:
        """Do what the kernel asks of this host, and answer it (SPEC 10)."""

        async def read(artifact_id: str) -> bytes:
            return (await _read_artifact(link, artifact_id))[1]

        try:
            await link.request(await self._providers.run(execute, read))
        except (LinkLost, Refused):
            return  # the kernel is gone, or it wants no answer any more: what it knows is that it does not know

    def _drop(self, link: HostLink) -> None:
        self._link = None
        link.close()
        farewell = link.farewell
        if self._has_stopped_it or (farewell is not None and farewell.code not in _COME_BACK):
            self.phase, self.ended = "ended", farewell
        else:
            self.phase = "connecting"
            self.restarts += 1
        if self._watcher is not None:
            self._watcher.link_lost()
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def wait_change(self) -> None:
        """Wait until the mirror or the phase changes next."""
        await self._changed.wait()

    async def request(self, message: Message) -> JsonObject:
        """Ask on the current link, waiting for one if there is none. Raises: Refused, LinkLost (also when the view has ended)."""
        answer = await (await self._wait_link()).request(message)
        if isinstance(message, KernelStop):
            self._has_stopped_it = True
        return answer

    async def fetch(self, message: Message) -> tuple[JsonObject, bytes]:
        """Ask for a value and the content that follows it. Raises: as request."""
        return await (await self._wait_link()).fetch(message)

    async def read_artifact(self, artifact_id: str) -> tuple[JsonObject, bytes]:
        """Return what the kernel says of an artifact, and every byte of it. Raises: CannotDo when they are not there, LinkLost."""
        return await _read_artifact(await self._wait_link(), artifact_id)

    async def _wait_link(self) -> HostLink:
        while self._link is None:
            if self.phase == "ended":
                raise LinkLost
            await self.wait_change()
        return self._link
