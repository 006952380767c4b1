"""Real sealed processes without a kernel: executes the launcher's zygote and asks it for processes.

Use: `async with open_cage() as cage: process = await cage.spawn()`.
Rules:
1. The launcher is executed as the kernel executes it, with every layer; one that is missing is SealIncomplete, and nothing runs.
2. The end of the block is the end of every process.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import trio

from lineup_sdk.protocol.control import (
    LAYERS,
    MAX_PACKET_BYTES,
    TO_KERNEL,
    ControlMessage,
    Exited,
    Layer,
    NotSpawned,
    Ready,
    Spawn,
    Spawned,
    decode,
    encode,
)

_LIBRARIES = ("lineup_sdk", "trio", "cbor2", "pyseccomp")
_ENVIRONMENT = {"LC_ALL": "C.UTF-8", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
_START_SECONDS = 30.0


class SealIncomplete(Exception):
    """This machine cannot seal a process: which layer, why, and how to mend it. `lineup doctor` says more."""


@dataclass(slots=True, eq=False)
class Process:
    """One process at the other end of `sock`. `how` = how it ended, such as `exited 0` or `killed 9`, once it did."""

    sock: socket.socket
    pidfd: int = -1
    how: str = ""
    ended: trio.Event = field(default_factory=trio.Event)
    answered: trio.Event = field(default_factory=trio.Event)

    def kill(self) -> None:
        """Send SIGKILL; nothing happens when it already ended."""
        if self.pidfd >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def note_end(self, how: str) -> None:
        """Record the end."""
        self.how = how
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1
        self.ended.set()


def _import_paths() -> list[str]:
    folders: list[str] = []
    for name in _LIBRARIES:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise SealIncomplete(f"the library {name} is not installed")
        file = Path(spec.origin)
        folders.append(str(file.parent.parent if spec.submodule_search_locations else file.parent))
    return list(dict.fromkeys(folders))


def _program() -> str:
    spec = find_spec("workers.launcher.zygote")
    if spec is None or spec.origin is None:
        raise SealIncomplete("the launcher is not installed")
    return spec.origin


class Cage:
    """One zygote and its processes."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        with theirs:
            arguments = [str(theirs.fileno()), str(os.getpid()), *_import_paths()]
            self._popen = subprocess.Popen(
                [sys.executable, "-I", "-S", "-X", "utf8", _program(), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=_ENVIRONMENT,
                cwd="/",
                start_new_session=True,
            )
        self._control = ours
        self._pidfd = -1  # of PID 1 inside
        self._last_number = 0
        self._processes: dict[int, Process] = {}

    async def start(self) -> None:
        """Hear every layer. Raises: SealIncomplete."""
        heard: set[str] = set()
        with trio.fail_after(_START_SECONDS):
            while True:
                message, self._pidfd = await self._receive()
                match message:
                    case Layer(ok=True):
                        heard.add(message.name)
                    case Layer():
                        raise SealIncomplete(f"{message.name}: {message.detail}. {message.hint}")
                    case Ready() if heard >= set(LAYERS):
                        return
                    case _:
                        missing = next((name for name in LAYERS if name not in heard), "none")
                        raise SealIncomplete(f"the launcher ended early; first layer that was not reported: {missing}")

    async def spawn(self) -> Process:
        """One more sealed process. Raises: SealIncomplete when the machine refuses it."""
        self._last_number += 1
        ours, theirs = socket.socketpair()
        process = self._processes[self._last_number] = Process(ours)
        with theirs:
            while True:
                try:
                    socket.send_fds(self._control, [encode(Spawn(number=self._last_number))], [theirs.fileno()])
                    break
                except BlockingIOError:
                    await trio.lowlevel.wait_writable(self._control)
        await process.answered.wait()
        if process.how.startswith("not started"):
            raise SealIncomplete(process.how)
        return process

    async def listen(self) -> None:
        """Follow the zygote until it ends."""
        while True:
            message, pidfd = await self._receive()
            match message:
                case Spawned():
                    self._processes[message.number].pidfd = pidfd
                    self._processes[message.number].answered.set()
                case NotSpawned():
                    self._end(message.number, f"not started: {os.strerror(message.errno)}")
                case Exited():
                    self._end(message.number, f"{message.how} {message.status}")
                case _:
                    for number in list(self._processes):
                        self._end(number, "lost with its launcher")
                    return

    def _end(self, number: int, how: str) -> None:
        process = self._processes.pop(number)
        process.note_end(how)
        process.answered.set()

    async def _receive(self) -> tuple[ControlMessage | None, int]:
        while True:
            try:
                packet, descriptors, _, _ = socket.recv_fds(self._control, MAX_PACKET_BYTES, 1, socket.MSG_CMSG_CLOEXEC)
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self._control)
                continue
            return (decode(packet, TO_KERNEL), descriptors[0] if descriptors else -1) if packet else (None, -1)

    async def close(self) -> None:
        """End everything and reap the outer process."""
        if self._pidfd >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            os.close(self._pidfd)
        else:
            self._popen.kill()
        self._control.close()
        for number in list(self._processes):
            self._end(number, "lost with its launcher")
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(self._popen.wait)


@asynccontextmanager
async def open_cage() -> AsyncIterator[Cage]:
    """A cage for as long as the block. Raises: SealIncomplete."""
    cage = Cage()
    try:
        await cage.start()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cage.listen)
            yield cage
            nursery.cancel_scope.cancel()
    finally:
        await cage.close()
