"""Runs command lines of the product with one `except` handler forced at a time: `-m tests.faults.forced_each FOLDER PART`.

FOLDER holds plan.json, a list of [handler, [[module, argument, ...], ...]]. Each entry is a process of its own, forked from one that has
imported the product already: it runs its command lines in order until the handler was entered. The names of those go to FOLDER/notes, all
that is said to FOLDER/stdout and FOLDER/stderr. A `{n}` in an argument becomes the number of the entry and PART, so that each can have a
home of its own. A command line may begin with `<PATH`, the file that is its stdin, or with `pty`, for what needs a terminal: what it draws
is read and dropped, what it says on stderr is kept.
"""

from __future__ import annotations

import importlib
import json
import os
import pty
import runpy
import select
import signal
import sys
from pathlib import Path

from tests.faults import noting
from tests.faults.marked import MARK
from tests.faults.page_at_work import run_web

KEYS = (f"{MARK}\r".encode(), b"/quit\r", b"\x03", b"\x03")
START_SECONDS = 20.0  # until it draws for the first time
KEY_SECONDS = 0.25  # nothing more is drawn: it waits for a key
_STDERR = 9  # a number that the programs do not use


def main() -> None:
    folder, part = Path(sys.argv[1]), sys.argv[2]
    notes = folder / "notes"
    forced = noting.install(str(notes))  # before the first import of the product
    plan = json.loads((folder / "plan.json").read_text())
    lines = [line for _, lines in plan for line in lines]
    for module in sorted({next(word for word in line if word not in {"pty", "web"} and word[0] != "<") for line in lines}):
        importlib.import_module(f"{module}.__main__" if module == "kernel" else module)
    output, errors = (os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600) for name in ("stdout", "stderr"))
    os.dup2(errors, _STDERR)
    for number, (name, lines) in enumerate(plan):
        pid = os.fork()
        if pid == 0:
            os.dup2(output, 1)
            os.dup2(errors, 2)
            forced.add(name)
            for line in lines:
                if name not in notes.read_text().splitlines():
                    _run(f"{number}-{part}", *line)
            os._exit(0)
        os.waitpid(pid, 0)


def _run(number: str, *line: str) -> None:
    """As `python -m` would, to the end of the program."""
    first, *rest = line
    if first == "pty":
        _run_in_terminal(number, *rest)
        return
    if first == "web":
        run_web(lambda: _run(number, *rest))
        return
    if first.startswith("<"):
        os.dup2(os.open(first[1:], os.O_RDONLY | os.O_CLOEXEC), 0)
        sys.stdin = open(0, closefd=False, encoding="utf-8")  # noqa: SIM115 - lives as long as the process
        first, *rest = rest
    sys.argv = [first, *(argument.replace("{n}", number) for argument in rest)]
    try:
        runpy.run_module(first, run_name="__main__", alter_sys=True)
    except SystemExit:
        pass
    except BaseException:  # its crash text is what a person would see of it
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    for text in (sys.stdout, sys.stderr):
        text.flush()


def _run_in_terminal(number: str, *line: str) -> None:
    """In a process of its own, on a terminal where somebody types and leaves; ended if it does not end."""
    pid, master = pty.fork()
    if pid == 0:
        os.dup2(_STDERR, 2)
        _run(number, *line)
        os._exit(0)
    pidfd = os.pidfd_open(pid)
    waiting = [master, pidfd]
    keys = list(KEYS)
    has_drawn = False
    while waiting:
        ready, _, _ = select.select(waiting, [], [], KEY_SECONDS if has_drawn else START_SECONDS)
        if pidfd in ready:
            break
        if master in ready:
            has_drawn = True
            if not _drained(master):
                waiting.remove(master)
        elif keys:
            os.write(master, keys.pop(0))
        else:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    os.waitpid(pid, 0)


def _drained(master: int) -> bool:
    """Read what was drawn; false at the end of the terminal."""
    try:
        return bool(os.read(master, 65_536))
    except OSError:
        return False


if __name__ == "__main__":
    main()
