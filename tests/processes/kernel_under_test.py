"""A real kernel as a child process of the tests: started, watched, killed by its own number, and looked for in what it leaves.

    with sub_reaper(): kernel = KernelUnderTest.start(home, log, apps=[...])
    person = await kernel.first_view(nursery); ...; kernel.kill(); await kernel.wait_gone()

Rules:
1. The tests are the sub-reaper: whatever the kernel leaves behind becomes their child and cannot hide.
2. The whole tree is known by pidfds and by the inode of its pid namespace; a process that ended and waits to be reaped counts as gone.
3. Only numbers that this file started are ever signalled.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import apsw
import psutil
import trio

from kernel.protocol.host import HostHello
from lineup_sdk.channel import Channel
from lineup_sdk.protocol.framing import encode_frame
from lineup_sdk.protocol.limits import MAX_FRAME_BYTES, WIRE_VERSION
from lineup_sdk.protocol.messages import to_frame
from tests.invariants_of_processes import check_inv_42
from tests.processes.peers import Agent, ChannelEnded, Peer, Person, greet
from tests.processes.warm_parent import WarmParent

ROOT = Path(__file__).resolve().parents[2]
WAIT_SECONDS = 60.0  # generous: the machine may be busy with other tests
PROGRAM = ("-m", "kernel")

_Peer = TypeVar("_Peer", bound=Peer)


class Tree:
    """Everything below a kernel at one moment. Its namespaces are held open: the number of one that is gone is the next one's at once."""

    def __init__(self, pid: int) -> None:
        self.pids: list[int] = []
        self.fds: list[int] = []
        self.namespaces: dict[int, int] = {}  # number: descriptor
        for process in [psutil.Process(pid), *_children_of(pid)]:
            with suppress(ProcessLookupError, psutil.Error):
                self.fds.append(os.pidfd_open(process.pid))
                self.pids.append(process.pid)
                self._hold_its_namespace(process.pid)

    def _hold_its_namespace(self, pid: int) -> None:
        with suppress(OSError):  # it has ended
            fd = os.open(f"/proc/{pid}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
            number = os.fstat(fd).st_ino
            if number in self.namespaces or number == _namespace_of(os.getpid()):
                os.close(fd)
            else:
                self.namespaces[number] = fd

    def forget(self, pid: int) -> None:
        """Leave one process out, because it is to live on."""
        os.close(self.fds.pop(self.pids.index(pid)))
        self.pids.remove(pid)

    async def wait_gone(self) -> None:
        """Wait until all of it ended; then nothing may be left in its namespaces."""
        assert check_inv_42(await self.wait_ended()) == []

    async def wait_ended(self, seconds: float = WAIT_SECONDS) -> list[int]:
        """Wait until all of it ended, but not for ever; what of it still lives."""
        with trio.move_on_after(seconds) as waiting:
            for fd in self.fds:
                await trio.lowlevel.wait_readable(fd)
        late = [pid for pid in self.pids if _state_of(pid) not in "ZX"] if waiting.cancelled_caught else []
        return sorted({*late, *self._ended()})

    def require_gone(self) -> None:
        """As wait_gone, for the clean-up of a test: without an event loop."""
        for fd in self.fds:
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            poll.poll(WAIT_SECONDS * 1000)
        assert check_inv_42(self._ended()) == []

    def inside(self) -> list[int]:
        """The sealed ones: those that have a pid namespace of their own."""
        return [pid for pid in self.pids if _namespace_of(pid) in self.namespaces]

    def let_go(self) -> None:
        """Look no longer."""
        while self.fds:
            os.close(self.fds.pop())
        while self.namespaces:
            os.close(self.namespaces.popitem()[1])

    def _ended(self) -> list[int]:
        """Take the ends of those that became children of this process, and look no longer; what is left."""
        for pid in self.pids:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        left = self.left()
        self.let_go()
        return left

    def left(self) -> list[int]:
        """Processes that still live in its namespaces."""
        return [pid for pid in _all_pids() if _namespace_of(pid) in self.namespaces and _state_of(pid) not in "ZX"]


def _children_of(pid: int) -> list[psutil.Process]:
    with suppress(psutil.Error):
        return psutil.Process(pid).children(recursive=True)
    return []


def _all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _namespace_of(pid: int) -> int:
    with suppress(OSError):
        return os.stat(f"/proc/{pid}/ns/pid").st_ino
    return 0


def _state_of(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return "X"


class KernelUnderTest:
    """One running kernel."""

    def __init__(self, popen: subprocess.Popen[bytes], home: Path, log: Path, inherited: socket.socket) -> None:
        self._popen = popen
        self._pidfd = os.pidfd_open(popen.pid)
        self._inherited = inherited
        self.pid = popen.pid
        self.home = home
        self.log = log
        self.peers: list[Peer] = []  # whoever greeted it

    @classmethod
    def start(
        cls,
        home: Path,
        log: Path,
        *,
        apps: Sequence[Path] = (),
        idle_seconds: float = 60.0,
        program: Sequence[str] = PROGRAM,
        parent: WarmParent | None = None,
    ) -> KernelUnderTest:
        """Execute a kernel on this home; it is not ready yet. What it writes is added to the file `log`.

        parent: it forks the kernel instead of `program` being executed; what of `program` follows its module are arguments.
        """
        ours, theirs = socket.socketpair()
        folders = [word for app in apps for word in ("--app-folder", str(app))]
        rest = ["serve", "--home", str(home), "--idle-seconds", str(idle_seconds), *folders, "--view-fd", str(theirs.fileno())]
        with theirs, log.open("ab") as output:
            how = {"cwd": ROOT, "pass_fds": [theirs.fileno()], "stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
            if parent is not None:
                popen = parent.popen([*program[2:], *rest], **how)
            else:
                popen = subprocess.Popen([sys.executable, *program, *rest], **how)
        return cls(popen, home, log, ours)

    # ------------------------------------------------------------------ its channels

    async def first_view(self, nursery: trio.Nursery, label: str = "console") -> Person:
        """Greet on the inherited channel; the kernel is ready when this returns."""
        person = Person(Channel(self._inherited, max_in_bytes=MAX_FRAME_BYTES, max_out_bytes=MAX_FRAME_BYTES))
        return await self._greet(nursery, person, {"role": "view", "label": label})

    def wait_ready(self) -> None:
        """Greet on the inherited channel, wait for the welcome, and leave it at that: for a kernel that several tests share."""
        self._inherited.settimeout(WAIT_SECONDS)
        self._inherited.sendall(encode_frame(to_frame(HostHello(wire=WIRE_VERSION, role="admin")), MAX_FRAME_BYTES))
        assert self._inherited.recv(4), self.log.read_text()

    async def join(self, nursery: trio.Nursery, role: str = "view", label: str = "console", **more: object) -> Person:
        """One view or admin more, over the local socket; more: of its hello, such as providers."""
        return await self._greet(nursery, Person(self.connect()), {"role": role, "label": label, "pairing": self.pairing, **more})

    async def agent(self, nursery: trio.Nursery, *, demo: bool = False, acknowledges: bool = True) -> Agent:
        """Open the door; while the kernel has not noticed that another Agent left, knock again. Raises: ChannelEnded."""
        with trio.fail_after(WAIT_SECONDS):
            while (agent := await self.knock(nursery, demo=demo, acknowledges=acknowledges)).goodbye == "door_busy":
                await agent.wait_closed()
        if not agent.of_type("welcome"):
            raise ChannelEnded("it ended before it said welcome")
        return agent

    async def knock(self, nursery: trio.Nursery, *, demo: bool = False, acknowledges: bool = True) -> Agent:
        """Ask for the door once."""
        return await self._greet(nursery, Agent(self.connect(), acknowledges=acknowledges), {"role": "agent", "demo": demo})

    async def _greet(self, nursery: trio.Nursery, peer: _Peer, hello: dict[str, object]) -> _Peer:
        nursery.start_soon(peer.run)
        self.peers.append(peer)
        with trio.fail_after(WAIT_SECONDS):
            await greet(peer, hello)
        return peer

    def connect(self) -> Channel:
        """A channel on the local socket, nothing said yet."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with opened_folder(self.home / "run") as folder:
                sock.connect(f"/proc/self/fd/{folder}/kernel.sock")
        except OSError:
            sock.close()
            raise
        return Channel(sock, max_in_bytes=MAX_FRAME_BYTES, max_out_bytes=MAX_FRAME_BYTES)

    @property
    def pairing(self) -> str:
        """The secret of its home."""
        return (self.home / "run" / "pairing").read_text()

    # ------------------------------------------------------------------ its end

    def tree(self) -> Tree:
        """Everything it runs now."""
        return Tree(self.pid)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Signal the kernel itself."""
        signal.pidfd_send_signal(self._pidfd, number)

    async def kill_all(self) -> None:
        """kill -9 the kernel alone, and see that all it ran is gone too."""
        tree = self.tree()
        self.kill()
        await self.wait_exited()
        await tree.wait_gone()

    async def wait_exited(self) -> int:
        """Wait for the kernel's own end; returns its exit code, negative for a signal."""
        with trio.fail_after(WAIT_SECONDS):
            await trio.lowlevel.wait_readable(self._pidfd)
        return self._popen.wait()

    @property
    def has_ended(self) -> bool:
        """Whether it came to its own end."""
        return self._popen.poll() is not None

    def close(self) -> None:
        """End it, if it still runs, and see that all it ran is gone, for the clean-up of a test; once more is harmless."""
        self._inherited.close()
        if self._pidfd < 0:
            return
        if self.is_alive:
            tree = self.tree()
            self.kill()
            self._popen.wait()
            tree.require_gone()
        os.close(self._pidfd)
        self._pidfd = -1

    @property
    def is_alive(self) -> bool:
        """True while it runs."""
        return self._pidfd >= 0 and not self.has_ended


@contextmanager
def opened_folder(path: Path) -> Iterator[int]:
    """A folder's descriptor, so that the length of its path is no limit for a socket's name."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def opened_copy(home: Path) -> Iterator[apsw.Connection]:
    """A copy of the store as it stands on disk, to be asked anything; the kernel's own is left alone.

    Right only while the kernel is still: whoever copies has waited for the reply of what it wants to see.
    """
    with tempfile.TemporaryDirectory() as folder:
        for name in ("kernel.db", "kernel.db-wal"):
            with suppress(FileNotFoundError):
                shutil.copyfile(home / name, Path(folder) / name)
        connection = apsw.Connection(str(Path(folder) / "kernel.db"))
        try:
            yield connection
        finally:
            connection.close()
