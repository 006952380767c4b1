"""The console as lines of text. Pure: (state, width, height) -> exactly `height` lines, none wider than `width` cells.

From top to bottom: the header; the middle, with what the App in front shows above the conversation and apps and calls at the side;
what is asked of the person; a notice; the input.
Rules:
1. Words of others are text, visible and behind labels of ours (console_text, console_cards).
2. From WIDE cells on, calls and apps stand at the side; below that, under the conversation, in at most two fifths of the middle, and
   not while a question is being answered.
3. A question over an App (place modal) is drawn whole above what that App shows; consent is drawn over everything but the input.
4. No time is drawn that would change by itself, but how long a question still waits: otherwise an idle console draws nothing.
"""

from __future__ import annotations

from rich.cells import cell_len
from rich.text import Text

from hosts.console_cards import consent_panel, form_lines, question_line, question_lines, surface_lines
from hosts.console_form import prompt_of
from hosts.console_pages import call_lines, ended_line, failed_lines, instance_line, page_lines
from hosts.console_state import ConsoleState, drawn_consent
from hosts.console_text import at_most, cut, padded, title
from hosts.mirror import CHAT
from hosts.visible import one_line, visible
from lineup_sdk.protocol.messages import JsonObject

WIDE = 100
SIDE_CELLS = 44
MIN_WIDTH, MIN_HEIGHT = 20, 6
MAX_INPUT_LINES = 4
_ENDED_SHOWN = 3
_QUESTIONS_SHOWN = 3
_ASKED_AT_LEAST = 6  # lines for what is asked of the person, if there are so many


def draw(state: ConsoleState, width: int, height: int) -> list[Text]:
    """Return the whole screen."""
    if width < MIN_WIDTH or height < MIN_HEIGHT:
        return _fit([Text("too small")], width, height)
    bottom = [*_notice_lines(state, width), *input_lines(state, width)[0]]
    room = height - 1 - len(bottom)
    asked = _asked_lines(state, width, max(room * 3 // 5, min(room, _ASKED_AT_LEAST)))
    room -= len(asked)
    middle = _wide_middle(state, width, room) if width >= WIDE else _narrow_middle(state, width, room)
    return _fit([_header(state, width), *middle, *asked, *bottom], width, height)


def cursor_place(state: ConsoleState, width: int, height: int) -> tuple[int, int]:
    """Return row and column of the cursor, from 0."""
    lines, row, column = input_lines(state, width)
    return max(height - len(lines) + row, 0), min(column, width - 1)


def _fit(lines: list[Text], width: int, height: int) -> list[Text]:
    lines = [*lines, *[Text()] * (height - len(lines))][:height]
    return [cut(line, width) for line in lines]


# --- the frame


def _header(state: ConsoleState, width: int) -> Text:
    mirror = state.mirror
    front = mirror.front()
    where = one_line(str(front["title"]), 30) if front else "conversation"
    parts = [" LineUp", _kernel_word(state), *_waiting_words(state), f"front: {where}", _agent_word(mirror.agent)]
    line = Text(" · ".join(parts), style="reverse")
    line.append(" " * max(width - cell_len(line.plain), 0))
    return line


def _waiting_words(state: ConsoleState) -> list[str]:
    waiting = len(state.mirror.waiting_questions()) + len(state.mirror.consents)
    counts = {"to answer": waiting, "unread": state.mirror.chat_state().get("unread", 0), "parked": len(state.parked)}
    return [f"{count} {what}" for what, count in counts.items() if count]


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


def _asked_lines(state: ConsoleState, width: int, room: int) -> list[Text]:
    """What is asked of the person: consent, the form that is open, the other questions."""
    consent = drawn_consent(state)
    panel = consent_panel(consent, len(state.mirror.consents), width, room) if consent is not None else []
    room -= len(panel)
    form = form_lines(state, state.form, width) if state.form is not None else []
    form = form[-room:] if room > 0 else []  # what is asked now stands at its end
    return [*panel, *form, *_question_strip(state, width)[: max(room - len(form), 0)]]


def _question_strip(state: ConsoleState, width: int) -> list[Text]:
    """A line for each question that is not drawn whole elsewhere."""
    over, answering = _modal(state), state.form.interaction if state.form is not None else {}
    whole = {one["interaction_id"] for one in (over, answering) if one}
    lines = [question_line(state, one, width) for one in state.mirror.waiting_questions() if one["interaction_id"] not in whole]
    return at_most(lines, _QUESTIONS_SHOWN, f"… {len(lines)} wait: /questions")


def _notice_lines(state: ConsoleState, width: int) -> list[Text]:
    return [Text(one_line(state.notice or _hint(state), width), style="dim")]


def _hint(state: ConsoleState) -> str:
    return "/parked lists messages an app could not take" if state.parked else "/help lists the commands"


def input_lines(state: ConsoleState, width: int) -> tuple[list[Text], int, int]:
    """Return the lines of the prompt, and row and column of the cursor in them; a long text shows the part around the cursor."""
    prompt = prompt_of(state.form) if state.form is not None and cell_len(prompt_of(state.form)) < width // 2 else "> "
    shown = [_shown(character) for character in state.line.text]
    rows, row, column = [""], 0, 0
    used = cell_len(prompt)
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
    lines = [Text((prompt if first + index == 0 else "  ") + text.rstrip("\n")) for index, text in enumerate(window)]
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
        line = padded(left[index] if index < len(left) else Text(), left_cells)
        line.append("│", style="dim")
        line.append_text(cut(right[index], SIDE_CELLS) if index < len(right) else Text())
        lines.append(line)
    return lines


def _narrow_middle(state: ConsoleState, width: int, room: int) -> list[Text]:
    has_side = state.page == "conversation" and state.form is None
    side = _side_lines(state, width, max(room * 2 // 5, 2)) if has_side else []
    main = _main_lines(state, width, room - len(side))
    blank = [Text()] * (room - len(side) - len(main))
    return [*main, *blank, *side]


def _main_lines(state: ConsoleState, width: int, room: int) -> list[Text]:
    over = _over_lines(state, width, room // 2) if state.page == "conversation" else []
    return [*over, *_window(state, page_lines(state, width), room - len(over))]


def _window(state: ConsoleState, lines: list[Text], room: int) -> list[Text]:
    """The part of a page that is scrolled to: the conversation from its end, all others from their start."""
    if state.page == "conversation":
        end = len(lines) - min(state.scroll, max(len(lines) - room, 0))
        return lines[max(end - room, 0) : end]
    start = min(state.scroll, max(len(lines) - room, 0))
    return lines[start : start + room]


def _over_lines(state: ConsoleState, width: int, room: int) -> list[Text]:
    """What the App in front shows, with the questions that stand over it."""
    front = state.mirror.front()
    if front is None:
        return []
    modal = _modal(state)
    lines = question_lines(state, modal, width) if modal else []
    surface = state.mirror.surface_of(str(front["app_scope"]))
    if surface is not None:
        lines += surface_lines(surface, width)
    if not lines:
        return []
    shown = at_most(lines, max(room - 1, 0), "… /surface and /questions show all of it")
    return [*shown, title("Conversation", width)][:room]


def _modal(state: ConsoleState) -> JsonObject:
    """The question that stands over the App in front: the oldest, while none is being answered; {} if there is none."""
    if state.mirror.front() is None or state.form is not None or state.page != "conversation":
        return {}
    return next((one for one in state.mirror.waiting_questions() if one["place"] == "modal"), {})


def _side_lines(state: ConsoleState, width: int, room: int) -> list[Text]:
    mirror = state.mirror
    apps = [instance_line(state, instance, width) for instance in mirror.live_instances() if instance["app_scope"] != CHAT]
    apps += failed_lines(state, width, has_room=width == SIDE_CELLS)
    open_calls = [line for call in mirror.open_calls() for line in call_lines(state, call, width)]
    ended = [ended_line(call, width) for call in mirror.ended_calls()[:_ENDED_SHOWN]]
    lines = [title("Apps", width), *(apps or [Text("  none running", style="dim")]), title("Calls", width)]
    return [*lines, *(open_calls or [Text("  none open", style="dim")]), *ended][:room]
