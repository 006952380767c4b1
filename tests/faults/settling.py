"""What a running kernel holds once it has come to rest: descriptors that are no worker's, and zombies.

Rules:
1. A worker costs its kernel DESCRIPTORS_OF_A_WORKER, whoever it is for; what is left after them does not depend on how many live.
2. While a process comes or goes the counts are of no use: they are read again and again, and what stays is what is told. `pace` is what
   lies between two readings: a question that the kernel answers.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable

import psutil
import trio

DESCRIPTORS_OF_A_WORKER = 2  # its channel and its pidfd
SECONDS = 20.0
_ALIKE = 10  # readings in a row

Pace = Callable[[], Awaitable[object]]


def _other_descriptors(pid: int) -> int:
    kernel = psutil.Process(pid)
    workers = sum(child.name() == "lineup-worker" for child in kernel.children(recursive=True))
    return int(kernel.num_fds()) - DESCRIPTORS_OF_A_WORKER * workers


def _zombies(pid: int) -> int:
    return sum(child.status() == psutil.STATUS_ZOMBIE for child in psutil.Process(pid).children(recursive=True))


async def _at_rest(read: Callable[[int], int], pid: int, pace: Pace, at_most: int) -> int:
    """The first of _ALIKE equal readings that is not above at_most; the last reading, when there is none in time."""
    seen = [sys.maxsize]
    with trio.move_on_after(SECONDS):
        while len(seen) < _ALIKE or seen[-1] > at_most:
            await pace()
            try:
                now = read(pid)
            except psutil.NoSuchProcess:  # a child that ended while it was looked at
                continue
            seen = [*seen, now] if now == seen[-1] else [now]
    return seen[-1]


async def settled_descriptors(pid: int, pace: Pace, *, at_most: int = sys.maxsize) -> int:
    """How many descriptors this kernel holds that are no worker's. at_most: what is expected; more is believed only after a while."""
    return await _at_rest(_other_descriptors, pid, pace, at_most)


async def settled_zombies(pid: int, pace: Pace) -> int:
    """How many zombies stay below this kernel."""
    return await _at_rest(_zombies, pid, pace, 0)
