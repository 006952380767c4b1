"""The process behind the hostile surface: hands it what to do, and hands back what it reports. It is as honest as the kernel needs."""

from __future__ import annotations

import json

import trio

from lineup_sdk import MiniApp, ToolCall

app = MiniApp()


class Changes:
    """Wakes whoever waits for the surface to report."""

    def __init__(self) -> None:
        self.next = trio.Event()

    def notify(self) -> None:
        """It changed."""
        self.next.set()
        self.next = trio.Event()


changes = Changes()


@app.on_start
async def start() -> None:
    """Open the surface before any call comes."""
    await app.surface.open()


@app.surface.on_changed
async def changed(version: int) -> None:
    """The surface said something."""
    changes.notify()


@app.tool("hostile.run")
async def run(call: ToolCall) -> dict:
    """Give the surface its next task; with `waits` answer with what it reports."""
    task = json.loads(call.input["task"])
    await app.surface.change(lambda state: {"report": None, "task": {**task, "number": state.get("task", {}).get("number", 0) + 1}})
    while task["waits"]:
        event = changes.next
        report = (await app.surface.read()).state.get("report")
        if report is not None:
            return {"report": json.dumps(report)}
        await event.wait()
    return {"report": "null"}
