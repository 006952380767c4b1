"""The kernel's end of the zygote: start it, hear its layers, ask it for sealed processes, learn how they end.

Use: `zygote = await Zygote.open(nursery)`, then `process = await zygote.spawn()`; a task in the nursery reads the control channel.
Rules:
1. The zygote is executed, never forked (launch.py): no memory of the kernel can be in it.
2. A zygote serves only after every layer of control.LAYERS was reported as ok; else SandboxIncomplete names the first that was not.
3. The kernel holds pidfds of the outer process, of PID 1 and of every worker: a number that was reused can never be hit.
4. The end of the control channel, from either side, is the end of everything inside: PID 1 takes all workers with it.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import trio

from kernel.launch import Executed, execute, launch_command
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.control import (
    LAYERS,
    MAX_PACKET_BYTES,
    TO_KERNEL,
    ControlMessage,
    ExitCode,
    Exited,
    Layer,
    NotSpawned,
    Ready,
    Spawn,
    Spawned,
    decode,
    encode,
)
from lineup_sdk.protocol.framing import ProtocolViolation

START_SECONDS = 30.0
_STUB_SECONDS = 2.0  # for the outer process to reap PID 1 and follow it
_DEFECT_HINT = "run `lineup doctor`; if it names no layer, report it with its output"


class SandboxIncomplete(Exception):
    """A layer of the seal is missing on this machine; no worker runs. hint says how a person mends it.

    layers = what was reported until then, the missing one not included unless it reported itself.
    """

    code = Code.SANDBOX_INCOMPLETE
    layers: tuple[Layer, ...] = ()

    def __init__(self, layer: str, reason: str, hint: str) -> None:
        super().__init__(f"{layer}: {reason}")
        self.layer = layer
        self.reason = reason
        self.hint = hint


class ZygoteUnborn(SandboxIncomplete):
    """It ended before it reported the layer that is named: that one may be missing, or the process was killed."""


class SpawnFailed(Exception):
    """One process could not be started; the zygote may well live on. reason is a fixed word."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


ExitKind = Literal["exited", "killed", "sigsys", "dumped", "lost"]


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended. status = exit code (exited) or signal number (killed, sigsys, dumped); lost = the zygote died first."""

    kind: ExitKind
    status: int

    @property
    def code(self) -> ExitCode | None:
        """The guest's own reason, when it ended by itself with one."""
        return ExitCode(self.status) if self.kind == "exited" and self.status in set(ExitCode) else None


class SpawnedProcess:
    """A sealed process. Its `sock` is the kernel's end of its channel; whoever wraps it owns it."""

    def __init__(self, pid: int, pidfd: int, sock: socket.socket) -> None:
        self.pid = pid  # outside its namespace; for display and psutil, never for signals
        self.pidfd = pidfd  # -1 once it ended
        self.sock = sock
        self.exit: Exit | None = None
        self._ended = trio.Event()

    @property
    def is_alive(self) -> bool:
        """False from the moment it ended, also before the zygote has told how."""
        if self.pidfd < 0:
            return False
        poll = select.poll()
        poll.register(self.pidfd, select.POLLIN)
        return not poll.poll(0)

    def kill(self) -> None:
        """Send SIGKILL; nothing happens when it already ended."""
        _kill(self.pidfd)

    async def wait_exited(self) -> Exit:
        """Wait until it ended and was reaped."""
        await self._ended.wait()
        if self.exit is None:
            raise RuntimeError("an ended process has no exit")  # cannot be: both are set in one place
        return self.exit

    def note_exit(self, ended: Exit) -> None:
        """Record the end. Called by the zygote that spawned it."""
        self.exit = ended
        os.close(self.pidfd)
        self.pidfd = -1
        self._ended.set()


class _Request:
    """A spawn under way."""

    def __init__(self) -> None:
        self.answered = trio.Event()
        self.pidfd = -1
        self.reason = ""
        self.early_exit: Exit | None = None


class Zygote:
    """See the head of the file. Make it with `open`."""

    def __init__(self, popen: subprocess.Popen[bytes], control: socket.socket) -> None:
        # the two processes and their channel
        self._popen = popen
        self._control = control
        self.pid = popen.pid  # the outer process
        self.pidfd = os.pidfd_open(popen.pid)
        self.inner_pid = -1  # PID 1 of the namespace, as seen from here
        self._inner_pidfd = -1
        # what it told
        self.layers: tuple[Layer, ...] = ()
        self._dead = trio.Event()
        self._is_closing = False
        # spawns under way and live processes, by spawn number
        self._last_number = 0
        self._requests: dict[int, _Request] = {}
        self._processes: dict[int, SpawnedProcess] = {}

    @classmethod
    async def open(cls, nursery: trio.Nursery, early: Executed | None = None) -> Zygote:
        """Start the zygote, or take one that was executed early, and wait until it is ready. Raises: SandboxIncomplete. Source: SPEC 2."""
        if early is not None:
            return await cls._hear(nursery, cls(*early))
        return await cls.start(nursery, launch_command())

    @classmethod
    async def start(cls, nursery: trio.Nursery, command: Sequence[str]) -> Zygote:
        """As `open`, with the program to execute. Raises: SandboxIncomplete."""
        try:
            zygote = cls(*execute(command))
        except ModuleNotFoundError as error:
            raise SandboxIncomplete("preload", f"a library is not installed ({error.name})", "install the locked requirements") from error
        return await cls._hear(nursery, zygote)

    @classmethod
    async def _hear(cls, nursery: trio.Nursery, zygote: Zygote) -> Zygote:
        try:
            with trio.fail_after(START_SECONDS):
                await zygote._hear_layers()
        except trio.TooSlowError as error:
            await zygote._abandon()
            raise SandboxIncomplete("preload", f"the zygote was not ready in {START_SECONDS:.0f} s", _DEFECT_HINT) from error
        except ProtocolViolation as error:
            await zygote._abandon()
            raise SandboxIncomplete("preload", "the zygote spoke out of turn", _DEFECT_HINT) from error
        except SandboxIncomplete as error:
            error.layers = zygote.layers
            await zygote._abandon()
            raise
        except BaseException:
            await zygote._abandon()
            raise
        nursery.start_soon(zygote._listen)
        return zygote

    @property
    def is_alive(self) -> bool:
        """False once the control channel ended."""
        return not self._dead.is_set() and not self._is_closing

    async def spawn(self) -> SpawnedProcess:
        """Ask for one more sealed process. Raises: SpawnFailed (zygote_dead, or the system's errno name)."""
        if not self.is_alive:
            raise SpawnFailed("zygote_dead")
        self._last_number += 1
        number = self._last_number
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        request = self._requests[number] = _Request()
        try:
            with theirs:
                await self._send(encode(Spawn(number=number)), theirs.fileno())
            await request.answered.wait()
        except BaseException:
            self._requests.pop(number, None)  # an answer that still comes finds no asker: that process is killed
            ours.close()
            raise
        return self._finish_spawn(number, request, ours)

    def _finish_spawn(self, number: int, request: _Request, ours: socket.socket) -> SpawnedProcess:
        del self._requests[number]
        if request.pidfd < 0:
            ours.close()
            raise SpawnFailed(request.reason)
        process = SpawnedProcess(_pid_of(request.pidfd), request.pidfd, ours)
        if request.early_exit is not None:
            process.note_exit(request.early_exit)
        elif self._dead.is_set():
            process.note_exit(Exit("lost", 0))
        else:
            self._processes[number] = process
        return process

    async def wait_dead(self) -> None:
        """Wait until the zygote and with it every worker is gone."""
        await self._dead.wait()

    def kill(self) -> None:
        """End PID 1, and so everything in its namespace, at once. The outer process reaps it and follows."""
        _kill(self._inner_pidfd if self._inner_pidfd >= 0 else self.pidfd)

    def close(self) -> None:
        """End everything; `wait_dead` says when it is done."""
        if self._is_closing:
            return
        self._is_closing = True
        self.kill()

    # --- reading the control channel

    async def _hear_layers(self) -> None:
        heard: list[Layer] = []
        while True:
            message, pidfd = await self._receive()
            match message:
                case Layer():
                    heard.append(message)
                    self.layers = tuple(heard)
                    if not message.ok:
                        raise SandboxIncomplete(message.name, message.detail, message.hint)
                case Ready() if pidfd >= 0:
                    self._inner_pidfd, self.inner_pid = pidfd, _pid_of(pidfd)
                    return _require_all(heard)
                case None:
                    following = next((name for name in LAYERS if name not in {layer.name for layer in heard}), LAYERS[-1])
                    raise ZygoteUnborn(following, "the zygote ended before it could report this layer", _DEFECT_HINT)
                case _:
                    raise ProtocolViolation("out_of_turn")

    async def _listen(self) -> None:
        try:
            while True:
                message, pidfd = await self._receive()
                if message is None:
                    return
                self._take(message, pidfd)
        except ProtocolViolation:  # rule 4: a zygote out of step is ended, and counts as dead
            return
        finally:
            await self._abandon()

    def _take(self, message: ControlMessage, pidfd: int) -> None:
        match message:
            case Spawned():
                self._take_spawned(message.number, pidfd)
            case NotSpawned():
                if request := self._requests.get(message.number):
                    request.reason = os.strerror(message.errno)
                    request.answered.set()
            case Exited():
                self._take_exit(message)
            case _:
                raise ProtocolViolation("out_of_turn")

    def _take_spawned(self, number: int, pidfd: int) -> None:
        request = self._requests.get(number)
        if request is None:  # the asker gave up
            _kill(pidfd)
            os.close(pidfd)
            return
        request.pidfd = pidfd
        request.answered.set()

    def _take_exit(self, message: Exited) -> None:
        ended = _exit_of(message)
        if process := self._processes.pop(message.number, None):
            process.note_exit(ended)
        elif request := self._requests.get(message.number):  # it ended before its asker ran again
            request.early_exit = ended

    async def _receive(self) -> tuple[ControlMessage | None, int]:
        """One message with its descriptor or -1; None at the end of the channel. A zygote out of step counts as ended."""
        while True:
            try:
                packet, fds, _, _ = socket.recv_fds(self._control, MAX_PACKET_BYTES, 1, socket.MSG_CMSG_CLOEXEC)
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self._control)
                continue
            except OSError:
                return None, -1
            if not packet:
                return None, -1
            return decode(packet, TO_KERNEL), fds[0] if fds else -1

    async def _send(self, packet: bytes, descriptor: int) -> None:
        while True:
            try:
                socket.send_fds(self._control, [packet], [descriptor])
                return
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._control)
            except OSError as error:
                raise SpawnFailed("zygote_dead") from error

    # --- the end

    async def _abandon(self) -> None:
        """End both processes, reap the outer one, tell everybody who waits. Safe to call once only."""
        self._is_closing = True
        self.kill()
        self._control.close()  # what PID 1 notices even when it could not be killed yet
        with trio.CancelScope(shield=True):
            if self._inner_pidfd >= 0:
                await trio.lowlevel.wait_readable(self._inner_pidfd)
            with trio.move_on_after(_STUB_SECONDS):
                await trio.lowlevel.wait_readable(self.pidfd)
            _kill(self.pidfd)
            await trio.lowlevel.wait_readable(self.pidfd)
        self._popen.wait()
        for descriptor in (self.pidfd, self._inner_pidfd):
            if descriptor >= 0:
                os.close(descriptor)
        self.pidfd = self._inner_pidfd = -1
        self._dead.set()
        for request in self._requests.values():
            request.reason = "zygote_dead"
            request.answered.set()
        for process in self._processes.values():
            process.note_exit(Exit("lost", 0))
        self._processes.clear()


def _require_all(heard: Sequence[Layer]) -> None:
    names = {layer.name for layer in heard}
    for name in LAYERS:
        if name not in names:
            raise SandboxIncomplete(name, "the zygote did not report this layer", _DEFECT_HINT)


def _exit_of(message: Exited) -> Exit:
    if message.how == "exited":
        return Exit("exited", message.status)
    if message.status == signal.SIGSYS:
        return Exit("sigsys", message.status)
    return Exit("dumped" if message.how == "dumped" else "killed", message.status)


def _kill(pidfd: int) -> None:
    if pidfd >= 0:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)


def _pid_of(pidfd: int) -> int:
    """The process number behind a pidfd, as seen from here; -1 once it was reaped."""
    for line in Path(f"/proc/self/fdinfo/{pidfd}").read_text().splitlines():
        if line.startswith("Pid:"):
            return int(line.split()[1])
    return -1
