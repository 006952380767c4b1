"""The slash commands of the console: a line to the messages for the kernel it means. Pure.

Rules:
1. A command names one thing, exactly or by the start of its name; it does nothing, and says so, when it names none or more.
2. What is asked of the person is answered by a command, never by a single key that could have been meant for something else.
"""

from __future__ import annotations

from collections.abc import Callable

from hosts.console_form import can_decline
from hosts.console_state import ConsoleState, Page, begin_answer, drawn_consent, may_answer, notify, show
from hosts.mirror import CHAT
from hosts.output import Exit
from kernel.protocol.host import AppClose, CallCancel, FocusRaise, LogsRead
from kernel.protocol.host_capabilities import ConsentAnswer
from kernel.protocol.host_interactions import InteractionAnswer, InteractionMove
from kernel.protocol.host_sessions import AppOpen, AppStartEmpty, ModeRequest, SessionsContinue, SessionsList, SessionsShow
from kernel.protocol.host_upkeep import Explain, InboxDrop, InboxParked, InboxRetry
from lineup_sdk.protocol.messages import JsonObject, Message

Command = Callable[[ConsoleState, list[str]], list[Message]]

_ALLOWS = {"": "once", "always": "always", "once": "once", "open": "while_open"}
_DENIES = {"": "deny", "always": "never"}
_MODES = ("im", "audio", "video")


def run_command(state: ConsoleState, words: list[str]) -> list[Message]:
    """Do what a line after its slash says; return what has to be asked of the kernel."""
    command = _COMMANDS.get(words[0]) if words else None
    if command is None:
        notify(state, "There is no such command; /help lists them.")
        return []
    return command(state, words[1:])


def _shows(page: Page, *messages: Message) -> Command:
    def turn(state: ConsoleState, _: list[str]) -> list[Message]:
        show(state, page)
        return list(messages)

    return turn


def _quit(state: ConsoleState, _: list[str]) -> list[Message]:
    state.leaving = Exit.OK
    return []


# --- calls and apps


def _cancel(state: ConsoleState, words: list[str]) -> list[Message]:
    call = _pick(state, words, state.mirror.open_calls(), ("number", "call_id"), "an open call: /cancel NUMBER")
    return [] if call is None else [CallCancel(call_id=str(call["call_id"]))]


def _close(state: ConsoleState, words: list[str]) -> list[Message]:
    instance = _pick_running(state, words, "/close APP")
    return [] if instance is None else [AppClose(instance_id=str(instance["instance_id"]))]


def _front(state: ConsoleState, words: list[str]) -> list[Message]:
    if words == [CHAT]:
        return [FocusRaise(instance_id=CHAT)]
    instance = _pick_running(state, words, "/front APP, or /front chat")
    return [] if instance is None else [FocusRaise(instance_id=str(instance["instance_id"]))]


def _open(state: ConsoleState, words: list[str]) -> list[Message]:
    app = _pick(state, words, state.mirror.apps, ("app_scope",), "an app: /open APP")
    return [] if app is None else [AppOpen(app_scope=str(app["app_scope"]))]


def _empty(state: ConsoleState, words: list[str]) -> list[Message]:
    app = _pick(state, words, state.mirror.apps, ("app_scope",), "an app: /empty APP")
    return [] if app is None else [AppStartEmpty(app_scope=str(app["app_scope"]))]


def _mode(state: ConsoleState, words: list[str]) -> list[Message]:
    if len(words) == 1 and words[0] in _MODES:
        return [ModeRequest(mode=words[0])]
    notify(state, "Name a mode: /mode im, /mode audio, /mode video")
    return []


def _surface(state: ConsoleState, words: list[str]) -> list[Message]:
    front = state.mirror.front()
    named = words or ([str(front["app_scope"])] if front else [])
    surface = _pick(state, named, list(state.mirror.surfaces.values()), ("app_scope",), "an app that shows something: /surface APP")
    if surface is not None:
        state.shown_surface = str(surface["app_scope"])
        show(state, "surface")
    return []


def _logs(state: ConsoleState, words: list[str]) -> list[Message]:
    instance = _pick(state, words, _known_instances(state), ("app_scope", "instance_id"), "an app: /logs APP")
    return [] if instance is None else [LogsRead(instance_id=str(instance["instance_id"]))]


def _why(state: ConsoleState, words: list[str]) -> list[Message]:
    if len(words) != 1:
        notify(state, "Name a call, a question or an app: /why NUMBER, /why APP")
        return []
    word = words[0].removeprefix("#")
    named = [str(instance["instance_id"]) for instance in _known_instances(state) if instance["app_scope"] == word]
    named += [ident for ident, question in state.mirror.interactions.items() if str(question["number"]) == word]
    return [Explain(what=named[0] if named else word)]


def _known_instances(state: ConsoleState) -> list[JsonObject]:
    """One instance an App, the newest: those of the mirror, else the last one of a session, which may have failed long ago."""
    found: dict[str, JsonObject] = {}
    for session in state.sessions:  # newest first
        if "newest_instance_id" in session:
            known = {"app_scope": session["app_scope"], "instance_id": session["newest_instance_id"]}
            found.setdefault(str(session["app_scope"]), known)
    for instance in state.mirror.instances.values():  # oldest first
        found[str(instance["app_scope"])] = instance
    return list(found.values())


# --- questions of Agent and apps


def _answer(state: ConsoleState, words: list[str]) -> list[Message]:
    question = _pick_question(state, words, "/answer NUMBER")
    if question is not None:
        begin_answer(state, question)
    return []


def _decline(state: ConsoleState, words: list[str]) -> list[Message]:
    question = _pick_question(state, words, "/decline NUMBER")
    return [] if question is None else decline(state, question)


def decline(state: ConsoleState, question: JsonObject) -> list[Message]:
    """Answer that the person does not want to answer."""
    if not can_decline(question):
        notify(state, "That one is answered with yes or no.")
        return []
    return [answer_to(question, {"declined": True})]


def answer_to(question: JsonObject, answer: JsonObject) -> InteractionAnswer:
    """The message that answers what was shown."""
    shown = str(question["shown_digest"])
    return InteractionAnswer(interaction_id=str(question["interaction_id"]), answer=answer, shown_digest=shown)


def _move(state: ConsoleState, words: list[str]) -> list[Message]:
    if words[-1:] not in (["inline"], ["modal"]):
        notify(state, "Say where: /move NUMBER inline, /move NUMBER modal")
        return []
    question = _pick_question(state, words[:-1], "/move NUMBER inline")
    return [] if question is None else [InteractionMove(interaction_id=str(question["interaction_id"]), place=words[-1])]


def _pick_question(state: ConsoleState, words: list[str], how: str) -> JsonObject | None:
    waiting = state.mirror.waiting_questions()
    if not words and len(waiting) == 1:
        return waiting[0]
    if not waiting:
        notify(state, "No question waits.")
        return None
    return _pick(state, words, waiting, ("number", "interaction_id"), f"a question that waits: {how}")


def _allow(state: ConsoleState, words: list[str]) -> list[Message]:
    return _consent(state, words, _ALLOWS, "/allow, /allow open, /allow always")


def _deny(state: ConsoleState, words: list[str]) -> list[Message]:
    return _consent(state, words, _DENIES, "/deny, /deny always")


def _consent(state: ConsoleState, words: list[str], decisions: dict[str, str], how: str) -> list[Message]:
    consent, decision = drawn_consent(state), decisions.get(" ".join(words))
    if consent is None:
        notify(state, "No app asks for anything.")
    elif decision is None or (decision in _ALLOWS.values() and decision not in consent["scopes"]):
        notify(state, f"Say {how}")
    elif not may_answer(state, str(consent["request_id"])):
        notify(state, "It has only just appeared: read it, then answer.")
    else:
        return [ConsentAnswer(request_id=str(consent["request_id"]), decision=decision, shown=str(consent["shown"]))]
    return []


# --- sessions and parked messages


def _session(state: ConsoleState, words: list[str]) -> list[Message]:
    session = _pick_session(state, words, "/session NUMBER")
    return [] if session is None else [SessionsShow(app_session_id=str(session["app_session_id"]))]


def _continue(state: ConsoleState, words: list[str]) -> list[Message]:
    session = _pick_session(state, words, "/continue NUMBER")
    return [] if session is None else [SessionsContinue(app_session_id=str(session["app_session_id"]))]


def _pick_session(state: ConsoleState, words: list[str], how: str) -> JsonObject | None:
    return _pick(state, words, state.sessions, ("number", "app_session_id"), f"a session of /sessions: {how}")


def _retry(state: ConsoleState, words: list[str]) -> list[Message]:
    row = _pick(state, words, state.parked, ("number",), "a message of /parked: /retry NUMBER")
    return [] if row is None else [InboxRetry(number=int(row["number"])), InboxParked()]


def _drop(state: ConsoleState, words: list[str]) -> list[Message]:
    row = _pick(state, words, state.parked, ("number",), "a message of /parked: /drop NUMBER")
    return [] if row is None else [InboxDrop(number=int(row["number"])), InboxParked()]


# --- finding what a word names


def _pick_running(state: ConsoleState, words: list[str], how: str) -> JsonObject | None:
    return _pick(state, words, state.mirror.live_instances(), ("app_scope", "instance_id"), f"a running app: {how}")


def _pick(state: ConsoleState, words: list[str], among: list[JsonObject], names: tuple[str, ...], wanted: str) -> JsonObject | None:
    """Find the one thing a word names: exactly, else by the start of it. Says so when there is none or more than one."""
    if len(words) != 1:
        notify(state, f"Name {wanted}")
        return None
    word = words[0].removeprefix("#")
    exact = [thing for thing in among if any(str(thing[name]) == word for name in names)]
    found = exact or [thing for thing in among if any(str(thing[name]).startswith(word) for name in names if name != "number")]
    if len(found) == 1:
        return found[0]
    notify(state, f"That names {len(found)}, not {wanted}")
    return None


_COMMANDS: dict[str, Command] = {
    "allow": _allow,
    "answer": _answer,
    "apps": _shows("apps"),
    "calls": _shows("calls"),
    "cancel": _cancel,
    "chat": _shows("conversation"),
    "close": _close,
    "consent": _shows("consent"),
    "continue": _continue,
    "decline": _decline,
    "deny": _deny,
    "drop": _drop,
    "empty": _empty,
    "front": _front,
    "help": _shows("help"),
    "logs": _logs,
    "mode": _mode,
    "move": _move,
    "open": _open,
    "parked": _shows("parked", InboxParked()),
    "questions": _shows("questions"),
    "quit": _quit,
    "retry": _retry,
    "session": _session,
    "sessions": _shows("sessions", SessionsList()),
    "surface": _surface,
    "why": _why,
}

HELP = (
    ("text", "say it to the Agent; Ctrl-J begins a new line"),
    ("//text", "say a line that begins with a slash"),
    ("/answer [NUMBER]", "answer a question; in it: /back, /decline, Esc leaves it for later"),
    ("/decline [NUMBER]", "answer that you do not want to answer"),
    ("/questions", "every question that waits, whole"),
    ("/move NUMBER PLACE", "show a question inline, or modal: above the app"),
    ("/allow [open|always]", "let an app do what it asks: once, while it is open, always"),
    ("/deny [always]", "refuse it this time, or always"),
    ("/consent", "what an app asks for, whole"),
    ("/open APP", "open an app, or try again after it failed"),
    ("/empty APP", "start an app that failed with nothing remembered"),
    ("/front APP", "bring an app to the front; /front chat goes back"),
    ("/close APP", "close an app; LineUp asks first if it is at work"),
    ("/surface [APP]", "what an app shows, whole"),
    ("/apps, /calls", "apps and their instances; all calls of the window, newest first"),
    ("/cancel NUMBER", "cancel an open call"),
    ("/sessions", "what was done in apps: /session NUMBER reads, /continue NUMBER goes on"),
    ("/parked", "messages an app could not take: /retry NUMBER, /drop NUMBER"),
    ("/why WHAT", "why a call, a question or an app is as it is"),
    ("/logs APP", "what an app wrote to its log"),
    ("/mode MODE", "im, audio or video: how you talk with the Agent; only im is built"),
    ("/chat, Esc", "back to the conversation"),
    ("PageUp, PageDown", "scroll"),
    ("/quit, Ctrl-D, Ctrl-C", "leave; the kernel and its calls go on"),
)
