"""Lines of text for a screen: wrapping, cutting, titles, quotes, time left. Pure.

Rules:
1. Whatever came from an App, the Agent or the person goes through visible() and into a Text, never through markup (THREATS 3.3).
2. Words of others stand behind a bar (`quoted`): no text of theirs can look like a label of ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from hosts.visible import visible

BAR = "│ "

_MEASURE = Console(width=80, color_system=None, force_terminal=False)  # wrapping asks it for nothing but defaults


def wrap(text: str, width: int, style: str = "") -> list[Text]:
    """Lay untrusted text out in lines of at most width cells."""
    lines: list[Text] = []
    for paragraph in visible(text, keep_newlines=True).split("\n"):
        wrapped = Text(paragraph, style=style, overflow="fold").wrap(_MEASURE, max(width, 1))
        lines.extend(wrapped or [Text()])
    return lines


def cut(line: Text, width: int) -> Text:
    """Return the line, cut with an ellipsis to width cells."""
    line = line.copy()
    line.truncate(width, overflow="ellipsis" if width > 1 else "crop")
    return line


def padded(line: Text, cells: int) -> Text:
    """Return the line in exactly so many cells."""
    line = cut(line, cells)
    line.append(" " * max(cells - cell_len(line.plain), 0))
    return line


def title(text: str, width: int, style: str = "dim") -> Text:
    """A heading of ours across the width; text must be visible already."""
    return Text(set_cell_size(f"── {text} " + "─" * width, width), style=style)


def quoted(text: str, width: int, style: str = "") -> list[Text]:
    """Untrusted text behind a bar."""
    return [Text(BAR, style="dim").append_text(line) for line in wrap(text, width - cell_len(BAR), style)]


def at_most(lines: Sequence[Text], count: int, more: str) -> list[Text]:
    """The first of these lines; when some are left out the last one says `more`."""
    if len(lines) <= count:
        return list(lines)
    return [*lines[: max(count - 1, 0)], Text(more, style="yellow")][:count]


def time_left(expires_at: str, wall_seconds: float) -> str:
    """How long something still waits, as the clock on the wall says it; the kernel's own clock decides."""
    seconds = int(datetime.fromisoformat(expires_at).timestamp() - wall_seconds)
    if seconds <= 0:
        return "expires now"
    days, hours, minutes = seconds // 86_400, seconds // 3600, seconds // 60
    if days:
        return f"expires in {days} d {hours % 24} h"
    return f"expires in {hours}:{minutes % 60:02}:{seconds % 60:02}" if hours else f"expires in {minutes}:{seconds % 60:02}"
