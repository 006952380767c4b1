"""What axe finds in what is rarely seen: a permission that is asked for, messages set aside, a failed App, and every way back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.processes.written_app import FIXTURE, write_app
from tests.web.conftest import Pages, StartHost
from tests.web.test_shell_access import violations
from tests.web.web_host import WebHost, agent_of

SCRIBE = Path(__file__).parents[1] / "processes" / "apps" / "scribe.py"
NOTIFY = {"capability": "notification.show", "reason": "To tell", "arguments": {"title": "Done", "body": "It is finished"}}
both = pytest.mark.parametrize("scheme", ["light", "dark"])


@both
@pytest.mark.clause("10")
def test_a_permission_that_is_asked_for_asleep_and_awake_and_what_was_given(
    start_host: StartHost, pages: Pages, tmp_path: Path, scheme: str
) -> None:
    host = start_host(write_app(tmp_path, "scribe", SCRIBE.read_bytes(), ("ask", "copy", "put", "results"), ("notification.show",)))
    page = pages.open(host.url, color_scheme=scheme, reduced_motion="reduce")
    with agent_of(host) as agent:
        agent.result(agent.invoke("scribe.results", {"json": "null"}))
        page.get_by_role("tab", name="Test app scribe").click()
        expect(page.get_by_role("tab", name="Test app scribe", selected=True)).to_be_visible()
        agent.invoke("scribe.ask", {"json": json.dumps(NOTIFY)})
        dialog = page.get_by_role("dialog", name="Your permission is asked for")
        expect(dialog).to_be_visible()
        assert violations(page) == []
        button = dialog.get_by_role("button", name="Always allow")
        expect(button).to_have_attribute("aria-disabled", "false")
        assert violations(page) == []
        button.click()
        expect(page.get_by_role("log", name="Messages from LineUp")).to_contain_text("It is finished")
        page.get_by_role("button", name="Permissions").click()
        expect(page.get_by_role("complementary", name="Permissions")).to_contain_text("Show a notification")
        assert violations(page) == []


@both
@pytest.mark.clause("5.4")
@pytest.mark.clause("8.4")
def test_messages_set_aside_and_a_failed_app_with_its_log_and_its_why(start_host: StartHost, pages: Pages, scheme: str) -> None:
    host = start_host(FIXTURE)
    page = pages.open(host.url, color_scheme=scheme, reduced_motion="reduce")
    with agent_of(host) as agent:
        agent.result(agent.invoke("fixture.print", {"text": "a line of the log"}))
        for _ in range(2):
            agent.result(agent.invoke("fixture.crash", {"times": 9}))
        page.get_by_role("tab", name="Fixture").filter(has_text="failed").click()
        expect(page.get_by_role("heading", name="Fixture failed")).to_be_visible()
        assert violations(page) == []
        panel = page.get_by_role("tabpanel")
        for name, title in (("Why?", "Why this is so"), ("Log", "Log of Fixture")):
            panel.get_by_role("button", name=name).click()
            expect(page.get_by_role("dialog", name=title)).to_be_visible()
            assert violations(page) == [], name
            page.keyboard.press("Escape")
        panel.get_by_role("button", name="Try again").click()
        expect(page.get_by_role("tab", name="Fixture", selected=True)).to_contain_text("in front")
        agent.send("app.message", {"topic": "fixture.poison", "body": {}}, app_scope="fixture")
        page.get_by_role("button", name="Set aside").click()
        expect(page.get_by_role("complementary", name="Set aside")).to_contain_text("2 crashes")
        assert violations(page) == []


@both
@pytest.mark.clause("2.9")
def test_every_way_back_without_a_key_after_a_stop_and_without_a_host(host: WebHost, pages: Pages, scheme: str) -> None:
    pages.allow("WebSocket connection to")
    look = {"color_scheme": scheme, "reduced_motion": "reduce"}
    locked = pages.open(f"{host.origin}/", **look)
    expect(locked.get_by_role("heading", name="This page has no key")).to_be_visible()
    assert violations(locked) == []
    page = pages.open(host.url, **look)
    expect(page.get_by_role("status").filter(has_text="Connected")).to_be_visible()
    host.lineup("stop")
    expect(page.get_by_role("alert")).to_contain_text("LineUp was stopped.")
    assert violations(page) == []
    host.stop()
    expect(page.get_by_role("alert")).to_contain_text("The LineUp host does not answer")
    assert violations(page) == []
