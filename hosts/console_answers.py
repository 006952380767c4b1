"""What the console makes of the kernel's answer to what it asked: a page, a form's next step, or a line. Pure."""

from __future__ import annotations

from hosts import console_form
from hosts.console_press import ask_again
from hosts.console_state import ConsoleState, close_form, follow, notify, show
from hosts.output import message_of
from hosts.visible import one_line
from kernel.protocol.host import AppClose, LogsRead
from kernel.protocol.host_capabilities import ConsentAnswer
from kernel.protocol.host_interactions import DraftSave, InteractionAnswer, InteractionMove, InteractionsList
from kernel.protocol.host_sessions import ModeRequest, SessionsContinue, SessionsList, SessionsShow
from kernel.protocol.host_upkeep import Explain, InboxDrop, InboxParked, InboxRetry
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject, Message

_DECISIONS = {
    "always": "Allowed always",
    "deny": "Refused",
    "never": "Refused always",
    "once": "Allowed once",
    "while_open": "Allowed while it is open",
}


def take_value(state: ConsoleState, asked: Message, value: JsonObject) -> None:
    """Take the value of an accepted request."""
    match asked:
        case LogsRead():
            state.log_text = str(value["text"])
            show(state, "logs")
        case Explain():
            state.explained = value
            show(state, "why")
        case SessionsShow():
            state.shown_session = value
            show(state, "session")
        case SessionsList():
            state.sessions = list(value["sessions"])
        case InboxParked():
            state.parked = list(value["rows"])
        case InteractionsList():
            state.mirror.learn_ended(value["interactions"])
        case InteractionAnswer():
            _close_answered(state, asked)
        case AppClose() if "asked" in value:
            state.awaited_question = str(value["asked"])
            follow(state)
        case _:
            if words := _words_of(asked, value):
                notify(state, words)


def _close_answered(state: ConsoleState, asked: InteractionAnswer) -> None:
    if state.form is not None and state.form.interaction["interaction_id"] == asked.interaction_id:
        close_form(state)
    notify(state, "Declined." if asked.answer.get("declined") else "Answered.")


def _words_of(asked: Message, value: JsonObject) -> str:
    match asked:
        case ConsentAnswer():
            return f"{_DECISIONS[asked.decision]}."
        case InteractionMove():
            return f"It is shown {value['place']} now."
        case InboxRetry():
            return f"Message {asked.number} is sent again."
        case InboxDrop():
            return f"Message {asked.number} is dropped."
        case ModeRequest():
            return f"The conversation is in mode {asked.mode}."
        case SessionsContinue():
            return "It goes on in a new session."
        case _:
            return ""


def take_refusal(state: ConsoleState, asked: Message, code: str, detail: JsonObject) -> None:
    """Take a refusal: ask again where that helps, else say it."""
    match asked:
        case DraftSave():
            return  # the question ended meanwhile; its draft is gone with it
        case InteractionAnswer() if state.form is not None and code == Code.ANSWER_INVALID:
            ask_again(state, console_form.refuse(state.form, code, detail))
        case _:
            if isinstance(asked, InteractionAnswer) and state.form is not None:
                close_form(state)
            notify(state, refusal_words(code, detail))


def refusal_words(code: str, detail: JsonObject) -> str:
    """A refusal in one line: what the code means, where, and what helps."""
    words = [message_of(code)]
    if expected := detail.get("expected"):
        words.append(f"expected {expected}" + (f" at {detail['pointer']}" if detail.get("pointer") else ""))
    if hint := detail.get("hint"):
        words.append(str(hint))
    return one_line(f"Refused ({code}): " + "; ".join(words) + ".", 300)


def take_loss(state: ConsoleState, asked: Message) -> None:
    """The kernel went away before it answered."""
    if isinstance(asked, InteractionAnswer) and state.form is not None:
        ask_again(state, console_form.refuse(state.form, "the kernel went away; send it again", {}))
    elif not isinstance(asked, InboxParked | InteractionsList | SessionsList | DraftSave):
        notify(state, "The kernel went away before it answered; see whether it was done.")
