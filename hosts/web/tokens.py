"""What a page shows to be let in: the token of the place, or one that opens once.

Rules:
1. The token of the place stays with the person's terminal and the pages; it is never put on a command line, which others can read.
2. What a browser is started with opens once, within OPENING_SECONDS; the page then gets the lasting one.
3. Compared in constant time.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable

OPENING_SECONDS = 120.0
MAX_OPENINGS = 16


class Tokens:
    """See the head of the file."""

    def __init__(self, lasting: str, now: Callable[[], float]) -> None:
        self.lasting = lasting
        self._now = now
        self._openings: dict[str, float] = {}

    def opening(self) -> str:
        """Make a token that opens once."""
        while len(self._openings) >= MAX_OPENINGS:
            del self._openings[next(iter(self._openings))]
        token = secrets.token_urlsafe(32)
        self._openings[token] = self._now() + OPENING_SECONDS
        return token

    def admit(self, untrusted_token: str) -> bool:
        """Say whether it opens; an opening one is spent by that."""
        shown = untrusted_token.encode()
        found = [token for token in self._openings if hmac.compare_digest(shown, token.encode())]
        for token in found:
            if self._openings.pop(token) < self._now():
                found = []
        return hmac.compare_digest(shown, self.lasting.encode()) or bool(found)
