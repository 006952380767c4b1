"""The kernel's two clocks and its randomness, stamped onto turns (SPEC 6.6). The only place that asks for any of them."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path

from kernel.core.decision import Stamp

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_TOKEN_BYTES = 16
_TOKENS_AT_ONCE = 64  # asked of the system together: one call for each turn would be one of the dearest things in it


class Clock:
    """Wall time, CLOCK_BOOTTIME of this boot, and tokens."""

    def __init__(self) -> None:
        self.boot_id = _BOOT_ID.read_text().strip()
        self._tokens: list[str] = []

    def boottime_ms(self) -> int:
        """Machine time of this boot in ms; goes on while the machine sleeps."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000

    def stamp(self, first_number: int) -> Stamp:
        """The time and randomness of one turn."""
        return Stamp(datetime.now(UTC), self.boot_id, self.boottime_ms(), self._new_token(), first_number)

    def _new_token(self) -> str:
        """128 random bits, used once."""
        if not self._tokens:
            drawn = os.urandom(_TOKEN_BYTES * _TOKENS_AT_ONCE)
            self._tokens = [drawn[at : at + _TOKEN_BYTES].hex() for at in range(0, len(drawn), _TOKEN_BYTES)]
        return self._tokens.pop()


def new_epoch() -> str:
    """A new epoch: 48 random bits, short enough to stand in every id (SPEC 4.6)."""
    return os.urandom(6).hex()
