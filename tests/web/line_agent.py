"""An Agent of the tests: `lineup agent` as a process, its lines read by a thread, so that tests of a browser need no event loop."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path
from typing import Any

from tests.hosts import lineup

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60.0


class LineAgent:
    """Calls tools under the newest inventory and waits for results. Every wait is bounded."""

    def __init__(self, home: Path, *, is_executed: bool = False) -> None:
        words, pipe = ["--home", str(home), "agent", "--no-wait"], subprocess.PIPE
        self._process = lineup.start(words, is_executed=is_executed, cwd=ROOT, stdin=pipe, stdout=pipe, text=True, bufsize=1)
        self._came = threading.Condition()
        self._envelopes: list[dict[str, Any]] = []
        self._count = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._came:
                self._envelopes.append(json.loads(line))
                self._came.notify_all()

    def _newest(self, kind: str, call_id: str | None = None) -> dict[str, Any] | None:
        for envelope in reversed(self._envelopes):
            payload = envelope.get("payload", {})
            if envelope.get("type") == f"lineup.v1.{kind}" and call_id in (None, payload.get("call_id")):
                return envelope
        return None

    def wait(self, kind: str, call_id: str | None = None) -> dict[str, Any]:
        """The newest envelope of a kind, once there is one."""
        with self._came:
            assert self._came.wait_for(lambda: self._newest(kind, call_id) is not None, SECONDS), f"no {kind} came"
            found = self._newest(kind, call_id)
            assert found is not None
            return found

    def send(self, kind: str, payload: dict[str, Any], **outer: str) -> None:
        """Send one envelope of a kind; outer = app_scope, instance_id."""
        inventory = self.wait("client.inventory")
        self._count += 1
        envelope = {
            "type": f"lineup.v1.{kind}",
            "message_id": f"m-{self._count}",
            "conversation_id": inventory["conversation_id"],
            "created_at": "2026-01-01T00:00:00.000Z",
            "payload": payload,
            **outer,
        }
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(envelope) + "\n")
        self._process.stdin.flush()

    def say(self, text: str) -> None:
        """Say a text to the person."""
        self.send("message.text", {"text": text})

    def invoke(self, tool_id: str, given: dict[str, Any], **more: Any) -> str:
        """Call a tool; returns the call_id at once."""
        revision = self.wait("client.inventory")["payload"]["inventory_revision"]
        call_id = f"call-{self._count + 1}"
        self.send("tool.call", {"call_id": call_id, "tool_id": tool_id, "inventory_revision": revision, "input": given, **more})
        return call_id

    def result(self, call_id: str) -> dict[str, Any]:
        """The outcome of a call, once it came."""
        payload: dict[str, Any] = self.wait("tool.result", call_id)["payload"]
        return payload

    def envelopes(self) -> list[dict[str, Any]]:
        """All that came so far."""
        with self._came:
            return list(self._envelopes)

    def close(self) -> None:
        """Leave, and wait for the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.terminate()
        self._process.wait(SECONDS)
        self._reader.join(SECONDS)
        assert self._process.stdout is not None
        self._process.stdout.close()
