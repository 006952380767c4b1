"""What is half typed to the Agent in each tab, so that a reload of the page takes nothing (INV-30: in memory alone, never on a disk).

Rules:
1. A tab is known by a name of its own making; whoever is let in is the person, so a name is no secret.
2. At most MAX_TABS lines of at most MAX_LINE code points; the oldest go first.
"""

from __future__ import annotations

from collections import OrderedDict

MAX_TABS = 64
MAX_LINE = 65_536


class HalfLines:
    """See the head of the file."""

    def __init__(self) -> None:
        self._lines: OrderedDict[str, str] = OrderedDict()

    def keep(self, tab: str, line: str) -> None:
        """Keep the line of a tab; an empty one is forgotten."""
        self._lines.pop(tab, None)
        if line:
            self._lines[tab] = line
        while len(self._lines) > MAX_TABS:
            self._lines.popitem(last=False)

    def of(self, tab: str) -> str:
        """Return the line of a tab, or an empty one."""
        return self._lines.get(tab, "")
