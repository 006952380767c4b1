"""Whiteboard: the person draws, the Agent opens a board and takes what is on it (SPEC 9). All boards live in the surface; nothing is kept
beside it, so a new process finds every board as it was.

The state: {"boards": {board_id: {"title", "status": open | submitted | cancelled, "strokes": {stroke_id: {"color": "#rrggbb",
"width", "points": [x, y, x, y, ...], "order"}}, "texts"?: {text_id: {"text", "color", "size", "at": [x, y], "order"}}, "artifact_id"?,
"data_artifact_id"?}}}. Places are parts of the board, 0 to 1, from its upper left corner; `at` is where the base line of a text begins;
width and size are in thousandths of the board's width; what has a higher order lies above. The surface draws and writes; the person ends
a board by the events `submit` and `cancel` with {board_id}.
Rules:
1. A board that ended stays ended: its `open` calls, delivered again or new, answer with its outcome at once.
2. A board is submitted when its drawing is kept: artifacts first, then the status. Doing it twice gives the same artifacts.
3. A board is there for every call that came after its `open`: who asks for one that is just being made waits for it.
4. Cancelling an `open` call cancels its board; other `open` calls of the same board complete with status cancelled.
5. What the person drew is data. Only strokes and texts of the stated form are drawn: a color that is not #rrggbb is black, a number that
   is none drops its item. The drawing holds numbers this file wrote and text it escaped, nothing else: no style, no script, no reference.
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
STATUSES = ("open", "submitted", "cancelled")  # no set: what a surface script put there may have no hash
WIDTH, HEIGHT = 1600, 1000
MAX_STROKE_WIDTH = 100.0  # thousandths of the board's width, as the next
MIN_TEXT_SIZE, MAX_TEXT_SIZE = 5.0, 200.0
MAX_TEXT = 200

_COLOR = re.compile("#[0-9a-fA-F]{6}")
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # no XML holds them, not even escaped

Item = dict[str, Any]  # a clean stroke or text; a text has the member "text"

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
arriving: dict[str, trio.Event] = {}  # boards that are just being made, by board_id (rule 3)


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
    if board_id in arriving:
        await arriving[board_id].wait()
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
    made = arriving.setdefault(board_id, trio.Event())
    try:
        await _add_board(board_id, title, strokes, makes_room=False)
    except Refused as refused:
        if refused.code != "limit_exceeded":
            raise
        await _add_board(board_id, title, strokes, makes_room=True)
    finally:
        arriving.pop(board_id, None)
        made.set()


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
    items = clean_items(board)
    texts = sum("text" in item for item in items)
    result: JsonObject = {"summary": _summary(board, len(items) - texts, texts), "strokes": len(items) - texts, "texts": texts}
    if board["status"] == "open":
        ending = {"status": "submitted", **await _keep(board_id, board, items)}
        await _end(board_id, ending)
        board = await require_board(board_id)
    return result | _artifacts(board)


def _artifacts(board: JsonObject) -> JsonObject:
    return {name: board[name] for name in ("artifact_id", "data_artifact_id") if isinstance(board.get(name), str)}


async def _keep(board_id: str, board: JsonObject, items: list[Item]) -> JsonObject:
    """Keep the drawing; without room for it the summary alone is the result."""
    strokes, texts = ([item for item in items if ("text" in item) is is_text] for is_text in (False, True))
    data = {"board_id": board_id, "title": _title(board), "strokes": strokes, "texts": texts}
    try:
        return {
            "artifact_id": await app.artifacts.put(svg_of(_title(board), items).encode(), "image/svg+xml"),
            "data_artifact_id": await app.artifacts.put(json.dumps(data, ensure_ascii=False).encode(), "application/json"),
        }
    except Refused as refused:
        line = f"the drawing was not kept: {refused.code}"
        app.log.warning(line)
        return {}


def _title(board: JsonObject) -> str:
    return str(board.get("title", ""))[:MAX_TITLE]


def _summary(board: JsonObject, strokes: int, texts: int) -> str:
    counted = [_count(strokes, "stroke")] + ([_count(texts, "text")] if texts else [])
    return f"{_title(board)}: {', '.join(counted)}"


def _count(number: int, what: str) -> str:
    return f"1 {what}" if number == 1 else f"{number} {what}s"


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


def clean_items(board: JsonObject) -> list[Item]:
    """What of a board can be drawn, in its order."""
    found = [
        (untrusted.get("order"), key, item)
        for kind, clean in (("strokes", _clean_stroke), ("texts", _clean_text))
        for key, untrusted in _members(board.get(kind))
        if (item := clean(untrusted)) is not None
    ]
    found.sort(key=lambda entry: (entry[0] if _is_number(entry[0]) else 0, entry[1]))
    return [item for _, _, item in found]


def _members(untrusted: object) -> list[tuple[str, JsonObject]]:
    return [(key, one) for key, one in untrusted.items() if isinstance(one, dict)] if isinstance(untrusted, dict) else []


def _clean_stroke(untrusted: JsonObject) -> Item | None:
    points = _places(untrusted.get("points"))
    if not points:
        return None
    return {"color": _color(untrusted), "width": _bounded(untrusted.get("width"), 0.1, MAX_STROKE_WIDTH, 2.0), "points": points}


def _clean_text(untrusted: JsonObject) -> Item | None:
    at, text = _places(untrusted.get("at")), untrusted.get("text")
    if len(at) != 2 or not isinstance(text, str) or not text.strip():
        return None
    size = _bounded(untrusted.get("size"), MIN_TEXT_SIZE, MAX_TEXT_SIZE, 20.0)
    return {"color": _color(untrusted), "size": size, "at": at, "text": " ".join(text.split())[:MAX_TEXT]}


def _places(untrusted: object) -> list[float]:
    """Pairs of numbers on the board; none of them when one is no number."""
    if not isinstance(untrusted, list) or len(untrusted) % 2 or not all(map(_is_number, untrusted)):
        return []
    return [min(max(float(part), 0.0), 1.0) for part in untrusted]


def _color(untrusted: JsonObject) -> str:
    color = untrusted.get("color")
    return color if isinstance(color, str) and _COLOR.fullmatch(color) else "#000000"


def _bounded(untrusted: object, least: float, most: float, other: float) -> float:
    return min(max(float(untrusted), least), most) if _is_number(untrusted) else other


def _is_number(value: object) -> TypeGuard[float]:
    return type(value) in (int, float) and isfinite(value)  # type: ignore[arg-type]


def svg_of(title: str, items: list[Item]) -> str:
    """The drawing of clean items."""
    drawn = "".join(_text(item) if "text" in item else _line(item) for item in items)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">'
        f"<title>{_escaped(title)}</title>"
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>{drawn}</svg>'
    )


def _escaped(text: str) -> str:
    return escape(_UNWRITABLE.sub("", text))


def _text(item: Item) -> str:
    x, y = item["at"]
    place = f'x="{x * WIDTH:.1f}" y="{y * HEIGHT:.1f}" font-size="{item["size"] * WIDTH / 1000:.1f}"'
    return f'<text {place} font-family="sans-serif" fill="{item["color"]}">{_escaped(item["text"])}</text>'


def _line(stroke: Item) -> str:
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
