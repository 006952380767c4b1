"""How much of the kernel one worker may use (SPEC 16): frames a second, and time spent on decoding and checking them.

A token bucket each; over it the worker is not read for a while (back-pressure), it is never refused for it.
"""

from __future__ import annotations

FRAMES_PER_SECOND = 2_000
WORK_PER_SECOND = 0.050
WORK_BURST_SECONDS = 0.200
YIELD_SECONDS = 0.002  # work after which the other tasks get their turn


class Budget:
    """The two buckets of one channel. Times are seconds of one monotonic clock, given by the caller."""

    def __init__(self, now: float) -> None:
        self._at = now
        self._frames = float(FRAMES_PER_SECOND)
        self._work = WORK_BURST_SECONDS

    def spend(self, now: float, frames: int, work_seconds: float) -> float:
        """Book what a read cost; return how long the worker must not be read, 0 when it is within its budget."""
        passed, self._at = now - self._at, now
        self._frames = min(float(FRAMES_PER_SECOND), self._frames + passed * FRAMES_PER_SECOND) - frames
        self._work = min(WORK_BURST_SECONDS, self._work + passed * WORK_PER_SECOND) - work_seconds
        return max(0.0, -self._frames / FRAMES_PER_SECOND, -self._work / WORK_PER_SECOND)
