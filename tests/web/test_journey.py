"""The first-time journey (tests/web/journey.py) by mouse, by keyboard alone, and in a browser with a window."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.processes.written_app import FIXTURE, write_app
from tests.web.conftest import Pages, StartHost
from tests.web.hands import NO_POINTER, Hands, Keyboard, Mouse
from tests.web.journey import STEPS, Journey
from tests.web.line_agent import LineAgent
from tests.web.web_host import WebHost, agent_of

pytestmark = [pytest.mark.clause("7.2"), pytest.mark.clause("8.4"), pytest.mark.clause("9.1"), pytest.mark.clause("10")]
SCRIBE = Path(__file__).parents[1] / "processes" / "apps" / "scribe.py"
CAPABILITIES = ("artifact.save", "clipboard.write", "notification.show")
MAY = ["clipboard-write", "clipboard-read"]
Walk = Callable[[Hands], list[str]]


@pytest.fixture
def stage(start_host: StartHost, tmp_path: Path) -> WebHost:
    """A host with an App that asks for capabilities and one that can be made to fail."""
    scribe = write_app(tmp_path, "scribe", SCRIBE.read_bytes(), ("ask", "copy", "put", "results"), CAPABILITIES)
    return start_host(scribe, FIXTURE, is_executed=True)


@pytest.fixture
def walk(stage: WebHost, tmp_path: Path) -> Iterator[Walk]:
    """Walk the whole journey with some hands; the steps that were taken."""
    with ExitStack() as stack:

        def connect() -> LineAgent:
            return stack.enter_context(agent_of(stage))

        def go(hands: Hands) -> list[str]:
            journey = Journey(hands, connect, tmp_path)
            journey.walk()
            return journey.taken

        yield go


def test_a_first_journey_by_mouse(stage: WebHost, pages: Pages, walk: Walk) -> None:
    assert len(walk(Mouse(pages.open(stage.url, permissions=MAY)))) == len(STEPS) >= 12


def test_a_first_journey_by_keyboard_alone(stage: WebHost, pages: Pages, walk: Walk) -> None:
    assert len(walk(Keyboard(pages.open(stage.url, script=NO_POINTER, permissions=MAY)))) == len(STEPS)


def test_a_first_journey_in_a_browser_with_a_window(stage: WebHost, headed_browser: Browser, walk: Walk) -> None:
    pages = Pages(headed_browser)
    taken = walk(Mouse(pages.open(stage.url, permissions=MAY)))
    pages.close()
    assert pages.troubles == []
    assert len(taken) == len(STEPS)


def test_the_guard_of_the_keyboard_tells_of_a_pointer_in_the_page_and_in_a_surface(host: WebHost, agent: LineAgent, pages: Pages) -> None:
    page = pages.open(host.url, script=NO_POINTER)
    agent.invoke("task-dashboard.open", {"task_id": "t", "title": "A task", "state": "running"})
    page.get_by_role("tab", name="Task Dashboard", selected=True).click()
    told = set(pages.troubles)
    pages.troubles.clear()
    page.frame_locator("iframe[title='Task Dashboard']").get_by_role("button", name="Close A task").click()
    for troubles in (told, set(pages.troubles)):
        assert "error: a pointer was used: mousedown" in troubles
    pages.troubles.clear()  # what this test asked for
