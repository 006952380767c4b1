"""Questions of Apps for capabilities, drawn by the page alone, and taking back what was given (SPEC 10, THREATS T-S5)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.processes.written_app import write_app
from tests.web.conftest import Pages, StartHost
from tests.web.line_agent import LineAgent
from tests.web.web_host import WebHost, agent_of

pytestmark = [pytest.mark.clause("10"), pytest.mark.invariant("52")]
SOURCE = Path(__file__).parents[1] / "processes" / "apps" / "scribe.py"
CAPABILITIES = ("artifact.save", "clipboard.write", "notification.show")
COPY = {"capability": "clipboard.write", "reason": "To paste it \u202eti", "arguments": {"text": "a line to paste"}}
NOTIFY = {"capability": "notification.show", "reason": "To tell", "arguments": {"title": "Done", "body": "It is finished"}}


@pytest.fixture
def asking(start_host: StartHost, tmp_path: Path) -> Iterator[tuple[WebHost, LineAgent]]:
    """A host and an Agent, with an App in front that asks for what it is told to."""
    host = start_host(write_app(tmp_path, "scribe", SOURCE.read_bytes(), ("ask", "copy", "put", "results"), CAPABILITIES))
    with agent_of(host) as agent:
        yield host, agent


def opened(host: WebHost, agent: LineAgent, pages: Pages, *, has_clock: bool = False) -> Page:
    page = pages.open(host.url, permissions=["clipboard-write", "clipboard-read"], accept_downloads=True)
    agent.result(agent.invoke("scribe.results", {"json": "null"}))
    page.get_by_role("tab", name="Test app scribe").click()
    expect(page.get_by_role("tab", name="Test app scribe", selected=True)).to_be_visible()
    if has_clock:  # from now on time passes in the page only as the test says
        page.clock.install()
        page.reload()
        expect(page.get_by_role("tab", name="Test app scribe", selected=True)).to_be_visible()
        page.clock.pause_at(page.evaluate("Date.now() + 1000"))
    return page


def ask(agent: LineAgent, verb: str, given: Any) -> str:
    return agent.invoke(f"scribe.{verb}", {"json": json.dumps(given)})


def outcome(agent: LineAgent, call_id: str) -> Any:
    return json.loads(agent.result(call_id)["result"]["json"])


def test_its_buttons_are_inert_at_first_and_then_one_press_grants(asking: tuple[WebHost, LineAgent], pages: Pages) -> None:
    host, agent = asking
    page = opened(host, agent, pages)
    # A press at once, from inside the page, before anything of the test could: the question is pressed in the very frame it appears.
    page.evaluate(
        """() => { window.pressed = []; new MutationObserver(() => {
            const button = document.querySelector('[data-decision="always"]');
            if (button && !window.pressed.length) { window.pressed.push(button.getAttribute("aria-disabled")); button.click(); }
        }).observe(document.body, { childList: true, subtree: true }); }"""
    )
    call_id = ask(agent, "copy", COPY)
    dialog = page.get_by_role("dialog", name="Your permission is asked for")
    expect(dialog).to_be_focused()
    assert page.evaluate("window.pressed") == ["true"]
    expect(dialog).to_contain_text("App Test app scribe scribe")
    expect(dialog).to_contain_text("Replace what is on the clipboard")
    expect(dialog).to_contain_text("To paste it <U+202E>ti")
    expect(dialog).to_contain_text("a line to paste")
    page.keyboard.press("Escape")  # it cannot be waved away
    expect(dialog).to_be_visible()
    expect(dialog.get_by_role("button", name="Allow once")).to_have_attribute("aria-disabled", "false")
    dialog.get_by_role("button", name="Allow once").click()
    assert outcome(agent, call_id)["status"] == "done"
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("tab", name="Conversation").click()
    expect(page.get_by_label("Message to the Agent")).to_be_visible()
    page.get_by_label("Message to the Agent").press("Control+v")
    expect(page.get_by_label("Message to the Agent")).to_have_value("a line to paste")


def test_a_real_press_in_its_first_moments_grants_nothing(asking: tuple[WebHost, LineAgent], pages: Pages) -> None:
    host, agent = asking
    page = opened(host, agent, pages, has_clock=True)
    call_id = ask(agent, "copy", NOTIFY)
    button = page.get_by_role("dialog").get_by_role("button", name="Allow once")
    for _ in range(2):  # the page's clock stands still but for these steps
        expect(button).to_be_attached()
        page.clock.run_for(200)
        box = button.bounding_box()
        assert box is not None
        page.mouse.click(box["x"] + 5, box["y"] + 5)
    expect(button).to_have_attribute("aria-disabled", "true")
    page.clock.run_for(1_000)
    expect(button).to_have_attribute("aria-disabled", "false")
    [asked] = json.loads(host.lineup("permissions", "asked", "--format", "json"))["consents"]
    assert asked["status"] == "asked"  # the two presses did nothing
    page.mouse.click(box["x"] + 5, box["y"] + 5)
    assert outcome(agent, call_id)["status"] == "done"


def test_a_file_an_app_kept_is_saved_under_the_name_that_was_shown(asking: tuple[WebHost, LineAgent], pages: Pages) -> None:
    host, agent = asking
    page = opened(host, agent, pages)
    ask(agent, "put", {"text": "kept bytes", "name": "notes.txt"})
    dialog = page.get_by_role("dialog", name="Your permission is asked for")
    expect(dialog).to_contain_text("notes.txt")
    with page.expect_download() as saved:
        dialog.get_by_role("button", name="Allow once", disabled=False).click()
    assert saved.value.suggested_filename == "notes.txt"
    assert saved.value.path().read_text() == "kept bytes"


def test_a_no_is_told_to_the_app(asking: tuple[WebHost, LineAgent], pages: Pages) -> None:
    host, agent = asking
    page = opened(host, agent, pages)
    call_id = ask(agent, "copy", NOTIFY)
    page.get_by_role("dialog").get_by_role("button", name="Do not allow", disabled=False).click()
    assert outcome(agent, call_id)["status"] == "denied"
    expect(page.get_by_role("log", name="Messages from LineUp")).not_to_contain_text("It is finished")


def test_a_standing_answer_is_listed_and_taken_back(asking: tuple[WebHost, LineAgent], pages: Pages) -> None:
    host, agent = asking
    page = opened(host, agent, pages)
    first = ask(agent, "copy", NOTIFY)
    page.get_by_role("dialog").get_by_role("button", name="Always allow", disabled=False).click()
    assert outcome(agent, first)["status"] == "done"
    assert outcome(agent, ask(agent, "copy", NOTIFY))["status"] == "done"  # not asked again
    expect(page.get_by_role("log", name="Messages from LineUp")).to_contain_text("Test app scribe (scribe) Done: It is finished")
    page.get_by_role("button", name="Permissions").click()
    side = page.get_by_role("complementary", name="Permissions")
    expect(side).to_contain_text("Show a notification always")
    side.get_by_role("button", name="Take back “Show a notification” from Test app scribe").click()
    expect(side).to_contain_text("You gave no app a standing answer.")
    ask(agent, "copy", NOTIFY)
    expect(page.get_by_role("dialog", name="Your permission is asked for")).to_be_visible()


ASKED_TWICE = """async () => {
  const { provide } = await import("/static/providers.js");
  const shown = [];
  const told = [];
  const page = { toast: (one) => shown.push(one.text), connection: { tell: (one) => told.push(one) } };
  const execute = { request_id: "r1", capability: "notification.show", arguments: { title: "Once" }, app_scope: "scribe" };
  await provide(page, execute);
  await provide(page, execute);
  await provide(page, { ...execute, request_id: "r2", capability: "none.such" });
  return { shown, told };
}"""


def test_a_page_acts_once_for_a_request_that_comes_twice(host: WebHost, pages: Pages) -> None:
    found = pages.open(host.url).evaluate(ASKED_TWICE)
    assert found["shown"] == ["Once"]
    assert found["told"] == [
        {"op": "provided", "request_id": "r1", "ok": True},
        {"op": "provided", "request_id": "r2", "ok": False, "code": "unsupported"},
    ]
