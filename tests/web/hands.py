"""How a person uses the page: by mouse, or by keyboard alone. A test that takes one of them runs with the other too.

Rules:
1. The keyboard's hands reach a thing as a person does, by Tab and arrow keys; nothing is focused for them.
2. NO_POINTER, run in every document of a page, writes an error to its console as soon as a pointer does anything there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from playwright.sync_api import Locator, Page, expect

from tests.web.boards import Board, Place

MOST_STOPS = 200
HAS_KEYBOARD = "element => element === document.activeElement && document.hasFocus()"
NO_POINTER = """for (const kind of ["pointerdown", "pointermove", "mousedown", "mousemove", "wheel", "touchstart"])
    addEventListener(kind, (event) => { if (event.isTrusted) console.error(`a pointer was used: ${kind}`); }, { capture: true });"""


class Hands(Protocol):
    """What a person does with a thing on the page."""

    page: Page

    def press(self, target: Locator) -> None:
        """Press a button or a link."""

    def turn(self, name: str) -> None:
        """Bring an App, or the conversation, to the front by its tab."""

    def write(self, field: Locator, text: str) -> None:
        """Write into a field, in the place of what stands there."""

    def draw(self, board: Board, places: Sequence[Place], keys: Sequence[str]) -> None:
        """Draw a line: through places by mouse, by these keys on the keyboard."""


class Mouse:
    """Points and presses; types what has to be typed."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def press(self, target: Locator) -> None:
        """See Hands."""
        target.click()

    def turn(self, name: str) -> None:
        """See Hands."""
        self.page.get_by_role("tab", name=name).click()

    def write(self, field: Locator, text: str) -> None:
        """See Hands."""
        field.click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type(text)

    def draw(self, board: Board, places: Sequence[Place], keys: Sequence[str]) -> None:
        """See Hands."""
        del keys
        board.draw(*places)


class Keyboard:
    """Keys and nothing else."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def press(self, target: Locator) -> None:
        """See Hands."""
        self.reach(target)
        self.page.keyboard.press("Enter")

    def turn(self, name: str) -> None:
        """See Hands."""
        bar = self.page.get_by_role("tablist", name="Apps")
        self.reach(bar.get_by_role("tab", selected=True))
        self.reach(bar.get_by_role("tab", name=name), "ArrowDown")
        self.page.keyboard.press("Enter")

    def write(self, field: Locator, text: str) -> None:
        """See Hands."""
        self.reach(field)
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type(text)

    def draw(self, board: Board, places: Sequence[Place], keys: Sequence[str]) -> None:
        """See Hands."""
        del places
        self.reach(board.paper)
        for key in keys:
            self.page.keyboard.press(key)

    def reach(self, target: Locator, key: str = "Tab") -> None:
        """Go on with one key until the target has the keyboard."""
        expect(target).to_be_visible()
        for _ in range(MOST_STOPS):
            if target.evaluate(HAS_KEYBOARD):
                return
            self.page.keyboard.press(key)
        raise AssertionError(f"the keyboard does not reach {target}")
