"""How the kernel executes the zygote: program, arguments, environment, descriptors, folder. All of it is named here.

Rules:
1. Executed, never forked: no memory of the kernel can be in it. The environment is a literal, the descriptors are /dev/null and the
   control channel.
2. It runs as the kernel's own user and gives that up by itself: an interpreter in a private folder could not be read afterwards.
3. Its import paths are the folders that hold the libraries, given as arguments; there is no `site`, no script folder, no PYTHONPATH.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

LIBRARIES = ("lineup_sdk", "trio", "cbor2", "pyseccomp")
ENVIRONMENT = {"LC_ALL": "C.UTF-8", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}  # the PATH finds ldconfig, which finds libseccomp
_PROGRAM = Path(__file__).resolve().parent.parent / "workers" / "launcher" / "zygote.py"


def launch_command() -> list[str]:
    """The program that is executed, without the arguments `execute` adds."""
    return [sys.executable, "-I", "-S", "-X", "utf8", str(_PROGRAM)]


def import_paths() -> list[str]:
    """The folders that hold LIBRARIES, each once. Raises: ModuleNotFoundError."""
    folders: list[str] = []
    for name in LIBRARIES:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(f"the library {name} is not installed", name=name)
        file = Path(spec.origin)
        folder = str(file.parent.parent if spec.submodule_search_locations else file.parent)
        if folder not in folders:
            folders.append(folder)
    return folders


class Executed(NamedTuple):
    """A zygote that is being born: its process and the kernel's end of the control channel."""

    process: subprocess.Popen[bytes]
    control: socket.socket

    def give_up(self) -> None:
        """End one that nobody took."""
        self.control.close()
        self.process.kill()
        self.process.wait()


def execute_early() -> Executed | None:
    """Start the zygote before the rest of the kernel is imported: both take as long. None: the start proper tries again and says why."""
    try:
        return execute(launch_command())
    except (ModuleNotFoundError, OSError):
        return None


def execute(command: Sequence[str]) -> Executed:
    """Start the zygote. Raises: ModuleNotFoundError, OSError."""
    paths = import_paths()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    with theirs, ExitStack() as undo:
        undo.callback(ours.close)
        popen = subprocess.Popen(
            [*command, str(theirs.fileno()), str(os.getpid()), *paths],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env=ENVIRONMENT,
            cwd="/",
            start_new_session=True,  # a Ctrl-C in the kernel's terminal is the kernel's to answer
        )
        undo.pop_all()
    return Executed(popen, ours)
