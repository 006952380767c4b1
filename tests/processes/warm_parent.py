"""A process that has imported the kernel and forks one whenever it is asked, so that who starts many pays for the imports once (0.5 s of
CPU each).

    python -m tests.processes.warm_parent MODULE CONTROL_FD     the program; MODULE is that of a kernel: it has a `main`
    parent = WarmParent("kernel.__main__"); forked = parent.fork(arguments, view, log); ...; parent.close()

Rules:
1. What is forked is what would have been executed, but for the imports: a process of its own with its own number, no descriptor but those
   it is given, and a zygote of its own, executed first of all, as kernel/__main__.py does. It ends as a program does.
2. The parent has no thread, no event loop and no open database: nothing that a fork would break or share.
3. It forks twice and the one between ends, so the kernel becomes a child of the sub-reaper above, which is whoever asked: waited for like
   one that was executed there, and of no matter to the parent.
"""

from __future__ import annotations

import array
import gc
import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = "kernel.__main__"
_MOST_BYTES = 1 << 16


class Forked:
    """A child of this process that another forked; what is needed of a Popen."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._waited(os.WNOHANG)

    def wait(self) -> int:
        """Wait for its exit code."""
        code = self._waited(0)
        assert code is not None
        return code

    def _waited(self, options: int) -> int | None:
        if self._code is None:
            with suppress(ChildProcessError):
                pid, status = os.waitpid(self.pid, options)
                self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code


class WarmParent:
    """See the head of the file. It is started when it is first asked."""

    def __init__(self, module: str = PROGRAM) -> None:
        self._module = module
        self._popen: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    @property
    def pid(self) -> int:
        """Its number; 0 before it is started."""
        return self._popen.pid if self._popen is not None else 0

    def fork(self, arguments: Sequence[str], view: socket.socket, log: int) -> Forked:
        """Fork a kernel with these arguments, this view's channel, and this descriptor for what it writes."""
        control = self._started()
        fds = array.array("i", [view.fileno(), log])
        control.sendmsg([json.dumps(list(arguments)).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
        told = control.recv(_MOST_BYTES)
        assert told, f"the warm parent of {self._module} has ended"
        return Forked(int(told))

    def _started(self) -> socket.socket:
        if self._control is None:
            self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                command = [sys.executable, "-m", __name__, self._module, str(theirs.fileno())]
                self._popen = subprocess.Popen(command, cwd=ROOT, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        return self._control

    def close(self) -> None:
        """End it; what it forked lives on."""
        if self._control is not None and self._popen is not None:
            self._control.close()
            self._popen.wait()
        self._control = self._popen = None


# --------------------------------------------------------------------------------- the program


def _next_kernel(control: socket.socket) -> list[str] | None:
    """Serve until this process is a kernel, whose arguments these are; None at the end of the parent."""
    while True:
        request, fds, _, _ = socket.recv_fds(control, _MOST_BYTES, 2)
        if not request:
            return None
        told, tell = os.pipe()
        between = os.fork()
        if not between:
            pid = os.fork()
            if pid:
                os.write(tell, str(pid).encode())
                os._exit(0)
            return [*json.loads(request), "--view-fd", str(_keep_only(*fds))]
        os.waitpid(between, 0)
        control.send(os.read(told, 32))
        for fd in (told, tell, *fds):
            os.close(fd)


def _keep_only(view: int, log: int) -> int:
    """Leave the view's channel and the three standard descriptors open, and nothing else."""
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    kept = os.dup2(view, 3)
    os.closerange(4, os.sysconf("SC_OPEN_MAX"))
    return kept


def main() -> int:
    """Be the parent, and then each kernel."""
    module = import_module(sys.argv[1])
    import kernel.__main__ as program

    control = socket.socket(fileno=int(sys.argv[2]))
    control.set_inheritable(False)
    gc.collect()
    gc.freeze()  # what is never looked at is never copied
    arguments = _next_kernel(control)
    if arguments is None:
        return 0
    control.detach()
    sys.argv[1:] = arguments
    program._early = program.execute_early()
    code: int = module.main()
    return code


if __name__ == "__main__":
    sys.exit(main())
