"""The page for everybody: axe-core in light and dark, the keyboard alone, narrow, zoomed, in Chinese."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import Pages
from tests.web.line_agent import LineAgent
from tests.web.test_shell_cards import BOOKING, COLOURS, DAYS, press_until
from tests.web.web_host import WebHost

AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
PLACES = ("Apps", "Activity", "History", "Permissions", "Connect an Agent", "Settings")


def violations(page: Page) -> list[Any]:
    if not AXE.exists():
        pytest.fail("axe-core is missing: cd tests/web && npm ci")
    page.evaluate(AXE.read_text())
    found: list[Any] = page.evaluate(
        """async () => (await axe.run(document, { iframes: false })).violations
            .map(one => [one.id, one.nodes.map(node => node.html)])"""
    )
    return found


def fill(agent: LineAgent, page: Page) -> None:
    """Something of every kind in the conversation."""
    agent.say("# Title\n\nSome **text**, a [link](https://example.com), a list:\n\n- one\n- two")
    agent.say("| a | b |\n|---|---|\n| 1 | 2 |\n\n```\ncode\n```\n\n> said before")
    agent.send("task.update", {"task_id": "t", "title": "Sort it", "state": "running", "progress": 10})
    agent.send("task.update", {"task_id": "t", "title": "Sort it", "state": "blocked", "progress": 60})
    agent.send("hologram", {"text": "unknown"})
    agent.invoke("interaction.notice", {"title": "Backup", "message": "It is whole."})
    agent.invoke("interaction.choice", COLOURS)
    agent.invoke("interaction.choice", DAYS, expires_at="2035-01-01T00:00:00Z")
    agent.invoke("interaction.confirm", {"title": "Publish?", "prompt": "To all."})
    agent.invoke("interaction.input", BOOKING)
    form = page.get_by_role("region", name="Booking")
    form.get_by_role("button", name="Send answer").click()
    expect(form.get_by_role("alert")).to_be_visible()
    page.get_by_label("Message to the Agent").fill("hello")
    page.get_by_label("Message to the Agent").press("Enter")
    expect(page.get_by_role("article").filter(has_text="hello")).to_contain_text("arrived")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_the_page_and_its_panels(host: WebHost, agent: LineAgent, pages: Pages, scheme: str) -> None:
    page = pages.open(host.url, color_scheme=scheme, reduced_motion="reduce")
    assert violations(page) == []  # nothing was said yet
    fill(agent, page)
    assert violations(page) == []
    for place in PLACES:
        page.get_by_role("button", name=place, exact=True).click()
        expect(page.get_by_role("complementary", name=place)).to_be_visible()
        page.wait_for_load_state("networkidle")
        assert violations(page) == [], place
    page.keyboard.press("Escape")
    agent.invoke("task-dashboard.open", {"task_id": "t", "title": "A task", "state": "running"})
    expect(page.get_by_role("tab", name="Task Dashboard", selected=True)).to_be_visible()
    agent.invoke("interaction.choice", DAYS | {"title": "Over the app"})
    expect(page.get_by_role("dialog", name="Over the app")).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    assert violations(page) == []


def test_the_keyboard_reaches_everything_and_comes_back(host: WebHost, agent: LineAgent, pages: Pages) -> None:
    page = pages.open(host.url)
    agent.invoke("task-dashboard.open", {"task_id": "t", "title": "A task", "state": "running"})
    board, chat = page.get_by_role("tab", name="Task Dashboard"), page.get_by_role("tab", name="Conversation")
    expect(board).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the conversation")).to_be_focused()
    page.keyboard.press("Tab")
    expect(board).to_be_focused()  # one stop for all tabs
    page.keyboard.press("ArrowDown")
    expect(chat).to_be_focused()
    page.keyboard.press("Enter")
    expect(chat).to_have_attribute("aria-selected", "true")
    expect(chat).to_have_attribute("tabindex", "0")
    expect(board).to_have_attribute("tabindex", "-1")
    press_until(page, "Tab", page.get_by_role("button", name="Settings"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Settings")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Settings")).to_be_focused()
    press_until(page, "Tab", page.get_by_label("Message to the Agent"))
    page.keyboard.type("by keyboard")
    page.keyboard.press("Enter")
    expect(page.get_by_role("article").filter(has_text="by keyboard")).to_be_visible()


@pytest.mark.parametrize(("width", "height"), [(320, 568), (640, 410)], ids=["narrow", "zoomed to 200 %"])
def test_nothing_is_cut_off_when_there_is_little_room(host: WebHost, agent: LineAgent, pages: Pages, width: int, height: int) -> None:
    page = pages.open(host.url, viewport={"width": width, "height": height})
    fill(agent, page)
    assert _overflow(page) <= 0
    name, state = (page.locator(part).bounding_box() for part in (".brand h1", ".pill"))
    assert name is not None
    assert state is not None
    assert name["x"] + name["width"] <= state["x"]
    page.get_by_role("button", name="Menu").click()
    for place in PLACES:
        if not page.get_by_role("button", name=place, exact=True).is_visible():
            page.get_by_role("button", name="Menu").click()
        page.get_by_role("button", name=place, exact=True).click()
        expect(page.get_by_role("complementary", name=place)).to_be_visible()
        assert _overflow(page) <= 0, place
    page.get_by_role("button", name="Close", exact=True).click()
    expect(page.get_by_label("Message to the Agent")).to_be_in_viewport()
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_in_viewport()


def _overflow(page: Page) -> int:
    """By how many pixels something in the page is wider than its room, but for what scrolls by itself."""
    found: int = page.evaluate(
        """() => Math.max(document.documentElement.scrollWidth - innerWidth,
            ...[...document.querySelectorAll(".timeline, .panel-body, .side, main")].map(one => one.scrollWidth - one.clientWidth))"""
    )
    return found


def test_the_page_speaks_chinese_when_the_browser_does_and_can_be_switched(host: WebHost, agent: LineAgent, pages: Pages) -> None:
    page = pages.open(host.url, locale="zh-CN")
    agent.invoke("interaction.confirm", {"title": "发布？", "prompt": "给所有人。"})
    expect(page.get_by_role("tab", name="对话")).to_be_visible()
    expect(page.get_by_role("region", name="发布？")).to_contain_text("Agent 提问")
    assert page.evaluate("document.documentElement.lang") == "zh-CN"
    page.get_by_role("button", name="设置").click()
    page.get_by_label("English").check()
    expect(page.get_by_role("tab", name="Conversation")).to_be_visible()
    expect(page.get_by_role("region", name="发布？")).to_contain_text("The Agent asks")
    page.reload()
    expect(page.get_by_role("tab", name="Conversation")).to_be_visible()
