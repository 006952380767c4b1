"""The pages of the console: the conversation and everything a command shows. Pure: (state, width) -> lines of any number."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rich.text import Text

from hosts.console_cards import (
    consent_answers,
    consent_lines,
    message_lines,
    notification_lines,
    progress_bar,
    question_lines,
    summary_line,
    surface_lines,
)
from hosts.console_commands import HELP
from hosts.console_state import ConsoleState, Page, drawn_consent
from hosts.console_text import cut, quoted, title, wrap
from hosts.mirror import CHAT, ENDED_STATUSES, GONE_STATES
from hosts.visible import one_line
from lineup_sdk.protocol.messages import JsonObject

_STATUS_STYLES = {"completed": "green", "submitted": "green", "failed": "red", "expired": "red", "rejected": "red", "cancelled": "yellow"}
_WITHOUT_FRONT = frozenset({"background", "suspended"})


def page_lines(state: ConsoleState, width: int) -> list[Text]:
    """The page that is turned to."""
    return _PAGES[state.page](state, width)


def _or_none(lines: list[Text], words: str = "none") -> list[Text]:
    return lines or [Text(f"  {words}", style="dim")]


# --- the conversation


def conversation(state: ConsoleState, width: int) -> list[Text]:
    """What was said, asked and answered, oldest first."""
    summaries = {row["number"]: [summary_line(str(row["text"]), width)] for row in state.mirror.chat_state().get("summaries", ())}
    entries = [(m["number"], [*summaries.get(m["number"], []), *message_lines(state, m, width)]) for m in state.mirror.timeline()]
    entries += [(after, notification_lines(notification, width)) for after, notification in state.notifications]
    lines = [line for _, entry in sorted(entries, key=lambda entry: entry[0]) for line in entry]
    return lines or [Text("Nothing said yet. Type a line and press Enter.", style="dim")]


# --- calls and apps


def _calls(state: ConsoleState, width: int) -> list[Text]:
    lines = [title("Calls", width)]
    for _, call in sorted(state.mirror.calls.items(), reverse=True):
        lines.extend(call_lines(state, call, width) if call["status"] not in ENDED_STATUSES else [ended_line(call, width)])
        lines.append(cut(Text(f"    {one_line(str(call['call_id']), 60)} by {one_line(str(call['source']), 12)}", style="dim"), width))
    return lines if len(lines) > 1 else [*lines, Text("  none", style="dim")]


def call_lines(state: ConsoleState, call: JsonObject, width: int) -> list[Text]:
    """An open call, with its progress, and what it waits for when the person can help."""
    progress = call.get("progress") or {}
    head = Text(f"#{call['number']} {one_line(str(call['title'] or call['tool_id']), 40)} ")
    head.append("cancelling" if call.get("cancel", "none") != "none" else str(call["status"]).replace("_", " "), style="cyan")
    if call.get("attempts"):
        head.append(f" (attempt {call['attempts'] + 1})", style="dim")
    lines = [cut(Text("  ").append_text(head), width)]
    if progress:
        lines.append(cut(Text("    ").append_text(progress_bar(progress)), width))
    instance = state.mirror.instances.get(str(call.get("instance_id")), {})
    if call["status"] == "waiting_for_app" and instance.get("state") in _WITHOUT_FRONT:
        lines.append(cut(Text(f"    may wait to be in front: /front {one_line(str(call['app_scope']), 40)}", style="yellow"), width))
    return lines


def ended_line(call: JsonObject, width: int) -> Text:
    """A call that has its outcome."""
    status = str(call["status"])
    line = Text(f"  #{call['number']} {one_line(str(call['title'] or call['tool_id']), 40)} ")
    line.append(status, style=_STATUS_STYLES.get(status, ""))
    if call.get("error_code") and call["error_code"] != status:
        line.append(f" {one_line(str(call['error_code']), 40)}", style="dim")
    return cut(line, width)


def _apps(state: ConsoleState, width: int) -> list[Text]:
    lines = [title("Apps", width)]
    for app in state.mirror.apps:
        words = [one_line(str(app[name]), 40) for name in ("title", "app_scope", "version")]
        lines.append(cut(Text("  " + "  ".join(words) + _switched(app)), width))
        lines.extend(cut(Text(f"    {one_line(str(tool['tool_id']), 60)}{_switched(tool)}", style="dim"), width) for tool in app["tools"])
    lines.append(title("Instances", width))
    instances = [instance_line(state, instance, width) for instance in state.mirror.instances.values()]
    return [*lines, *_or_none(instances), *failed_lines(state, width)]


def _switched(entry: JsonObject) -> str:
    return "" if entry["enabled"] else "  (off)"


def instance_line(state: ConsoleState, instance: JsonObject, width: int) -> Text:
    """An instance, with a mark when it is in front."""
    front = state.mirror.front()
    is_front = front is not None and front["instance_id"] == instance["instance_id"]
    line = Text("▸ " if is_front else "  ").append(one_line(str(instance["title"]), 30), style="bold" if is_front else "")
    line.append(f"  {one_line(str(instance['state']), 20)}", style="red" if instance["state"] == "failed" else "dim")
    if instance["open_calls"]:
        line.append(f"  {instance['open_calls']} open")
    if instance.get("error"):
        line.append(f"  {one_line(str(instance['error']), 40)}", style="red")
    return cut(line, width)


def failed_lines(state: ConsoleState, width: int, *, has_room: bool = True) -> list[Text]:
    """Apps whose last instance failed and left its session open: why, and, where there is room, what the person can do."""
    alive = {instance["app_scope"] for instance in state.mirror.instances.values() if instance["state"] not in GONE_STATES}
    failed = [one for one in state.sessions if one["failed"] and one["state"] == "open" and one["app_scope"] not in alive]
    lines = _lost_chat_lines(state, width, has_room=has_room)
    for session in failed:
        scope = one_line(str(session["app_scope"]), 40)
        head = Text("✗ ", style="bold red").append(one_line(str(session["title"]), 30))
        lines.append(cut(head.append(f" failed: {one_line(str(session.get('error', 'unknown')), 40)}", style="red"), width))
        if has_room:
            lines += wrap(f"  /why {scope} · /logs {scope} · /open {scope} again · /empty {scope}", width, "yellow")
    return lines


def _lost_chat_lines(state: ConsoleState, width: int, *, has_room: bool) -> list[Text]:
    """The conversation's own App has no session that could say that it failed."""
    if not state.mirror.has_lost_chat():
        return []
    errors = [str(one["error"]) for one in state.mirror.instances.values() if one["app_scope"] == CHAT and one.get("error")]
    head = Text("✗ ", style="bold red").append(one_line(state.mirror.title_of(CHAT), 30))
    head.append(f" failed: {one_line(errors[-1], 40)}" if errors else " failed", style="red")
    helps = wrap("  /front chat starts it again", width, "yellow") if has_room else []
    return [cut(head, width), *helps]


# --- questions, consent, surfaces


def _questions(state: ConsoleState, width: int) -> list[Text]:
    lines = [title("Questions that wait", width)]
    waiting = [line for one in state.mirror.waiting_questions() for line in [*question_lines(state, one, width), Text()]]
    return [*lines, *_or_none(waiting)]


def _consent(state: ConsoleState, width: int) -> list[Text]:
    consent = drawn_consent(state)
    if consent is None:
        return [title("Consent", width), Text("  no app asks for anything", style="dim")]
    return [*consent_lines(consent, len(state.mirror.consents), width), *consent_answers(consent, width)]


def _surface(state: ConsoleState, width: int) -> list[Text]:
    surface = state.mirror.surface_of(state.shown_surface)
    return surface_lines(surface, width) if surface is not None else [Text("  it shows nothing any more", style="dim")]


# --- what was read by request


def _sessions(state: ConsoleState, width: int) -> list[Text]:
    lines = [title("App sessions, newest first", width)]
    return [*lines, *_or_none([_session_line(session, width) for session in state.sessions])]


def _session_line(session: JsonObject, width: int) -> Text:
    line = Text(f"  #{session['number']} {one_line(str(session['title']), 30)}  ")
    line.append("failed" if session["failed"] else str(session["state"]), style="red" if session["failed"] else "cyan")
    messages = session["messages"]
    line.append(f"  {messages} message{'s' if messages != 1 else ''}  {_minute(session['opened_at'])}", style="dim")
    if session["state"] == "closed":
        line.append(f"  /session {session['number']} · /continue {session['number']}", style="yellow")
    return cut(line, width)


def _minute(time_text: object) -> str:
    return str(time_text)[:16].replace("T", " ")


def _session(state: ConsoleState, width: int) -> list[Text]:
    session = state.shown_session.get("session", {})
    if not session:
        return [Text("  none", style="dim")]
    head = title(f"Session #{session['number']} of {one_line(str(session['title']), 30)}, {session['state']}, read only", width)
    said = [line for message in state.shown_session["messages"] for line in message_lines(state, message, width)]
    end = [Text(f"/continue {session['number']} goes on with it", style="yellow")] if session["state"] == "closed" else []
    more = [Text("(there is more before this)", style="dim")] if state.shown_session["more"] else []
    return [head, *more, *_or_none(said, "nothing was said while it was in front"), *end]


def _parked(state: ConsoleState, width: int) -> list[Text]:
    lines = [title("Messages an app could not take", width)]
    return [*lines, *_or_none([line for row in state.parked for line in _parked_lines(row, width)])]


def _parked_lines(row: JsonObject, width: int) -> list[Text]:
    scope, topic = one_line(str(row["app_scope"]), 40), one_line(str(row["topic"]), 60)
    tries = f"{row['delivery_count']} tries, {row['crash_count']} crashes, {row['size']} bytes, {_minute(row['created_at'])}"
    line = Text(f"  #{row['number']} {scope} {topic}  ").append(tries, style="dim")
    return [cut(line, width), Text(f"     /retry {row['number']} · /drop {row['number']}", style="yellow")]


def _why(state: ConsoleState, width: int) -> list[Text]:
    explained = state.explained
    if not explained:
        return [Text("  none", style="dim")]
    lines = [title(f"Why {one_line(str(explained['what']), 60)} is as it is", width)]
    for sentence in explained["sentences"]:
        seqs = ", ".join(str(seq) for seq in sentence["seqs"])
        lines += wrap(str(sentence["text"]) + (f" [audit {seqs}]" if seqs else ""), width)
    return lines


def _logs(state: ConsoleState, width: int) -> list[Text]:
    return quoted(state.log_text or "(nothing written)", width)


def _help(_: ConsoleState, width: int) -> list[Text]:
    return [title("Help", width), *(cut(Text(f"  {how:<24}{what}"), width) for how, what in HELP)]


_PAGES: Mapping[Page, Callable[[ConsoleState, int], list[Text]]] = {
    "apps": _apps,
    "calls": _calls,
    "consent": _consent,
    "conversation": conversation,
    "help": _help,
    "logs": _logs,
    "parked": _parked,
    "questions": _questions,
    "session": _session,
    "sessions": _sessions,
    "surface": _surface,
    "why": _why,
}
