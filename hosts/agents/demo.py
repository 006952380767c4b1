"""The demo Agent: a small program that speaks lineup.v1 envelopes as NDJSON and knows nothing else of the kernel.

Run it as `python -m hosts.agents.demo` with its stdin and stdout joined to a door (`lineup agent --demo --receipts`, or `lineup demo`).
It says on stderr, one JSON line each, what it believes has happened; whoever started it compares that with the kernel.
Rules:
1. It is a demonstration: a fixed script, no model behind it.
2. It waits for the answer to each step before the next and gives up, with exit code 1, when the door closes first.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from typing import TextIO
from uuid import uuid4

from kernel.protocol.agent import CLIENT_INVENTORY, MESSAGE_TEXT, PREFIX, TOOL_CALL, TOOL_PROGRESS, TOOL_RESULT
from lineup_sdk.protocol.messages import JsonObject

STALE_REVISION = "demo.0"  # no kernel ever had it


class DoorGone(Exception):
    """The door closed before the script was done."""


class DemoAgent:
    """One run of the script."""

    def __init__(self, source: TextIO, sink: TextIO, claims: TextIO) -> None:
        self._source = source
        self._sink = sink
        self._claims = claims
        self._conversation_id = ""
        self._revision = ""
        self._tools: frozenset[str] = frozenset()
        self._results: dict[str, JsonObject] = {}
        self._progress: dict[str, float | None] = {}

    def run(self) -> None:
        """Play the script. Raises: DoorGone."""
        self._wait_ready()
        self._say("This is the demo Agent. I will put one task on the dashboard and bring it to its end.")
        task = self._call("task-dashboard.open", {"task_id": "demo-task", "title": "Show what LineUp does", "state": "running"})
        self._wait_shown(task)
        for percent in (25, 60, 100):
            done = self._wait_result(self._call("task-dashboard.update", {"task_id": "demo-task", "progress": percent}))
            self._claim("updated", done, percent=percent)
        self._claim("updated", self._wait_result(self._call("task-dashboard.update", {"task_id": "demo-task", "state": "completed"})))
        self._claim("opened", self._wait_result(task), progress_seen=self._progress.get(task))
        self._claim("asked", self._wait_result(self._call("runtime.status", {})))
        self._claim("refused", self._wait_result(self._call("runtime.status", {}, STALE_REVISION)))
        self._say("Done: one task finished, one stale call refused.")
        self._sink.flush()
        os.close(self._sink.fileno())  # the end of input for the door; closing sys.stdout itself would leave the descriptor open
        for _ in self._source:  # what is still on its way here, until the door ends
            pass

    # --- one step each

    def _wait_ready(self) -> None:
        while not (self._conversation_id and self._tools):
            self._hear()

    def _say(self, text: str) -> None:
        self._send(MESSAGE_TEXT, {"text": text})
        self._claims.write(json.dumps({"claim": "said", "text": text}) + "\n")
        self._claims.flush()

    def _call(self, tool_id: str, call_input: JsonObject, revision: str | None = None) -> str:
        call_id = f"call_{uuid4().hex}"
        payload = {"call_id": call_id, "tool_id": tool_id, "inventory_revision": revision or self._revision, "input": call_input}
        self._send(TOOL_CALL, payload)
        return call_id

    def _wait_result(self, call_id: str) -> JsonObject:
        while call_id not in self._results:
            self._hear()
        return self._results[call_id]

    def _wait_shown(self, call_id: str) -> None:
        """Wait until the app works on the call: its task can be updated only then."""
        while call_id not in self._progress and call_id not in self._results:
            self._hear()

    def _claim(self, word: str, result: JsonObject, **facts: object) -> None:
        self._claims.write(json.dumps({"claim": word, "result": result, **facts}) + "\n")
        self._claims.flush()

    def _send(self, type_: str, payload: JsonObject) -> None:
        envelope = {
            "type": type_,
            "message_id": f"msg_{uuid4().hex}",
            "conversation_id": self._conversation_id,
            "created_at": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "payload": payload,
        }
        self._sink.write(json.dumps(envelope) + "\n")
        self._sink.flush()

    def _hear(self) -> None:
        line = self._source.readline()
        if not line:
            raise DoorGone
        heard = json.loads(line)
        if heard.get("door") == "open":
            self._conversation_id = heard["conversation_id"]
        if not str(heard.get("type", "")).startswith(PREFIX):
            return
        payload = heard["payload"]
        match heard["type"]:
            case t if t == CLIENT_INVENTORY:
                self._revision = payload["inventory_revision"]
                self._tools = frozenset(str(tool["id"]) for tool in payload["tools"])
            case t if t == TOOL_PROGRESS:
                self._progress[payload["call_id"]] = payload.get("percent")
            case t if t == TOOL_RESULT:
                self._results[payload["call_id"]] = payload


def main() -> int:
    """Run the script on the standard streams; 1 when the door closed first."""
    try:
        DemoAgent(sys.stdin, sys.stdout, sys.stderr).run()
    except (DoorGone, BrokenPipeError):
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
