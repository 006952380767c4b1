"""How the demo Agent speaks: lineup.v1 envelopes as NDJSON on two streams, and nothing else of the kernel.

Rules:
1. Everything heard is kept until the script looks at it; what the person says goes to `heard_text` at once.
2. A row may come again after a restart of the kernel: what was seen is not taken twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TextIO
from uuid import uuid4

from kernel.protocol.agent import CLIENT_INVENTORY, MESSAGE_TEXT, PREFIX, TOOL_CALL, TOOL_PROGRESS, TOOL_RESULT
from lineup_sdk.protocol.messages import JsonObject


class DoorGone(Exception):
    """The door closed before the script was done."""


def _nothing(text: str) -> None:
    pass


class Speech:
    """One conversation."""

    def __init__(self, source: TextIO, sink: TextIO, heard_text: Callable[[str], None] = _nothing) -> None:
        self.revision = ""
        self.tools: frozenset[str] = frozenset()
        self.progress: dict[str, float | None] = {}
        self._source = source
        self._sink = sink
        self._heard_text = heard_text
        self._conversation_id = ""
        self._results: dict[str, JsonObject] = {}
        self._seen: set[str] = set()

    def wait_ready(self) -> None:
        """Wait for the door and the inventory. Raises: DoorGone, like all waits here."""
        while not (self._conversation_id and self.tools):
            self.hear()

    def say(self, text: str) -> None:
        """Say something to the person, in Markdown."""
        self._send(MESSAGE_TEXT, {"text": text})

    def call(self, tool_id: str, call_input: JsonObject, revision: str | None = None) -> str:
        """Call a tool; returns the call_id."""
        call_id = f"call_{uuid4().hex}"
        payload = {"call_id": call_id, "tool_id": tool_id, "inventory_revision": revision or self.revision, "input": call_input}
        self._send(TOOL_CALL, payload)
        return call_id

    def wait_result(self, call_id: str) -> JsonObject:
        """Wait for the outcome of a call."""
        while call_id not in self._results:
            self.hear()
        return self._results[call_id]

    def wait_shown(self, call_id: str) -> None:
        """Wait until the app works on the call: what it has put up can be changed only then."""
        while call_id not in self.progress and call_id not in self._results:
            self.hear()

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

    def hear(self) -> None:
        """Take the next line."""
        line = self._source.readline()
        if not line:
            raise DoorGone
        heard = json.loads(line)
        if heard.get("door") == "open":
            self._conversation_id = heard["conversation_id"]
        if str(heard.get("type", "")).startswith(PREFIX) and heard["message_id"] not in self._seen:
            self._seen.add(heard["message_id"])
            self._take(heard["type"], heard["payload"])

    def _take(self, type_: str, payload: JsonObject) -> None:
        match type_:
            case t if t == CLIENT_INVENTORY:
                self.revision = payload["inventory_revision"]
                self.tools = frozenset(str(tool["id"]) for tool in payload["tools"])
            case t if t == TOOL_PROGRESS:
                self.progress[payload["call_id"]] = payload.get("percent")
            case t if t == TOOL_RESULT:
                self._results[payload["call_id"]] = payload
            case t if t == MESSAGE_TEXT:
                self._heard_text(str(payload["text"]))
