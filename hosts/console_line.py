"""The input line of the console: text, cursor, history. Pure.

Rules:
1. The cursor counts code points; combining characters are deleted one by one, as most shells do.
2. A pasted newline stays in the text and is drawn as a sign; only Enter sends.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

MAX_POINTS = 16_384  # of message.send
MAX_HISTORY = 100


@dataclass(frozen=True, slots=True)
class InputLine:
    """text[:cursor] stands left of the cursor. recalled = how many steps back in the history, 0 = what is being typed."""

    text: str = ""
    cursor: int = 0
    history: tuple[str, ...] = field(default=())
    recalled: int = 0
    draft: str = ""


def insert(line: InputLine, typed: str) -> InputLine:
    """Put text at the cursor; what would go over the limit is left out."""
    typed = typed[: MAX_POINTS - len(line.text)]
    text = line.text[: line.cursor] + typed + line.text[line.cursor :]
    return replace(line, text=text, cursor=line.cursor + len(typed))


def take(line: InputLine) -> tuple[str, InputLine]:
    """Return what was typed and the emptied line that remembers it."""
    history = line.history
    if line.text.strip() and (not history or history[-1] != line.text):
        history = (*history, line.text)[-MAX_HISTORY:]
    return line.text, InputLine(history=history)


def edit(line: InputLine, key: str) -> InputLine:
    """Apply an editing key; a key that edits nothing changes nothing."""
    editor = _EDITORS.get(key)
    return line if editor is None else editor(line)


def _move(line: InputLine, cursor: int) -> InputLine:
    return replace(line, cursor=min(max(cursor, 0), len(line.text)))


def _cut(line: InputLine, start: int, end: int) -> InputLine:
    start, end = max(start, 0), min(end, len(line.text))
    return replace(line, text=line.text[:start] + line.text[end:], cursor=start)


def _word_start(line: InputLine) -> int:
    left = line.text[: line.cursor].rstrip()
    return max(left.rfind(" "), left.rfind("\n")) + 1


def _recall(line: InputLine, step: int) -> InputLine:
    recalled = min(max(line.recalled + step, 0), len(line.history))
    draft = line.text if line.recalled == 0 else line.draft
    text = line.history[-recalled] if recalled else draft
    return replace(line, text=text, cursor=len(text), recalled=recalled, draft=draft)


_EDITORS = {
    "backspace": lambda line: _cut(line, line.cursor - 1, line.cursor),
    "ctrl-a": lambda line: _move(line, 0),
    "ctrl-e": lambda line: _move(line, len(line.text)),
    "ctrl-k": lambda line: _cut(line, line.cursor, len(line.text)),
    "ctrl-u": lambda line: _cut(line, 0, line.cursor),
    "ctrl-w": lambda line: _cut(line, _word_start(line), line.cursor),
    "delete": lambda line: _cut(line, line.cursor, line.cursor + 1),
    "down": lambda line: _recall(line, -1),
    "end": lambda line: _move(line, len(line.text)),
    "home": lambda line: _move(line, 0),
    "left": lambda line: _move(line, line.cursor - 1),
    "right": lambda line: _move(line, line.cursor + 1),
    "up": lambda line: _recall(line, 1),
}
