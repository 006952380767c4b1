"""kill -9 of the kernel, of the host and of the board's process, each time with a message half typed, a question half answered and a board
half drawn: the page comes back by itself, and nothing is lost (SPEC 2.9, 6.8, 7.3, 12)."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.web.boards import Board
from tests.web.conftest import Pages
from tests.web.line_agent import LineAgent
from tests.web.test_boards import kill_workers
from tests.web.web_host import WebHost

pytestmark = [pytest.mark.clause("2.9"), pytest.mark.clause("12")]
LETTER: dict[str, Any] = {
    "title": "A letter",
    "prompt": "What shall it say?",
    "fields": [{"id": "text", "label": "Text", "type": "textarea"}],
}


class Desk:
    """A page with everything begun and nothing ended, and the Agent that waits for it."""

    def __init__(self, page: Page, agent: LineAgent) -> None:
        self.page, self.board, self.agent = page, Board(page), agent
        self.letter = agent.invoke("interaction.input", LETTER)
        page.get_by_role("region", name="A letter").get_by_label("Text").fill("Dear half")
        self.line.fill("half a line")
        self.drawing = agent.invoke("whiteboard.open", {"board_id": "b1", "title": "Plan"})
        self.board.says("0 strokes")
        self.board.draw((0.1, 0.1), (0.9, 0.9))
        self.board.draw((0.9, 0.1), (0.1, 0.9))
        self.board.says("2 strokes")
        agent.say("Said before the end")
        expect(page.get_by_role("log", name="Conversation", include_hidden=True)).to_contain_text("Said before the end")

    @property
    def line(self) -> Locator:
        """Where the person writes to the Agent."""
        return self.page.get_by_label("Message to the Agent")

    def go_on(self, agent: LineAgent) -> None:
        """See that all is there, and end each thing that was begun."""
        expect(self.page.get_by_role("tab", name="Whiteboard", selected=True)).to_be_visible()
        self.board.says("Plan · 2 strokes")
        self.board.draw((0.5, 0.1), (0.5, 0.9))
        self.board.says("3 strokes")
        self.board.press("Submit")
        self.board.says("Submitted")
        assert agent.result(self.drawing)["result"]["status"] == "submitted"
        self.page.get_by_role("tab", name="Conversation").click()
        expect(self.page.get_by_role("log", name="Conversation")).to_contain_text("Said before the end")
        field = self.page.get_by_role("region", name="A letter").get_by_label("Text")
        expect(field).to_have_value("Dear half")
        field.press("End")
        self.page.keyboard.type(" and whole")
        self.page.get_by_role("button", name="Send answer").click()
        answer = agent.result(self.letter)["result"]["answer"]
        assert answer == {"fields": [{"id": "text", "text": "Dear half and whole"}]}
        expect(self.line).to_have_value("half a line")
        self.line.press("Enter")
        expect(self.page.get_by_role("article").filter(has_text="half a line")).to_contain_text("arrived")
        assert agent.wait("message.text")["payload"]["text"] == "half a line"


@pytest.fixture
def desk(host: WebHost, agent: LineAgent, pages: Pages) -> Desk:
    return Desk(pages.open(host.url), agent)


def kill_kernel(host: WebHost, page: Page) -> None:
    before = host.kernel_pid()
    host.kill_kernel()
    gone = page.get_by_role("status").filter(has_text="The kernel went away")
    expect(gone).to_have_count(1)
    expect(gone).to_have_count(0)
    assert host.kernel_pid() != before


def kill_board(host: WebHost, page: Page) -> None:
    del page
    kill_workers(host)


@pytest.mark.parametrize("kill", [kill_kernel, kill_board])
def test_what_was_begun_goes_on_after_kill_9(host: WebHost, desk: Desk, kill: Callable[[WebHost, Page], None]) -> None:
    kill(host, desk.page)
    desk.go_on(desk.agent)


def test_what_was_begun_goes_on_after_kill_9_of_the_host(host: WebHost, desk: Desk, pages: Pages) -> None:
    pages.allow("WebSocket connection to")
    origin, kernel = host.origin, host.kernel_pid()
    assert host.stop(signal.SIGKILL) == -signal.SIGKILL
    expect(desk.page.get_by_role("alert")).to_contain_text("The LineUp host does not answer")
    host.start()
    assert (host.origin, host.kernel_pid()) == (origin, kernel)
    expect(desk.page.get_by_role("alert")).to_have_count(0)  # nobody pressed anything
    desk.go_on(desk.agent)


@pytest.mark.clause("9.1")
def test_a_line_under_the_pen_stays_as_far_as_it_was_drawn_and_a_submit_of_meanwhile_is_done(host: WebHost, desk: Desk) -> None:
    page, board = desk.page, desk.board
    path = page.locator("iframe[title=Whiteboard]").get_attribute("src")
    page.mouse.move(*board.at((0.1, 0.5)))
    page.mouse.down()
    page.mouse.move(*board.at((0.5, 0.5)), steps=5)
    host.kill_kernel()
    expect(page.locator(f'iframe[title=Whiteboard]:not([src="{path}"])')).to_be_visible()
    page.mouse.up()
    board.says("3 strokes")
    host.kill_kernel()
    board.press("Submit")
    board.says("Submitted")
    assert desk.agent.result(desk.drawing)["result"]["status"] == "submitted"


@pytest.mark.clause("7.3")
def test_a_draft_that_no_page_holds_is_all_that_a_killed_kernel_loses(host: WebHost, desk: Desk, pages: Pages) -> None:
    desk.page.close()
    host.kill_kernel()
    page = pages.open(host.url)
    Board(page).says("Plan · 2 strokes")
    page.get_by_role("tab", name="Conversation").click()
    field = page.get_by_role("region", name="A letter").get_by_label("Text")
    expect(field).to_have_value("")
    field.fill("Written anew")
    page.get_by_role("button", name="Send answer").click()
    assert desk.agent.result(desk.letter)["result"]["answer"] == {"fields": [{"id": "text", "text": "Written anew"}]}
