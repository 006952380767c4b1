"""The Whiteboard as a person uses it in a page: places are parts of the board, 0 to 1."""

from __future__ import annotations

from collections.abc import Sequence

from playwright.sync_api import FrameLocator, Locator, Page, expect

Place = tuple[float, float]


class Board:
    """The Whiteboard's frame in a page."""

    def __init__(self, page: Page) -> None:
        self.page = page

    @property
    def frame(self) -> FrameLocator:
        return self.page.frame_locator("iframe[title=Whiteboard]")

    @property
    def paper(self) -> Locator:
        """The canvas that takes pointer and keys."""
        return self.frame.get_by_role("application")

    def press(self, name: str) -> None:
        """A button by its whole name."""
        self.frame.get_by_role("button", name=name, exact=True).click()

    def says(self, text: str) -> None:
        """Wait until the line above the paper says this."""
        expect(self.frame.get_by_role("status")).to_contain_text(text)

    def at(self, place: Place) -> Place:
        """Where a place of the board is in the page."""
        box = self.paper.bounding_box()
        assert box is not None
        return box["x"] + place[0] * box["width"], box["y"] + place[1] * box["height"]

    def draw(self, *places: Place) -> None:
        """Draw a line through these, by mouse."""
        self.page.mouse.move(*self.at(places[0]))
        self.page.mouse.down()
        for place in places[1:]:
            self.page.mouse.move(*self.at(place), steps=5)
        self.page.mouse.up()

    def write(self, place: Place, text: str) -> None:
        """Write with the text tool."""
        self.press("Text")
        self.page.mouse.click(*self.at(place))
        expect(self.frame.get_by_role("textbox")).to_be_focused()
        self.page.keyboard.type(text)
        self.page.keyboard.press("Enter")

    def keys(self, names: Sequence[str]) -> None:
        """Press keys on the paper."""
        for name in names:
            self.paper.press(name)
