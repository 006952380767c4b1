"""What a key does in the console. Pure: `messages = press(state, key)`; the owner asks them of the kernel, one after the other.

Rules:
1. Everything typed without a slash at its front is said to the Agent; `//` at the front says a line that begins with one slash.
2. While a form is open, a line is for its question; the line that was being typed comes back when it closes.
3. Leaving a form keeps what was typed as a draft of every view; nothing is sent by leaving.
"""

from __future__ import annotations

from hosts import console_form, console_line
from hosts.console_commands import answer_to, decline, run_command
from hosts.console_form import Form
from hosts.console_keys import Key, Named, Typed
from hosts.console_line import InputLine
from hosts.console_state import ConsoleState, close_form, notify, show
from hosts.output import Exit
from kernel.protocol.host import MessageSend
from kernel.protocol.host_interactions import DraftSave
from lineup_sdk.protocol.messages import Message

PAGE_LINES = 10


def press(state: ConsoleState, key: Key) -> list[Message]:
    """Apply one key and return what has to be asked of the kernel."""
    match key:
        case Typed(text=text):
            state.line = console_line.insert(state.line, text)
        case Named(name="newline"):
            state.line = console_line.insert(state.line, "\n")
        case Named(name="enter"):
            return _enter(state)
        case Named(name="ctrl-c"):
            state.leaving = Exit.INTERRUPTED
        case Named(name="ctrl-d"):
            return _end_or_delete(state)
        case Named(name="escape"):
            return _escape(state)
        case Named(name="page-up"):
            state.scroll += PAGE_LINES
        case Named(name="page-down"):
            state.scroll = max(state.scroll - PAGE_LINES, 0)
        case Named(name=name):
            state.line = console_line.edit(state.line, name)
    return []


def _end_or_delete(state: ConsoleState) -> list[Message]:
    if state.line.text:
        state.line = console_line.edit(state.line, "delete")
    elif state.form is not None:
        return _leave_form(state, state.form)
    else:
        state.leaving = Exit.OK
    return []


def _escape(state: ConsoleState) -> list[Message]:
    if state.form is not None:
        return _leave_form(state, state.form)
    show(state, "conversation")
    return []


def _enter(state: ConsoleState) -> list[Message]:
    if state.form is not None:
        return _enter_form(state, state.form)
    text, state.line = console_line.take(state.line)
    if not text.strip():
        return []
    notify(state, "")
    if text.startswith("/") and not text.startswith("//"):
        return run_command(state, text[1:].split())
    show(state, "conversation")
    return [MessageSend(text=text.removeprefix("/"))]


# --- while a form is open


def _enter_form(state: ConsoleState, form: Form) -> list[Message]:
    text = state.line.text
    if form.is_sent:
        return []  # it is on its way; what comes back says what to do
    notify(state, "")
    if text.startswith("/") and not text.startswith("//"):
        return _form_command(state, form, text[1:].split())
    taken = console_form.take_line(form, text.removeprefix("/"))
    if taken.answer is not None:
        state.form = console_form.sent(taken.form)
        return [answer_to(form.interaction, taken.answer)]
    ask_again(state, taken.form)
    return _save_draft(taken.form) if taken.form.values != form.values else []


def ask_again(state: ConsoleState, form: Form) -> None:
    """Ask the current field, with what it has so far in the line."""
    state.form = form
    state.line = console_line.insert(InputLine(), console_form.text_of(form))


def _form_command(state: ConsoleState, form: Form, words: list[str]) -> list[Message]:
    match words:
        case ["back"]:
            ask_again(state, console_form.back(form))
        case ["decline"]:
            messages = decline(state, form.interaction)
            state.form = console_form.sent(form) if messages else form
            return messages
        case _:
            notify(state, "While you answer there is /back, /decline and Esc; a line that begins with a slash begins with two.")
    return []


def _leave_form(state: ConsoleState, form: Form) -> list[Message]:
    if form.current is not None and not form.is_sent:
        form = console_form.take_line(form, state.line.text).form
    close_form(state)
    notify(state, f"#{form.interaction['number']} still waits: /answer {form.interaction['number']}")
    return _save_draft(form) if form.kind == "input" else []


def _save_draft(form: Form) -> list[Message]:
    return [DraftSave(interaction_id=str(form.interaction["interaction_id"]), draft=console_form.draft_of(form))]
