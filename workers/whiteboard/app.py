"""Whiteboard: the person draws, the Agent opens a board and takes what is on it (SPEC 9). All boards live in the surface; nothing is kept
beside it, so a new process finds every board as it was.

The state: {"boards": {board_id: {"title", "status": open | submitted | cancelled, "strokes": {stroke_id: {"color": "#rrggbb",
"width", "points": [x, y, x, y, ...], "order"}}, "artifact_id"?, "data_artifact_id"?}}}. Points are parts of the board, 0 to 1, from its
upper left corner; width is in thousandths of its width; a stroke of a higher order lies above. The person ends a board by the events
`submit` and `cancel` with {board_id}.
Rules:
1. A board that ended stays ended: its `open` calls, delivered again or new, answer with its outcome at once.
2. A board is submitted when its drawing is kept: artifacts first, then the status. Doing it twice gives the same artifacts.
3. Cancelling an `open` call cancels its board; other `open` calls of the same board complete with status cancelled.
4. What the person drew is data. Only strokes of the stated form are drawn: a color that is not #rrggbb is black, a number that is none
   drops its stroke. The drawing holds numbers this file wrote and text it escaped, nothing else: no style, no script, no reference.
"""

from __future__ import annotations

import json
import re
from html import escape
from math import isfinite
from typing import Any, TypeGuard

import trio

from lineup_sdk import MiniApp, Refused, ToolCall, ToolFailed
from lineup_sdk.app import JsonObject, SurfaceEvent

MAX_BOARDS = 40
MAX_TITLE = 80
STATUSES = frozenset({"open", "submitted", "cancelled"})
WIDTH, HEIGHT = 1600, 1000
MAX_STROKE_WIDTH = 100.0  # thousandths of the board's width

_COLOR = re.compile("#[0-9a-fA-F]{6}")
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # no XML holds them, not even escaped

Stroke = dict[str, Any]

app = MiniApp()


class Ends:
    """Wakes whoever waits for the end of a board."""

    def __init__(self) -> None:
        self.next = trio.Event()

    def notify(self) -> None:
        """One ended."""
        self.next.set()
        self.next = trio.Event()


ends = Ends()


@app.on_start
async def start() -> None:
    """Open the surface before any call comes."""
    await app.surface.open()


def boards_of(state: JsonObject) -> dict[str, JsonObject]:
    """The boards of a state; what a surface script spoiled is no board."""
    found = state.get("boards")
    boards = found.items() if isinstance(found, dict) else ()
    return {board_id: board for board_id, board in boards if isinstance(board, dict) and board.get("status") in STATUSES}


async def require_board(board_id: str) -> JsonObject:
    """One board as it is now. Raises: ToolFailed(board_not_found)."""
    board = boards_of((await app.surface.read()).state).get(board_id)
    if board is None:
        raise ToolFailed("board_not_found", "No board of that board_id is on the whiteboard.")
    return board


@app.tool("whiteboard.open", handles_cancel=True)
async def open_board(call: ToolCall) -> JsonObject | None:
    """Show a board and stay open until it ends."""
    board_id = call.input["board_id"]
    await _ensure_board(board_id, call.input["title"], call.input.get("state", {}).get("strokes", []))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_cancel_board, call, board_id)
        board = await _wait_ended(board_id)
        nursery.cancel_scope.cancel()
    if call.is_cancel_requested and board["status"] == "cancelled":
        await call.cancel("board_cancelled")
        return None
    return {"status": board["status"], **_artifacts(board)}


async def _ensure_board(board_id: str, title: str, strokes: list[JsonObject]) -> None:
    """Have the board; ended ones make room for it when there are too many, or when all together weigh too much."""
    try:
        await _add_board(board_id, title, strokes, makes_room=False)
    except Refused as refused:
        if refused.code != "limit_exceeded":
            raise
        await _add_board(board_id, title, strokes, makes_room=True)


async def _add_board(board_id: str, title: str, strokes: list[JsonObject], *, makes_room: bool) -> None:
    def patch(state: JsonObject) -> JsonObject | None:
        known = boards_of(state)
        if board_id in known:
            return None
        ended = [one for one, board in known.items() if board["status"] != "open"]
        if len(known) >= MAX_BOARDS and not ended:
            raise ToolFailed("too_many_boards", f"At most {MAX_BOARDS} boards can be open at once.")
        forgotten = ended if makes_room else ended[: max(0, len(known) - MAX_BOARDS + 1)]
        new = {"title": title, "status": "open", "strokes": {f"given-{n}": {**s, "order": n} for n, s in enumerate(strokes)}}
        return {"boards": {**dict.fromkeys(forgotten), board_id: new}}

    await app.surface.change(patch)


async def _wait_ended(board_id: str) -> JsonObject:
    while True:
        ended = ends.next  # taken before the look: an end in between is not missed
        board = await require_board(board_id)
        if board["status"] != "open":
            return board
        await ended.wait()


async def _cancel_board(call: ToolCall, board_id: str) -> None:
    await call.wait_cancel_requested()
    await _end(board_id, {"status": "cancelled"})


async def _end(board_id: str, ending: JsonObject) -> None:
    """Give a board its outcome, unless it has one."""

    def patch(state: JsonObject) -> JsonObject | None:
        board = boards_of(state).get(board_id)
        return {"boards": {board_id: ending}} if board is not None and board["status"] == "open" else None

    with trio.CancelScope(shield=True):  # who waits for the outcome hears of it only once it stands
        await app.surface.change(patch)
    ends.notify()


@app.tool("whiteboard.submit")
async def submit_board(call: ToolCall) -> JsonObject:
    """Take what is on a board, and end it."""
    return await _submit(call.input["board_id"])


async def _submit(board_id: str) -> JsonObject:
    board = await require_board(board_id)
    if board["status"] == "cancelled":
        raise ToolFailed("board_ended", "That board was cancelled.")
    strokes = clean_strokes(board.get("strokes"))
    result: JsonObject = {"summary": _summary(board, len(strokes)), "strokes": len(strokes)}
    if board["status"] == "open":
        ending = {"status": "submitted", **await _keep(board_id, board, strokes)}
        await _end(board_id, ending)
        board = await require_board(board_id)
    return result | _artifacts(board)


def _artifacts(board: JsonObject) -> JsonObject:
    return {name: board[name] for name in ("artifact_id", "data_artifact_id") if isinstance(board.get(name), str)}


async def _keep(board_id: str, board: JsonObject, strokes: list[JsonObject]) -> JsonObject:
    """Keep the drawing; without room for it the summary alone is the result."""
    data = json.dumps({"board_id": board_id, "title": _title(board), "strokes": strokes}, ensure_ascii=False).encode()
    try:
        return {
            "artifact_id": await app.artifacts.put(svg_of(_title(board), strokes).encode(), "image/svg+xml"),
            "data_artifact_id": await app.artifacts.put(data, "application/json"),
        }
    except Refused as refused:
        line = f"the drawing was not kept: {refused.code}"
        app.log.warning(line)
        return {}


def _title(board: JsonObject) -> str:
    return str(board.get("title", ""))[:MAX_TITLE]


def _summary(board: JsonObject, strokes: int) -> str:
    count = "1 stroke" if strokes == 1 else f"{strokes} strokes"
    return f"{_title(board)}: {count}"


@app.surface.on_event("submit")
async def person_submits(event: SurfaceEvent) -> None:
    """The person is done with a board."""
    try:
        await _submit(_named_board(event))
    except ToolFailed as failed:  # it ended before, or was never there: nothing to do again
        line = f"submit: {failed.reason}"
        app.log.info(line)


@app.surface.on_event("cancel")
async def person_cancels(event: SurfaceEvent) -> None:
    """The person gives a board up."""
    await _end(_named_board(event), {"status": "cancelled"})


def _named_board(event: SurfaceEvent) -> str:
    return str(event.body.get("board_id", ""))


# --- the drawing


def clean_strokes(strokes: object) -> list[Stroke]:
    """Those strokes that can be drawn, in their order."""
    found = strokes.items() if isinstance(strokes, dict) else ()
    clean = [(stroke.get("order"), key, one) for key, stroke in found if isinstance(stroke, dict) and (one := _clean(stroke))]
    clean.sort(key=lambda entry: (entry[0] if _is_number(entry[0]) else 0, entry[1]))
    return [one for _, _, one in clean]


def _clean(stroke: Stroke) -> Stroke | None:
    points, color, width = stroke.get("points"), stroke.get("color"), stroke.get("width")
    if not isinstance(points, list) or len(points) < 2 or len(points) % 2 or not all(map(_is_number, points)):
        return None
    return {
        "color": color if isinstance(color, str) and _COLOR.fullmatch(color) else "#000000",
        "width": min(max(float(width), 0.1), MAX_STROKE_WIDTH) if _is_number(width) else 2.0,
        "points": [min(max(float(part), 0.0), 1.0) for part in points],
    }


def _is_number(value: object) -> TypeGuard[float]:
    return type(value) in (int, float) and isfinite(value)  # type: ignore[arg-type]


def svg_of(title: str, strokes: list[Stroke]) -> str:
    """The drawing of clean strokes."""
    lines = "".join(_line(stroke) for stroke in strokes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">'
        f"<title>{escape(_UNWRITABLE.sub('', title))}</title>"
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>{lines}</svg>'
    )


def _line(stroke: Stroke) -> str:
    points = stroke["points"]
    places = [f"{x * WIDTH:.1f},{y * HEIGHT:.1f}" for x, y in zip(points[::2], points[1::2], strict=True)]
    if len(places) == 1:
        places *= 2  # a dot: a line with round ends and no length
    width = stroke["width"] * WIDTH / 1000
    path = " ".join(places)
    return (
        f'<polyline points="{path}" fill="none" stroke="{stroke["color"]}" stroke-width="{width:.1f}"'
        ' stroke-linecap="round" stroke-linejoin="round"/>'
    )
