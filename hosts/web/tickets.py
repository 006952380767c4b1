"""One-time paths: bytes that a page may fetch once, soon (SPEC 9.2, 9.4).

Use: `path = tickets.issue("/a/", content)`; the route takes it with `tickets.take(...)`.
Rules:
1. A ticket is 192 random bits, good once and for TICKET_SECONDS; an unknown, used or late one is all the same: gone.
2. At most MAX_TICKETS and MAX_BYTES wait at a time; the oldest go first.
3. Only whoever holds the page's socket gets one, so a path tells nothing to others and is no secret of lasting worth.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

TICKET_SECONDS = 60.0
MAX_TICKETS = 256
MAX_BYTES = 64 * 1024 * 1024
_TICKET_BYTES = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What is behind a ticket. destinations: the Sec-Fetch-Dest values it is served to; empty = any of our own pages."""

    body: bytes
    headers: Mapping[str, str]
    destinations: frozenset[str] = frozenset()


class Tickets:
    """See the head of the file. now: seconds that only rise."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._waiting: OrderedDict[str, tuple[float, Content]] = OrderedDict()
        self._bytes = 0

    def issue(self, prefix: str, content: Content) -> str:
        """Keep the content and return its path under a prefix such as /s/; it has no slash at its end."""
        self._drop_old()
        path = prefix + secrets.token_urlsafe(_TICKET_BYTES)
        self._waiting[path] = (self._now() + TICKET_SECONDS, content)
        self._bytes += len(content.body)
        while len(self._waiting) > MAX_TICKETS or (self._bytes > MAX_BYTES and len(self._waiting) > 1):
            self._forget(next(iter(self._waiting)))
        return path

    def take(self, path: str) -> Content | None:
        """Return what a path is good for, once."""
        self._drop_old()
        entry = self._waiting.get(path)
        if entry is None:
            return None
        self._forget(path)
        return entry[1]

    def _forget(self, path: str) -> None:
        self._bytes -= len(self._waiting.pop(path)[1].body)

    def _drop_old(self) -> None:
        now = self._now()
        while self._waiting:
            path, (good_until, _) = next(iter(self._waiting.items()))
            if good_until >= now:
                return
            self._forget(path)
