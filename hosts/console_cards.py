"""What stands in the conversation or asks for the person: messages, cards, tasks, questions, consent, surfaces. Pure.

Rules:
1. A label (who speaks, which App asks) is ours, from the kernel, and stands before the words of others, which stand behind a bar.
2. A consent question names the App as the kernel knows it; nothing an App wrote stands on the line with that name (SPEC 10).
3. A card says what became of it; a card this host knows nothing more of says only that.
"""

from __future__ import annotations

from rich.text import Text

from hosts.console_form import Form, can_decline
from hosts.console_state import ConsoleState, how_it_ended
from hosts.console_text import at_most, cut, quoted, time_left, title, wrap
from hosts.mirror import WAITING_STATUSES
from hosts.providers import Notification
from hosts.strict_json import write_json
from hosts.visible import one_line
from kernel.protocol.agent import INTERACTION_ANSWER, INTERACTION_CARD, MESSAGE_TEXT
from lineup_sdk.protocol.messages import JsonObject

BAR_CELLS = 10
_LOW_ROOM = 6  # lines: below that the heading gives way to the name of the App

_AUTHORS = {"agent": ("Agent", "bold cyan"), "demo": ("Demo Agent", "bold magenta"), "person": ("You", "bold green")}
_SENT = {"pending": "…", "acknowledged": "✓", "refused": "✗"}
_ASKERS = {"agent_tool": "The Agent asks", "runtime_policy": "LineUp asks"}


def message_lines(state: ConsoleState, message: JsonObject, width: int) -> list[Text]:
    """One entry of the timeline."""
    head = _message_head(message)
    if message["type"] == INTERACTION_CARD:
        return _card(state, message, head, width)
    task = message.get("task")
    if task is not None:
        return _task(message, task, head, width)
    return [cut(head, width), *_indented(wrap(str(message["text"]), width - 2))]


def _message_head(message: JsonObject) -> Text:
    name, style = _AUTHORS.get(message["author"], ("?", "bold red"))
    head = Text(name, style=style)
    if message["type"] == INTERACTION_ANSWER:
        head.append(" answered", style="dim")
    elif message["direction"] == "out":
        head.append(f" {_SENT.get(message['state'], '?')}", style="dim")
        if message["state"] == "refused":
            head.append(f" refused: {one_line(str(message.get('code', 'unknown')), 40)}", style="red")
    elif message["type"] not in (MESSAGE_TEXT, INTERACTION_CARD) and "task" not in message:
        head.append(f"  ({one_line(str(message['type']), 40)})", style="dim")
    return head


def _indented(lines: list[Text]) -> list[Text]:
    return [Text("  ").append_text(line) for line in lines]


def summary_line(text: str, width: int) -> Text:
    """What calls did before the Agent's text."""
    return cut(Text(f"· {one_line(text, 120)}", style="dim"), width)


def notification_lines(notification: Notification, width: int) -> list[Text]:
    """A notification of an App, shown by this host."""
    head = Text("Notification ", style="bold blue").append(f"of {notification.app_title} ({notification.app_scope})", style="dim")
    return [cut(head, width), *_indented(wrap(notification.text, width - 2))]


def _task(message: JsonObject, task: JsonObject, head: Text, width: int) -> list[Text]:
    line = Text(f"{one_line(str(task['title']), 60)} ").append(one_line(str(task["state"]), 20), style="cyan")
    if message.get("folded"):
        return [cut(Text("  earlier: ", style="dim").append_text(line), width)]
    progress = task.get("progress")
    if isinstance(progress, int | float):
        line.append("  ").append_text(progress_bar({"percent": progress}))
    return [cut(head.append("  task", style="dim"), width), cut(Text("  ").append_text(line), width)]


def progress_bar(progress: JsonObject) -> Text:
    """Return a bar with percent and message; without a percent only the message."""
    percent = progress.get("percent")
    line = Text()
    if isinstance(percent, int | float):
        full = int(min(max(percent, 0), 100) * BAR_CELLS / 100)
        line.append("█" * full, style="green").append("░" * (BAR_CELLS - full), style="dim").append(f" {percent:.0f} % ")
    return line.append(one_line(str(progress.get("message") or ""), 80))


# --- questions


def _card(state: ConsoleState, message: JsonObject, head: Text, width: int) -> list[Text]:
    known = state.mirror.interactions.get(str(message.get("interaction_id")))
    if known is None:
        return [cut(head.append(" asked (ended)", style="dim"), width), *quoted(str(message["text"]), width)]
    if known["kind"] == "notice":
        return [cut(head.append(" has a notice", style="dim"), width), *_asked(known, width)]
    if known["place"] == "modal" and known["status"] in WAITING_STATUSES and state.mirror.front() is not None:
        return [question_line(state, known, width)]  # it is drawn whole above the App
    return question_lines(state, known, width)


def question_lines(state: ConsoleState, question: JsonObject, width: int) -> list[Text]:
    """A card: who asks what, the choices with their numbers and how to answer, or, once it ended, what became of it."""
    head = _question_head(state, question, width)
    if question["status"] not in WAITING_STATUSES:
        ended = cut(Text(f"  {how_it_ended(question, state.view_id)}", style="dim"), width)
        return [head, *quoted(str(question["request"]["title"]), width, "bold"), ended]
    lines = [head, *_asked(question, width), *_offered(question, width)]
    decline = f" · /decline {question['number']}" if can_decline(question) else ""
    return [*lines, cut(Text(f"  /answer {question['number']}{decline}", style="yellow"), width)]


def question_line(state: ConsoleState, question: JsonObject, width: int) -> Text:
    """One line of a waiting question."""
    line = Text(f"? #{question['number']} ", style="bold yellow")
    line.append(f"{asker(state, question)}: ", style="dim").append(one_line(str(question["request"]["title"]), 60))
    return cut(line.append(f"  {_left(state, question)}/answer {question['number']}", style="dim"), width)


def asker(state: ConsoleState, question: JsonObject) -> str:
    """Who asks, by the kernel's word."""
    scope = str(question["owner_app_scope"])
    return _ASKERS.get(question["source"]) or f"{one_line(state.mirror.title_of(scope), 40)} ({one_line(scope, 40)}) asks"


def _left(state: ConsoleState, question: JsonObject) -> str:
    is_waiting = question["status"] in WAITING_STATUSES
    return f"{time_left(str(question['expires_at']), state.wall)} · " if is_waiting and "expires_at" in question else ""


def _question_head(state: ConsoleState, question: JsonObject, width: int) -> Text:
    head = Text(asker(state, question), style="bold yellow")
    return cut(head.append(f"  #{question['number']} {question['kind']} · {_left(state, question)}".rstrip(" ·"), style="dim"), width)


def _asked(question: JsonObject, width: int) -> list[Text]:
    request = question["request"]
    return [*quoted(str(request["title"]), width, "bold"), *quoted(str(request.get("prompt", request.get("message", ""))), width)]


def _offered(question: JsonObject, width: int) -> list[Text]:
    request = question["request"]
    match question["kind"]:
        case "choice":
            return [line for number, action in enumerate(request["actions"], 1) for line in _action(number, action, width)]
        case "confirm":
            yes, no = request.get("approve_label", "Yes"), request.get("cancel_label", "No")
            return [*_option("y", yes, width), *_option("n", no, width)]
        case "input":
            return [_field(item, width) for item in request["fields"]]
        case _:
            return []


def _action(number: int, action: JsonObject, width: int) -> list[Text]:
    described = f": {action['description']}" if action.get("description") else ""
    return _option(str(number), f"{action['label']}{described}", width)


def _option(key: str, label: str, width: int) -> list[Text]:
    first, *rest = wrap(label, width - 5)
    return [Text(f"{key:>3}  ", style="bold").append_text(first), *(Text("     ").append_text(line) for line in rest)]


def _field(item: JsonObject, width: int) -> Text:
    line = Text("   • ").append(one_line(str(item["label"]), 100))
    return cut(line.append(f"  {field_rules(item)}", style="dim"), width)


def field_rules(item: JsonObject) -> str:
    """What a field takes, in a few words."""
    words = [str(item["type"]).replace("textarea", "text of any lines"), "required" if item.get("required") else "may be left empty"]
    low, high = ("minimum", "maximum") if item["type"] == "number" else ("min_length", "max_length")
    unit = "" if item["type"] == "number" else " characters"
    if low in item or high in item:
        words.append(f"{item.get(low, '')}…{item.get(high, '')}{unit}")
    return ", ".join(words)


def form_lines(state: ConsoleState, form: Form, width: int) -> list[Text]:
    """The question being answered, what was typed so far, and what is asked now."""
    question, current = form.interaction, form.current
    head = title(f"answering #{question['number']}", width, "yellow")
    lines = [head, _question_head(state, question, width), *_asked(question, width)]
    if form.kind == "input":
        lines += [line for item in form.fields for line in _typed(item, form, current is item, width)]
    else:
        lines += _offered(question, width)
    if form.error:
        lines += wrap(form.error, width, "bold red")
    return [*lines, cut(Text(_form_help(form), style="dim"), width)]


def _typed(item: JsonObject, form: Form, is_current: bool, width: int) -> list[Text]:
    mark = "▸" if is_current else "•"
    line = Text(f" {mark} {one_line(str(item['label']), 60)}", style="bold" if is_current else "")
    if is_current:
        hint = f"  e.g. {one_line(str(item['placeholder']), 60)}" if item.get("placeholder") else ""
        return [cut(line.append(f"  {field_rules(item)}{hint}", style="dim"), width)]
    value = form.values.get(item["id"])
    line.append(": ", style="dim")
    return [cut(line.append("–", style="dim") if value is None else line.append(one_line(value, 200)), width)]


def _form_help(form: Form) -> str:
    if form.is_sent:
        return "sent; waiting for the kernel"
    words = ["Esc leaves it for later"]
    if can_decline(form.interaction):
        words.insert(0, "/decline")
    if form.kind == "input":
        words.insert(0, "/back")
        words.insert(0, "Enter sends it" if form.current is None else "Enter goes on; Ctrl-J: new line")
    return " · ".join(words)


# --- consent


def consent_lines(consent: JsonObject, waiting: int, width: int) -> list[Text]:
    """A question of an App for a capability, drawn by the host alone."""
    more = f" (1 of {waiting})" if waiting > 1 else ""
    app = f"{one_line(str(consent['app_title']), 60)} ({one_line(str(consent['app_scope']), 60)})"
    lines = [title(f"Your consent is asked for{more}", width, "bold magenta"), *wrap(f"App: {app}", width, "bold")]
    lines += wrap(f"wants to: {consent['title']} [{consent['capability']}]", width)
    lines += [Text("says why:", style="dim"), *quoted(str(consent["reason"]), width)]
    for name, value in consent.get("arguments", {}).items():
        lines += [Text(f"{one_line(str(name), 40)}:", style="dim"), *quoted(value if isinstance(value, str) else write_json(value), width)]
    return lines


def consent_answers(consent: JsonObject, width: int) -> list[Text]:
    """How it can be answered."""
    words = {"once": "/allow", "while_open": "/allow open", "always": "/allow always"}
    offered = [words[scope] for scope in consent["scopes"] if scope in words]
    return [cut(Text(" · ".join([*offered, "/deny", "/deny always"]), style="bold magenta"), width)]


def consent_panel(consent: JsonObject, waiting: int, width: int, room: int) -> list[Text]:
    """The question in a limited room; what does not fit is on its own page, and the answers always stand."""
    answers = consent_answers(consent, width)
    lines = consent_lines(consent, waiting, width)
    lines = at_most(lines if room > _LOW_ROOM else lines[1:], max(room - len(answers), 0), "… /consent shows all of it")
    return [*lines, *answers][:room]


# --- surfaces


def surface_lines(surface: JsonObject, width: int) -> list[Text]:
    """What an App shows, as text."""
    scope = str(surface["app_scope"])
    head = title(f"{one_line(str(surface['title']), 40)} ({one_line(scope, 40)}) shows", width)
    text = str(surface["text"])
    return [head, *(quoted(text, width) if text else [Text("  (nothing yet)", style="dim")])]
