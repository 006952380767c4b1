"""What the console shows. Pure: no terminal, no kernel, no clock; its owner stamps the time on it.

Rules:
1. The mirror is the only source about the kernel; a key never changes it. What is read by request (sessions, parked messages, a log) is
   kept as it was answered.
2. Whether an App at work may be closed is asked by the kernel; the console opens that question as soon as it has it.
3. A question of an App for a capability cannot be answered before it was drawn for INERT_SECONDS: what was typed for something else is
   never an answer to it (SPEC 10). Only the oldest is drawn, so only that one can be answered.
4. A question that ended somewhere else ends here: its form closes, and a line says who answered.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from hosts.console_form import Form, open_form, text_of
from hosts.console_line import InputLine, insert
from hosts.mirror import WAITING_STATUSES, Mirror
from hosts.output import Exit
from hosts.providers import Notification
from hosts.view import Phase
from hosts.visible import one_line
from lineup_sdk.protocol.messages import JsonObject

MAX_NOTIFICATIONS = 50
INERT_SECONDS = 1.0

Page = Literal["apps", "calls", "consent", "conversation", "help", "logs", "parked", "questions", "session", "sessions", "surface", "why"]


@dataclass(slots=True)
class ConsoleState:
    """Everything that is drawn."""

    mirror: Mirror = field(default_factory=Mirror)
    phase: Phase = "connecting"
    restarts: int = 0
    view_id: str = ""
    line: InputLine = field(default_factory=InputLine)
    page: Page = "conversation"
    scroll: int = 0  # lines up from the newest
    notice: str = ""  # one line above the input, until the next line is entered
    notifications: list[tuple[int, Notification]] = field(default_factory=list)  # each after the message of that number; this run's only
    leaving: Exit | None = None
    # --- time, stamped by the owner
    ticks: float = 0.0  # seconds of a clock that only goes on
    wall: float = 0.0  # seconds since the epoch
    # --- what is asked of the person
    form: Form | None = None
    awaited_question: str = ""  # interaction_id: to be opened once the mirror has it
    kept_line: InputLine = field(default_factory=InputLine)  # what was being typed when the form was opened
    consent_drawn: tuple[str, float] | None = None  # the request that is drawn, and since when
    # --- read by request
    log_text: str = ""
    parked: list[JsonObject] = field(default_factory=list)
    sessions: list[JsonObject] = field(default_factory=list)
    shown_session: JsonObject = field(default_factory=dict)  # the value of sessions.show
    explained: JsonObject = field(default_factory=dict)  # the value of explain
    shown_surface: str = ""  # app_scope


def notify(state: ConsoleState, text: str) -> None:
    """Show one line above the input."""
    state.notice = text


def show(state: ConsoleState, page: Page) -> None:
    """Turn to a page."""
    state.page, state.scroll = page, 0


def show_notification(state: ConsoleState, notification: Notification) -> None:
    """Put a notification of an App into the conversation, below what was said so far."""
    newest = max(state.mirror.messages, default=0)
    state.notifications = [*state.notifications, (newest, notification)][-MAX_NOTIFICATIONS:]


def begin_answer(state: ConsoleState, question: JsonObject) -> None:
    """Open a question; the line that was being typed comes back when it closes."""
    state.form, state.kept_line = open_form(question), state.line
    state.line = insert(InputLine(), text_of(state.form))


def close_form(state: ConsoleState) -> None:
    """Give the input line back to what was being typed."""
    state.form = None
    state.line, state.kept_line = state.kept_line, InputLine()


def drawn_consent(state: ConsoleState) -> JsonObject | None:
    """The consent question that is drawn: the oldest."""
    waiting = state.mirror.waiting_consents()
    return waiting[0] if waiting else None


def may_answer(state: ConsoleState, request_id: str) -> bool:
    """True once this consent question has been drawn long enough to be read (rule 3)."""
    if state.consent_drawn is None:
        return False
    drawn_id, since = state.consent_drawn
    return drawn_id == request_id and state.ticks - since >= INERT_SECONDS


def counts_down(state: ConsoleState) -> bool:
    """True while something drawn changes with the time alone."""
    return any("expires_at" in one for one in state.mirror.waiting_questions())


def follow(state: ConsoleState) -> None:
    """Bring what is asked of the person in line with the mirror; to be called after every change of it."""
    consent = drawn_consent(state)
    if consent is None:
        state.consent_drawn = None
    elif state.consent_drawn is None or state.consent_drawn[0] != consent["request_id"]:
        state.consent_drawn = (str(consent["request_id"]), state.ticks)
    if state.form is not None:
        _follow_form(state, state.form)
    _open_awaited(state)


def _open_awaited(state: ConsoleState) -> None:
    awaited = state.mirror.interactions.get(state.awaited_question)
    if awaited is None:
        return
    state.awaited_question = ""
    if state.form is None and awaited["status"] in WAITING_STATUSES:
        begin_answer(state, awaited)


def _follow_form(state: ConsoleState, form: Form) -> None:
    now = state.mirror.interactions.get(form.interaction["interaction_id"])
    if now is not None and now["status"] in WAITING_STATUSES:
        state.form = replace(form, interaction=form.interaction | {"status": now["status"], "place": now["place"]})
        return
    close_form(state)
    notify(state, how_it_ended(now, state.view_id))


def how_it_ended(interaction: JsonObject | None, own_view_id: str) -> str:
    """One line about a question that waits no more."""
    if interaction is None:
        return "That question waits no more."
    number, status = interaction["number"], interaction["status"]
    outcome = (interaction.get("result") or {}).get("outcome", status)
    answered_by = interaction.get("answered_by")
    if answered_by and answered_by != own_view_id:
        return f"#{number} was answered by {one_line(str(answered_by), 60)}."
    return f"#{number} was answered." if outcome == "answered" else f"#{number} ended: {outcome}."
