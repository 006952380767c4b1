"""Looks at how much memory the machine has left, so that unused Apps can give theirs back in time (SPEC 8.1)."""

from __future__ import annotations

from collections.abc import Callable

import psutil
import trio

from kernel import log

LOOK_SECONDS = 5.0
MIN_AVAILABLE_BYTES = 256 * 1024 * 1024  # as much as one worker may have (SPEC 16)


def available_bytes() -> int:
    """What can be had without swapping, in bytes."""
    return int(psutil.virtual_memory().available)


async def watch(ran_short: Callable[[], None], *, read: Callable[[], int] = available_bytes, look_seconds: float = LOOK_SECONDS) -> None:
    """Call `ran_short` at every look that finds less than MIN_AVAILABLE_BYTES."""
    while True:
        await trio.sleep(look_seconds)
        if read() < MIN_AVAILABLE_BYTES:
            log.event("memory.short")
            ran_short()
