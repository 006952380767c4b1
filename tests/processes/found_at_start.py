"""A program that tells what it found made when it began, as one JSON object, whether it was executed or forked (test_warm_parent.py)."""

from __future__ import annotations

import json
import os
import random
import sys

import trio  # noqa: F401 - whose lots are looked at
from trio._core import _run

_OF_THE_PROCESS = ("SigBlk", "SigIgn", "SigCgt", "Threads", "Umask")


def _streams() -> list[object]:
    opened = (sys.stdin, sys.stdout, sys.stderr)
    return [[one.encoding, one.errors, one.line_buffering, one.write_through, os.isatty(one.fileno())] for one in opened]


def _descriptors() -> dict[int, list[object]]:
    """By number: the file behind it, and whether a program executed by this one has it too."""
    files: dict[int, list[object]] = {}
    for fd in sorted(int(name) for name in os.listdir("/proc/self/fd")):
        if os.path.exists(f"/proc/self/fd/{fd}"):  # the listing's own is closed by now
            files[fd] = [os.fstat(fd).st_rdev, os.fstat(fd).st_mode, os.get_inheritable(fd)]
    return files


def main() -> int:
    """Tell it, and end with the code that the first argument is."""
    with open("/proc/self/status") as file:
        status = {name: value.strip() for name, _, value in (line.partition(":") for line in file)}
    found = {
        "arguments": sys.argv[1:],
        "descriptors": _descriptors(),
        "environ": dict(os.environ),
        "folder": os.getcwd(),
        "group": os.getpgid(0) == os.getpid(),
        "parent": os.getppid(),
        "session": os.getsid(0) == os.getpid(),
        "status": {name: status[name] for name in _OF_THE_PROCESS},
        "streams": _streams(),
    }
    print(json.dumps({"found": found, "lots": [random.random(), _run._r.random()]}))
    return int(sys.argv[1])


if __name__ == "__main__":
    sys.exit(main())
