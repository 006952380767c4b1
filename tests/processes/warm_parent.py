"""A process that has imported a program and forks one whenever it is asked, so that who starts many pays for the imports once (half a
second of CPU each and more).

    python -m tests.processes.warm_parent MODULE CONTROL_FD     the program; MODULE has a `main`, as a kernel's or the command's
    parent = WarmParent("kernel.__main__"); popen = parent.popen(arguments, stdout=...); ...; parent.close()

Rules:
1. What is forked is what would have been executed, but for the imports: a process of its own with its own number, the arguments,
   environment, folder and descriptors it is given and no other, streams and lots of its own, and, if it is a kernel, a zygote of its own,
   executed first of all, as kernel/__main__.py does. It ends as a program does.
2. The parent has no thread, no event loop and no open database: nothing that a fork would break or share.
3. It forks twice and the one between ends, so the program becomes a child of the sub-reaper above, which whoever asks is for that
   moment: waited for like one that was executed there, and of no matter to the parent.
4. What an interpreter reads before it imports anything (PYTHON..., the locale) cannot be another than the parent's: asked for, it is an
   error. The seed of hashes is the parent's too.
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import gc
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from inspect import signature
from io import TextIOWrapper
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = "kernel.__main__"
_MOST_BYTES = 1 << 17
_MOST_FDS = 16
_READ_BY_THE_INTERPRETER = ("LANG", "LC_", "PYTHON")
_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37


@contextmanager
def sub_reaper() -> Iterator[None]:
    """Let orphans below this process become its children; within another one nothing changes."""
    prctl, was = ctypes.CDLL(None, use_errno=True).prctl, ctypes.c_int()
    assert prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(was), 0, 0, 0) == 0
    assert prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    try:
        yield
    finally:
        prctl(_PR_SET_CHILD_SUBREAPER, was.value, 0, 0, 0)


class WarmParent:
    """See the head of the file. It is started when it is first asked."""

    def __init__(self, module: str = PROGRAM) -> None:
        self._module = module
        self._popen: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._before: dict[str, str] = {}

    @property
    def pid(self) -> int:
        """Its number; 0 before it is started."""
        return self._popen.pid if self._popen is not None else 0

    def popen(self, arguments: Sequence[str], **more: Any) -> subprocess.Popen[Any]:
        """Fork the program with these arguments. more: as of subprocess.Popen, whose object is returned."""
        return _Forked(self, arguments, **more)

    def ask(self, request: Mapping[str, Any], environ: Mapping[str, str], fds: Sequence[int]) -> int:
        """Ask for one with these descriptors; its number. It is a child of this process."""
        control = self._started()
        assert _of_the_interpreter(environ) == self._before, "rule 4"
        asked = json.dumps({**request, "environ": dict(environ)}).encode()
        with sub_reaper():
            control.sendmsg([asked], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
            told = control.recv(_MOST_BYTES)
        assert told, f"the warm parent of {self._module} has ended"
        return int(told)

    def _started(self) -> socket.socket:
        if self._control is None:
            self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._before = _of_the_interpreter(os.environ)
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


def _of_the_interpreter(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name.startswith(_READ_BY_THE_INTERPRETER)}


class _Forked(subprocess.Popen[Any]):
    """A Popen whose process is forked by a warm parent; pipes, texts, waiting and signals are as ever."""

    def __init__(self, parent: WarmParent, arguments: Sequence[str], **more: Any) -> None:
        self._parent = parent
        super().__init__(list(arguments), **more)

    def _execute_child(self, *given: Any) -> None:
        how = signature(subprocess.Popen._execute_child).bind(self, *given).arguments
        assert not [name for name in ("executable", "gids", "preexec_fn", "shell") if how[name]], "no fork does this"
        assert (how["uid"], how["gid"], how["umask"]) == (None, None, -1), "nor this"
        ends = [how["p2cread"], how["c2pwrite"], how["errwrite"]]
        request = {
            "arguments": how["args"],
            "folder": os.fspath(how["cwd"] or Path.cwd()),
            "group": how["process_group"],
            "is_session": how["start_new_session"],
            "numbers": [0, 1, 2, *how["pass_fds"]],
        }
        fds = [*(number if fd < 0 else fd for number, fd in enumerate(ends)), *how["pass_fds"]]
        self.pid = self._parent.ask(request, os.environ if how["env"] is None else how["env"], fds)
        self._child_created = True
        self._close_pipe_fds(*(how[name] for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")))


# --------------------------------------------------------------------------------- the program


def _serve(control: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Serve until this process is one that was asked for: the request and its descriptors. None at the end of the parent."""
    while True:
        request, fds, _, _ = socket.recv_fds(control, _MOST_BYTES, _MOST_FDS)
        if not request:
            return None
        told, tell = os.pipe()
        until, ended = os.pipe()
        between = os.fork()
        if not between:
            pid = os.fork()
            if pid:
                os.write(tell, str(pid).encode())
                os._exit(0)
            os.close(ended)
            os.read(until, 1)  # its parent is the one that it is to have
            return json.loads(request), fds
        os.waitpid(between, 0)
        control.send(os.read(told, 32))
        for fd in (told, tell, until, ended, *fds):
            os.close(fd)


def _become(request: Mapping[str, Any], fds: Sequence[int]) -> None:
    """Be what was asked for, as far as a program finds it made when it begins."""
    _keep_only(fds, request["numbers"])
    if request["is_session"]:
        os.setsid()
    if request["group"] >= 0:
        os.setpgid(0, request["group"])
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environ"])
    _open_streams()
    sys.argv[1:] = request["arguments"]
    _draw_lots_anew()


def _keep_only(fds: Sequence[int], numbers: Sequence[int]) -> None:
    """Leave these descriptors open, under these numbers, and nothing else."""
    held = [fcntl.fcntl(fd, fcntl.F_DUPFD, max(numbers) + 1) for fd in fds]  # where none of the numbers is in the way
    for fd, number in zip(held, numbers, strict=True):
        os.dup2(fd, number)
    for fd in {int(name) for name in os.listdir("/proc/self/fd")} - set(numbers):
        with suppress(OSError):  # the descriptor of the listing itself
            os.close(fd)


def _open_streams() -> None:
    """Open the three streams as the interpreter does: what is a terminal decides when a line leaves."""
    for fd, (name, mode) in enumerate((("stdin", "rb"), ("stdout", "wb"), ("stderr", "wb"))):
        before = getattr(sys, name)
        is_through = before.write_through  # PYTHONUNBUFFERED
        binary = open(fd, mode, buffering=0 if is_through else -1, closefd=False)  # noqa: SIM115 - as long as the program
        is_by_lines = not is_through and (fd == 2 or os.isatty(fd))
        stream = TextIOWrapper(binary, before.encoding, before.errors, "\n", is_by_lines, is_through)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _draw_lots_anew() -> None:
    """trio draws who goes first from a generator of its own; that of `random` is seeded by the fork."""
    from trio._core import _run

    _run._r.seed()


def _execute_zygote() -> None:
    """If this is a kernel."""
    program = sys.modules.get("kernel.__main__")
    if program is not None:
        program._early = program.execute_early()


def main() -> int:
    """Be the parent, and then each program."""
    module = import_module(sys.argv[1])
    control = socket.socket(fileno=int(sys.argv[2]))
    assert len(os.listdir("/proc/self/task")) == 1, "rule 2"
    gc.collect()
    gc.freeze()  # what is never looked at is never copied
    asked = _serve(control)
    if asked is None:
        return 0
    control.detach()
    _become(*asked)
    _execute_zygote()
    code: int = module.main()
    return code


if __name__ == "__main__":
    sys.exit(main())
