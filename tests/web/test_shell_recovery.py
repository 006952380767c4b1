"""The page across a dead kernel, a host that goes away, a stopped kernel and a failed App (SPEC 2.9, 8.4, 12)."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from playwright.sync_api import expect

from hosts.web.shared import MAX_PAGES
from tests.processes.written_app import FIXTURE
from tests.web.conftest import Pages, StartHost
from tests.web.line_agent import LineAgent
from tests.web.web_host import WebHost, agent_of

LETTER: dict[str, Any] = {
    "title": "A letter",
    "prompt": "What shall it say?",
    "fields": [{"id": "text", "label": "Text", "type": "textarea"}],
}


@pytest.mark.clause("2.9")
@pytest.mark.clause("12")
def test_a_killed_kernel_comes_back_and_nothing_that_was_typed_is_lost(host: WebHost, agent: LineAgent, pages: Pages) -> None:
    page = pages.open(host.url)
    agent.say("Before the end")
    call_id = agent.invoke("interaction.input", LETTER)
    page.get_by_label("Text", exact=True).fill("Dear half")
    page.get_by_label("Message to the Agent").fill("half a line")
    before = host.kernel_pid()
    host.kill_kernel()
    expect(page.get_by_role("status").filter(has_text="The kernel went away")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="Connected")).to_be_visible()
    expect(page.get_by_role("log", name="Conversation")).to_contain_text("Before the end")
    expect(page.get_by_label("Text", exact=True)).to_have_value("Dear half")
    expect(page.get_by_label("Message to the Agent")).to_have_value("half a line")
    page.get_by_label("Text", exact=True).fill("Dear whole")
    page.get_by_role("button", name="Send answer").click()
    assert agent.result(call_id)["result"]["answer"] == {"fields": [{"id": "text", "text": "Dear whole"}]}
    assert host.kernel_pid() != before
    page.get_by_label("Message to the Agent").press("Enter")
    expect(page.get_by_role("article").filter(has_text="half a line")).to_contain_text("arrived")


@pytest.mark.clause("2.9")
def test_who_reads_older_messages_goes_on_reading_there_through_a_reconnect(host: WebHost, agent: LineAgent, pages: Pages) -> None:
    for index in range(130):
        agent.say(f"line {index}")
    page = pages.open(host.url)
    log = page.get_by_role("log", name="Conversation")
    expect(log.get_by_text("line 129", exact=True)).to_be_in_viewport()
    log.focus()
    page.keyboard.press("Home")
    expect(log.get_by_text("line 40", exact=True)).to_be_attached()
    log.get_by_text("line 60", exact=True).scroll_into_view_if_needed()
    place = log.get_by_text("line 60", exact=True).bounding_box()
    host.kill_kernel()
    expect(page.get_by_role("status").filter(has_text="The kernel went away")).to_have_count(1)
    expect(page.get_by_role("status").filter(has_text="The kernel went away")).to_have_count(0)
    expect(log.get_by_text("line 60", exact=True)).to_be_in_viewport()
    assert log.get_by_text("line 60", exact=True).bounding_box() == place


@pytest.mark.clause("2.9")
def test_the_page_finds_a_host_that_was_away_and_a_reload_needs_no_new_key(host: WebHost, agent: LineAgent, pages: Pages) -> None:
    pages.allow("WebSocket connection to")
    page = pages.open(host.url)
    agent.say("Said before")
    expect(page.get_by_role("log", name="Conversation")).to_contain_text("Said before")
    page.get_by_label("Message to the Agent").fill("typed before")
    assert host.stop() == 0
    expect(page.get_by_role("alert")).to_contain_text("The LineUp host does not answer")
    origin = host.origin
    host.start()
    assert host.origin == origin
    page.evaluate("document.querySelector('.banner button')?.click()")  # unless the page was quicker by itself
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_label("Message to the Agent")).to_have_value("typed before")
    page.reload()
    expect(page.get_by_role("log", name="Conversation")).to_contain_text("Said before")
    expect(page.get_by_label("Message to the Agent")).to_have_value("typed before")
    assert "token" not in page.url


@pytest.mark.clause("2.9")
def test_a_kernel_that_was_stopped_is_started_again_from_the_page(host: WebHost, pages: Pages) -> None:
    page = pages.open(host.url)
    expect(page.get_by_role("status").filter(has_text="Connected")).to_be_visible()
    host.lineup("stop")
    expect(page.get_by_role("alert")).to_contain_text("LineUp was stopped.")
    page.get_by_role("button", name="Try again now").click()
    expect(page.get_by_role("status").filter(has_text="Connected")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_page_without_its_key_says_where_the_key_is_and_takes_it_when_it_is_pasted(host: WebHost, pages: Pages) -> None:
    page = pages.open(f"{host.origin}/#token=an-old-one")
    expect(page.get_by_role("heading", name="This page has no key")).to_be_visible()
    expect(page.get_by_role("tab")).to_have_count(0)
    page.goto(host.url)  # in the same tab: the fragment alone is another
    expect(page.get_by_role("tab", name="Conversation")).to_be_visible()
    assert "token" not in page.url


QUICK = "const every = setInterval; window.setInterval = (run, ms) => every(run, ms / 10);"  # the beats of the link
DEAF = """const heard = Object.getOwnPropertyDescriptor(WebSocket.prototype, "onmessage").set;
    Object.defineProperty(WebSocket.prototype, "onmessage", {
        set(take) { heard.call(this, take && ((event) => { if (!window.deaf) take(event); })); },
    });"""
MORE_PAGES = """([count, token]) => { window.more = Array.from({ length: count }, () => {
    const socket = new WebSocket(`ws://${location.host}/ws`);
    socket.onopen = () => socket.send(JSON.stringify({ op: "auth", token }));
    return socket;
}); return Promise.all(more.map((socket) => new Promise((resolve) => { socket.onmessage = resolve; }))).then(() => null); }"""
NO_STORAGE = """for (const name of ["localStorage", "sessionStorage"])
    Object.defineProperty(window, name, { get() { throw new DOMException("site data is blocked", "SecurityError"); } });"""


def test_a_browser_that_keeps_nothing_shows_the_page_all_the_same(host: WebHost, agent: LineAgent, pages: Pages) -> None:
    page = pages.open(host.url, script=NO_STORAGE)
    agent.say("Said to a page that keeps nothing")
    expect(page.get_by_role("log", name="Conversation")).to_contain_text("Said to a page that keeps nothing")
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("简体中文").check()
    expect(page.get_by_role("tab", name="对话")).to_be_visible()


@pytest.mark.clause("2.9")
def test_a_host_that_hangs_is_told_and_so_is_its_waking(host: WebHost, agent: LineAgent, pages: Pages) -> None:
    page = pages.open(host.url, script=QUICK)
    agent.say("Said before")
    expect(page.get_by_role("log", name="Conversation")).to_contain_text("Said before")
    page.get_by_label("Message to the Agent").fill("said to nobody")
    host.signal(signal.SIGSTOP)
    try:
        page.get_by_label("Message to the Agent").press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("LineUp does not answer.")
        expect(page.get_by_role("status").filter(has_text="Not answering")).to_be_visible()
    finally:
        host.signal(signal.SIGCONT)
    expect(page.get_by_role("alert")).to_have_count(0)
    assert agent.wait("message.text")["payload"]["text"] == "said to nobody"


@pytest.mark.clause("2.9")
def test_a_link_over_which_nothing_comes_is_opened_anew_when_the_person_asks(host: WebHost, agent: LineAgent, pages: Pages) -> None:
    page = pages.open(host.url, script=DEAF + QUICK)
    agent.say("Said before")
    expect(page.get_by_role("log", name="Conversation")).to_contain_text("Said before")
    page.evaluate("window.deaf = true")
    expect(page.get_by_role("alert")).to_contain_text("LineUp does not answer.")
    page.evaluate("window.deaf = false")
    page.get_by_role("button", name="Try again now").click()
    expect(page.get_by_role("alert")).to_have_count(0)
    agent.say("Said after")
    expect(page.get_by_role("log", name="Conversation")).to_contain_text("Said after")


@pytest.mark.clause("2.9")
def test_a_tab_too_many_says_so_and_goes_on_when_another_is_closed(host: WebHost, pages: Pages) -> None:
    page = pages.open(host.url)
    expect(page.get_by_role("status").filter(has_text="Connected")).to_be_visible()
    page.evaluate(MORE_PAGES, [MAX_PAGES - 1, host.token])
    late = pages.open(host.url)
    expect(late.get_by_role("alert")).to_contain_text("LineUp is open in too many tabs.")
    page.evaluate("more.forEach((socket) => socket.close())")
    expect(late.get_by_role("status").filter(has_text="Connected")).to_be_visible()


@pytest.mark.clause("8.4")
def test_a_failed_app_says_why_shows_its_log_and_is_tried_again(start_host: StartHost, pages: Pages) -> None:
    host = start_host(FIXTURE)
    page = pages.open(host.url)
    with agent_of(host) as agent:
        agent.result(agent.invoke("fixture.print", {"text": "a line of the log"}))
        assert agent.result(agent.invoke("fixture.crash", {"times": 9}))["code"] == "app_crashed"
        agent.result(agent.invoke("fixture.crash", {"times": 9}))
        page.get_by_role("tab", name="Fixture").filter(has_text="failed").click()
        expect(page.get_by_role("heading", name="Fixture failed")).to_be_visible()
        panel = page.get_by_role("tabpanel")
        panel.get_by_role("button", name="Why?").click()
        expect(page.get_by_role("dialog", name="Why this is so")).to_contain_text("This is an instance of Fixture; it is failed.")
        page.keyboard.press("Escape")
        expect(panel.get_by_role("button", name="Why?")).to_be_focused()
        panel.get_by_role("button", name="Log").click()
        expect(page.get_by_role("dialog", name="Log of Fixture")).to_be_visible()
        page.get_by_role("dialog").get_by_role("button", name="Close").click()
        panel.get_by_role("button", name="Try again").click()
        expect(page.get_by_role("tab", name="Fixture", selected=True)).to_contain_text("in front")
        assert agent.result(agent.invoke("fixture.echo", {"text": "back"}))["result"] == {"text": "back"}
