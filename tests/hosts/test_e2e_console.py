"""The console by hand, with a real kernel, real apps and a real Agent: what is drawn at two sizes, and what typing does."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import socket
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hosts.console_state import INERT_SECONDS
from hosts.homes import Home
from tests.hosts import lineup
from tests.hosts.screen import SECONDS, DoorAgent, Screen, environ
from tests.processes.written_app import ASKER, FIXTURE, write_app, write_raw_app

SCRIBE = Path(__file__).resolve().parents[1] / "processes" / "apps" / "scribe.py"
SIZES = [(80, 24), (140, 40)]

CHOICE = {
    "title": "Colour",
    "prompt": "Which do you like?",
    "mode": "multi-choice",
    "actions": [{"id": "red", "label": "Red", "description": "warm"}, {"id": "blue", "label": "Blue"}],
}
INPUT = {
    "title": "Trip",
    "prompt": "Where and how long?",
    "fields": [
        {"id": "where", "label": "Where to", "type": "text", "required": True, "max_length": 5},
        {"id": "days", "label": "Days", "type": "number", "minimum": 1, "maximum": 10},
        {"id": "note", "label": "Note", "type": "textarea"},
    ],
}


class Stage:
    """One home with a console on it, and what else a test puts there."""

    def __init__(self, home: Home, apps: list[Path]) -> None:
        self.home = home
        self._apps = apps
        self._opened: list[Screen | DoorAgent] = []

    def screen(self, size: tuple[int, int] = (80, 24)) -> Screen:
        opened = Screen(self.home, *size, apps=self._apps)
        self._opened.append(opened)
        opened.wait_text("kernel up")
        return opened

    def agent(self) -> DoorAgent:
        opened = DoorAgent(self.home)
        self._opened.append(opened)
        return opened

    def run(self, *arguments: str, code: int = 0, stdin: bytes | None = None) -> Any:
        """Run a verb with --format json; the JSON of stdout, or of the error line when it has to fail."""
        done = lineup.run([*arguments, "--format", "json"], env=environ(self.home), stdin=stdin, timeout=SECONDS)
        assert done.returncode == code, done
        return json.loads(done.stdout if code == 0 else done.stderr.splitlines()[-1])

    def kernel_pid(self) -> int:
        """The process that listens on this home's socket, by the credentials of a connection to it."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            folder = os.open(self.home.run_folder, os.O_PATH | os.O_DIRECTORY)
            try:
                probe.connect(f"/proc/self/fd/{folder}/kernel.sock")
            finally:
                os.close(folder)
            pid, _, _ = struct.unpack("3i", probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return int(pid)

    def close(self) -> None:
        for opened in self._opened:
            opened.close()
        done = lineup.run(["stop"], env=environ(self.home), timeout=SECONDS)
        assert done.returncode in (0, 4), done


@pytest.fixture
def stage(home: Home, tmp_path: Path) -> Iterator[Stage]:
    apps = tmp_path / "apps"
    apps.mkdir()
    scribe = write_app(
        apps, "scribe", SCRIBE.read_bytes(), ("ask", "copy", "put", "results"), ("artifact.save", "clipboard.write", "notification.show")
    )
    made = Stage(home, [ASKER, FIXTURE, scribe, write_raw_app(apps, "rude")])
    yield made
    made.close()


def number_of(screen: Screen, kind: str) -> str:
    """The number that a question of a kind is answered by, from what is drawn of it."""
    found: list[str] = re.findall(rf"#(\d+) {kind}", screen.text())
    return found[-1]


@pytest.mark.clause("7.3")
@pytest.mark.parametrize("size", SIZES)
def test_all_four_kinds_are_drawn_and_answered_and_refusals_stand_by_their_field(stage: Stage, size: tuple[int, int]) -> None:
    screen, agent = stage.screen(size), stage.agent()
    screen.wait_text("Agent connected")
    notice = agent.call("interaction.notice", {"title": "FYI", "message": "The build\u202e is green."})
    screen.wait_text("Agent has a notice", "The build<U+202E> is green.")
    assert agent.result(notice)["result"] == {"outcome": "accepted"}

    choice = agent.call("interaction.choice", CHOICE)
    screen.wait_text("The Agent asks", "│ Colour", "│ Which do you like?", "1  Red: warm", "2  Blue", "/decline")
    screen.type("half a line")
    screen.wait_text("> half a line")
    screen.type("\x15")
    screen.enter("/answer")
    screen.wait_text("numbers>", "answering #")
    screen.enter("9")
    screen.wait_text("type the number of what you choose")
    screen.enter("2, 1")
    screen.wait_text("You answered", "Red, Blue")
    assert agent.result(choice)["result"] == {"outcome": "answered", "answer": {"action_ids": ["red", "blue"]}}

    confirm = agent.call("interaction.confirm", {"title": "Sure?", "prompt": "Send it.", "approve_label": "Send", "cancel_label": "Keep"})
    screen.wait_text("y  Send", "n  Keep")
    screen.enter("/answer")
    screen.wait_text("y/n>")
    screen.enter("y")
    assert agent.result(confirm)["result"]["answer"] == {"approved": True}
    screen.wait_without("y/n>")

    _answer_input(screen, agent)


def _answer_input(screen: Screen, agent: DoorAgent) -> None:
    call_id = agent.call("interaction.input", INPUT)
    screen.wait_text("Where to  text, required, …5 characters", "Days  number, may be left empty, 1…10")
    screen.enter("/answer")
    screen.wait_text("Where to>")
    screen.enter("Paris is far")
    screen.wait_text("Days>")
    screen.enter("soon")
    screen.wait_text("Note>")
    screen.type("one\ntwo")
    screen.wait_text("one⏎two")
    screen.enter("")
    screen.wait_text("Enter sends>", "Where to: Paris is far", "Days: soon")
    screen.enter("")
    screen.wait_text("expected 1 to 5 code points", "Where to> Paris is far")
    screen.enter("\x15Rome")
    screen.wait_text("Days> soon")
    screen.enter("")
    screen.wait_text("Note>")
    screen.enter("")
    screen.wait_text("Enter sends>")
    screen.enter("")
    screen.wait_text("expected number", "Days> soon")
    screen.enter("\x154")
    screen.wait_text("Note>")
    screen.enter("")
    screen.wait_text("Enter sends>")
    screen.enter("")
    assert agent.result(call_id)["result"]["answer"] == {
        "fields": [{"id": "where", "text": "Rome"}, {"id": "days", "number": 4}, {"id": "note", "text": "one\ntwo"}]
    }
    screen.wait_text("Where to: Rome; Days: 4; Note: one")


@pytest.mark.clause("7.3")
def test_a_question_may_be_declined_expires_in_front_of_the_person_and_closes_when_another_view_answers(stage: Stage) -> None:
    screen, agent = stage.screen((140, 40)), stage.agent()
    screen.wait_text("Agent connected")
    declined = agent.call("interaction.choice", CHOICE)
    screen.wait_text("2  Blue")
    screen.enter("/decline")
    assert agent.result(declined)["result"] == {"outcome": "answered", "answer": {"declined": True}}
    screen.wait_text("Declined")

    soon = (datetime.now(UTC) + timedelta(seconds=4)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    expiring = agent.call("interaction.confirm", {"title": "Quick", "prompt": "Now?"}, expires_at=soon)
    screen.wait_text("expires in 0:0")
    screen.enter("/answer")
    screen.wait_text("y/n>")
    screen.wait_text("ended: expired")
    screen.wait_without("y/n>")
    assert agent.result(expiring)["status"] == "expired"

    shared = agent.call("interaction.input", INPUT)
    screen.wait_text("Where to  text")
    screen.enter("/answer")
    screen.wait_text("Where to>")
    screen.enter("Oslo")
    screen.wait_text("Days>")
    waiting = stage.run("interactions", "list", "--state", "open")["interactions"]
    assert waiting[0]["draft"] == {"fields": {"where": "Oslo"}}, "what is typed is a draft of every view"
    refused = stage.run("answer", "--field", "where=Amsterdam", code=2)
    assert (refused["code"], refused["detail"]["pointer"]) == ("answer_invalid", "/answer/fields/where")
    assert stage.run("answer", "--field", "where=Bonn", "--field", "days=2")["accepted"]
    screen.wait_text("was answered by view-", "Where to: Bonn; Days: 2")
    screen.wait_without("Days>")
    assert agent.result(shared)["result"]["outcome"] == "answered"
    assert stage.run("answer", code=2)["code"] == "interaction_not_found"


@pytest.mark.clause("7.2")
def test_a_question_over_an_app_moves_survives_kill_9_and_is_answered_after_it(stage: Stage) -> None:
    screen, agent = stage.screen(), stage.agent()
    screen.wait_text("Agent connected")
    agent.call("task-dashboard.open", {"task_id": "t1", "title": "A task"})
    screen.wait_text("front: Task Dashboard", "Task Dashboard (task-dashboard) shows", "│ tasks:")
    call_id = agent.call("interaction.choice", CHOICE)
    screen.wait_text("1 to answer", "│ Colour")
    agent.send("message.text", {"text": "Read me."})
    screen.wait_text("2 unread")
    screen.enter(f"/move {number_of(screen, 'choice')} inline")
    screen.wait_text("It is shown inline now.", "│   t1:")
    os.kill(stage.kernel_pid(), signal.SIGKILL)
    screen.wait_text("reconnecting to the kernel")
    screen.wait_text("kernel up", "1 to answer", "front: Task Dashboard")
    screen.enter("/answer")
    screen.wait_text("numbers>")
    screen.enter("1")
    screen.wait_text("You answered", "Red")
    assert agent.result(call_id)["result"]["answer"] == {"action_ids": ["red"]}
    screen.enter("/front chat")
    screen.wait_text("front: conversation")
    screen.wait_without("unread")
    os.kill(stage.kernel_pid(), signal.SIGKILL)
    screen.wait_text("reconnecting to the kernel")
    screen.wait_text("kernel up", "was answered")
    assert "(ended)" not in screen.text()


@pytest.mark.clause("7.4")
def test_an_apps_own_question_names_the_app(stage: Stage) -> None:
    screen, agent = stage.screen(), stage.agent()
    screen.wait_text("Agent connected")
    stage.run("policy", "set", "standard-interaction:asker", "--allow")
    question = {"kind": "confirm", "title": "You (chat) asks", "prompt": "Clear the board."}
    call_id = agent.call("asker.ask", {"json": json.dumps(question), "as_parent": False, "subscribe": False})
    screen.wait_text("Asker (asker) asks")
    screen.enter("/answer")
    screen.wait_text("y/n>", "│ Clear the board.")
    screen.enter("n")
    assert json.loads(agent.result(call_id)["result"]["json"])["answer"] == {"approved": False}


@pytest.mark.clause("10")
@pytest.mark.parametrize("size", SIZES)
def test_consent_names_the_app_and_what_is_allowed_is_done_here_once(stage: Stage, size: tuple[int, int]) -> None:
    screen, agent = stage.screen(size), stage.agent()
    screen.wait_text("Agent connected")
    screen.enter("/open scribe")
    screen.wait_text("front: Test app scribe")
    copy = {"capability": "clipboard.write", "reason": "To paste\u202e it\x1b[2J", "arguments": {"text": "copied"}}
    first = agent.call("scribe.copy", {"json": json.dumps(copy)})
    screen.wait_text("Your consent is asked for", "App: Test app scribe (scribe)", "Replace what is on the clipboard [clipboard.write]")
    screen.wait_text("│ To paste<U+202E> it␛[2J", "│ copied", "/allow open", "/deny always")
    assert b"\x1b]52;" not in screen.raw
    _answer_consent(screen, "/allow", "Allowed once.")
    screen.wait_raw(b"\x1b]52;c;" + base64.b64encode(b"copied") + b"\x07")
    assert json.loads(agent.result(first)["result"]["json"])["status"] == "done"
    assert screen.raw.count(b"\x1b]52;") == 1

    denied = agent.call("scribe.copy", {"json": json.dumps(copy)})
    screen.wait_text("Your consent is asked for")
    _answer_consent(screen, "/deny always", "Refused always.")
    assert json.loads(agent.result(denied)["result"]["json"])["status"] == "denied"
    assert stage.run("permissions", "list")["permissions"][0]["scope"] == "never"

    agent.result(agent.call("scribe.put", {"json": json.dumps({"text": "bytes", "name": "a.txt"})}))
    screen.wait_text("Save a file", "│ a.txt")
    _answer_consent(screen, "/allow", "Allowed once.")
    saved = stage.home.folder / "saved" / "a.txt"
    screen.wait_for(saved.exists, "the saved file")
    notify = {"capability": "notification.show", "reason": "News", "arguments": {"title": "Ready", "body": "Come back"}}
    agent.call("scribe.copy", {"json": json.dumps(notify)})
    screen.wait_text("Show a notification")
    _answer_consent(screen, "/allow always", "Allowed always.")
    screen.enter("/front chat")
    screen.wait_text("Notification of Test app scribe (scribe)", "Ready: Come back")
    assert saved.read_bytes() == b"bytes"


def _answer_consent(screen: Screen, line: str, done: str) -> None:
    """Answer what is drawn, once it is no longer inert."""
    screen.look_for(INERT_SECONDS + 0.2)
    screen.enter(line)
    screen.wait_text(done)


@pytest.mark.clause("8.3")
def test_a_failed_app_says_why_shows_its_log_and_opens_again(stage: Stage) -> None:
    screen, agent = stage.screen((140, 40)), stage.agent()
    screen.wait_text("Agent connected")
    call_id = agent.call("rude.write", {"json": "00000001ff"})
    assert agent.result(call_id)["status"] == "failed"
    screen.wait_text("✗ Test app rude failed: protocol_violation", "/why rude", "/open rude again")
    screen.enter("/why rude")
    screen.wait_text("This is an instance of rude; it is failed", "it failed for good")
    screen.enter("/logs rude")
    screen.wait_without("This is an instance of rude")
    screen.enter("/empty rude")
    screen.wait_text("front: Test app rude")
    screen.wait_without("✗ Test app rude failed")
    assert [one["state"] for one in stage.run("sessions", "list")["sessions"] if one["app_scope"] == "rude"] == ["open", "closed"]


@pytest.mark.clause("5.4")
def test_parked_messages_are_hinted_listed_sent_again_and_dropped(stage: Stage) -> None:
    screen, agent = stage.screen((140, 40)), stage.agent()
    screen.wait_text("Agent connected")
    agent.result(agent.call("fixture.echo", {"text": "up"}))
    agent.send("app.message", {"topic": "fixture.poison", "body": {}}, app_scope="fixture")
    screen.wait_text("1 parked", "/parked lists messages")
    screen.enter("/parked")
    screen.wait_text("Messages an app could not take", "fixture fixture.poison", "2 crashes")
    [row] = stage.run("inbox", "parked")["rows"]
    number = str(row["number"])
    screen.enter(f"/retry {number}")
    screen.wait_text(f"Message {number} is sent again.")
    screen.wait_text("fixture fixture.poison", "3 tries, 3 crashes")  # one more is enough
    screen.enter(f"/drop {number}")
    screen.wait_text(f"Message {number} is dropped.")
    screen.wait_without("1 parked")
    assert stage.run("inbox", "parked")["rows"] == []
    assert stage.run("inbox", "drop", number, code=2)["code"] == "call_not_found"


@pytest.mark.clause("8.4")
@pytest.mark.clause("9.3")
def test_tasks_summaries_and_sessions_are_drawn_and_a_closed_session_goes_on(stage: Stage) -> None:
    screen, agent = stage.screen((140, 40)), stage.agent()
    screen.wait_text("Agent connected")
    agent.send("task.update", {"task_id": "b", "title": "Build", "state": "running", "progress": 40})
    screen.wait_text("Agent  task", "Build running", "40 %")
    agent.send("task.update", {"task_id": "b", "title": "Build", "state": "completed"})
    screen.wait_text("earlier: Build running", "Build completed")
    agent.result(agent.call("runtime.status", {}))
    agent.send("message.text", {"text": "All done."})
    screen.wait_text("· 1 call: 1 completed", "All done.")
    screen.enter("/open task-dashboard")
    screen.wait_text("front: Task Dashboard")
    screen.enter("said in front")
    screen.wait_text("You ✓", "said in front")
    screen.enter("/close task-dashboard")
    screen.wait_text("front: conversation")
    screen.enter("/sessions")
    number = str(next(one["number"] for one in stage.run("sessions", "list")["sessions"] if one["app_scope"] == "task-dashboard"))
    screen.wait_text(f"/continue {number}", "closed  1 message")
    screen.enter(f"/session {number}")
    screen.wait_text("read only", "said in front")
    shown = stage.run("sessions", "show", number)
    assert [message["text"] for message in shown["messages"]] == ["said in front"]
    screen.enter(f"/continue {number}")
    screen.wait_text("front: Task Dashboard", "It goes on in a new session.")
    newest = stage.run("sessions", "list")["sessions"][0]
    assert (newest["app_scope"], newest["continues"]) == ("task-dashboard", shown["session"]["app_session_id"])


@pytest.mark.clause("8.2")
def test_an_app_at_work_is_closed_after_a_yes_typed_here_or_given_by_the_command(stage: Stage) -> None:
    screen, agent = stage.screen(), stage.agent()
    screen.wait_text("Agent connected")
    agent.call("task-dashboard.open", {"task_id": "t1", "title": "A task"})
    screen.wait_text("front: Task Dashboard")
    screen.enter("/close task-dashboard")
    screen.wait_text("LineUp asks", "Close Task Dashboard?", "at work on 1 call")
    screen.enter("n")
    screen.wait_text("Answered.", "front: Task Dashboard")
    screen.enter("/close task-dashboard")
    screen.wait_text("answering #", "Close Task Dashboard?")
    stage.run("answer", "--yes")
    screen.wait_text("front: conversation")
