"""Counting identical refusals of one channel, so that a flood of them is no flood of audit rows (SPEC 16).

Rules:
1. The first refusal of a code on a channel is audited at once; the next ones are counted.
2. A minute later one counted row says how many there were.
3. 100 identical refusals within a minute are a protocol violation: the channel is closed.
"""

from __future__ import annotations

from dataclasses import dataclass

from lineup_sdk.protocol.codes import Code

WINDOW_MS = 60_000
MAX_IN_WINDOW = 100


@dataclass(slots=True)
class _Window:
    began_ms: int
    count: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do about one refusal."""

    is_audited: bool
    is_violation: bool


class Refusals:
    """Windows by channel and code; in memory, for channels that live."""

    def __init__(self) -> None:
        self._windows: dict[tuple[int, Code], _Window] = {}

    def note(self, channel: int, code: Code, now_ms: int) -> Verdict:
        """Count one refusal."""
        window = self._windows.get((channel, code))
        if window is None:
            self._windows[channel, code] = _Window(now_ms, 1)
            return Verdict(is_audited=True, is_violation=False)
        window.count += 1
        return Verdict(is_audited=False, is_violation=window.count >= MAX_IN_WINDOW)

    def next_due_ms(self) -> int | None:
        """When the oldest window is over; None while there is none."""
        return min((window.began_ms + WINDOW_MS for window in self._windows.values()), default=None)

    def due(self, now_ms: int) -> list[tuple[Code, int]]:
        """Take the windows that are over; each with more than its first refusal gives one counted row."""
        over = [key for key, window in self._windows.items() if now_ms - window.began_ms >= WINDOW_MS]
        counted = [(key[1], self._windows.pop(key).count - 1) for key in over]
        return [(code, count) for code, count in counted if count]
