"""What a person lives through the first time, from an empty page on: one script, for whatever hands are at it (SPEC 7 to 10).

Rules:
1. A step begins where the one before it ended; it does what a person does, then looks at what the page says and what the Agent was told.
2. The Agent and the Apps act as programs do, never through the page.
3. After each step a picture is kept beside the test's other files, for people to look at.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, expect

from tests.web.boards import Board
from tests.web.hands import Hands
from tests.web.line_agent import LineAgent

COLOURS = {
    "title": "Which colour?",
    "prompt": "For the **front** page.",
    "mode": "button",
    "actions": [{"id": "red", "label": "Red", "description": "Warm"}, {"id": "green", "label": "Green"}],
}
PUBLISH = {"title": "Publish?", "prompt": "To all.", "approve_label": "Publish", "cancel_label": "Not yet"}
BOOKING = {
    "title": "Booking",
    "prompt": "A few facts.",
    "fields": [{"id": "people", "label": "How many people", "type": "number", "required": True, "minimum": 1, "maximum": 12}],
}
NOTIFY = {"capability": "notification.show", "reason": "To tell", "arguments": {"title": "Done", "body": "It is finished"}}
COPY = {"capability": "clipboard.write", "reason": "To paste it", "arguments": {"text": "a line to paste"}}
SCRIBE = "Test app scribe"


class Journey:
    """See the head of the file. connect: brings an Agent to the door, once; pictures: where they are kept."""

    def __init__(self, hands: Hands, connect: Callable[[], LineAgent], pictures: Path) -> None:
        self.hands = hands
        self.page = hands.page
        self.log = self.page.get_by_role("log", name="Conversation")
        self.taken: list[str] = []
        self._connect = connect
        self._pictures = pictures
        self._agent: LineAgent | None = None

    def walk(self) -> None:
        """Take every step."""
        for step in STEPS:
            step(self)
            self.taken.append(step.__name__)
            self.page.screenshot(path=self._pictures / f"{len(self.taken):02}-{step.__name__}.png")

    @property
    def agent(self) -> LineAgent:
        """The Agent, once it is there."""
        assert self._agent is not None
        return self._agent

    def card(self, title: str) -> Locator:
        """A question in the conversation."""
        return self.page.get_by_role("region", name=title)

    def place(self, name: str) -> Locator:
        """Open a place at the side."""
        self.hands.press(self.page.get_by_role("button", name=name, exact=True))
        side = self.page.get_by_role("complementary", name=name)
        expect(side).to_be_visible()
        return side

    def is_shown(self, name: str) -> None:
        """Wait until this App, or the conversation, is what is shown."""
        expect(self.page.get_by_role("tab", name=name, selected=True)).to_be_visible()

    def ask_as_app(self, verb: str, given: Any) -> str:
        """Let the App ask for a capability; returns the call_id."""
        return self.agent.invoke(f"scribe.{verb}", {"json": json.dumps(given)})

    def allow(self, decision: str) -> None:
        """Give the permission that is asked for, once its buttons are awake."""
        button = self.page.get_by_role("dialog", name="Your permission is asked for").get_by_role("button", name=decision, exact=True)
        expect(button).to_have_attribute("aria-disabled", "false")
        self.hands.press(button)

    # ----------------------------------------------------------------------- the steps

    def find_nothing_said_and_read_how_to_begin(self) -> None:
        expect(self.page.get_by_role("heading", name="Nothing has been said yet")).to_be_visible()
        self.hands.press(self.page.get_by_role("button", name="How to connect one").first)
        side = self.page.get_by_role("complementary", name="Connect an Agent")
        expect(side.get_by_text("lineup agent", exact=True)).to_be_visible()
        self.page.keyboard.press("Escape")
        expect(side).to_have_count(0)

    def see_the_agent_come(self) -> None:
        self._agent = self._connect()
        expect(self.page.get_by_role("status").filter(has_text="Agent connected")).to_be_visible()
        expect(self.page.get_by_text("No Agent is connected.")).to_have_count(0)

    def talk_both_ways(self) -> None:
        self.agent.say("Good morning. What **shall** we do?")
        expect(self.log.locator("strong").filter(has_text="shall")).to_be_visible()
        self.hands.write(self.page.get_by_label("Message to the Agent"), "Plan the front page")
        self.hands.press(self.page.get_by_role("button", name="Send", exact=True))
        expect(self.page.get_by_role("article").filter(has_text="Plan the front page")).to_contain_text("arrived")
        assert self.agent.wait("message.text")["payload"]["text"] == "Plan the front page"

    def follow_a_task(self) -> None:
        for progress in (10, 60):
            self.agent.send("task.update", {"task_id": "t", "title": "Sort it", "state": "running", "progress": progress})
        whole = self.page.get_by_role("region", name="Task: Sort it")
        expect(self.page.get_by_text("earlier:")).to_be_visible()  # the card before of the same task is folded
        expect(whole.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "60")

    def see_the_dashboard_and_leave_it_and_come_back(self) -> None:
        self.agent.invoke("task-dashboard.open", {"task_id": "t1", "title": "Build", "state": "running", "description": "All of it"})
        self.is_shown("Task Dashboard")
        shown = self.page.frame_locator("iframe[title='Task Dashboard']")
        expect(shown.get_by_role("listitem").filter(has_text="Build")).to_contain_text("Running")
        self.hands.turn("Conversation")
        self.is_shown("Conversation")
        self.agent.result(self.agent.invoke("task-dashboard.update", {"task_id": "t1", "progress": 40}))
        self.hands.turn("Task Dashboard")
        self.is_shown("Task Dashboard")
        expect(shown.get_by_role("progressbar")).to_have_attribute("value", "40")
        self.hands.press(shown.get_by_role("button", name="Close Build"))
        self.hands.press(shown.get_by_role("button", name="Keep it"))

    def choose_over_the_app(self) -> None:
        call_id = self.agent.invoke("interaction.choice", COLOURS)
        dialog = self.page.get_by_role("dialog", name="Which colour?")
        self.hands.press(dialog.get_by_role("button", name="Red"))
        assert self.agent.result(call_id)["result"] == {"outcome": "answered", "answer": {"action_ids": ["red"]}}
        expect(dialog).to_have_count(0)
        self.is_shown("Task Dashboard")  # a question moves nothing

    def confirm_in_the_conversation(self) -> None:
        self.hands.turn("Conversation")
        expect(self.card("Which colour?")).to_contain_text("Answered")
        call_id = self.agent.invoke("interaction.confirm", PUBLISH)
        self.hands.press(self.card("Publish?").get_by_role("button", name="Publish"))
        assert self.agent.result(call_id)["result"]["answer"] == {"approved": True}

    def fill_in_a_form_wrongly_and_then_right(self) -> None:
        call_id = self.agent.invoke("interaction.input", BOOKING)
        form = self.card("Booking")
        field = form.get_by_label("How many people")
        self.hands.write(field, "1,5")
        self.page.keyboard.press("Enter")
        expect(form.get_by_role("alert")).to_contain_text("A plain number such as 12 or 1.5")
        self.hands.write(field, "4")
        self.hands.press(form.get_by_role("button", name="Send answer"))
        assert self.agent.result(call_id)["result"]["answer"] == {"fields": [{"id": "people", "number": 4}]}
        expect(form).to_contain_text("Answered")

    def read_a_notice(self) -> None:
        call_id = self.agent.invoke("interaction.notice", {"title": "Backup", "message": "It is **whole**."})
        assert self.agent.result(call_id)["result"]["outcome"] == "accepted"
        expect(self.card("Backup").get_by_role("button")).to_have_count(0)

    def draw_and_submit(self) -> None:
        call_id = self.agent.invoke("whiteboard.open", {"board_id": "b1", "title": "Plan"})
        self.is_shown("Whiteboard")
        board = Board(self.page)
        board.says("0 strokes")
        self.hands.draw(board, ((0.2, 0.3), (0.5, 0.7), (0.8, 0.3)), ("Space", "Shift+ArrowDown", "Shift+ArrowRight", "Enter"))
        board.says("1 stroke")
        self.hands.press(board.frame.get_by_role("button", name="Submit"))
        board.says("Submitted")
        assert self.agent.result(call_id)["result"]["status"] == "submitted"

    def let_an_app_tell_save_and_copy(self) -> None:
        self.agent.result(self.agent.invoke("scribe.results", {"json": "null"}))
        self.hands.turn(SCRIBE)
        self.is_shown(SCRIBE)
        call_id = self.ask_as_app("copy", NOTIFY)
        self.allow("Always allow")
        assert json.loads(self.agent.result(call_id)["result"]["json"])["status"] == "done"
        expect(self.page.get_by_role("log", name="Messages from LineUp")).to_contain_text("Done: It is finished")
        self.ask_as_app("put", {"text": "kept bytes", "name": "notes.txt"})
        with self.page.expect_download() as saved:
            self.allow("Allow once")
        assert saved.value.path().read_text() == "kept bytes"
        call_id = self.ask_as_app("copy", COPY)
        self.allow("Allow once")
        assert json.loads(self.agent.result(call_id)["result"]["json"])["status"] == "done"
        self.hands.turn("Conversation")
        box = self.page.get_by_label("Message to the Agent")
        self.hands.write(box, "")
        self.page.keyboard.press("Control+v")
        expect(box).to_have_value("a line to paste")

    def take_a_permission_back(self) -> None:
        side = self.place("Permissions")
        self.hands.press(side.get_by_role("button", name=f"Take back “Show a notification” from {SCRIBE}"))
        expect(side).to_contain_text("You gave no app a standing answer.")
        self.page.keyboard.press("Escape")

    def close_an_app_read_what_was_said_and_go_on(self) -> None:
        self.hands.turn("Task Dashboard")
        self.is_shown("Task Dashboard")
        self.agent.say("Said while it was in front")
        self.hands.press(self.page.get_by_role("button", name="Close app"))
        sure = self.page.get_by_role("dialog", name="Close Task Dashboard?")
        self.hands.press(sure.get_by_role("button", name="Cancel the work and close"))
        expect(self.page.get_by_role("tab", name="Task Dashboard")).to_have_count(0)
        side = self.place("History")
        self.hands.press(side.get_by_role("button", name="Read Task Dashboard"))
        expect(side).to_contain_text("Said while it was in front")
        expect(side.locator("strong").filter(has_text="front")).to_be_visible()  # what was asked, with its Markdown
        expect(side.get_by_role("textbox")).to_have_count(0)
        self.hands.press(side.get_by_role("button", name="Continue Task Dashboard"))
        self.is_shown("Task Dashboard")

    def ask_why(self) -> None:
        side = self.place("Activity")
        self.hands.press(side.get_by_role("button", name="Details of Open a board"))
        self.hands.press(side.locator(".details").get_by_role("button", name="Why?"))
        why = self.page.get_by_role("dialog", name="Why this is so")
        expect(why).to_contain_text("whiteboard")
        self.page.keyboard.press("Escape")
        expect(why).to_have_count(0)
        self.hands.press(side.get_by_role("button", name="Close", exact=True))

    def bring_a_failed_app_back(self) -> None:
        self.agent.result(self.agent.invoke("fixture.print", {"text": "a line of the log"}))
        for _ in range(2):
            assert self.agent.result(self.agent.invoke("fixture.crash", {"times": 9}))["code"] == "app_crashed"
        self.hands.turn("Fixture")
        expect(self.page.get_by_role("heading", name="Fixture failed")).to_be_visible()
        self.hands.press(self.page.get_by_role("tabpanel").get_by_role("button", name="Try again"))
        self.is_shown("Fixture")
        assert self.agent.result(self.agent.invoke("fixture.echo", {"text": "back"}))["result"] == {"text": "back"}


STEPS: tuple[Callable[[Journey], None], ...] = (
    Journey.find_nothing_said_and_read_how_to_begin,
    Journey.see_the_agent_come,
    Journey.talk_both_ways,
    Journey.follow_a_task,
    Journey.see_the_dashboard_and_leave_it_and_come_back,
    Journey.choose_over_the_app,
    Journey.confirm_in_the_conversation,
    Journey.fill_in_a_form_wrongly_and_then_right,
    Journey.read_a_notice,
    Journey.draw_and_submit,
    Journey.let_an_app_tell_save_and_copy,
    Journey.take_a_permission_back,
    Journey.close_an_app_read_what_was_said_and_go_on,
    Journey.ask_why,
    Journey.bring_a_failed_app_back,
)
