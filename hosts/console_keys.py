"""Bytes of a terminal to keys. Sans-IO: feed() what was read, flush() when nothing came for a moment.

Rules:
1. A key is a Typed text or a Named key; an unknown escape sequence is swallowed whole, never typed into the line.
2. A lone ESC is a key only after flush(): the rest of a sequence may still be on its way.
3. Enter sends a carriage return; Ctrl-J and Alt-Enter are a newline in the text.
4. Bracketed paste arrives as one Typed; control characters in it other than newline are dropped.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Typed:
    """Text to insert."""

    text: str


@dataclass(frozen=True, slots=True)
class Named:
    """A key with a name: enter, escape, up, ctrl-c …"""

    name: str


Key = Typed | Named

_SEQUENCES = {
    "\x1b[A": "up", "\x1b[B": "down", "\x1b[C": "right", "\x1b[D": "left", "\x1b[F": "end", "\x1b[H": "home",
    "\x1bOA": "up", "\x1bOB": "down", "\x1bOC": "right", "\x1bOD": "left", "\x1bOF": "end", "\x1bOH": "home",
    "\x1b[1~": "home", "\x1b[3~": "delete", "\x1b[4~": "end", "\x1b[5~": "page-up", "\x1b[6~": "page-down",
    "\x1b[7~": "home", "\x1b[8~": "end", "\x1b\r": "newline", "\x1b\n": "newline",
}  # fmt: skip
_CONTROLS = {"\r": "enter", "\n": "newline", "\t": "tab", "\x7f": "backspace", "\x08": "backspace", "\x00": "ctrl-space"}
_PASTE_START, _PASTE_END = "\x1b[200~", "\x1b[201~"
_COMPLETE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[ -~]|[^\[O\x1b])", re.DOTALL)
_MAX_SEQUENCE = 64
_MAX_PASTE = 64 * 1024


class KeyReader:
    """Holds what is incomplete between two reads."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._waiting = ""

    @property
    def is_waiting(self) -> bool:
        """True when an escape sequence has begun and not ended."""
        return bool(self._waiting)

    def feed(self, data: bytes) -> list[Key]:
        """Take bytes, return the keys that are complete."""
        self._waiting += self._decoder.decode(data)
        keys: list[Key] = []
        while self._waiting and (key := self._next()) is not None:
            keys.extend(key)
        return keys

    def flush(self) -> list[Key]:
        """Give up on an unfinished sequence: a lone ESC becomes the escape key. An unfinished paste waits on."""
        if self._waiting.startswith(_PASTE_START):
            return []
        is_lone = self._waiting == "\x1b"
        self._waiting = ""
        return [Named("escape")] if is_lone else []

    def _next(self) -> list[Key] | None:
        """Take the next key off the front; None when more is needed."""
        if self._waiting.startswith(_PASTE_START):
            return self._next_paste()
        if self._waiting[0] == "\x1b":
            return self._next_sequence()
        character, self._waiting = self._waiting[0], self._waiting[1:]
        if name := _CONTROLS.get(character):
            return [Named(name)]
        if character < " ":
            return [Named("ctrl-" + chr(ord(character) + 0x60))]
        return [Typed(character)]

    def _next_sequence(self) -> list[Key] | None:
        found = _COMPLETE.match(self._waiting)
        if found is None:
            if len(self._waiting) > _MAX_SEQUENCE or self._waiting.startswith("\x1b\x1b"):
                self._waiting = self._waiting[1:]
                return []
            return None
        self._waiting = self._waiting[found.end() :]
        name = _SEQUENCES.get(found.group())
        return [Named(name)] if name else []

    def _next_paste(self) -> list[Key] | None:
        end = self._waiting.find(_PASTE_END)
        if end < 0:
            if len(self._waiting) <= _MAX_PASTE:
                return None
            end = len(self._waiting)
        pasted = self._waiting[len(_PASTE_START) : end].replace("\r\n", "\n").replace("\r", "\n")
        self._waiting = self._waiting[end + len(_PASTE_END) :]
        return [Typed("".join(c for c in pasted if c >= " " or c == "\n"))]
