"""Interact: the conversation as the person sees it (SPEC 3, 7.2, 9.3, 11.5). It projects; the kernel owns what is projected.

Rules:
1. Whatever stands in the timeline, a card above all, was durable before this App heard of it and is answered without it. When it is
   gone, nothing is lost but this projection; the next life begins with the window and its saved state.
2. What came from the Agent while the conversation was not in front is unread. The number of the newest entry that was read is saved;
   what is shown of it stands in the surface: {"mode", "unread", "summaries": [{"number", "text"}]}.
3. Of the cards of one task only the newest is shown whole: the older ones are folded into one line.
4. What calls did is summed up beside the Agent's next text, in one line. A call costs nothing here until then.
5. Text that the person writes goes the same way from everywhere: the surface's event `send` {text, key} becomes
   `conversation.send_text`, which is the kernel's `message.send`; its key makes one message of it however often it is delivered.
6. There is one mode, im. The events `mode` {mode} of the surface are asked of the kernel, and its refusal is shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Sequence

from lineup_sdk import MiniApp, Refused
from lineup_sdk.app import JsonObject, MiniAppContext, SurfaceEvent, TimelineChange

TEXT = "lineup.v1.message.text"
TASK = "lineup.v1.task.update"
MAX_SUMMARIES = 50  # as many as the window has entries
MAX_TASKS = 200
MAX_CALLS = 1_000  # remembered until the Agent's next text

app = MiniApp()


class Projection:
    """What this life makes of what it was told."""

    def __init__(self, read: int) -> None:
        self.read = read  # number of the newest entry that was read
        self.newest = 0
        self.unread: set[int] = set()
        self.tasks: dict[str, int] = {}  # task_id to the number of its newest card
        self.calls: dict[int, str] = {}  # status of calls that ended since the Agent's last text, by number
        self.summaries: dict[int, str] = {}  # beside which entry, what calls did before it

    def take_message(self, entry: JsonObject, *, is_front: bool) -> int | None:
        """Follow an entry; return the number of the one that is to be folded because of it."""
        number = entry["number"]
        is_new = number > self.newest
        self.newest = max(self.newest, number)
        if is_front:
            self.read_all()
        elif is_new and number > self.read and entry["direction"] == "in":
            self.unread.add(number)
        if is_new and entry["type"] == TEXT and entry["direction"] == "in":
            self._sum_up(number)
        return self._older_card(entry) if entry["type"] == TASK else None

    def take_call(self, call: JsonObject) -> None:
        """Remember how a call ended, for the next summary."""
        self.calls[call["number"]] = call["status"]
        if len(self.calls) > MAX_CALLS:
            del self.calls[next(iter(self.calls))]

    def read_all(self) -> None:
        """The person looks at the conversation."""
        self.read = max(self.read, self.newest)
        self.unread.clear()

    def shown_summaries(self) -> list[JsonObject]:
        """The summaries as the surface holds them."""
        return [{"number": number, "text": text} for number, text in sorted(self.summaries.items())]

    def _sum_up(self, number: int) -> None:
        if not self.calls:
            return
        self.summaries[number] = summary_of(Counter(self.calls.values()))
        self.calls.clear()
        if len(self.summaries) > MAX_SUMMARIES:
            del self.summaries[min(self.summaries)]

    def _older_card(self, entry: JsonObject) -> int | None:
        task, number = entry["task"]["task_id"], entry["number"]
        shown = self.tasks.pop(task, number)
        self.tasks[task] = max(shown, number)
        if len(self.tasks) > MAX_TASKS:
            del self.tasks[next(iter(self.tasks))]
        return min(shown, number) if shown != number else None


def is_summary(untrusted: object) -> bool:
    """Whether a row of the surface is as `shown_summaries` makes them: a view may have put anything there."""
    return isinstance(untrusted, dict) and type(untrusted.get("number")) is int and isinstance(untrusted.get("text"), str)


def summary_of(outcomes: Counter[str]) -> str:
    """One line: how many calls, and how they ended."""
    total = sum(outcomes.values())
    said = ", ".join(f"{count} {status}" for status, count in sorted(outcomes.items()))
    return f"{total} call{'s' if total != 1 else ''}: {said}"


class Interact:
    """The projection of this life and what is kept of it."""

    def __init__(self) -> None:
        self.projection = Projection(0)
        self._saved: JsonObject = {}

    async def load(self) -> None:
        """Take up where the last life was."""
        await app.surface.open()
        self._saved = await app.state.load() or {}
        self.projection = Projection(self._saved.get("read", 0))
        shown = (await app.surface.read()).state.get("summaries")
        rows = shown if isinstance(shown, list) else []
        self.projection.summaries = {row["number"]: row["text"] for row in rows if is_summary(row)}

    async def take(self, changes: Sequence[TimelineChange]) -> None:
        """Follow a batch of changes, then keep what came of it."""
        is_front = app.context.state == "foreground"
        for change in changes:
            if change.kind == "call":
                self.projection.take_call(change.value)
            elif change.kind == "message":
                older = self.projection.take_message(change.value, is_front=is_front)
                if older is not None:
                    await app.timeline.place(older, folded=True)
        await self.keep()

    async def keep(self) -> None:
        """Save what a later life needs and show what the person sees, each when it is another than before."""
        state: JsonObject = {"read": self.projection.read}
        if state != self._saved:
            await app.state.save(state)
            self._saved = state
        await self.show(mode=app.context.mode, unread=len(self.projection.unread), summaries=self.projection.shown_summaries())

    async def show(self, **members: object) -> None:
        """Give these members of the surface these values."""
        await app.surface.change(lambda now: None if members.items() <= now.items() else dict(members))


interact = Interact()


@app.on_start
async def start() -> None:
    """Begin where the last life ended."""
    await interact.load()


@app.on_timeline
async def timeline_changed(changes: Sequence[TimelineChange]) -> None:
    """Project what changed."""
    await interact.take(changes)


@app.on_context_changed
async def context_changed(context: MiniAppContext) -> None:
    """In front, everything is read."""
    if context.state == "foreground":
        interact.projection.read_all()
        await interact.keep()


@app.surface.on_event("send")
async def send(event: SurfaceEvent) -> None:
    """The person wrote something in the surface."""
    text, key = event.body.get("text"), event.body.get("key")
    if isinstance(text, str) and isinstance(key, str):
        await show_refusal(app.conversation.send_text(text, key=key))


@app.surface.on_event("mode")
async def mode(event: SurfaceEvent) -> None:
    """The person asks for another mode."""
    wanted = event.body.get("mode")
    if isinstance(wanted, str) and wanted in {"im", "audio", "video"}:
        await show_refusal(app.lifecycle.request_mode(wanted))


async def show_refusal(asking: Awaitable[object]) -> None:
    """Show the code of what the kernel refused, until the next act."""
    try:
        await asking
    except Refused as refused:
        await interact.show(refused=str(refused.code))
    else:
        await interact.show(refused="")
