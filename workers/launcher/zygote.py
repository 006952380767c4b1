"""The program the kernel starts: `python -I -S -X utf8 zygote.py CONTROL_FD KERNEL_PID IMPORT_PATH...`.

Rules:
1. It gets its import paths as arguments (the folders that hold the SDK, trio, cbor2, pyseccomp). The folder that holds the kernel
   is never one of them: the launcher's own modules are found through a package made here, whose path is this folder alone.
2. This file imports nothing but the standard library until that is done.
3. There is no option. What weakens the seal is not in the product.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from types import ModuleType


def prepare_imports(import_paths: list[str]) -> None:
    """Make the SDK, the libraries and `workers.launcher` importable, and nothing else of the product."""
    sys.path += import_paths
    for name, path in (("workers", []), ("workers.launcher", [str(Path(__file__).resolve().parent)])):
        module = ModuleType(name)
        module.__path__ = path
        sys.modules[name] = module


def run(control_fd: int, kernel_pid: int) -> None:
    """Become the zygote and serve until the kernel is gone."""
    from workers.launcher.birth import Birth, be_born
    from workers.launcher.forkserver import ForkServer

    control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, fileno=control_fd)
    control.set_inheritable(False)
    plan = be_born(Birth(control, kernel_pid))
    ForkServer(control, plan).serve()


def main() -> None:
    """Read the arguments; see the head of the file."""
    prepare_imports(sys.argv[3:])
    run(int(sys.argv[1]), int(sys.argv[2]))


if __name__ == "__main__":
    main()
