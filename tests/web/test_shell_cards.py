"""Cards in a real browser: answered by mouse and by keyboard, judged by the kernel, shared by tabs (SPEC 7.2, 7.3)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.web.conftest import Pages
from tests.web.line_agent import LineAgent
from tests.web.web_host import WebHost

pytestmark = pytest.mark.clause("7.3")

COLOURS = {
    "title": "Which colour?",
    "prompt": "For the **front** page.",
    "mode": "button",
    "actions": [{"id": "red", "label": "Red", "description": "Warm"}, {"id": "green", "label": "Green"}],
}
DAYS = COLOURS | {"title": "Which days?", "mode": "multi-choice"}
BOOKING: dict[str, Any] = {
    "title": "Booking",
    "prompt": "A few facts.",
    "fields": [
        {"id": "people", "label": "How many people", "type": "number", "required": True, "minimum": 1, "maximum": 12},
        {"id": "name", "label": "Name", "type": "text", "max_length": 4},
        {"id": "wishes", "label": "Wishes", "type": "textarea"},
    ],
}


def card(page: Page, title: str) -> Locator:
    return page.get_by_role("region", name=title)


def press_until(page: Page, key: str, target: Locator) -> None:
    """Go on with one key until the target has the keyboard."""
    for _ in range(60):
        if target.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press(key)
    raise AssertionError("the keyboard does not reach it")


def test_a_press_of_one_action_is_the_answer_and_stays_in_the_conversation(host: WebHost, agent: LineAgent, pages: Pages) -> None:
    page = pages.open(host.url)
    call_id = agent.invoke("interaction.choice", COLOURS)
    card(page, "Which colour?").get_by_role("button", name="Red").click()
    assert agent.result(call_id)["result"] == {"outcome": "answered", "answer": {"action_ids": ["red"]}}
    expect(card(page, "Which colour?")).to_contain_text("Answered")
    expect(card(page, "Which colour?").get_by_role("button")).to_have_count(0)
    expect(page.get_by_role("log", name="Conversation")).to_contain_text("answered Red")


def test_several_are_chosen_and_sent_by_keyboard_alone(host: WebHost, agent: LineAgent, pages: Pages) -> None:
    page = pages.open(host.url)
    call_id = agent.invoke("interaction.choice", DAYS)
    expect(card(page, "Which days?")).to_be_visible()
    for label in ("Green", "Red"):
        press_until(page, "Tab" if label == "Green" else "Shift+Tab", card(page, "Which days?").get_by_label(label))
        page.keyboard.press("Space")
    page.keyboard.press("Enter")
    assert agent.result(call_id)["result"]["answer"] == {"action_ids": ["red", "green"]}
    expect(card(page, "Which days?")).to_contain_text("Answered")
    expect(card(page, "Which days?")).to_be_focused()  # what had the keyboard is gone: what is around it has it


def test_a_question_is_declined_and_a_confirm_is_answered_with_no(host: WebHost, agent: LineAgent, pages: Pages) -> None:
    page = pages.open(host.url)
    declined = agent.invoke("interaction.choice", DAYS)
    card(page, "Which days?").get_by_role("button", name="Decline").click()
    assert agent.result(declined)["result"]["answer"] == {"declined": True}
    publish = {"title": "Publish?", "prompt": "To all.", "approve_label": "Publish", "cancel_label": "Not yet"}
    refused = agent.invoke("interaction.confirm", publish)
    press_until(page, "Tab", card(page, "Publish?").get_by_role("button", name="Not yet"))
    page.keyboard.press("Enter")
    assert agent.result(refused)["result"]["answer"] == {"approved": False}
    expect(card(page, "Publish?").get_by_role("listitem")).to_have_text("Not yet")


PLAIN = "A plain number such as 12 or 1.5, without commas"


@pytest.mark.parametrize(
    ("text", "told"), [("1,5", PLAIN), ("３", PLAIN), ("0x2", PLAIN), ("1e999", "too big"), ("9007199254740993", "too big")]
)
def test_what_is_no_number_in_json_is_refused_beside_its_field(host: WebHost, agent: LineAgent, pages: Pages, text: str, told: str) -> None:
    page = pages.open(host.url)
    call_id = agent.invoke("interaction.input", BOOKING)
    field = card(page, "Booking").get_by_label("How many people")
    field.fill(text)
    field.press("Enter")
    expect(card(page, "Booking").get_by_role("alert")).to_contain_text(told)
    expect(field).to_be_focused()
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_value(text)
    field.fill("2.5")
    field.press("Enter")
    assert agent.result(call_id)["result"]["answer"] == {"fields": [{"id": "people", "number": 2.5}]}


def test_bounds_and_lengths_are_the_kernels_and_count_code_points(host: WebHost, agent: LineAgent, pages: Pages) -> None:
    page = pages.open(host.url)
    call_id = agent.invoke("interaction.input", BOOKING)
    form = card(page, "Booking")
    form.get_by_role("button", name="Send answer").click()
    expect(form.get_by_role("alert")).to_have_text("Please fill this in.")
    form.get_by_label("How many people").fill("13")
    form.get_by_role("button", name="Send answer").click()
    expect(form.get_by_role("alert")).to_have_text("Out of range. Between 1 and 12.")
    form.get_by_label("How many people").fill("12")
    form.get_by_label("Name").fill("🙂🙂🙂🙂🙂")
    expect(form).to_contain_text("5 of 4 characters")
    form.get_by_role("button", name="Send answer").click()
    expect(form.get_by_role("alert")).to_have_text("0 to 4 characters; this has 5.")
    form.get_by_label("Name").fill("🙂🙂🙂🙂")
    form.get_by_label("Wishes").fill("two\nlines")
    form.get_by_label("Wishes").press("Control+Enter")
    fields = agent.result(call_id)["result"]["answer"]["fields"]
    assert fields == [{"id": "people", "number": 12}, {"id": "name", "text": "🙂🙂🙂🙂"}, {"id": "wishes", "text": "two\nlines"}]
    expect(form.get_by_role("definition").first).to_have_text("12")


def test_two_tabs_show_one_card_and_the_later_one_says_where_it_was_answered(host: WebHost, agent: LineAgent, pages: Pages) -> None:
    first, second = pages.open(host.url), pages.open(host.url)
    call_id = agent.invoke("interaction.choice", COLOURS)
    expect(card(second, "Which colour?").get_by_role("button", name="Green")).to_be_visible()
    card(first, "Which colour?").get_by_role("button", name="Green").click()
    assert agent.result(call_id)["result"]["answer"] == {"action_ids": ["green"]}
    expect(card(second, "Which colour?")).to_contain_text("Answered in another view (view-")
    expect(card(second, "Which colour?").get_by_role("button")).to_have_count(0)
    expect(card(first, "Which colour?")).not_to_contain_text("another view")
    first.reload()  # a view of another number, and the same tab
    expect(card(first, "Which colour?")).to_contain_text("Answered")
    expect(card(first, "Which colour?")).not_to_contain_text("another view")


def test_a_draft_is_seen_in_the_other_tab_and_survives_a_reload(host: WebHost, agent: LineAgent, pages: Pages) -> None:
    first, second = pages.open(host.url), pages.open(host.url)
    agent.invoke("interaction.input", BOOKING)
    card(first, "Booking").get_by_label("Wishes").fill("half a wish")
    expect(card(second, "Booking").get_by_label("Wishes")).to_have_value("half a wish")
    first.reload()
    expect(card(first, "Booking").get_by_label("Wishes")).to_have_value("half a wish")


@pytest.mark.clause("7.2")
def test_over_an_app_a_question_lies_in_a_dialog_that_may_be_put_off_or_moved(host: WebHost, agent: LineAgent, pages: Pages) -> None:
    page = pages.open(host.url)
    agent.invoke("task-dashboard.open", {"task_id": "t", "title": "A task", "state": "running"})
    expect(page.get_by_role("tab", name="Task Dashboard", selected=True)).to_be_visible()
    call_id = agent.invoke("interaction.choice", COLOURS)
    dialog = page.get_by_role("dialog", name="Which colour?")
    expect(dialog).to_be_focused()  # nothing in it: a key meant for something else answers nothing
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.get_by_role("button", name="Answer Which colour?").click()
    expect(dialog).to_be_visible()
    dialog.get_by_role("button", name="Show in the conversation").click()
    expect(dialog).to_have_count(0)
    page.get_by_role("tab", name="Conversation").click()
    card(page, "Which colour?").get_by_role("button", name="Red").click()
    assert agent.result(call_id)["result"]["answer"] == {"action_ids": ["red"]}


def test_a_question_says_when_it_expires_and_closes_when_it_has(host: WebHost, agent: LineAgent, pages: Pages) -> None:
    page = pages.open(host.url)
    soon = (datetime.now(UTC) + timedelta(seconds=4)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    call_id = agent.invoke("interaction.choice", COLOURS, expires_at=soon)
    expect(card(page, "Which colour?")).to_contain_text("expires in 0:0")
    assert agent.result(call_id)["status"] == "expired"
    expect(card(page, "Which colour?")).to_contain_text("Expired without an answer")


def test_a_notice_asks_for_nothing_and_is_told_while_an_app_is_in_front(host: WebHost, agent: LineAgent, pages: Pages) -> None:
    page = pages.open(host.url)
    agent.invoke("task-dashboard.open", {"task_id": "t", "title": "A task", "state": "running"})
    expect(page.get_by_role("tab", name="Task Dashboard", selected=True)).to_be_visible()
    call_id = agent.invoke("interaction.notice", {"title": "Backup", "message": "It is **whole**."})
    assert agent.result(call_id)["result"]["outcome"] == "accepted"
    expect(page.get_by_role("log", name="Messages from LineUp")).to_contain_text("Backup: It is")
    page.get_by_role("tab", name="Conversation").click()
    expect(card(page, "Backup").get_by_role("strong")).to_have_text("whole")
    expect(card(page, "Backup").get_by_role("button")).to_have_count(0)
