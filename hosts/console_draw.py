"""The console as lines of text. Pure: (state, width, height) -> exactly `height` lines, none wider than `width` cells.

Rules:
1. Whatever came from an app, the Agent or the person goes through visible() and into a Text, never through markup (THREATS 3.3).
2. Labels (who speaks, which app) are ours and stand before the text they label; no text can draw a label.
3. From WIDE cells on, calls and apps stand at the side; below that, under the conversation, in at most two fifths of the middle.
4. No time is drawn that would change by itself: an idle console draws nothing.
"""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from hosts.console_state import HELP, ConsoleState
from hosts.mirror import ENDED_STATUSES
from hosts.providers import Notification
from hosts.visible import one_line, visible
from kernel.protocol.agent import MESSAGE_TEXT
from lineup_sdk.protocol.messages import JsonObject

WIDE = 100
SIDE_CELLS = 44
MIN_WIDTH, MIN_HEIGHT = 20, 6
BAR_CELLS = 10
CHAT = "chat"  # the app of the conversation itself, which is drawn as such
MAX_INPUT_LINES = 4
_ENDED_SHOWN = 3

_MEASURE = Console(width=80, color_system=None, force_terminal=False)  # wrapping asks it for nothing but defaults

_STATUS_STYLES = {"completed": "green", "submitted": "green", "failed": "red", "expired": "red", "rejected": "red", "cancelled": "yellow"}
_AUTHORS = {"agent": ("Agent", "bold cyan"), "demo": ("Demo Agent", "bold magenta"), "person": ("You", "bold green")}
_SENT = {"pending": "…", "acknowledged": "✓", "refused": "✗"}


def draw(state: ConsoleState, width: int, height: int) -> list[Text]:
    """Return the whole screen."""
    if width < MIN_WIDTH or height < MIN_HEIGHT:
        return _fit([Text("too small")], width, height)
    bottom = [*_notice_lines(state, width), *input_lines(state, width)[0]]
    room = height - 1 - len(bottom)
    middle = _wide_middle(state, width, room) if width >= WIDE else _narrow_middle(state, width, room)
    return _fit([_header(state, width), *middle, *bottom], width, height)


def cursor_place(state: ConsoleState, width: int, height: int) -> tuple[int, int]:
    """Return row and column of the cursor, from 0."""
    lines, row, column = input_lines(state, width)
    return max(height - len(lines) + row, 0), min(column, width - 1)


def _fit(lines: list[Text], width: int, height: int) -> list[Text]:
    lines = [*lines, *[Text()] * (height - len(lines))][:height]
    return [_cut(line, width) for line in lines]


def _cut(line: Text, width: int) -> Text:
    line = line.copy()
    line.truncate(width, overflow="ellipsis" if width > 1 else "crop")
    return line


def _wrap(text: str, width: int, style: str = "") -> list[Text]:
    lines: list[Text] = []
    for paragraph in visible(text, keep_newlines=True).split("\n"):
        wrapped = Text(paragraph, style=style, overflow="fold").wrap(_MEASURE, max(width, 1))
        lines.extend(wrapped or [Text()])
    return lines


# --- the frame


def _header(state: ConsoleState, width: int) -> Text:
    mirror = state.mirror
    front = mirror.front()
    where = one_line(str(front["title"]), 30) if front else "conversation"
    parts = [" LineUp", _agent_word(mirror.agent), f"front: {where}", _kernel_word(state)]
    line = Text(" · ".join(parts), style="reverse")
    line.append(" " * max(width - cell_len(line.plain), 0))
    return line


def _agent_word(agent: JsonObject) -> str:
    if not agent.get("connected"):
        return "no Agent"
    return "demo Agent" if agent.get("demo") else "Agent connected"


def _kernel_word(state: ConsoleState) -> str:
    if state.phase == "up":
        return "kernel up"
    if state.phase == "ended":
        return "kernel stopped"
    return "reconnecting to the kernel…" if state.restarts else "starting the kernel…"


def _notice_lines(state: ConsoleState, width: int) -> list[Text]:
    if state.question is not None:
        return [Text(line.plain, style="bold yellow") for line in _wrap(state.question.text, width)]
    notice = state.notices[-1] if state.notices else "/help lists the commands"
    return [Text(one_line(notice, width), style="dim")]


def input_lines(state: ConsoleState, width: int) -> tuple[list[Text], int, int]:
    """Return the lines of the prompt, and row and column of the cursor in them; a long text shows the part around the cursor."""
    shown = [_shown(character) for character in state.line.text]
    rows, row, column = [""], 0, 0
    used = cell_len("> ")
    for index, piece in enumerate([*shown, " "]):
        cells = cell_len(piece)
        if used + cells > width:
            rows.append("")
            used = 2
        if index == state.line.cursor:
            row, column = len(rows) - 1, used
        rows[-1] += piece
        used += cells
    first = max(0, min(row - MAX_INPUT_LINES + 1, len(rows) - MAX_INPUT_LINES))
    window = rows[first : first + MAX_INPUT_LINES]
    lines = [Text(("> " if first + index == 0 else "  ") + text.rstrip("\n")) for index, text in enumerate(window)]
    return lines, row - first, column


def _shown(character: str) -> str:
    return "⏎" if character == "\n" else visible(character)


# --- the middle


def _wide_middle(state: ConsoleState, width: int, room: int) -> list[Text]:
    left_cells = width - SIDE_CELLS - 1
    left = _main_lines(state, left_cells, room)
    right = _side_lines(state, SIDE_CELLS, room)
    lines = []
    for index in range(room):
        line = _padded(left[index] if index < len(left) else Text(), left_cells)
        line.append("│", style="dim")
        line.append_text(_cut(right[index], SIDE_CELLS) if index < len(right) else Text())
        lines.append(line)
    return lines


def _narrow_middle(state: ConsoleState, width: int, room: int) -> list[Text]:
    side = _side_lines(state, width, max(room * 2 // 5, 2)) if state.page == "conversation" else []
    main = _main_lines(state, width, room - len(side))
    blank = [Text()] * (room - len(side) - len(main))
    return [*main, *blank, *side]


def _padded(line: Text, cells: int) -> Text:
    line = _cut(line, cells)
    line.append(" " * max(cells - cell_len(line.plain), 0))
    return line


def _main_lines(state: ConsoleState, width: int, room: int) -> list[Text]:
    lines = _PAGES[state.page](state, width)
    if state.page in ("conversation", "logs"):  # newest below
        state_scroll = min(state.scroll, max(len(lines) - room, 0))
        end = len(lines) - state_scroll
        return lines[max(end - room, 0) : end]
    start = min(state.scroll, max(len(lines) - room, 0))
    return lines[start : start + room]


def _side_lines(state: ConsoleState, width: int, room: int) -> list[Text]:
    mirror = state.mirror
    apps = [_instance_line(state, instance, width) for instance in mirror.live_instances() if instance["app_scope"] != CHAT]
    open_calls = [line for call in mirror.open_calls() for line in _call_lines(call, width)]
    ended = [_ended_line(call, width) for call in mirror.ended_calls()[:_ENDED_SHOWN]]
    lines = [_title("Apps", width), *(apps or [Text("  none running", style="dim")]), _title("Calls", width)]
    return [*lines, *(open_calls or [Text("  none open", style="dim")]), *ended][:room]


def _title(text: str, width: int) -> Text:
    return Text(set_cell_size(f"── {text} " + "─" * width, width), style="dim")


# --- pages


def _conversation(state: ConsoleState, width: int) -> list[Text]:
    entries = [(int(message["number"]), _message_lines(message, width)) for message in state.mirror.timeline()]
    entries += [(after, _notification_lines(notification, width)) for after, notification in state.notifications]
    lines = [line for _, entry in sorted(entries, key=lambda entry: entry[0]) for line in entry]
    return lines or [Text("Nothing said yet. Type a line and press Enter.", style="dim")]


def _message_lines(message: JsonObject, width: int) -> list[Text]:
    name, style = _AUTHORS.get(message["author"], ("?", "bold red"))
    head = Text(name, style=style)
    if message["direction"] == "out":
        head.append(f" {_SENT.get(message['state'], '?')}", style="dim")
    if message["type"] != MESSAGE_TEXT:
        head.append(f"  ({one_line(str(message['type']), 40)})", style="dim")
    body = _wrap(str(message["text"]), width - 2)
    return [head, *(Text("  ").append_text(line) for line in body)]


def _notification_lines(notification: Notification, width: int) -> list[Text]:
    head = Text("Notification ", style="bold blue").append(f"of {notification.app_title} ({notification.app_scope})", style="dim")
    return [head, *(Text("  ").append_text(line) for line in _wrap(notification.text, width - 2))]


def _calls_page(state: ConsoleState, width: int) -> list[Text]:
    lines = [_title("Calls", width)]
    for _, call in sorted(state.mirror.calls.items(), reverse=True):
        lines.extend(_call_lines(call, width) if call["status"] not in ENDED_STATUSES else [_ended_line(call, width)])
        lines.append(Text(f"    {one_line(str(call['call_id']), 60)} by {one_line(str(call['source']), 12)}", style="dim"))
    return lines if len(lines) > 1 else [*lines, Text("  none", style="dim")]


def _call_lines(call: JsonObject, width: int) -> list[Text]:
    progress = call.get("progress") or {}
    head = Text(f"#{call['number']} {one_line(str(call['title'] or call['tool_id']), 40)} ")
    head.append("cancelling" if call.get("cancel", "none") != "none" else str(call["status"]).replace("_", " "), style="cyan")
    if call.get("attempts"):
        head.append(f" (attempt {call['attempts'] + 1})", style="dim")
    lines = [_cut(Text("  ").append_text(head), width)]
    if progress:
        lines.append(_cut(Text("    ").append_text(progress_bar(progress)), width))
    return lines


def progress_bar(progress: JsonObject) -> Text:
    """Return a bar with percent and message; without a percent only the message."""
    percent = progress.get("percent")
    line = Text()
    if isinstance(percent, int | float):
        full = int(min(max(percent, 0), 100) * BAR_CELLS / 100)
        line.append("█" * full, style="green").append("░" * (BAR_CELLS - full), style="dim").append(f" {percent:.0f} % ")
    return line.append(one_line(str(progress.get("message") or ""), 80))


def _ended_line(call: JsonObject, width: int) -> Text:
    status = str(call["status"])
    line = Text(f"  #{call['number']} {one_line(str(call['title'] or call['tool_id']), 40)} ")
    line.append(status, style=_STATUS_STYLES.get(status, ""))
    if call.get("error_code") and call["error_code"] != status:
        line.append(f" {one_line(str(call['error_code']), 40)}", style="dim")
    return _cut(line, width)


def _apps_page(state: ConsoleState, width: int) -> list[Text]:
    lines = [_title("Apps", width)]
    for app in state.mirror.apps:
        words = [one_line(str(app[name]), 40) for name in ("title", "app_scope", "version")]
        lines.append(Text("  " + "  ".join(words) + _switched(app)))
        lines.extend(Text(f"    {one_line(str(tool['tool_id']), 60)}{_switched(tool)}", style="dim") for tool in app["tools"])
    lines.append(_title("Instances", width))
    instances = [_instance_line(state, instance, width) for instance in state.mirror.instances.values()]
    return [*lines, *(instances or [Text("  none", style="dim")])]


def _switched(entry: JsonObject) -> str:
    return "" if entry["enabled"] else "  (off)"


def _instance_line(state: ConsoleState, instance: JsonObject, width: int) -> Text:
    front = state.mirror.front()
    is_front = front is not None and front["instance_id"] == instance["instance_id"]
    line = Text("▸ " if is_front else "  ").append(one_line(str(instance["title"]), 30), style="bold" if is_front else "")
    line.append(f"  {one_line(str(instance['state']), 20)}", style="red" if instance["state"] == "failed" else "dim")
    if instance["open_calls"]:
        line.append(f"  {instance['open_calls']} open")
    if instance.get("error"):
        line.append(f"  {one_line(str(instance['error']), 40)}", style="red")
    return _cut(line, width)


def _help_page(_: ConsoleState, width: int) -> list[Text]:
    return [_title("Help", width), *(Text(f"  {how:<24}{what}") for how, what in HELP)]


def _logs_page(state: ConsoleState, width: int) -> list[Text]:
    return _wrap(state.log_text or "(nothing written)", width)


_PAGES = {"apps": _apps_page, "calls": _calls_page, "conversation": _conversation, "help": _help_page, "logs": _logs_page}
