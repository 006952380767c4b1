"""Attach to the kernel of a home, or start one (SPEC 2.9): the part of a host that outlives a kernel.

Use: `launcher = Launcher(home)`; `link = await launcher.attach(nursery, hello("view"))`; the same again when that link ends.
Rules:
1. Attach first. Start only when nobody answers; who loses the lock to another starter attaches to the winner.
2. A kernel started here is in a session of its own, with its stderr in kernel.log: it outlives this process.
3. At most MAX_LAUNCHES starts in WINDOW_SECONDS: then the reason is given, not another start.
4. Dead kernels started here are reaped by their own pid.
Popen was tried: it wants to own the child's whole life and complains when that is not so; posix_spawn just starts it.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import trio

from hosts.homes import Home, HomeRefused
from hosts.link import HostLink, KernelUnreachable, Refused, connect, greet, hello
from kernel.protocol.host import HostHello
from lineup_sdk.protocol.codes import Code

KERNEL_PROGRAM = (sys.executable, "-P", "-m", "kernel")  # -P: a folder named kernel where the person stands is not run
MAX_LAUNCHES = 3
WINDOW_SECONDS = 60.0
START_SECONDS = 30.0  # from spawn to welcome
JOIN_SECONDS = 10.0  # for the winner of the lock to answer
EXIT_SECONDS = 10.0  # from a closed channel to the end of the process
_STARTS = 2  # of one attach, when a signal ends the first kernel before it greets
_LOCKED_EXIT = 8
_VIEW_FD = 3
_LOG_TAIL_BYTES = 4096
MAX_LOG_BYTES = 4 * 1024 * 1024  # a start that finds kernel.log bigger puts it aside as kernel.log.1, in the place of the one before


class _Killed(Exception):
    """A signal ended the kernel before it greeted: it is not the kernel's own doing, and the next start may well go."""


class Launcher:
    """Keeps one host attached to one home. Owns the pids of the kernels it started."""

    def __init__(self, home: Home, app_folders: Sequence[Path] = (), program: Sequence[str] = KERNEL_PROGRAM) -> None:
        self.home = home
        self._program = tuple(program)
        self._app_folders = tuple(folder.absolute() for folder in app_folders)
        self._launches: deque[float] = deque()
        self._pids: set[int] = set()
        self._last_end = "it did not start"

    async def attach(self, nursery: trio.Nursery, greeting: HostHello) -> HostLink:
        """Return a link to the running kernel, started now if none runs.

        Raises: KernelUnreachable (with the kernel's own code when it refused to start), Refused (pairing, door_busy, version),
        HomeRefused.
        """
        while True:
            running = await self._link_to_running(nursery, greeting)
            if running is not None:
                return running
            started = await self._start(nursery, greeting)
            if started is not None and greeting.role == "view":
                return started
            try:
                joined = await self._join(nursery, greeting)
            finally:
                if started is not None:
                    started.close()
            if joined is not None:
                return joined

    async def _join(self, nursery: trio.Nursery, greeting: HostHello) -> HostLink | None:
        """Wait for another starter's kernel to answer. The wait is a poll: a socket that is not there yet wakes nobody."""
        pause_seconds = 0.01
        with trio.move_on_after(JOIN_SECONDS):
            while (running := await self._link_to_running(nursery, greeting)) is None:
                await trio.sleep(pause_seconds)
                pause_seconds = min(pause_seconds * 2, 0.25)
            return running
        return None

    async def _link_to_running(self, nursery: trio.Nursery, greeting: HostHello) -> HostLink | None:
        try:
            return await connect(nursery, self.home, greeting)
        except KernelUnreachable as error:
            if error.code != "kernel_unreachable":  # one runs, and this host may not speak with it
                raise
            return None

    async def _start(self, nursery: trio.Nursery, greeting: HostHello) -> HostLink | None:
        """Start a kernel and return its trusted view, or None when another one holds the lock. One that is killed is started once more."""
        for _ in range(_STARTS):
            try:
                return await self._start_once(nursery, greeting)
            except _Killed:
                continue
        raise KernelUnreachable("kernel_unreachable", self._detail(self._last_end))

    async def _start_once(self, nursery: trio.Nursery, greeting: HostHello) -> HostLink | None:
        opening = greeting if greeting.role == "view" else hello("view", label=greeting.label)
        self.reap()
        self._count_launch()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            pid = self._spawn(theirs)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._pids.add(pid)
        try:
            with trio.fail_after(START_SECONDS):
                return await greet(nursery, ours, opening)
        except trio.TooSlowError as error:
            raise KernelUnreachable("timed_out", self._detail(f"it did not answer within {START_SECONDS:.0f} s")) from error
        except Refused as refusal:
            if refusal.code == Code.STORE_LOCKED:
                return None
            raise KernelUnreachable(refusal.code, refusal.detail) from refusal
        except KernelUnreachable:
            await self._judge_silent_end(pid)
            return None

    async def _judge_silent_end(self, pid: int) -> None:
        """The kernel closed without a word: its exit status or its last line on stderr tells why. Returns when the lock was lost.

        Raises: _Killed when a signal ended it, KernelUnreachable.
        """
        status = await _wait_exit(pid)
        self._pids.discard(pid)
        self._last_end = _describe(status)
        if status == _LOCKED_EXIT:
            return
        if status < 0:
            raise _Killed
        words = _last_words(self.home)
        code = str(words.pop("code", "kernel_unreachable"))
        raise KernelUnreachable(code, self._detail(self._last_end) | words)

    def _count_launch(self) -> None:
        now = trio.current_time()
        while self._launches and now - self._launches[0] > WINDOW_SECONDS:
            self._launches.popleft()
        if len(self._launches) >= MAX_LAUNCHES:
            reason = f"started {MAX_LAUNCHES} times within {WINDOW_SECONDS:.0f} s and gone each time; last: {self._last_end}"
            raise KernelUnreachable("kernel_unreachable", self._detail(reason))
        self._launches.append(now)

    def forget_launches(self) -> None:
        """The person asked for another try: count from here."""
        self._launches.clear()

    def _detail(self, reason: str) -> dict[str, Any]:
        return {"reason": reason, "hint": "kernel.log in the home folder has its last words; `lineup doctor` checks this machine"}

    def _spawn(self, view: socket.socket) -> int:
        self.home.create()
        arguments = [*self._program, "serve", "--home", str(self.home.folder), "--view-fd", str(_VIEW_FD)]
        for folder in self._app_folders:
            arguments += ["--app-folder", str(folder)]
        if (days := self.home.retention_days()) is not None:
            arguments += ["--retention-days", str(days)]
        log = self._open_log()
        high = fcntl.fcntl(view.fileno(), fcntl.F_DUPFD_CLOEXEC, 64)  # above the target, so that the copies below cannot collide
        try:
            return os.posix_spawn(sys.executable, arguments, os.environ, file_actions=_descriptors(log, high), setsid=True)
        finally:
            os.close(high)
            os.close(log)

    def _open_log(self) -> int:
        try:
            if self.home.log_file.exists() and self.home.log_file.stat().st_size > MAX_LOG_BYTES:
                self.home.log_file.replace(self.home.log_file.with_name("kernel.log.1"))
            return os.open(self.home.log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise HomeRefused(f"kernel.log in the home folder cannot be opened: {os.strerror(error.errno or 0)}") from error

    async def wait_gone(self) -> None:
        """Wait until every kernel started here has ended, as after kernel.stop. Raises: KernelUnreachable when one does not."""
        for pid in tuple(self._pids):
            await _wait_exit(pid)
            self._pids.discard(pid)

    async def end_started(self) -> None:
        """Kill what was started here and still runs: for a home that is about to be removed, never for a person's own."""
        self.reap()
        for pid in self._pids:
            os.kill(pid, signal.SIGKILL)  # ours and not reaped: the number cannot belong to anybody else
        await self.wait_gone()

    def reap(self) -> None:
        """Take the exit status of kernels started here that have ended."""
        for pid in tuple(self._pids):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                self._pids.discard(pid)
                self._last_end = _describe(os.waitstatus_to_exitcode(status))


def _descriptors(log: int, view: int) -> list[tuple[Any, ...]]:
    """stdin and stdout to nothing, stderr to the log, the view at its number; whatever else this process was given is not passed on."""
    inherited = [int(name) for name in os.listdir("/proc/self/fd")]
    close = [(os.POSIX_SPAWN_CLOSE, fd) for fd in inherited if fd > 2 and _is_inheritable(fd)]
    return [
        *close,
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
        (os.POSIX_SPAWN_DUP2, log, 2),
        (os.POSIX_SPAWN_DUP2, view, _VIEW_FD),
    ]


def _is_inheritable(fd: int) -> bool:
    try:
        return os.get_inheritable(fd)
    except OSError:  # the descriptor of the listing itself
        return False


async def _wait_exit(pid: int) -> int:
    """Return the exit code (negative: the signal). Raises: KernelUnreachable when it closed its channel and yet lives on."""
    pidfd = os.pidfd_open(pid)
    try:
        with trio.fail_after(EXIT_SECONDS):
            await trio.lowlevel.wait_readable(pidfd)
    except trio.TooSlowError as error:
        raise KernelUnreachable("kernel_unreachable", {"reason": "it closed its channel and did not end"}) from error
    finally:
        os.close(pidfd)
    return _exit_status(pid)


def _exit_status(pid: int) -> int:
    """The status of a child that has ended already."""
    _, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status)


def _describe(status: int) -> str:
    return f"ended by signal {-status}" if status < 0 else f"ended with exit code {status}"


def _last_words(home: Home) -> dict[str, Any]:
    """The last line of kernel.log, when it is the kernel's own JSON reason."""
    with home.log_file.open("rb") as log:
        log.seek(0, os.SEEK_END)
        log.seek(max(0, log.tell() - _LOG_TAIL_BYTES))
        lines = log.read().splitlines()
    try:
        words = json.loads(lines[-1]) if lines else {}
    except ValueError:
        return {}
    return words if isinstance(words, dict) else {}
