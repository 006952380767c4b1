"""What all pages of one web host share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import trio

from hosts.web.half_lines import HalfLines
from hosts.web.keeper import Keeper
from hosts.web.page_text import PageText
from hosts.web.tickets import Tickets
from hosts.web.tokens import Tokens

MAX_PAGES = 32


@dataclass(slots=True, kw_only=True)
class Shared:
    """Made once by hosts.web.host. is_loopback: false = plain HTTP over a network: no isolated surface, no installed App (SPEC 14)."""

    keeper: Keeper
    text: PageText
    tickets: Tickets
    tokens: Tokens
    version: str
    language: str
    is_demo: bool
    is_loopback: bool
    half_lines: HalfLines = field(default_factory=HalfLines)
    closing: trio.Event = field(default_factory=trio.Event)  # set once: every page says goodbye
    pages: int = 0
    _page_left: trio.Event = field(default_factory=trio.Event)

    @contextmanager
    def page(self) -> Iterator[None]:
        """Count a page that was let in, as long as it is there."""
        self.pages += 1
        try:
            yield
        finally:
            self.pages -= 1
            self._page_left.set()

    async def wait_no_pages(self) -> None:
        """Wait until the last page is gone."""
        while self.pages:
            self._page_left = trio.Event()
            await self._page_left.wait()
