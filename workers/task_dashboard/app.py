"""Task Dashboard: shows the Agent's tasks; `open` stays open until its task ends, `update` moves a task on (SPEC 6, 8.5, 9).

The surface shows them: {"tasks": {task_id: {task_id, title, state, progress?, description?, order}}}. The person ends a task by the
event `cancel` with {task_id}, and puts an ended one away by `remove`.

Rules:
1. A change is saved before anyone is told of it: an `open` call ends only with an outcome that is in the saved state.
2. A task that ended stays ended. An `open` for it, delivered again or new, answers with its outcome at once.
3. Cancelling an `open` call cancels its task; other `open` calls of the same task complete with status cancelled. A close by the person
   cancels them without asking here: the task is saved as cancelled before the process ends, so a continued session shows it so.
4. The state is bounded: MAX_TASKS of the longest texts the Manifest admits fit into what may be saved. The oldest ended task
   nobody waits for makes room; with none to drop a new task is refused.
5. The surface follows the saved state and never leads it: what a surface script changes there is put right with the next change.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import trio

from lineup_sdk import MiniApp, Refused, ToolCall, ToolFailed
from lineup_sdk.app import JsonObject, LifecycleStopping, SurfaceEvent

MAX_TASKS = 20
ENDED = frozenset({"cancelled", "completed", "failed"})

app = MiniApp()


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task. progress is 0..100; it and description are None when nobody said."""

    task_id: str
    title: str
    state: str
    progress: float | None = None
    description: str | None = None

    @property
    def is_ended(self) -> bool:
        """True for completed, cancelled and failed."""
        return self.state in ENDED

    def summary(self) -> JsonObject:
        """As the Agent and the saved state see it."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class Board:
    """All tasks, oldest first; every change is saved before it counts (rule 1)."""

    def __init__(self) -> None:
        self.tasks: dict[str, Task] = {}
        self._following: dict[ToolCall, str] = {}  # open calls and their task: it is not dropped before they answered
        self._left = trio.Event()  # one of them is over
        self._changed = trio.Event()
        self._saving = trio.Lock()

    async def load(self) -> None:
        """Take up what an earlier life saved."""
        state = await app.state.load() or {"tasks": []}
        self.tasks = {row["task_id"]: Task(**row) for row in state["tasks"]}
        await app.surface.open()
        await self._show()

    async def open(self, task: Task) -> Task:
        """Add a task, or take up the one of that id. Raises: ToolFailed(too_many_tasks)."""
        async with self._saving:
            known = self.tasks.get(task.task_id)
            if known is not None and known.is_ended:
                return known
            named = task if known is None else replace(known, title=task.title, description=task.description or known.description)
            if named != known:
                await self._save(named)
        return self.tasks[task.task_id]

    async def change(self, task_id: str, **changes: str | float | None) -> Task:
        """Move a task on: state, progress, description, as far as given. Raises: ToolFailed(task_not_found, task_ended)."""
        async with self._saving:
            task = self.tasks.get(task_id)
            if task is None:
                raise ToolFailed("task_not_found", "No task of that task_id is on the dashboard.")
            given: dict[str, Any] = {name: value for name, value in changes.items() if value is not None}
            changed = replace(task, **given)
            if changed == task:
                return task
            if task.is_ended:
                raise ToolFailed("task_ended", "That task has ended; open a new one under another task_id.")
            await self._save(changed)
        return changed

    async def remove(self, task_id: str) -> None:
        """Put an ended task away that nobody waits for; anything else stays."""
        async with self._saving:
            task = self.tasks.get(task_id)
            if task is not None and task.is_ended and not self._is_followed(task_id):
                await self._keep({one: kept for one, kept in self.tasks.items() if one != task_id})

    @contextmanager
    def follow(self, call: ToolCall, task_id: str) -> Iterator[None]:
        """Keep a task on the board while a call waits for its end."""
        self._following[call] = task_id
        try:
            yield
        finally:
            del self._following[call]
            self._left.set()
            self._left = trio.Event()

    def _is_followed(self, task_id: str) -> bool:
        return task_id in self._following.values()

    async def give_up(self, task_id: str) -> None:
        """Cancel a task whose call was cancelled elsewhere; its handler is being stopped, so this is shielded."""
        with trio.CancelScope(shield=True):
            if task_id in self.tasks and not self.tasks[task_id].is_ended:
                await self.change(task_id, state="cancelled")

    async def settle(self) -> None:
        """Wait until every call that ended elsewhere has left."""
        while any(call.is_ended for call in self._following):
            await self._left.wait()

    async def wait_changed(self, task: Task) -> Task:
        """Wait until the task is not as it is given; return it as it is now."""
        while (now := self.tasks[task.task_id]) == task:
            await self._changed.wait()
        return now

    async def _save(self, task: Task) -> None:
        tasks = {**self.tasks, task.task_id: task}
        if len(tasks) > MAX_TASKS:
            ended = next((t.task_id for t in tasks.values() if t.is_ended and not self._is_followed(t.task_id)), None)
            if ended is None:
                raise ToolFailed("too_many_tasks", f"At most {MAX_TASKS} tasks can be open at once.")
            del tasks[ended]
        await self._keep(tasks)

    async def _keep(self, tasks: dict[str, Task]) -> None:
        with trio.CancelScope(shield=True):  # a cancelled handler must not leave the saved state ahead of this one
            await app.state.save({"tasks": [t.summary() for t in tasks.values()]})
        self.tasks = tasks
        self._changed.set()
        self._changed = trio.Event()
        await self._show()

    async def _show(self) -> None:
        """Bring the surface in line with the tasks; one that cannot be changed now is with the next change (rule 5)."""
        wanted = {task.task_id: {**task.summary(), "order": order} for order, task in enumerate(self.tasks.values())}

        def patch(state: JsonObject) -> JsonObject | None:
            shown = state.get("tasks")
            known = shown if isinstance(shown, dict) else {}
            new = {task_id: _replaced(known.get(task_id), task) for task_id, task in wanted.items() if known.get(task_id) != task}
            change = {**dict.fromkeys(known.keys() - wanted.keys()), **new}
            return {"tasks": change} if change or shown is None else None

        try:
            await app.surface.change(patch)
        except Refused as refused:
            line = f"the surface is behind: {refused.code}"
            app.log.warning(line)


def _replaced(shown: object, task: JsonObject) -> JsonObject:
    """The patch that makes of what is shown exactly this task."""
    return {**dict.fromkeys(shown.keys() - task.keys()), **task} if isinstance(shown, dict) else task


board = Board()


@app.on_start
async def start() -> None:
    """Take up the saved tasks before any call comes."""
    await board.load()


@app.on_stopping
async def stop(_: LifecycleStopping) -> None:
    """Let calls that ended elsewhere save what that means for their tasks."""
    await board.settle()


@app.tool("task-dashboard.open", handles_cancel=True)
async def open_task(call: ToolCall) -> JsonObject | None:
    """Show a task and stay open until it ends."""
    given = call.input
    wanted = Task(task_id=given["task_id"], title=given["title"], state=given.get("state", "pending"), description=given.get("description"))
    with board.follow(call, wanted.task_id):
        try:
            task = await board.open(wanted)
            if not task.is_ended:
                task = await _wait_ended(call, task)
        finally:
            if call.ended_as == "cancelled":
                await board.give_up(wanted.task_id)
    if call.is_cancel_requested and task.state == "cancelled":
        await call.cancel("task_cancelled")
        return None
    return {"status": task.state}


async def _wait_ended(call: ToolCall, task: Task) -> Task:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_report, call, task)
        nursery.start_soon(_cancel_task, call, task)
        while not task.is_ended:
            task = await board.wait_changed(task)
        nursery.cancel_scope.cancel()
    return task


async def _report(call: ToolCall, task: Task) -> None:
    """Report the newest state of the task as the call's progress; what came between two reports is skipped."""
    while True:
        await call.progress(percent=task.progress, message=task.state)
        task = await board.wait_changed(task)


async def _cancel_task(call: ToolCall, task: Task) -> None:
    await call.wait_cancel_requested()
    if not board.tasks[task.task_id].is_ended:
        await board.change(task.task_id, state="cancelled")


@app.tool("task-dashboard.update")
async def update_task(call: ToolCall) -> JsonObject:
    """Move a task on, or with nothing but its id just read it."""
    task = await board.change(**call.input)
    return task.summary()


@app.surface.on_event("cancel")
async def person_cancels(event: SurfaceEvent) -> None:
    """The person gives a task up."""
    try:
        await board.change(str(event.body.get("task_id", "")), state="cancelled")
    except ToolFailed as failed:  # it ended before, or was never there
        line = f"cancel: {failed.reason}"
        app.log.info(line)


@app.surface.on_event("remove")
async def person_removes(event: SurfaceEvent) -> None:
    """The person puts an ended task away."""
    await board.remove(str(event.body.get("task_id", "")))
