"""The demo Agent: a small program that speaks lineup.v1 envelopes as NDJSON and knows nothing else of the kernel.

Run it as `python -m hosts.agents.demo` with its stdin and stdout joined to a door (`lineup agent --demo --receipts`, or `lineup demo`).
It says on stderr, one JSON line each, what it believes has happened; whoever started it compares that with the kernel. With
`--interactive` it plays the other script, demo_talk, for a person at a page; with `--language zh` it speaks Chinese.
Rules:
1. It is a demonstration: a fixed script, no model behind it.
2. It waits for the answer to each step before the next and gives up, with exit code 1, when the door closes first.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import TextIO

from hosts.agents.demo_speech import DoorGone, Speech
from hosts.agents.demo_talk import Talk
from hosts.agents.demo_words import LANGUAGES, Words
from lineup_sdk.protocol.messages import JsonObject

INTERACTIVE = "--interactive"
LANGUAGE = "--language"
STALE_REVISION = "demo.0"  # no kernel ever had it


class DemoAgent:
    """One run of the script whose claims are checked."""

    def __init__(self, source: TextIO, sink: TextIO, claims: TextIO, words: Words) -> None:
        self._source = source
        self._sink = sink
        self._claims = claims
        self._words = words
        self._speech = Speech(source, sink)

    def run(self) -> None:
        """Play the script. Raises: DoorGone."""
        speech = self._speech
        speech.wait_ready()
        self._say(self._words.begin)
        task = speech.call("task-dashboard.open", {"task_id": "demo-task", "title": self._words.task, "state": "running"})
        speech.wait_shown(task)
        for percent in (25, 60, 100):
            self._claim("updated", speech.call("task-dashboard.update", {"task_id": "demo-task", "progress": percent}), percent=percent)
        self._claim("updated", speech.call("task-dashboard.update", {"task_id": "demo-task", "state": "completed"}))
        self._claim("opened", task, progress_seen=speech.progress.get(task))
        self._claim("asked", speech.call("runtime.status", {}))
        self._claim("refused", speech.call("runtime.status", {}, STALE_REVISION))
        self._say(self._words.done)
        self._sink.flush()
        os.close(self._sink.fileno())  # the end of input for the door; closing sys.stdout itself would leave the descriptor open
        for _ in self._source:  # what is still on its way here, until the door ends
            pass

    def _say(self, text: str) -> None:
        self._speech.say(text)
        self._write({"claim": "said", "text": text})

    def _claim(self, word: str, call_id: str, **facts: object) -> None:
        self._write({"claim": word, "result": self._speech.wait_result(call_id), **facts})

    def _write(self, claim: JsonObject) -> None:
        self._claims.write(json.dumps(claim) + "\n")
        self._claims.flush()


def main() -> int:
    """Run a script on the standard streams; 1 when the door closed first."""
    options = argparse.ArgumentParser(prog="demo")
    options.add_argument(INTERACTIVE, action="store_true")
    options.add_argument(LANGUAGE, choices=sorted(LANGUAGES), default="en")
    chosen = options.parse_args()
    words = LANGUAGES[chosen.language]
    try:
        if chosen.interactive:
            Talk(sys.stdin, sys.stdout, words).run()
        else:
            DemoAgent(sys.stdin, sys.stdout, sys.stderr, words).run()
    except (DoorGone, BrokenPipeError):
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
