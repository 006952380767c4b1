"""The line to the Agent that is half typed, and what no wire takes: the page keeps the one and refuses the other, and its link stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.web.conftest import CHROMIUM, FLAGS, Pages
from tests.web.line_agent import LineAgent
from tests.web.web_host import WebHost

LETTER: dict[str, Any] = {"title": "A letter", "prompt": "Say it.", "fields": [{"id": "text", "label": "Text", "type": "textarea"}]}
LONG = "\u6c49" * 100_000  # 300 KB as UTF-8, where the host takes 256 KiB
DRAFT, CONTROL = "half-a-line-7f3a", "control-7f3a"
COUNT_SOCKETS = """window.sockets = 0;
    window.WebSocket = class extends WebSocket { constructor(...given) { super(...given); window.sockets += 1; } };"""
# What no keyboard types and a program can: half of a surrogate pair in the element that has the keyboard.
TYPE_HALF = r"""(element) => { element.focus(); document.execCommand("insertText", false, "half \ud83d here"); }"""


def line(page: Page) -> Locator:
    """Where the person writes to the Agent."""
    return page.get_by_label("Message to the Agent")


@pytest.mark.invariant("30")
def test_what_is_half_typed_survives_a_reload_and_is_on_no_disk(host: WebHost, browser: Browser, tmp_path: Path) -> None:
    profile = tmp_path / "profile"
    context = browser.browser_type.launch_persistent_context(profile, executable_path=CHROMIUM, args=list(FLAGS))
    page = context.new_page()
    page.goto(host.url)
    line(page).fill(DRAFT)
    page.evaluate("(text) => sessionStorage.setItem('control', text)", CONTROL)
    page.reload()
    expect(line(page)).to_have_value(DRAFT)
    context.close()
    assert _files_with(profile, CONTROL)  # so it can be found at all
    assert _files_with(profile, DRAFT) == []
    assert _files_with(host.home, DRAFT) == []


def test_a_tab_that_is_duplicated_keeps_a_line_of_its_own(host: WebHost, pages: Pages) -> None:
    """A browser copies what it keeps of a tab, its name too."""
    first = pages.open(host.url)
    line(first).fill("of the first")
    kept: str = first.evaluate("JSON.stringify(sessionStorage)")
    second = first.context.new_page()
    second.add_init_script(f"if (!sessionStorage.length) for (const one of Object.entries({kept})) sessionStorage.setItem(...one);")
    second.goto(host.origin)
    line(second).fill("of the second")
    for _ in range(2):
        first.reload()
        expect(line(first)).to_have_value("of the first")
        second.reload()
        expect(line(second)).to_have_value("of the second")


def _files_with(folder: Path, text: str) -> list[str]:
    written = (text.encode(), text.encode("utf-16-le"))
    found = [path for path in folder.rglob("*") if path.is_file() and any(words in path.read_bytes() for words in written)]
    return [path.name for path in found]


@pytest.mark.clause("2.1")
def test_a_text_longer_than_the_wire_takes_is_refused_and_the_link_stands(host: WebHost, agent: LineAgent, pages: Pages) -> None:
    page = pages.open(host.url, script=COUNT_SOCKETS)
    agent.invoke("interaction.input", LETTER)
    form = page.get_by_role("region", name="A letter")
    form.get_by_label("Text").fill(LONG)
    form.get_by_role("button", name="Send answer").click()
    expect(form.get_by_role("alert")).to_contain_text("a limit was reached")
    line(page).fill(LONG)
    line(page).press("Enter")
    expect(page.get_by_role("alert").filter(has_text="refused: a limit was reached")).to_be_visible()
    agent.say("Still there")
    expect(page.get_by_role("log", name="Conversation")).to_contain_text("Still there")
    assert page.evaluate("sockets") == 1


@pytest.mark.clause("2.1")
def test_half_a_character_is_sent_as_the_sign_it_is_drawn_as(host: WebHost, agent: LineAgent, pages: Pages) -> None:
    page = pages.open(host.url)
    line(page).evaluate(TYPE_HALF)
    line(page).press("Enter")
    assert agent.wait("message.text")["payload"]["text"] == "half \ufffd here"
    call_id = agent.invoke("interaction.input", LETTER)
    form = page.get_by_role("region", name="A letter")
    form.get_by_label("Text").evaluate(TYPE_HALF)
    form.get_by_role("button", name="Send answer").click()
    assert agent.result(call_id)["result"]["answer"] == {"fields": [{"id": "text", "text": "half \ufffd here"}]}
