"""The console without a terminal: keys, state, drawn text at several widths."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from hosts import console_line
from hosts.console_answers import take_refusal, take_value
from hosts.console_draw import MAX_INPUT_LINES, cursor_place, draw
from hosts.console_keys import Key, KeyReader, Named, Typed
from hosts.console_line import InputLine
from hosts.console_press import press
from hosts.console_state import ConsoleState, Page
from hosts.mirror import from_snapshot
from hosts.output import Exit
from kernel.protocol.host import AppClose, CallCancel, FocusRaise, LogsRead, MessageSend, Snapshot
from kernel.protocol.host_sessions import AppOpen, AppStartEmpty, ModeRequest, SessionsContinue, SessionsList, SessionsShow
from kernel.protocol.host_upkeep import Explain, InboxDrop, InboxParked, InboxRetry
from lineup_sdk.protocol.messages import Message
from tests.hosts.scripted_kernel import NOW, app, call, empty_state, instance, message

SIZES = [(20, 6), (40, 10), (80, 24), (99, 30), (100, 30), (140, 40), (250, 70)]


SESSION = {
    "number": 40, "app_session_id": "ses_40", "app_scope": "old", "title": "Old App", "state": "open", "failed": True, "messages": 1,
    "opened_at": NOW, "newest_instance_id": "inst_old", "error": "app_crashed",
}  # fmt: skip
PARKED = {
    "number": 50, "app_scope": "old", "instance_id": "inst_old", "topic": "old.note", "delivery_count": 2, "crash_count": 2, "size": 9,
    "created_at": NOW,
}  # fmt: skip


def console() -> ConsoleState:
    state = empty_state()
    state["calls"] = [
        call(1, "completed", title="Old call"),
        call(2, progress={"percent": 45.0, "message": "halfway"}),
        call(3, "waiting_for_app", cancel="asked", attempts=1),
    ]
    state["instances"] = [instance(open_calls=2), instance("inst_2", app_scope="whiteboard", title="Whiteboard", state="background")]
    state["focus"] = ["inst_2", "inst_1"]
    state["messages"] = [message(1, "Please do it", "person", state="acknowledged"), message(2, "On it.\nSoon.")]
    state["agent"] = {"connected": True, "demo": False}
    return ConsoleState(mirror=from_snapshot(Snapshot(seq=0, state=state)), phase="up")


def console_with_history() -> ConsoleState:
    made = console()
    made.sessions = [SESSION]
    made.parked = [PARKED]
    return made


def screen(state: ConsoleState, width: int = 80, height: int = 24) -> str:
    return "\n".join(line.plain for line in draw(state, width, height))


def type_in(state: ConsoleState, text: str) -> list[Message]:
    actions: list[Message] = []
    for key in [*(Typed(character) for character in text), Named("enter")]:
        actions += press(state, key)
    return actions


# --- drawing


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_every_size_is_filled_exactly_and_nothing_is_wider(width: int, height: int) -> None:
    for page in get_args(Page):
        state = console_with_history()
        state.page = page
        lines = draw(state, width, height)
        assert len(lines) == height
        assert max(cell_len(line.plain) for line in lines) <= width
        row, column = cursor_place(state, width, height)
        assert 0 <= row < height
        assert 0 <= column < width


@pytest.mark.parametrize(("width", "height"), [(80, 24), (140, 40)])
def test_conversation_calls_progress_instances_and_focus_are_all_on_the_first_screen(width: int, height: int) -> None:
    shown = screen(console(), width, height)
    for text in (
        "You ✓",
        "Please do it",
        "Agent",
        "On it.",
        "Soon.",
        "#2 Show a task running",
        "████░░░░░░ 45 % halfway",
        "Whiteboard  background",
    ):
        assert text in shown
    assert "▸ Task Dashboard  foreground  2 open" in shown
    assert "#3 Show a task cancelling (attempt 2)" in shown
    assert "#1 Old call completed" in shown
    assert "front: Task Dashboard" in shown


def test_the_newest_line_of_a_long_conversation_is_shown_and_page_up_scrolls_back() -> None:
    state = console()
    for number in range(10, 200):
        state.mirror.messages[number] = message(number, f"line {number}")
    assert "line 199" in screen(state)
    assert "line 150" not in screen(state)
    for _ in range(10):
        press(state, Named("page-up"))
    assert "line 199" not in screen(state)
    for _ in range(1000):
        press(state, Named("page-up"))
    assert "Please do it" in screen(state)


def test_a_lost_kernel_is_shown_and_the_last_picture_stays() -> None:
    state = console()
    state.phase, state.restarts = "connecting", 1
    assert "reconnecting to the kernel" in screen(state)
    assert "Please do it" in screen(state)


@pytest.mark.clause("11.2")
def test_text_of_apps_and_agent_cannot_steer_the_terminal_or_forge_markup() -> None:
    state = console()
    evil = "\x1b[2J\x1b]0;title\x07[bold red]You[/] \u202eevil\rYou ✓"
    state.mirror.messages[3] = message(3, evil)
    state.mirror.calls[2] = call(2, title=evil, progress={"percent": 1, "message": evil})
    state.mirror.instances["inst_1"] = instance(title=evil, error=evil, open_calls=1)
    for page in ("conversation", "calls", "apps"):
        state.page = page
        shown = screen(state, 200, 40)
        assert not any(character < " " and character != "\n" for character in shown)
        assert "\u202e" not in shown
        assert "[bold red]You[/]" in shown


@settings(deadline=None)  # the machine may be busy; nothing here is about time
@given(st.text(), st.sampled_from(SIZES))
def test_no_text_breaks_the_frame(text: str, size: tuple[int, int]) -> None:
    state = console()
    state.mirror.messages[3] = message(3, text)
    state.mirror.calls[2] = call(2, title=text, progress={"percent": 10, "message": text})
    state.line = console_line.insert(InputLine(), text)
    lines = draw(state, *size)
    assert len(lines) == size[1]
    assert all("\n" not in line.plain and cell_len(line.plain) <= size[0] for line in lines)


def test_a_message_of_an_unknown_type_shows_its_type() -> None:
    state = console()
    state.mirror.messages[3] = message(3, "[unsupported_type]", type="lineup.v9.dance")
    assert "Agent  (lineup.v9.dance)" in screen(state)


def test_a_long_input_shows_the_lines_around_the_cursor() -> None:
    state = console()
    state.line = console_line.insert(InputLine(), "word " * 200 + "end")
    assert "end" in screen(state, 40, 24)
    assert cursor_place(state, 40, 24)[0] == 23
    state.line = console_line.edit(state.line, "home")
    assert "> word" in screen(state, 40, 24)
    assert cursor_place(state, 40, 24) == (24 - MAX_INPUT_LINES, 2)


# --- commands


@pytest.mark.clause("11.5")
def test_what_is_typed_is_said_to_the_agent() -> None:
    state = console()
    assert type_in(state, "hello /there") == [MessageSend(text="hello /there")]
    assert type_in(state, "//slash") == [MessageSend(text="/slash")]
    assert type_in(state, "   ") == []
    assert state.line.text == ""


@pytest.mark.parametrize(
    ("typed", "action"),
    [
        ("/cancel 2", CallCancel(call_id="call_2")),
        ("/cancel #3", CallCancel(call_id="call_3")),
        ("/cancel call_2", CallCancel(call_id="call_2")),
        ("/front whiteboard", FocusRaise(instance_id="inst_2")),
        ("/front chat", FocusRaise(instance_id="chat")),
        ("/close whiteboard", AppClose(instance_id="inst_2")),
        ("/logs inst_1", LogsRead(instance_id="inst_1")),
        ("/logs old", LogsRead(instance_id="inst_old")),
        ("/why 2", Explain(what="2")),
        ("/why old", Explain(what="inst_old")),
        ("/open task-dashboard", AppOpen(app_scope="task-dashboard")),
        ("/empty task", AppStartEmpty(app_scope="task-dashboard")),
        ("/sessions", SessionsList()),
        ("/session 40", SessionsShow(app_session_id="ses_40")),
        ("/continue #40", SessionsContinue(app_session_id="ses_40")),
        ("/parked", InboxParked()),
        ("/mode im", ModeRequest(mode="im")),
        ("/mode video", ModeRequest(mode="video")),
    ],
)
def test_a_command_names_what_it_means(typed: str, action: Message) -> None:
    assert type_in(console_with_history(), typed) == [action]


@pytest.mark.parametrize(
    "typed",
    [
        "/answer",
        "/allow",
        "/surface",
        "/session 9",
        "/why",
        "/move 3 left",
        "/mode",
        "/mode loud",
        "/retry 9",
        "/cancel",
        "/cancel 1",
        "/cancel call_",
        "/close",
        "/close nothing",
        "/front a b",
        "/logs",
        "/dance",
        "/",
    ],
)
def test_a_command_that_names_nothing_or_too_much_does_nothing_and_says_so(typed: str) -> None:
    state = console()
    assert type_in(state, typed) == []
    assert state.notice
    assert state.notice in screen(state, 120)


@pytest.mark.clause("5.4")
def test_parked_messages_are_hinted_and_each_command_reads_the_list_again() -> None:
    state = console_with_history()
    assert "1 parked" in screen(state)
    state.page = "parked"
    assert "#50 old old.note" in screen(state)
    assert type_in(state, "/retry 50") == [InboxRetry(number=50), InboxParked()]
    assert type_in(state, "/drop 50") == [InboxDrop(number=50), InboxParked()]


@pytest.mark.clause("8.4")
def test_an_app_that_failed_says_why_and_what_can_be_done_until_it_runs_again() -> None:
    state = console_with_history()
    assert "✗ Old App failed: app_crashed" in screen(state, 140, 40)
    assert "/empty old" in screen(state, 140, 40)
    state.mirror.instances["inst_new"] = instance("inst_new", app_scope="old", title="Old App")
    assert "✗" not in screen(state, 140, 40)


def test_a_conversation_app_that_failed_says_so_until_it_runs_again() -> None:
    state = console()
    state.mirror.apps = [app(), app("chat", "Interact")]
    state.mirror.instances["inst_9"] = instance("inst_9", app_scope="chat", title="Interact", state="failed", error="app_crashed")
    for width, height in ((80, 24), (140, 40)):
        assert "✗ Interact failed: app_crashed" in screen(state, width, height)
    assert "/front chat" in screen(state, 140, 40)
    del state.mirror.instances["inst_9"]  # a snapshot has live ones alone
    assert "✗ Interact failed" in screen(state)
    state.mirror.instances["inst_10"] = instance("inst_10", app_scope="chat", title="Interact", state="background")
    assert "✗" not in screen(state)


@pytest.mark.clause("3")
def test_a_mode_that_is_not_built_is_refused_with_its_code_in_plain_words() -> None:
    state = console()
    take_refusal(state, ModeRequest(mode="audio"), "mode_unavailable", {"pointer": "/mode", "expected": "im"})
    assert "Refused (mode_unavailable): this mode is not built; expected im at /mode." in screen(state, 120)
    take_value(state, ModeRequest(mode="im"), {})
    assert "The conversation is in mode im." in screen(state, 120)


@pytest.mark.clause("9.3")
def test_a_task_card_shows_its_progress_and_older_ones_are_one_line() -> None:
    state = console()
    task = {"task_id": "b", "title": "Build", "state": "running", "progress": 40}
    state.mirror.messages[3] = message(3, "Build: pending", type="lineup.v1.task.update", task=task | {"state": "pending"}, folded=True)
    state.mirror.messages[4] = message(4, "Build: running", type="lineup.v1.task.update", task=task)
    shown = screen(state)
    assert "  earlier: Build pending" in shown
    assert "Build running  ████░░░░░░ 40 %" in shown


@pytest.mark.clause("11.3")
def test_a_message_its_receiver_refused_says_so_with_the_code() -> None:
    state = console()
    state.mirror.messages[3] = message(3, "hello", "person", state="refused", code="too_rude")
    assert "You ✗ refused: too_rude" in screen(state)


def test_pages_open_and_escape_goes_back() -> None:
    state = console()
    type_in(state, "/help")
    assert "/cancel NUMBER" in screen(state)
    type_in(state, "/calls")
    assert "call_1 by agent" in screen(state)
    type_in(state, "/apps")
    assert "task-dashboard.open" in screen(state)
    press(state, Named("escape"))
    assert "Please do it" in screen(state)


def test_ctrl_c_interrupts_and_ctrl_d_on_an_empty_line_ends() -> None:
    state = console()
    press(state, Named("ctrl-c"))
    assert state.leaving is Exit.INTERRUPTED
    state = console()
    press(state, Typed("a"))
    press(state, Named("ctrl-d"))
    assert state.leaving is None
    press(state, Named("backspace"))
    press(state, Named("ctrl-d"))
    assert state.leaving is Exit.OK
    state = console()
    type_in(state, "/quit")
    assert state.leaving is Exit.OK


# --- keys and line


def _keys(*pieces: bytes) -> list[Key]:
    reader = KeyReader()
    return [key for piece in pieces for key in reader.feed(piece)]


def test_keys_are_read_across_any_cut() -> None:
    data = "é\x1b[A\x1b[3~\x1bOF\r\x7f\x03\x1b[200~a\r\nb\x07\x1b[201~z".encode()
    whole = _keys(data)
    assert whole == [
        Typed("é"), Named("up"), Named("delete"), Named("end"), Named("enter"), Named("backspace"), Named("ctrl-c"),
        Typed("a\nb"), Typed("z"),
    ]  # fmt: skip
    assert _keys(*(data[i : i + 1] for i in range(len(data)))) == whole


def test_unknown_sequences_are_swallowed_whole() -> None:
    assert _keys(b"\x1b[38;5;200mx\x1b[<0;1;2Mx\x1bqx") == [Typed("x")] * 3


def test_a_lone_escape_is_a_key_only_when_nothing_follows() -> None:
    reader = KeyReader()
    assert reader.feed(b"\x1b") == []
    assert reader.is_waiting
    assert reader.flush() == [Named("escape")]
    assert reader.feed(b"\x1b") + reader.feed(b"[A") == [Named("up")]


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_confuse_the_key_reader(data: bytes) -> None:
    reader = KeyReader()
    for key in reader.feed(data):
        assert isinstance(key, Named) or all(c >= " " or c == "\n" for c in key.text)


def test_the_line_edits_and_remembers() -> None:
    line = console_line.insert(InputLine(), "hello big world")
    line = console_line.edit(line, "ctrl-w")
    assert (line.text, line.cursor) == ("hello big ", 10)
    line = console_line.insert(console_line.edit(console_line.edit(line, "home"), "delete"), "J")
    assert line.text == "Jello big "
    typed, line = console_line.take(line)
    assert (typed, line.text) == ("Jello big ", "")
    line = console_line.insert(line, "draft")
    assert console_line.edit(line, "up").text == "Jello big "
    assert console_line.edit(console_line.edit(line, "up"), "down").text == "draft"
    assert console_line.edit(console_line.edit(line, "ctrl-u"), "backspace").text == ""


@pytest.mark.clause("11.5")
def test_the_line_never_grows_beyond_what_can_be_sent() -> None:
    line = console_line.insert(InputLine(), "x" * (console_line.MAX_POINTS + 1))
    assert len(line.text) == console_line.MAX_POINTS
    assert console_line.insert(line, "y") == line
