"""The demo Agent of a page: it greets, opens the dashboard, asks one choice, opens the board, and answers what the person types.

Rules:
1. It is a fixed script and says so; it never pretends to understand.
2. Whatever happens to a call (cancelled, refused, switched off) is said and the script goes on.
3. It stays to answer until its door closes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO
from uuid import uuid4

from hosts.agents.demo_speech import Speech
from hosts.agents.demo_words import KNOWN_WORDS, Words
from lineup_sdk.protocol.messages import JsonObject


class Talk:
    """See the head of the file."""

    def __init__(self, source: TextIO, sink: TextIO, words: Words) -> None:
        self._speech = Speech(source, sink, self._heard)
        self._words = words
        self._task_id = ""
        self._is_free = False  # the script is done: words of the person may start something

    def run(self) -> None:
        """Play the script, then answer. Raises: DoorGone."""
        speech = self._speech
        speech.wait_ready()
        speech.say(self._words.greeting)
        self._open_task(self._words.tour_task)
        self._update(25)
        self._ask()
        self._update(50)
        self._draw()
        self._update(100, "completed")
        speech.say(self._words.tour_over)
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
        self._open_task(self._words.another_task)

    def _update(self, percent: int, state: str | None = None) -> None:
        if "task-dashboard.update" in self._speech.tools:
            self._outcome("task-dashboard.update", {"task_id": self._task_id, "progress": percent})
            if state is not None:
                self._outcome("task-dashboard.update", {"task_id": self._task_id, "state": state})

    def _ask(self) -> None:
        words = self._words
        asked = {"title": words.question_title, "prompt": words.question, "mode": "single-choice", "actions": [*words.actions]}
        answer = (self._outcome("interaction.choice", asked).get("result") or {}).get("answer") or {}
        chosen = answer.get("action_ids") or ["none"]
        self._speech.say(words.after_choice.get(chosen[0], words.no_answer))

    def _draw(self) -> None:
        if "whiteboard.open" not in self._speech.tools:
            self._speech.say(self._words.no_board)
            return
        self._speech.say(self._words.board_open)
        board = {"board_id": f"demo-{uuid4().hex[:8]}", "title": self._words.board_title}
        outcome = self._outcome("whiteboard.open", board)
        drawing = (outcome.get("result") or {}).get("artifact_id")
        if drawing is None:
            self._speech.say(self._words.no_drawing.format(code=outcome.get("code") or outcome["status"]))
        else:
            self._speech.say(self._words.drawing.format(artifact_id=drawing))

    def _outcome(self, tool_id: str, call_input: JsonObject) -> JsonObject:
        """Call and wait; once more when the tools changed in between."""
        outcome = self._speech.wait_result(self._speech.call(tool_id, call_input))
        if outcome.get("code") == "inventory_revision_mismatch":
            outcome = self._speech.wait_result(self._speech.call(tool_id, call_input))
        return outcome

    # --- what the person says

    def _heard(self, text: str) -> None:
        word = KNOWN_WORDS.get(text.strip().strip("`.!。！").casefold(), "")
        known: dict[str, Callable[[], None]] = {"ask": self._ask, "board": self._draw, "task": self._open_another}
        begin = known.get(word)
        if word == "help":
            self._speech.say(self._words.help)
        elif begin is None:
            quoted = "\n".join(f"> {line}" for line in text.splitlines()[:20])
            self._speech.say(self._words.said_back.format(quoted=quoted))
        elif not self._is_free:
            self._speech.say(self._words.not_now)
        else:
            self._is_free = False
            begin()
            self._is_free = True
