"""Untrusted text made safe to show in a terminal: what an app or an Agent wrote may not steer the screen or hide (SPEC 11.2, THREATS 3.3).

Rules:
1. Control characters, bidi controls, invisible format characters, private-use, surrogates and the like become a visible sign.
2. A newline stays only where the caller can place it; a tab becomes spaces.
3. More than four combining marks in a row are cut: they would be drawn over the lines above.
4. The result is text, never markup: callers put it into rich.text.Text or print it, and never parse it.
"""

from __future__ import annotations

import unicodedata

_MAX_MARKS = 4
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
_JOINERS = "\u200d"  # joins emoji; harmless and needed


def _sign(character: str) -> str:
    number = ord(character)
    if number < 0x20:
        return chr(0x2400 + number)
    if number == 0x7F:
        return "\u2421"
    return f"<U+{number:04X}>"


def visible(untrusted_text: str, *, keep_newlines: bool = False) -> str:
    """Return the text with everything that could steer or hide replaced by visible signs."""
    if untrusted_text.isascii() and untrusted_text.isprintable():
        return untrusted_text
    out: list[str] = []
    marks = 0
    for character in untrusted_text:
        category = unicodedata.category(character)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if character == "\n" and keep_newlines:
            out.append("\n")
        elif character == "\t":
            out.append("    ")
        elif character != _JOINERS and category in _HIDDEN_CATEGORIES:
            out.append(_sign(character))
        elif marks <= _MAX_MARKS:
            out.append(character)
    return "".join(out)


def one_line(untrusted_text: str, max_points: int) -> str:
    """Return visible text on one line, cut with an ellipsis after max_points code points."""
    text = visible(untrusted_text[: max_points + 1])
    return text if len(text) <= max_points else text[: max_points - 1] + "…"
