"""The scenario of SPEC 7.2 whole, in two tabs and the console: a question over Whiteboard, moved to the timeline, Whiteboard closed, still
open, and answered by several views at once: one outcome, and the others say whose."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from hosts.homes import Home
from tests.hosts.screen import Screen
from tests.web.conftest import Pages
from tests.web.line_agent import LineAgent
from tests.web.web_host import WebHost

COLOURS = {
    "title": "Which colour?",
    "prompt": "For the front page.",
    "mode": "button",
    "actions": [{"id": "red", "label": "Red"}, {"id": "green", "label": "Green"}, {"id": "blue", "label": "Blue"}],
}


@pytest.fixture
def console(host: WebHost) -> Iterator[Screen]:
    """The console of the same kernel, on a terminal."""
    screen = Screen(Home(host.home), 140, 40)
    screen.wait_text("kernel up")
    yield screen
    screen.close()


def identity(page: Page) -> str | None:
    """The question that is drawn, by its id."""
    return page.locator("[data-question]").first.get_attribute("data-question")


@pytest.mark.clause("7.2")
@pytest.mark.clause("7.3")
def test_a_question_outlives_where_it_stood_and_is_answered_once_by_one_of_three_views(
    host: WebHost, agent: LineAgent, console: Screen, pages: Pages
) -> None:
    tabs = {"red": pages.open(host.url), "green": pages.open(host.url)}
    board = agent.invoke("whiteboard.open", {"board_id": "b1", "title": "Plan"})
    for page in tabs.values():
        expect(page.get_by_role("tab", name="Whiteboard", selected=True)).to_be_visible()
    console.wait_text("front: Whiteboard")

    call_id = agent.invoke("interaction.choice", COLOURS)
    for page in tabs.values():
        expect(page.get_by_role("dialog", name="Which colour?")).to_be_visible()
        expect(page.get_by_role("tab", name="Whiteboard", selected=True)).to_be_visible()
    console.wait_text("│ Which colour?", "front: Whiteboard")
    asked = identity(tabs["red"])

    tabs["red"].get_by_role("button", name="Show in the conversation").click()
    for page in tabs.values():
        expect(page.get_by_role("dialog")).to_have_count(0)
    console.wait_text("1 to answer")

    tabs["green"].get_by_role("button", name="Close app").click()
    tabs["green"].get_by_role("dialog").get_by_role("button", name="Cancel the work and close").click()
    assert agent.result(board)["status"] == "cancelled"
    for page in tabs.values():
        expect(page.get_by_role("tab", name="Conversation", selected=True)).to_be_visible()
        expect(page.get_by_role("region", name="Which colour?").get_by_role("button", name="Red")).to_be_visible()
        assert identity(page) == asked
    console.wait_text("1 to answer", "front: conversation")

    answer_at_once(tabs, console)
    told = agent.result(call_id)
    assert (told["status"], told["result"]["outcome"]) == ("completed", "answered")
    [chosen] = told["result"]["answer"]["action_ids"]
    everybody_says_whose(tabs, console, chosen)
    assert results_of(agent, call_id) == 1
    listed = json.loads(host.lineup("interactions", "list", "--format", "json"))["interactions"]
    assert [one["interaction_id"] for one in listed if one["request"]["title"] == "Which colour?"] == [asked]


def answer_at_once(tabs: dict[str, Page], console: Screen) -> None:
    """Each view has its own answer; they are sent, none waiting for another."""
    console.enter("/answer")
    console.wait_text("number>")
    console.type("3")
    console.wait_text("number> 3")
    for choice, page in tabs.items():
        page.get_by_role("button", name=choice.capitalize()).evaluate("button => { setTimeout(() => button.click(), 200); }")
    console.type("\r")


def everybody_says_whose(tabs: dict[str, Page], console: Screen, chosen: str) -> None:
    """The view that was first says that it is answered; each other names the view."""
    for choice, page in tabs.items():
        shown = page.get_by_role("region", name="Which colour?")
        expect(shown.get_by_role("listitem")).to_have_text(chosen.capitalize())
        expect(shown.get_by_role("button")).to_have_count(0)
        expect(shown).to_contain_text("Answered" if choice == chosen else "Answered in another view (view-")
        if choice == chosen:
            expect(shown).not_to_contain_text("another view")
    console.wait_text("You answered" if chosen == "blue" else "was answered by view-", chosen.capitalize())
    console.wait_without("to answer")


def results_of(agent: LineAgent, call_id: str) -> int:
    """How many results of a call came."""
    return sum(one["type"] == "lineup.v1.tool.result" and one["payload"]["call_id"] == call_id for one in agent.envelopes())
