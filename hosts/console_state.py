"""What the console shows and what a key makes of it. Pure: no terminal, no kernel, no clock.

Use: `actions = press(state, key)`; the owner carries the actions out and tells the outcome with `notify`.
Rules:
1. The mirror is the only source about the kernel; a key never changes it.
2. Everything typed without a slash at its front is said to the Agent; `//` at the front says a line that begins with one slash.
3. An app with open calls is closed only after the person said yes to the question that names them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from hosts import console_line
from hosts.console_keys import Key, Named, Typed
from hosts.console_line import InputLine
from hosts.mirror import Mirror
from hosts.output import Exit
from hosts.providers import Notification
from hosts.view import Phase
from lineup_sdk.protocol.messages import JsonObject

MAX_NOTICES = 50


@dataclass(frozen=True, slots=True)
class Say:
    """Send the person's text to the Agent."""

    text: str


@dataclass(frozen=True, slots=True)
class CancelCall:
    """Cancel a call."""

    call_id: str


@dataclass(frozen=True, slots=True)
class CloseApp:
    """Close an instance; cancel_calls once the person has agreed."""

    instance_id: str
    cancel_calls: bool


@dataclass(frozen=True, slots=True)
class RaiseApp:
    """Bring an instance to the front; `chat` is the conversation."""

    instance_id: str


@dataclass(frozen=True, slots=True)
class ReadLogs:
    """Show what an app wrote."""

    instance_id: str


Action = Say | CancelCall | CloseApp | RaiseApp | ReadLogs

Page = Literal["conversation", "help", "calls", "apps", "logs"]


@dataclass(frozen=True, slots=True)
class Question:
    """Asks before an app with open calls is closed."""

    instance_id: str
    text: str


@dataclass(slots=True)
class ConsoleState:
    """Everything that is drawn."""

    mirror: Mirror = field(default_factory=Mirror)
    phase: Phase = "connecting"
    restarts: int = 0
    line: InputLine = field(default_factory=InputLine)
    page: Page = "conversation"
    scroll: int = 0  # lines up from the newest
    log_text: str = ""
    notices: list[str] = field(default_factory=list)
    notifications: list[tuple[int, Notification]] = field(default_factory=list)  # each after the message of that number; this run's only
    question: Question | None = None
    leaving: Exit | None = None


def notify(state: ConsoleState, text: str) -> None:
    """Show one line above the input."""
    state.notices = [*state.notices, text][-MAX_NOTICES:]


def show_notification(state: ConsoleState, notification: Notification) -> None:
    """Put a notification of an App into the conversation, below what was said so far."""
    newest = max(state.mirror.messages, default=0)
    state.notifications = [*state.notifications, (newest, notification)][-MAX_NOTICES:]


def ask_to_close(state: ConsoleState, instance_id: str) -> None:
    """Ask whether an app may be closed although it has open calls."""
    instance = state.mirror.instances.get(instance_id, {})
    count = instance.get("open_calls", 0)
    title = instance.get("title", instance_id)
    state.question = Question(instance_id, f"{title} has {count} open call(s). Cancel them and close it? y/n")


def press(state: ConsoleState, key: Key) -> list[Action]:
    """Apply one key and return what has to be done outside."""
    if state.question is not None and not _leaves(key):
        return _answer(state, state.question, key)
    match key:
        case Typed(text=text):
            state.line = console_line.insert(state.line, text)
        case Named(name="enter"):
            return _enter(state)
        case Named(name="ctrl-c"):
            state.leaving = Exit.INTERRUPTED
        case Named(name="ctrl-d"):
            _end_or_delete(state)
        case Named(name="escape"):
            _show(state, "conversation")
        case Named(name="page-up"):
            state.scroll += 10
        case Named(name="page-down"):
            state.scroll = max(state.scroll - 10, 0)
        case Named(name=name):
            state.line = console_line.edit(state.line, name)
    return []


def _leaves(key: Key) -> bool:
    return isinstance(key, Named) and key.name in ("ctrl-c", "ctrl-d")


def _end_or_delete(state: ConsoleState) -> None:
    if state.line.text and state.question is None:
        state.line = console_line.edit(state.line, "delete")
    else:
        state.leaving = Exit.OK


def _answer(state: ConsoleState, question: Question, key: Key) -> list[Action]:
    if isinstance(key, Typed) and key.text.lower() == "y":
        state.question = None
        return [CloseApp(question.instance_id, cancel_calls=True)]
    if key in (Typed("n"), Typed("N"), Named("escape"), Named("enter")):
        state.question = None
        notify(state, "Left open.")
    return []


def _enter(state: ConsoleState) -> list[Action]:
    text, state.line = console_line.take(state.line)
    if not text.strip():
        return []
    if text.startswith("/") and not text.startswith("//"):
        return _command(state, text[1:].split())
    _show(state, "conversation")
    return [Say(text.removeprefix("/"))]


def _command(state: ConsoleState, words: list[str]) -> list[Action]:
    command = _COMMANDS.get(words[0]) if words else None
    if command is None:
        notify(state, "There is no such command; /help lists them.")
        return []
    return command(state, words[1:])


def _show(state: ConsoleState, page: Page) -> list[Action]:
    state.page, state.scroll = page, 0
    return []


def _quit(state: ConsoleState, _: list[str]) -> list[Action]:
    state.leaving = Exit.OK
    return []


def _cancel(state: ConsoleState, words: list[str]) -> list[Action]:
    call = _pick(state, words, state.mirror.open_calls(), ("number", "call_id"), "an open call: /cancel NUMBER")
    return [] if call is None else [CancelCall(str(call["call_id"]))]


def _close(state: ConsoleState, words: list[str]) -> list[Action]:
    instance = _pick_app(state, words, "/close APP")
    if instance is None:
        return []
    if instance["open_calls"]:
        ask_to_close(state, str(instance["instance_id"]))
        return []
    return [CloseApp(str(instance["instance_id"]), cancel_calls=False)]


def _front(state: ConsoleState, words: list[str]) -> list[Action]:
    if words == ["chat"]:
        return [RaiseApp("chat")]
    instance = _pick_app(state, words, "/front APP, or /front chat")
    return [] if instance is None else [RaiseApp(str(instance["instance_id"]))]


def _logs(state: ConsoleState, words: list[str]) -> list[Action]:
    instance = _pick(state, words, list(state.mirror.instances.values()), ("app_scope", "instance_id"), "an app: /logs APP")
    return [] if instance is None else [ReadLogs(str(instance["instance_id"]))]


def _pick_app(state: ConsoleState, words: list[str], how: str) -> JsonObject | None:
    return _pick(state, words, state.mirror.live_instances(), ("app_scope", "instance_id"), f"a running app: {how}")


def _pick(state: ConsoleState, words: list[str], among: list[JsonObject], names: tuple[str, ...], wanted: str) -> JsonObject | None:
    """Find the one thing a word names: exactly, else by the start of it. Says so when there is none or more than one."""
    if len(words) != 1:
        notify(state, f"Name {wanted}")
        return None
    word = words[0].removeprefix("#")
    exact = [thing for thing in among if any(str(thing[name]) == word for name in names)]
    found = exact or [thing for thing in among if any(str(thing[name]).startswith(word) for name in names)]
    if len(found) == 1:
        return found[0]
    notify(state, f"That names {len(found)}, not {wanted}")
    return None


Command = Callable[[ConsoleState, list[str]], list[Action]]

_COMMANDS: dict[str, Command] = {
    "apps": lambda state, _: _show(state, "apps"),
    "calls": lambda state, _: _show(state, "calls"),
    "cancel": _cancel,
    "chat": lambda state, _: _show(state, "conversation"),
    "close": _close,
    "front": _front,
    "help": lambda state, _: _show(state, "help"),
    "logs": _logs,
    "quit": _quit,
}

HELP = (
    ("text", "say it to the Agent"),
    ("//text", "say a line that begins with a slash"),
    ("/calls", "all calls of the window, newest first"),
    ("/cancel NUMBER", "cancel an open call"),
    ("/apps", "apps and their instances"),
    ("/front APP", "bring an app to the front; /front chat goes back"),
    ("/close APP", "close an app; asks first if it has open calls"),
    ("/logs APP", "what an app wrote to its log"),
    ("/chat, Esc", "back to the conversation"),
    ("PageUp, PageDown", "scroll"),
    ("/quit, Ctrl-D, Ctrl-C", "leave; the kernel and its calls go on"),
)
