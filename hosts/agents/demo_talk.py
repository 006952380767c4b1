"""The demo Agent of a page: it greets, opens the dashboard, asks one choice, opens the board, and answers what the person types.

Rules:
1. It is a fixed script and says so; it never pretends to understand.
2. Whatever happens to a call (cancelled, refused, switched off) is said and the script goes on.
3. It stays to answer until its door closes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TextIO
from uuid import uuid4

from hosts.agents.demo_speech import Speech
from lineup_sdk.protocol.messages import JsonObject

GREETING = """## Hello, this is the demo Agent
I am a **fixed script**, not a model: I show what a page of LineUp can do, and nothing leaves this machine.

1. I put a task on the **Task Dashboard**.
2. I ask you **one question**.
3. I open a **Whiteboard** for you to draw on.

Write to me at any time; `help` says what I know."""

HELP = """I know a few words: `board` opens another board, `task` puts another task on the dashboard, `ask` asks you something again.

A real Agent connects with `lineup agent`: one JSON object a line, in and out. I then give way to it."""

_ACTIONS = [
    {"id": "tour", "label": "Show me around", "description": "A line about what each part of this page is for."},
    {"id": "draw", "label": "Let me draw", "description": "Straight to the whiteboard."},
    {"id": "quiet", "label": "I will look around myself"},
]
_AFTER_CHOICE: Mapping[str, str] = {
    "tour": "Apps stand at the side with what they are doing; this conversation is yours and mine; **Activity** has every call, "
    "and why it ended as it did. Nothing here is lost when a program dies: try it.",
    "draw": "Straight to the board, then.",
    "quiet": "As you like. I will leave a board for you all the same.",
}


class Talk:
    """See the head of the file."""

    def __init__(self, source: TextIO, sink: TextIO) -> None:
        self._speech = Speech(source, sink, self._heard)
        self._task_id = ""
        self._is_free = False  # the script is done: words of the person may start something

    def run(self) -> None:
        """Play the script, then answer. Raises: DoorGone."""
        speech = self._speech
        speech.wait_ready()
        speech.say(GREETING)
        self._open_task("Show you around")
        self._update(25)
        self._ask()
        self._update(50)
        self._draw()
        self._update(100, "completed")
        speech.say("That was the tour. Write `help` for what else I can do.")
        self._is_free = True
        while True:
            speech.hear()

    # --- one step each

    def _open_task(self, title: str) -> None:
        self._task_id = f"demo-{uuid4().hex[:8]}"
        task = {"task_id": self._task_id, "title": title, "state": "running"}
        if "task-dashboard.open" in self._speech.tools:
            self._speech.wait_shown(self._speech.call("task-dashboard.open", task))

    def _open_another(self) -> None:
        self._open_task("Another task")

    def _update(self, percent: int, state: str | None = None) -> None:
        if "task-dashboard.update" in self._speech.tools:
            self._outcome("task-dashboard.update", {"task_id": self._task_id, "progress": percent})
            if state is not None:
                self._outcome("task-dashboard.update", {"task_id": self._task_id, "state": state})

    def _ask(self) -> None:
        request = {"title": "Where to first?", "prompt": "How shall we **begin**?", "mode": "single-choice", "actions": _ACTIONS}
        answer = (self._outcome("interaction.choice", request).get("result") or {}).get("answer") or {}
        chosen = answer.get("action_ids") or ["none"]
        self._speech.say(_AFTER_CHOICE.get(chosen[0], "No answer is an answer too."))

    def _draw(self) -> None:
        if "whiteboard.open" not in self._speech.tools:
            self._speech.say("The whiteboard is switched off, so there is nothing to draw on.")
            return
        self._speech.say("A board is open. Draw something and **submit** it, or cancel it: I see either.")
        board = {"board_id": f"demo-{uuid4().hex[:8]}", "title": "Draw me something"}
        outcome = self._outcome("whiteboard.open", board)
        drawing = (outcome.get("result") or {}).get("artifact_id")
        if drawing is None:
            self._speech.say(f"The board ended without a drawing (`{outcome.get('code') or outcome['status']}`). That is fine.")
        else:
            self._speech.say(f"Thank you! This is what I got:\n\n![Your drawing](artifact:{drawing})")

    def _outcome(self, tool_id: str, call_input: JsonObject) -> JsonObject:
        """Call and wait; once more when the tools changed in between."""
        outcome = self._speech.wait_result(self._speech.call(tool_id, call_input))
        if outcome.get("code") == "inventory_revision_mismatch":
            outcome = self._speech.wait_result(self._speech.call(tool_id, call_input))
        return outcome

    # --- what the person says

    def _heard(self, text: str) -> None:
        word = text.strip().strip("`.!").casefold()
        known: dict[str, Callable[[], None]] = {"ask": self._ask, "board": self._draw, "task": self._open_another}
        begin = known.get(word)
        if word == "help":
            self._speech.say(HELP)
        elif begin is None:
            quoted = "\n".join(f"> {line}" for line in text.splitlines()[:20])
            self._speech.say(f"You wrote:\n\n{quoted}\n\nI am a script and can only say it back. `help` says what I know.")
        elif not self._is_free:
            self._speech.say("One thing after the other: first what is open now.")
        else:
            self._is_free = False
            begin()
            self._is_free = True
