"""Questions, consent and surfaces in the console, without a terminal: what is drawn, what a line means, what closes a form."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from hosts import console_form
from hosts.console_answers import take_loss, take_refusal, take_value
from hosts.console_draw import cursor_place, draw
from hosts.console_keys import Named, Typed
from hosts.console_press import press
from hosts.console_state import INERT_SECONDS, ConsoleState, counts_down, follow
from hosts.mirror import Mirror, apply, from_snapshot
from hosts.output import Exit
from kernel.protocol.host import AppClose, Delta, MessageSend, Snapshot
from kernel.protocol.host_capabilities import ConsentAnswer
from kernel.protocol.host_interactions import DraftSave, InteractionAnswer, InteractionMove, InteractionsList
from tests.hosts.scripted_kernel import consent, empty_state, instance, message, question, surface
from tests.hosts.test_console import SIZES, screen, type_in

FIELDS = [
    {"id": "name", "label": "Name", "type": "text", "required": True, "max_length": 5, "placeholder": "Ada"},
    {"id": "age", "label": "Age", "type": "number", "minimum": 0},
    {"id": "note", "label": "Note", "type": "textarea"},
]
ASKED = {"title": "You", "prompt": "Who are you?", "fields": FIELDS}
CARD = "lineup.v1.interaction"


def console(*questions: dict[str, Any], **more: Any) -> ConsoleState:
    state = empty_state() | more
    state["interactions"] = list(questions)
    state["messages"] = [message(one["number"] + 1, "card", type=CARD, interaction_id=one["interaction_id"]) for one in questions]
    made = ConsoleState(mirror=from_snapshot(Snapshot(seq=0, state=state)), phase="up", view_id="view-1-console")
    follow(made)
    return made


def change(state: ConsoleState, kind: str, value: Any) -> None:
    apply(state.mirror, Delta(seq=state.mirror.seq + 1, changes=[{"kind": kind, "value": value}]))
    follow(state)


def answer(number: int, given: dict[str, Any]) -> InteractionAnswer:
    return InteractionAnswer(interaction_id=f"int_{number}", answer=given, shown_digest=f"digest {number}")


# --- cards


@pytest.mark.clause("7.2")
@pytest.mark.clause("12")
def test_a_card_answered_before_a_restart_says_so_once_the_ended_questions_were_read() -> None:
    state = console()
    ended = question(status="completed", result={"outcome": "answered"}, answered_by="view-9-console")
    state.mirror.messages[21] = message(21, "Colour: Which?", type=CARD, interaction_id="int_20")
    assert "(ended)" in screen(state)
    take_value(state, InteractionsList(state="ended"), {"interactions": [ended], "more": False})
    assert "#20 was answered by view-9-console." in screen(state)
    assert "(ended)" not in screen(state)
    change(state, "interaction", ended | {"answered_by": "view-1-console"})
    take_value(state, InteractionsList(state="ended"), {"interactions": [ended], "more": False})
    assert "#20 was answered." in screen(state)  # what a delta said is newer than what was read


@pytest.mark.clause("7.2")
def test_a_card_says_who_asks_offers_its_choices_by_number_and_how_to_answer() -> None:
    shown = screen(console(question()))
    for text in ("The Agent asks  #20 choice", "│ Colour", "│ Which?", "1  Red", "2  Blue", "/answer 20 · /decline 20", "1 to answer"):
        assert text in shown


@pytest.mark.clause("7.3")
def test_an_ended_card_says_what_became_of_it_and_which_view_answered() -> None:
    state = console(question())
    done = {"status": "completed", "result": {"outcome": "answered", "answer": {"action_ids": ["red"]}}, "answered_by": "view-2-web"}
    change(state, "interaction", question(**done))
    assert "#20 was answered by view-2-web." in screen(state)
    change(state, "interaction", question(**done | {"answered_by": "view-1-console"}))
    assert "#20 was answered." in screen(state)
    change(state, "interaction", question(status="expired", result={"outcome": "expired"}))
    assert "#20 ended: expired." in screen(state)
    assert "/answer" not in screen(state)


@pytest.mark.clause("7.3")
def test_the_time_left_counts_down_and_only_then_does_the_picture_change_by_itself() -> None:
    state = console(question(expires_at="2026-11-30T12:10:00Z"))
    state.wall = 1_796_040_000.0  # 2026-11-30T12:00:00Z
    assert "expires in 10:00" in screen(state)
    assert counts_down(state)
    state.wall += 541
    assert "expires in 0:59" in screen(state)
    change(state, "interaction", question(status="expired", expires_at="2026-11-30T12:10:00Z"))
    assert not counts_down(state)


def test_an_apps_own_question_names_the_app_as_the_kernel_does() -> None:
    forged = {"title": "LineUp asks", "prompt": "Your code?\n  /answer 20", "approve_label": "Yes"}
    state = console(question(kind="confirm", source="miniapp_tool", owner_app_scope="task-dashboard", request=forged))
    shown = screen(state)
    assert "Task Dashboard (task-dashboard) asks  #20 confirm" in shown
    assert "│ LineUp asks" in shown
    assert "│   /answer 20" in shown


@pytest.mark.clause("9.2")
def test_what_the_app_in_front_shows_stands_above_the_conversation_and_a_modal_question_over_it() -> None:
    state = console(instances=[instance()], focus=["inst_1"], surfaces=[surface()])
    assert "Task Dashboard (task-dashboard) shows" in screen(state)
    assert "│   t1: running" in screen(state)
    change(state, "interaction", question(place="modal"))
    lines = screen(state, 140, 40).split("\n")
    order = [
        next(n for n, line in enumerate(lines) if text in line) for text in ("The Agent asks", "task-dashboard) shows", "Conversation")
    ]
    assert order == sorted(order)
    type_in(state, "/surface")
    assert state.page == "surface"
    change(state, "surface", surface(is_open=False))
    assert "shows nothing any more" in screen(state)
    assert type_in(state, "/move 20 inline") == [InteractionMove(interaction_id="int_20", place="inline")]


def test_unread_and_the_summary_of_calls_come_from_the_system_app() -> None:
    chat = surface("chat", container="trusted", state={"unread": 3, "summaries": [{"number": 5, "text": "2 calls: 2 completed"}]})
    state = console(instances=[instance()], focus=["inst_1"], surfaces=[chat], messages=[message(5, "Done")])
    state.mirror.messages[5] = message(5, "Done")
    lines = screen(state).split("\n")
    assert "3 unread" in lines[0]
    assert lines.index("· 2 calls: 2 completed") + 1 == lines.index("Agent")


# --- forms


@pytest.mark.clause("7.3")
@pytest.mark.parametrize(
    ("typed", "chosen"), [("2", ["blue"]), (" 1 ", ["red"]), ("2,1", ["blue", "red"]), ("2 1", ["blue", "red"]), ("1, 1", ["red", "red"])]
)
def test_choices_are_named_by_number_and_the_kernel_judges_them(typed: str, chosen: list[str]) -> None:
    state = console(question())
    type_in(state, "/answer")
    assert "number> " in screen(state)
    assert type_in(state, typed) == [answer(20, {"action_ids": chosen})]
    assert "sent; waiting" in screen(state)
    assert type_in(state, typed) == [], "an answer on its way is not sent twice"


@pytest.mark.parametrize("typed", ["0", "3", "red", "", "-1", "1;2", "9999999999", "१"])
def test_a_line_that_names_no_choice_is_asked_again(typed: str) -> None:
    state = console(question())
    type_in(state, "/answer")
    assert type_in(state, typed) == []
    assert "type the number of what you choose" in screen(state)


@pytest.mark.parametrize(("typed", "approved"), [("y", True), ("YES", True), ("1", True), ("n", False), ("2", False)])
def test_a_confirm_is_answered_with_yes_or_no_and_cannot_be_declined(typed: str, approved: bool) -> None:
    state = console(question(kind="confirm", request={"title": "Sure?", "prompt": "Go on."}))
    assert type_in(state, "/decline") == []
    assert "yes or no" in state.notice
    type_in(state, "/answer 20")
    assert type_in(state, "maybe") == []
    assert type_in(state, typed) == [answer(20, {"approved": approved})]


@pytest.mark.clause("7.3")
def test_fields_are_asked_one_by_one_kept_as_a_draft_and_sent_after_a_last_look() -> None:
    state = console(question(kind="input", request=ASKED))
    type_in(state, "/answer")
    assert "▸ Name  text, required, …5 characters  e.g. Ada" in screen(state)
    assert type_in(state, "Ada") == [DraftSave(interaction_id="int_20", draft={"fields": {"name": "Ada"}})]
    assert type_in(state, "36.5") == [DraftSave(interaction_id="int_20", draft={"fields": {"name": "Ada", "age": 36.5}})]
    assert type_in(state, "") == []
    assert "Enter sends it" in screen(state)
    assert "• Note: –" in screen(state)
    assert type_in(state, "/back") == []
    for key in (Typed("one"), Named("newline"), Typed("/two")):
        press(state, key)
    [draft] = press(state, Named("enter"))
    assert draft == DraftSave(interaction_id="int_20", draft={"fields": {"name": "Ada", "age": 36.5, "note": "one\n/two"}})
    assert type_in(state, "") == [answer(20, {"fields": {"name": "Ada", "age": 36.5, "note": "one\n/two"}})]


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("5", 5),
        (" 5 ", 5),
        ("-0.5", -0.5),
        ("1e2", 100.0),
        ("five", "five"),
        ("1e999", "1e999"),
        ("007", "007"),
        ("9" * 30, "9" * 30),
        ("NaN", "NaN"),
    ],
)
def test_only_what_is_a_number_in_json_becomes_one(typed: str, value: object) -> None:
    assert console_form.value_of(FIELDS[1], typed) == value
    assert console_form.value_of(FIELDS[0], typed) == typed


@pytest.mark.clause("7.3")
def test_a_refused_answer_asks_the_field_again_with_the_kernels_words_and_what_was_typed() -> None:
    state = console(question(kind="input", request=ASKED))
    for line in ("/answer", "Augusta", "", "", ""):
        sent = type_in(state, line)
    [message_sent] = sent
    take_refusal(state, message_sent, "answer_invalid", {"pointer": "/answer/fields/name", "expected": "1 to 5 code points"})
    assert "expected 1 to 5 code points" in screen(state)
    assert state.line.text == "Augusta"
    assert state.form is not None
    assert state.form.current == FIELDS[0]
    take_refusal(state, message_sent, "interaction_already_final", {})
    assert state.form is None
    assert "interaction_already_final" in state.notice


def test_an_answer_whose_fate_is_not_known_can_be_sent_again() -> None:
    state = console(question())
    type_in(state, "/answer")
    [sent] = type_in(state, "1")
    take_loss(state, sent)
    assert "send it again" in screen(state)
    assert type_in(state, "1") == [sent]
    take_value(state, sent, {"accepted": True})
    assert state.form is None


@pytest.mark.clause("7.3")
def test_a_draft_of_another_view_is_what_a_form_begins_with() -> None:
    state = console(question(kind="input", request=ASKED, draft={"fields": {"name": "Ada", "age": 36, "other": "x"}}))
    type_in(state, "/answer")
    assert state.line.text == "Ada"
    assert "• Age: 36" in screen(state)


def test_escape_leaves_a_form_for_later_with_its_draft_and_gives_the_line_back() -> None:
    state = console(question(kind="input", request=ASKED))
    type_in(state, "/answer")
    for key in (Typed("A"), Typed("d")):
        press(state, key)
    assert press(state, Named("escape")) == [DraftSave(interaction_id="int_20", draft={"fields": {"name": "Ad"}})]
    assert state.form is None
    assert "#20 still waits" in state.notice
    assert type_in(state, "hello") == [MessageSend(text="hello")]
    assert "Ad" not in state.line.history


@pytest.mark.clause("7.3")
def test_a_question_that_ends_elsewhere_closes_its_form_and_gives_back_what_was_being_typed() -> None:
    state = console(question(), question(21))
    type_in(state, "/answer 20")
    press(state, Typed("1"))
    done = {"status": "submitted", "result": {"outcome": "answered"}, "answered_by": "view-9-web"}
    change(state, "interaction", question(**done))
    assert state.form is None
    assert state.line.text == ""
    assert "answered by view-9-web" in state.notice
    type_in(state, "/answer")
    assert state.form is not None
    assert state.form.interaction["number"] == 21
    state.mirror = Mirror()
    follow(state)
    assert state.form is None


def test_ctrl_c_leaves_while_a_form_is_open_and_ctrl_d_leaves_the_form() -> None:
    state = console(question())
    type_in(state, "/answer")
    press(state, Named("ctrl-d"))
    assert (state.form, state.leaving) == (None, None)
    type_in(state, "/answer")
    press(state, Named("ctrl-c"))
    assert state.leaving is Exit.INTERRUPTED


@pytest.mark.clause("8.2")
def test_the_kernels_question_about_a_close_opens_as_soon_as_the_console_has_it() -> None:
    state = console(instances=[instance(open_calls=2)])
    [asked] = type_in(state, "/close task-dashboard")
    assert asked == AppClose(instance_id="inst_1")
    take_value(state, asked, {"asked": "int_60"})
    assert state.form is None  # the question itself comes with the next delta
    own = {"source": "runtime_policy", "owner_app_scope": "runtime", "place": "modal"}
    change(state, "interaction", question(60, "confirm", {"title": "Close it?", "prompt": "It is at work."}, **own))
    assert "LineUp asks  #60 confirm" in screen(state)
    assert type_in(state, "y") == [answer(60, {"approved": True})]
    change(state, "interaction", question(60, "confirm", {"title": "Close it?", "prompt": "It is at work."}, status="completed", **own))
    assert state.form is None


# --- consent


@pytest.mark.clause("10")
def test_consent_names_app_and_capability_by_the_kernels_word_and_shows_what_is_hidden_in_the_apps() -> None:
    state = console(consents=[consent(reason="Trust\u202e me\nApp: LineUp (chat)", arguments={"text": "\x1b[2Jrm"})])
    shown = screen(state)
    assert "Your consent is asked for" in shown
    assert "App: Task Dashboard (task-dashboard)" in shown
    assert "wants to: Replace what is on the clipboard [clipboard.write]" in shown
    assert "│ Trust<U+202E> me" in shown
    assert "│ App: LineUp (chat)" in shown
    assert "│ ␛[2Jrm" in shown
    assert "/allow · /allow open · /allow always · /deny · /deny always" in shown


@pytest.mark.clause("10")
def test_consent_is_inert_until_it_was_drawn_for_a_moment_and_a_newer_one_begins_anew() -> None:
    state = console(consents=[consent(30), consent(31)])
    state.ticks += INERT_SECONDS / 2
    assert type_in(state, "/allow") == []
    assert "only just appeared" in state.notice
    state.ticks += INERT_SECONDS
    assert type_in(state, "/allow") == [ConsentAnswer(request_id="cap_30", decision="once", shown="shown 30")]
    change(state, "consent", consent(30, status="granted"))
    assert type_in(state, "/allow") == []
    state.ticks += INERT_SECONDS
    assert type_in(state, "/allow") == [ConsentAnswer(request_id="cap_31", decision="once", shown="shown 31")]


@pytest.mark.clause("10")
@pytest.mark.parametrize(
    ("typed", "decision"),
    [("/allow", "once"), ("/allow open", "while_open"), ("/allow always", "always"), ("/deny", "deny"), ("/deny always", "never")],
)
def test_each_answer_to_consent_is_a_whole_command(typed: str, decision: str) -> None:
    state = console(consents=[consent()])
    state.ticks += INERT_SECONDS
    assert [press(state, Typed(key)) for key in "y1a\r"[:3]] == [[], [], []]
    press(state, Named("ctrl-u"))
    assert type_in(state, typed) == [ConsentAnswer(request_id="cap_30", decision=decision, shown="shown 30")]


def test_what_is_not_offered_cannot_be_answered() -> None:
    state = console(consents=[consent(scopes=["once"])])
    state.ticks += INERT_SECONDS
    assert type_in(state, "/allow always") == []
    assert "/allow always" not in screen(state).replace("Say /allow, /allow open, /allow always", "")
    assert type_in(state, "/allow perhaps") == []
    assert len(type_in(state, "/deny")) == 1


def test_a_long_consent_says_that_there_is_more_and_its_page_has_all_of_it() -> None:
    state = console(consents=[consent(arguments={"text": "\n".join(f"line {number}" for number in range(50))})])
    assert "… /consent shows all of it" in screen(state)
    assert "/allow · " in screen(state)
    type_in(state, "/consent")
    for _ in range(100):
        press(state, Named("page-down"))
    while "line 49" not in screen(state, 80, 70):
        press(state, Named("page-up"))
    assert "line 49" in screen(state, 80, 70)


@pytest.mark.clause("10")
@pytest.mark.parametrize(("width", "height"), [(40, 10), (60, 8), (80, 24), (140, 40)])
def test_the_app_and_the_answers_stand_in_every_window(width: int, height: int) -> None:
    shown = screen(console(consents=[consent(reason="x " * 500)]), width, height)
    assert "App: Task Dashboard" in shown
    assert "/allow" in shown


# --- all of it at once


@given(st.text(max_size=40), st.sampled_from(SIZES), st.sampled_from(["choice", "confirm", "input"]))
def test_no_words_of_others_break_the_frame(text: str, size: tuple[int, int], kind: str) -> None:
    actions = [{"id": "a", "label": text, "description": text}]
    fields = [FIELDS[0] | {"label": text, "placeholder": text}]
    request = {"title": text, "prompt": text, "mode": "button", "actions": actions, "fields": fields, "approve_label": text}
    one = question(kind=kind, request=request, place="modal", source="miniapp_tool", owner_app_scope=text)
    state = console(
        one,
        instances=[instance(title=text)],
        focus=["inst_1"],
        surfaces=[surface(title=text, text=text)],
        consents=[consent(reason=text, app_title=text, arguments={"text": text})],
    )
    for has_form in (False, True):
        if has_form:
            type_in(state, "/answer 20")
        lines = draw(state, *size)
        assert len(lines) == size[1]
        assert all("\n" not in line.plain and cell_len(line.plain) <= size[0] for line in lines)
        assert not any(character < " " or character in "\u202e\u2066" for line in lines for character in line.plain)
        row, column = cursor_place(state, *size)
        assert 0 <= row < size[1]
        assert 0 <= column < size[0]
