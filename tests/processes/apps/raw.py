"""A worker without the SDK: what it says on its channel is what a test told it to say, well-formed or not. Never shipped.

Rules:
1. The verb of the tool decides; the scope decides how it starts and stops: `sleeper` hangs in its first start (it knows by its saved
   state), `stubborn` does not stop when asked.
2. Every frame that came in is remembered, for `heard`.
"""

from __future__ import annotations

import json
import os
from typing import Any

import trio

Frame = dict[str, Any]


def _filled(value: Any, call_id: str) -> Any:
    """What a test wrote as JSON, with what JSON cannot say put in."""
    if isinstance(value, dict):
        return {key: _filled(member, call_id) for key, member in value.items()}
    return {"THIS": call_id, "BYTES": b"bytes"}.get(value, value) if isinstance(value, str) else value


class RawApp:
    """See the head of the file."""

    def __init__(self) -> None:
        self.heard: list[Frame] = []
        self._replies: dict[int, Frame] = {}
        self._changed = trio.Event()
        self._last_id = 0
        self._is_deaf = False
        self._held: dict[str, str] = {}

    async def serve(self, channel: Any, welcome: Any) -> None:
        """Live until the kernel ends it."""
        self._channel = channel
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            nursery.start_soon(channel.run_flusher)
            nursery.start_soon(self._start, welcome.context["app_scope"])
            self._scope = welcome.context["app_scope"]
            while not self._is_deaf:
                for frame in await channel.receive():
                    self._take(frame)
            await trio.sleep_forever()

    async def _start(self, scope: str) -> None:
        if scope == "sleeper":
            known = await self.ask({"type": "state.load"})
            if known["value"]["state"] is None:
                await self.ask({"type": "state.save", "state": {"slept": True}})
                await trio.sleep_forever()
        for kind in ("tools.subscribe", "inbox.subscribe", "lifecycle.started"):
            self.put({"type": kind}, has_id=True)
        self._channel.flush()

    def put(self, frame: Frame, *, has_id: bool) -> int:
        """Queue a frame; returns its id."""
        self._last_id += 1
        self._channel.send({**frame, "id": self._last_id} if has_id else frame)
        return self._last_id

    async def ask(self, frame: Frame) -> Frame:
        """Send a request and wait for its reply."""
        number = self.put(frame, has_id=True)
        self._channel.flush()
        while number not in self._replies:
            await self._changed.wait()
        return self._replies.pop(number)

    def _take(self, frame: Frame) -> None:
        self.heard.append(frame)
        match frame["type"]:
            case "ping":
                self.put({"type": "pong", "n": frame["n"]}, has_id=False)
                self._channel.flush()
            case "reply":
                self._replies[frame["id"]] = frame
                self._changed.set()
                self._changed = trio.Event()
            case "tool.called":
                self._nursery.start_soon(self._work, frame)
            case "inbox.delivered":
                self._nursery.start_soon(self._go, frame)
            case "lifecycle.stopping" if self._scope != "stubborn":
                self._nursery.cancel_scope.cancel()

    async def _go(self, message: Frame) -> None:
        await self.ask({"type": "inbox.acknowledge", "message_id": message["message_id"]})
        for call_id in list(self._held):
            await self._finish(call_id, {"json": self._held.pop(call_id)})

    async def _finish(self, call_id: str, result: Frame) -> None:
        self.put({"type": "tool.accept", "call_id": call_id}, has_id=True)
        await self.ask({"type": "tool.complete", "call_id": call_id, "result": result})

    async def _work(self, called: Frame) -> None:
        given, call_id = called["input"]["json"], called["call_id"]
        match called["tool_id"].partition(".")[2]:
            case "hold":  # not even accepted, until a message comes
                self._held[call_id] = given
            case "send":
                await self._finish(call_id, {"json": json.dumps([await self._say(frame, call_id) for frame in json.loads(given)])})
            case "burst":  # accepted; then the frames count times without waiting
                await self.ask({"type": "tool.accept", "call_id": call_id})
                self._burst(json.loads(given), call_id)
            case "write":
                await self.ask({"type": "tool.accept", "call_id": call_id})
                os.write(self._channel._fd, bytes.fromhex(given))
            case "heard":
                await self._finish(call_id, {"json": json.dumps([frame["type"] for frame in self.heard if frame is not called])})
            case "deaf":
                await self.ask({"type": "tool.accept", "call_id": call_id})
                self._deafen(int(given))
            case "seal":  # what the seal does not let through
                os.pidfd_open(1)

    async def _say(self, frame: Frame, call_id: str) -> Frame | None:
        frame = _filled(frame, call_id)
        if frame.pop("quiet", False):
            self.put(frame, has_id=False)
            return None
        reply = await self.ask(frame)
        return reply.get("receipt") or {"accepted": True, "value": reply.get("value")}

    def _burst(self, order: Frame, call_id: str) -> None:
        frame = _filled(order["frame"], call_id)
        for _ in range(order["count"]):
            self.put(frame, has_id=order["has_id"])

    def _deafen(self, count: int) -> None:
        """Ask for 30 KB many times and read nothing of it."""
        self._is_deaf = True
        self.put({"type": "state.save", "state": {"pad": "x" * 30_000}}, has_id=True)
        for _ in range(count):
            self.put({"type": "state.load"}, has_id=True)


app = RawApp()
