"""What kernels leave to this process, their sub-reaper: whatever outlives a kernel becomes a child of it and cannot hide.

    left = await wait_orphans(known)          none but the known are children any more, or these lived on; what is known may grow meanwhile
    before = children(); ...; require_no_orphans(before)      for the clean-up of a test, without an event loop

Rules:
1. An orphan is waited for and its end taken, so that no zombie of this process stays for others to count.
2. One that does not end by itself is told; if it cannot be anybody else's, it is ended too.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Container
from contextlib import suppress

import psutil
import trio

from tests.invariants_of_processes import check_inv_42

SECONDS = 20.0  # generous: the machine may be busy; the promise is two
_OF_A_KERNEL = "lineup-"  # begins the name of every process a kernel starts, once it has one


def children() -> set[int]:
    """Every child of this process, ended or not."""
    return {child.pid for child in psutil.Process().children()}


async def wait_orphans(known: Container[int]) -> list[int]:
    """Wait for the ends of all children but the known ones, and take them. Returns those that lived on, by now ended too."""
    found: list[int] = []
    with trio.move_on_after(SECONDS):
        while found := [pid for pid in children() if pid not in known]:
            for pid in found:
                await _wait_ended(pid)
                _take(pid)
        return []
    left = [pid for pid in found if not _has_ended(pid)]
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        await _wait_ended(pid)
        _take(pid)
    return left


def require_no_orphans(before: Container[int]) -> None:
    """Take the ends of all children that were not there before. Raises: AssertionError when one of a kernel's lives on."""
    orphans = [pid for pid in children() if pid not in before and (_name_of(pid).startswith(_OF_A_KERNEL) or _has_ended(pid))]
    assert check_inv_42([pid for pid in orphans if not _ends_soon(pid)]) == []


def _ends_soon(pid: int) -> bool:
    with suppress(ProcessLookupError):
        fd = os.pidfd_open(pid)
        try:
            if not select.select([fd], [], [], SECONDS)[0]:
                return False
        finally:
            os.close(fd)
        _take(pid)
    return True


def _name_of(pid: int) -> str:
    with suppress(psutil.NoSuchProcess):
        return str(psutil.Process(pid).name())
    return ""


def _has_ended(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    return True


async def _wait_ended(pid: int) -> None:
    with suppress(ProcessLookupError):
        fd = os.pidfd_open(pid)
        try:
            await trio.lowlevel.wait_readable(fd)
        finally:
            os.close(fd)


def _take(pid: int) -> None:
    with suppress(ChildProcessError):  # somebody else took it
        os.waitpid(pid, os.WNOHANG)
