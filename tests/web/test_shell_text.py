"""Words of others stay words: hostile Markdown, hidden characters, messages of unknown kinds (THREATS T-A3, SPEC 11.2)."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.web.conftest import Pages
from tests.web.line_agent import LineAgent
from tests.web.web_host import WebHost, agent_of

HOSTILE = """<script>document.title = "taken"</script>
<img src=x onerror="document.title='taken'">

[press](javascript:document.title='taken') ![pixel](http://203.0.113.7/pixel.png) <https://example.com/ok>

<iframe src="https://203.0.113.7/"></iframe> <style>body{display:none}</style> &lt;b&gt; \u202egnp.exe
"""


@pytest.mark.clause("11.2")
def test_hostile_markdown_stays_text_and_asks_nothing_of_the_network(host: WebHost, agent: LineAgent, pages: Pages) -> None:
    page = pages.open(host.url)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    agent.say(HOSTILE)
    agent.invoke("interaction.notice", {"title": "<b>bold</b>\u2066", "message": HOSTILE})
    log = page.get_by_role("log", name="Conversation")
    expect(log).to_contain_text('<script>document.title = "taken"</script>')
    expect(log).to_contain_text("<U+202E>gnp.exe")
    expect(log.get_by_role("heading", level=2)).to_have_text("<b>bold</b><U+2066>")
    for tag in ("script", "img", "iframe", "style", "b"):
        expect(log.locator(tag)).to_have_count(0)
    links = log.get_by_role("link").evaluate_all("links => links.map(link => link.getAttribute('href'))")
    assert set(links) == {"https://example.com/ok"}
    assert page.title() == "Conversation · LineUp"
    assert [url for url in asked if not url.startswith(host.origin)] == []


def test_no_string_becomes_markup_in_this_page(host: WebHost, pages: Pages) -> None:
    page = pages.open(host.url)
    expect(page.get_by_role("tab", name="Conversation")).to_be_visible()
    made = page.evaluate(
        """() => {
            try { document.createElement("p").innerHTML = "<b>x</b>"; return "made"; } catch (error) { return error.name; }
        }"""
    )
    assert made == "TypeError"
    pages.troubles.clear()  # the browser reports the violation this test asked for
    assert page.evaluate("document.querySelectorAll('[onclick], script:not([src])').length") == 0


@pytest.mark.clause("11.2")
def test_a_message_of_an_unknown_kind_is_shown_and_does_nothing(host: WebHost, agent: LineAgent, pages: Pages) -> None:
    page = pages.open(host.url)
    agent.send("hologram", {"text": "from a later version"})
    expect(page.get_by_role("log", name="Conversation")).to_contain_text("A message of a kind LineUp does not know (lineup.v1.hologram)")


@pytest.mark.clause("11.5")
def test_what_the_person_writes_is_pending_then_arrives_or_is_refused_and_can_be_mended(host: WebHost, pages: Pages) -> None:
    page = pages.open(host.url)
    box = page.get_by_label("Message to the Agent")
    box.fill("to nobody **yet**")
    box.press("Enter")
    mine = page.get_by_role("article").filter(has_text="to nobody yet")
    expect(mine).to_contain_text("waits for the Agent")
    expect(page.get_by_text("No Agent is connected.")).to_be_visible()
    with agent_of(host):
        expect(mine).to_contain_text("arrived")
    box.fill("x" * 16_385)
    expect(page.get_by_text("16385 of 16384 characters")).to_be_visible()
    box.press("Enter")
    expect(page.get_by_role("alert").filter(has_text="a limit was reached")).to_be_visible()
    page.get_by_role("button", name="Edit").click()
    expect(box).to_have_value("x" * 16_385)
    box.fill("short enough")
    box.press("Shift+Enter")
    box.press_sequentially("and two lines")
    box.press("Enter")
    expect(page.get_by_role("article").filter(has_text="and two lines")).to_contain_text("waits for the Agent")
