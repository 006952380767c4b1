"""Our Agent in a process of its own, on the loopback door; driven by lines as bench/peer_client.py is.

    python -m bench.agent SOCKET TOOL [TOOL ...]

Rules:
1. A call ends, for the clock, when its tool.result is in hand; each result row is acknowledged at once, as SPEC 11.3 asks.
2. Nothing is spared that a real Agent needs: strict decoding, the revision of the inventory, ids that never repeat.
3. `"tools": N` in a line spreads its calls over the first N tools, each an App of its own and so a worker of its own; `launch` makes the
   first call of each tool, with a pause before it in which the kernel fills up its spares.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from datetime import UTC, datetime
from itertools import count, cycle
from typing import Any

import trio

from kernel.protocol.agent import CLIENT_INVENTORY, TOOL_CALL, TOOL_RESULT
from kernel.protocol.host import EnvelopeSubmit, HostHello, OutboxAcknowledge
from lineup_sdk.channel import Channel, ChannelClosed
from lineup_sdk.protocol.limits import MAX_FRAME_BYTES, WIRE_VERSION
from lineup_sdk.protocol.messages import to_frame

ARGUMENTS = {"a": 1, "b": 2, "mode": "fast", "note": "hello world, small note"}
CALL_SECONDS = 30
LAUNCH_PAUSE_SECONDS = 0.3


class Unexpected(Exception):
    """The kernel said what this bench cannot go on with."""


class Answer:
    """The place one result comes to."""

    def __init__(self) -> None:
        self.is_here = trio.Event()
        self.payload: dict[str, Any] = {}


class Agent:
    """One session on the door."""

    def __init__(self, channel: Channel, tools: list[str]) -> None:
        self._channel = channel
        self._tools = tools
        self._next_tool = cycle(tools[:1])
        self._waiting: dict[str, Answer] = {}
        self._numbers = count(1)
        self._prefix = os.urandom(6).hex()
        self._conversation_id = ""
        self._revision = ""
        self.has_inventory = trio.Event()

    def greet(self) -> None:
        """Say hello."""
        self._channel.send(to_frame(HostHello(wire=WIRE_VERSION, role="agent")))
        self._channel.flush()

    async def read(self) -> None:
        """Take what comes until the channel ends."""
        while True:
            for frame in await self._channel.receive():
                self._take(frame)
            self._channel.flush()  # one write for all acknowledgements of one read

    def _take(self, frame: dict[str, Any]) -> None:
        match frame["type"]:
            case "welcome":
                self._conversation_id = frame["conversation_id"]
            case "envelope":
                self._take_envelope(frame["envelope"])
            case "receipt":
                if not frame["accepted"]:
                    raise Unexpected(f"the kernel refused an envelope: {frame.get('code')}")
            case other:
                raise Unexpected(f"the kernel said {other}: {frame.get('code')}")

    def _take_envelope(self, envelope: dict[str, Any]) -> None:
        payload = envelope["payload"]
        if envelope["type"] == CLIENT_INVENTORY:
            self._revision = payload["inventory_revision"]
            self.has_inventory.set()
        elif envelope["type"] == TOOL_RESULT:
            answer = self._waiting.pop(payload["call_id"])
            answer.payload = payload
            answer.is_here.set()
        self._channel.send(to_frame(OutboxAcknowledge(message_id=envelope["message_id"])))

    def spread(self, tools: int) -> None:
        """Take the first tools in turn from now on."""
        self._next_tool = cycle(self._tools[:tools])

    async def launch(self) -> list[int]:
        """Call every tool once, with pauses."""
        self.spread(len(self._tools))
        micros: list[int] = []
        for _ in self._tools:
            await trio.sleep(LAUNCH_PAUSE_SECONDS)
            micros.append(await self.call())
        return micros

    async def call(self) -> int:
        """Make one call and return its microseconds."""
        name = f"{self._prefix}-{next(self._numbers)}"
        answer = self._waiting[name] = Answer()
        began = time.perf_counter_ns()
        envelope = {
            "type": TOOL_CALL,
            "message_id": f"m-{name}",
            "conversation_id": self._conversation_id,
            "created_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "payload": {"call_id": name, "tool_id": next(self._next_tool), "inventory_revision": self._revision, "input": ARGUMENTS},
        }
        self._channel.send(to_frame(EnvelopeSubmit(envelope=envelope)))
        self._channel.flush()
        with trio.fail_after(CALL_SECONDS):
            await answer.is_here.wait()
        took = time.perf_counter_ns() - began
        if answer.payload.get("result") != {"sum": 3}:
            raise Unexpected(f"the kernel answered {answer.payload}")
        return took // 1000


async def run(agent: Agent, order: dict[str, Any]) -> dict[str, Any]:
    """Carry out one line."""
    micros: list[int] = []
    began = time.perf_counter()
    agent.spread(order["tools"])
    if order["do"] == "launch":
        micros = await agent.launch()
    elif order["do"] == "sequential":
        micros = [await agent.call() for _ in range(order["count"])]
    else:

        async def caller() -> None:
            for _ in range(order["count"] // order["width"]):
                micros.append(await agent.call())

        async with trio.open_nursery() as nursery:
            for _ in range(order["width"]):
                nursery.start_soon(caller)
    return {"micros": micros, "seconds": time.perf_counter() - began}


async def main(path: str, tools: list[str]) -> None:
    """Serve stdin until its end."""
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(path)
    channel = Channel(sock, max_in_bytes=MAX_FRAME_BYTES, max_out_bytes=MAX_FRAME_BYTES)
    agent = Agent(channel, tools)
    agent.greet()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(channel.run_flusher)
        nursery.start_soon(agent.read)
        await agent.has_inventory.wait()
        print(json.dumps({"pid": os.getpid()}), flush=True)
        while line := await trio.to_thread.run_sync(sys.stdin.readline):
            print(json.dumps(await run(agent, json.loads(line))), flush=True)
        nursery.cancel_scope.cancel()
    channel.close()


if __name__ == "__main__":
    try:
        trio.run(main, sys.argv[1], sys.argv[2:])
    except* (ChannelClosed, Unexpected) as group:
        sys.exit(f"bench.agent: {group.exceptions[0]!r}")
