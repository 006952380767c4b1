"""The conversation in windows (SPEC 9.3), tasks, what calls did, and the panels that show what goes on."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect

from tests.processes.written_app import ASKER, FIXTURE
from tests.web.conftest import Pages, StartHost
from tests.web.line_agent import LineAgent
from tests.web.web_host import WebHost, agent_of


def numbers(page: Page) -> list[int]:
    found: list[int] = page.locator("article[data-number]").evaluate_all("all => all.map(one => Number(one.dataset.number))")
    return found


@pytest.mark.clause("9.3")
def test_older_messages_are_read_on_the_way_up_without_moving_what_is_read(host: WebHost, agent: LineAgent, pages: Pages) -> None:
    for index in range(130):
        agent.say(f"line {index}")
    page = pages.open(host.url)
    log = page.get_by_role("log", name="Conversation")
    expect(log.get_by_text("line 129", exact=True)).to_be_in_viewport()
    assert len(numbers(page)) == 50
    log.focus()
    page.keyboard.press("Home")
    expect(log.get_by_text("line 79", exact=True)).to_be_attached()
    expect(log.get_by_text("line 40", exact=True)).to_be_attached()
    shown = numbers(page)
    assert shown == sorted(set(shown))
    agent.say("the newest of all")
    expect(log.get_by_text("the newest of all")).to_be_attached()
    expect(log.get_by_text("the newest of all")).not_to_be_in_viewport()
    page.get_by_role("button", name="Newest messages").click()
    expect(log.get_by_text("the newest of all")).to_be_in_viewport()


@pytest.mark.clause("9.3")
def test_no_more_than_one_window_is_kept(host: WebHost, agent: LineAgent, pages: Pages) -> None:
    for index in range(560):
        agent.say(f"line {index}")
    page = pages.open(host.url)
    log = page.get_by_role("log", name="Conversation")
    expect(log.get_by_text("line 559", exact=True)).to_be_in_viewport()
    log.focus()
    for known in range(510, -1, -50):
        page.keyboard.press("Home")
        expect(log.get_by_text(f"line {max(known - 49, 0)}", exact=True)).to_be_attached()
    expect(log.get_by_text("This is the beginning.")).to_be_attached()
    assert len(numbers(page)) == 500
    expect(log.get_by_text("line 559", exact=True)).to_have_count(0)
    page.get_by_role("button", name="Newest messages").click()
    expect(log.get_by_text("line 559", exact=True)).to_be_in_viewport()


@pytest.mark.clause("9.3")
def test_a_conversation_that_fits_says_that_it_is_whole(host: WebHost, agent: LineAgent, pages: Pages) -> None:
    page = pages.open(host.url)
    page.get_by_label("Message to the Agent").fill("hello")
    page.get_by_label("Message to the Agent").press("Enter")
    expect(page.get_by_role("article").filter(has_text="hello")).to_contain_text("arrived")
    for _ in range(2):
        expect(page.get_by_text("This is the beginning.")).to_be_visible()
        expect(page.get_by_role("button", name="Show older")).to_have_count(0)
        page.reload()


def test_of_the_cards_of_one_task_the_newest_is_whole(host: WebHost, agent: LineAgent, pages: Pages) -> None:
    page = pages.open(host.url)
    for progress in (10, 60):
        agent.send("task.update", {"task_id": "t", "title": "Sort it", "state": "running", "progress": progress})
    whole = page.get_by_role("region", name="Task: Sort it")
    expect(whole).to_have_count(1)
    expect(whole.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "60")
    expect(page.get_by_text("earlier:")).to_be_visible()


@pytest.mark.clause("6.7")
def test_the_activity_shows_progress_cancels_a_call_and_reads_a_result_as_people_do(start_host: StartHost, pages: Pages) -> None:
    host = start_host(FIXTURE)
    page = pages.open(host.url)
    with agent_of(host) as agent:
        done = agent.invoke("fixture.echo", {"text": "<b>hello</b>"})
        agent.result(done)
        waiting = agent.invoke("fixture.once", {"key": "never"})
        page.get_by_role("button", name="Activity").click()
        side = page.get_by_role("complementary", name="Activity")
        expect(side.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "50")
        expect(side).to_contain_text("half done")
        side.get_by_role("button", name="Details of").filter(has_text="cho").click()
        expect(side.get_by_role("definition").first).to_have_text("<b>hello</b>")
        expect(side.get_by_role("term").first).to_have_text("Text")
        side.get_by_role("button", name="Cancel").click()
        assert agent.result(waiting)["status"] == "cancelled"
        expect(side.get_by_role("button", name="Cancel")).to_have_count(0)
        agent.say("All done")
        expect(page.get_by_text("2 calls: 1 cancelled, 1 completed")).to_be_visible()


@pytest.mark.clause("4.5")
def test_an_app_is_switched_off_and_on_and_opened(host: WebHost, pages: Pages) -> None:
    page = pages.open(host.url)
    page.get_by_role("button", name="Apps", exact=True).click()
    side = page.get_by_role("complementary", name="Apps")
    switch = side.get_by_role("switch", name="Switched on: Whiteboard")
    switch.click()
    expect(switch).not_to_be_checked()
    expect(side.get_by_role("button", name="Open Whiteboard")).to_be_disabled()
    switch.press("Space")
    expect(switch).to_be_checked()
    side.get_by_role("button", name="Open Whiteboard").click()
    expect(page.get_by_role("tab", name="Whiteboard", selected=True)).to_be_visible()
    expect(page.get_by_role("tab", name="Conversation")).to_have_attribute("aria-selected", "false")


@pytest.mark.clause("8.4")
def test_a_closed_session_is_read_only_and_is_continued(host: WebHost, agent: LineAgent, pages: Pages) -> None:
    page = pages.open(host.url)
    agent.invoke("task-dashboard.open", {"task_id": "t", "title": "A task", "state": "running"})
    expect(page.get_by_role("tab", name="Task Dashboard", selected=True)).to_be_visible()
    agent.say("Said while it was in front")
    page.get_by_role("button", name="Close app").click()
    page.get_by_role("dialog", name="Close Task Dashboard?").get_by_role("button", name="Cancel the work and close").click()
    expect(page.get_by_role("tab", name="Task Dashboard")).to_have_count(0)
    page.get_by_role("button", name="History").click()
    side = page.get_by_role("complementary", name="History")
    side.get_by_role("button", name="Read Task Dashboard").click()
    expect(side).to_contain_text("Said while it was in front")
    expect(side.get_by_role("textbox")).to_have_count(0)
    side.get_by_role("button", name="Continue Task Dashboard").click()
    expect(page.get_by_role("tab", name="Task Dashboard", selected=True)).to_be_visible()


@pytest.mark.clause("5.4")
def test_a_message_that_was_set_aside_is_sent_again_or_given_up(start_host: StartHost, pages: Pages) -> None:
    host = start_host(FIXTURE)
    page = pages.open(host.url)
    with agent_of(host) as agent:
        agent.result(agent.invoke("fixture.report", {"percents": []}))
        agent.send("app.message", {"topic": "fixture.poison", "body": {}}, app_scope="fixture")
        page.get_by_role("button", name="Set aside").click()
        side = page.get_by_role("complementary", name="Set aside")
        expect(side).to_contain_text("2 crashes")
        side.get_by_role("button", name="Send again").click()
        expect(side).to_contain_text("3 tries · 3 crashes")  # it was sent, and did it again
        side.get_by_role("button", name="Give up").click()
        side.get_by_role("button", name="Really give up").click()
        expect(side).to_contain_text("Nothing was set aside.")


@pytest.mark.clause("7.4")
def test_a_question_of_an_app_stands_over_that_app_and_nowhere_else(start_host: StartHost, pages: Pages) -> None:
    host = start_host(ASKER)
    host.lineup("policy", "set", "standard-interaction:asker", "--allow")
    page = pages.open(host.url)
    confirm = {"kind": "confirm", "title": "Go on?", "prompt": "The App wants to know."}
    with agent_of(host) as agent:
        asked = {"json": json.dumps(confirm), "as_parent": False, "subscribe": False}
        call_id = agent.invoke("asker.ask", asked)
        expect(page.get_by_role("button", name="Answer Go on?")).to_be_visible()
        expect(page.get_by_role("dialog")).to_have_count(0)
        page.get_by_role("tab", name="Asker").click()
        dialog = page.get_by_role("dialog", name="Go on?")
        expect(dialog).to_contain_text("Asker (asker) asks")
        dialog.get_by_role("button", name="Yes").click()
        assert json.loads(agent.result(call_id)["result"]["json"])["answer"] == {"approved": True}
        page.get_by_role("tab", name="Conversation").click()
        expect(page.get_by_role("region", name="Go on?")).to_have_count(0)
