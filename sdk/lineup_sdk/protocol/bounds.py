"""How long, how large and of which form the fields of a worker's messages may be: one list, for both ends of the wire.

Use: `bounds_of(ToolFail)["message"].holds("...")`. The kernel's strict models (kernel.protocol.strict) are made from it, the SDK refuses by
it before anything leaves (parsing.py), wire.cddl publishes it; a test compares the three.
Rules:
1. A name means one thing in every message, so its bound stands once (BY_NAME); where it means another, the message is named (OWN).
2. These are bounds of the wire: what is beyond breaks it (SPEC 2.2). What the kernel refuses `limit_exceeded` is narrower and not here.
3. Lengths count code points. The length of a failure's message is not the author's business while it fails: `shortened` cuts it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields

from lineup_sdk.protocol.limits import MAX_INTEGER, MAX_LOG_TEXT_BYTES
from lineup_sdk.protocol.message import Message


@dataclass(frozen=True, slots=True)
class Length:
    """A text of this many code points."""

    least: int
    most: int

    def holds(self, value: str) -> bool:
        """True for a text within the bound."""
        return self.least <= len(value) <= self.most

    def __str__(self) -> str:
        return f"{self.least} to {self.most} characters"


@dataclass(frozen=True, slots=True)
class Form:
    """A text of this form, as a regular expression that every engine reads alike."""

    pattern: str

    def holds(self, value: str) -> bool:
        """True for a text that has the form from its first character to its last."""
        return re.fullmatch(self.pattern, value) is not None

    def __str__(self) -> str:
        return f"a text of the form {self.pattern}"


@dataclass(frozen=True, slots=True)
class Span:
    """An integer from least to most."""

    least: int
    most: int

    def holds(self, value: int) -> bool:
        """True for an integer within the bound."""
        return self.least <= value <= self.most

    def __str__(self) -> str:
        return f"an integer from {self.least} to {self.most}"


Bound = Length | Form | Span

IDENT = Length(1, 128)
SHORT_TEXT = Length(0, 1_000)
LONG_TEXT = Length(0, 65_536)
COUNT = Span(0, MAX_INTEGER)
TOKEN = Form("[a-z0-9_]{1,64}")
DIGEST = Form("[0-9a-f]{64}")

BY_NAME: Mapping[str, Bound] = {
    "after": IDENT,
    "artifact_id": IDENT,
    "base_version": COUNT,
    "call_id": IDENT,
    "capability": IDENT,
    "expires_at": Length(1, 40),
    "interaction_id": IDENT,
    "key": IDENT,
    "media_type": Form("[a-z0-9.+-]{1,63}/[a-z0-9.+-]{1,63}"),
    "message": SHORT_TEXT,
    "message_id": IDENT,
    "mode": Form("im|audio|video"),
    "n": COUNT,
    "number": COUNT,
    "of": IDENT,
    "offset": COUNT,
    "parent_call_id": IDENT,
    "presentation": Form("default|inline|modal"),
    "reason": TOKEN,
    "sdk": Length(0, 64),
    "sha256": DIGEST,
    "size": COUNT,
    "stream": Form("stdout|stderr|log"),
    "text": LONG_TEXT,
}
OWN: Mapping[tuple[str, str], Bound] = {
    ("capability.request", "reason"): SHORT_TEXT,
    ("lifecycle.request_close", "reason"): SHORT_TEXT,
    ("log.write", "text"): Length(0, MAX_LOG_TEXT_BYTES),
    ("tool.cancel", "reason"): SHORT_TEXT,
    ("ui.cancel", "reason"): SHORT_TEXT,
}


def bounds_of(kind: type[Message]) -> dict[str, Bound]:
    """The bounds of the fields of a worker's message that have one, by name."""
    found = {f.name: OWN.get((kind.TYPE, f.name), BY_NAME.get(f.name)) for f in fields(kind)}
    return {name: bound for name, bound in found.items() if bound is not None}


def shortened(text: str | None) -> str | None:
    """The message of a failure as the wire takes it: one that is too long ends with an ellipsis, so that the failure itself arrives."""
    if not isinstance(text, str) or len(text) <= SHORT_TEXT.most:  # what is no text is refused as such, where it leaves
        return text
    return text[: SHORT_TEXT.most - 1] + "\N{HORIZONTAL ELLIPSIS}"
