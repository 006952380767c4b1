"""An App that keeps bytes and a surface as a test tells it to, as JSON. Never shipped."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import trio

from lineup_sdk import MiniApp, Refused, ToolCall
from lineup_sdk.protocol.messages import Chunk
from lineup_sdk.protocol.surface_messages import ArtifactPut

app = MiniApp()
changes: list[int] = []
news = trio.Event()


def bytes_of(seed: int, size: int) -> bytes:
    """Bytes that differ with their seed and do not repeat in a window."""
    block = b"".join(b"%08d" % (seed * 1_000_003 + n) for n in range(9_973))
    return (block * (size // len(block) + 1))[:size]


@app.surface.on_changed
async def heard(version: int) -> None:
    """Count what was told."""
    global news
    changes.append(version)
    news.set()
    news = trio.Event()


@app.tool("keeper.run")
async def run(call: ToolCall) -> dict[str, Any]:
    """Do one thing; a refusal is an answer too."""
    asked = json.loads(call.input["json"])
    try:
        answer = await DO[asked.pop("do")](**asked)
    except Refused as refused:
        answer = {"refused": refused.code}
    return {"json": json.dumps(answer)}


async def put(seed: int, size: int, media_type: str = "application/octet-stream") -> Any:
    """Keep that many bytes."""
    data = bytes_of(seed, size)
    return {"artifact_id": await app.artifacts.put(data, media_type), "sha256": sha256(data).hexdigest()}


async def lie(size: int, sent: int, sha: str | None) -> Any:
    """Announce other bytes than are sent."""
    data = b"x" * sent
    announced = ArtifactPut(sha256=sha or sha256(data).hexdigest(), size=size, media_type="text/plain")
    ticket = await app.artifacts._requests.post(announced)
    app.artifacts._requests.send(Chunk(of=f"artifact.put:{ticket.request_id}", data=data, last=True))
    return await ticket.wait()


async def get(artifact_id: str) -> Any:
    """Read an artifact to its end."""
    artifact = await app.artifacts.get(artifact_id)
    return {"size": len(artifact.data), "sha256": sha256(artifact.data).hexdigest(), "media_type": artifact.media_type}


async def begin(count: int) -> Any:
    """Announce uploads that never come; says how the last one is answered."""
    tickets = [await app.artifacts._requests.post(ArtifactPut(sha256="0" * 64, size=9, media_type="text/plain")) for _ in range(count)]
    return await tickets[-1].wait()


async def open_surface() -> Any:
    """Open the surface."""
    return await app.surface.open()


async def update(patch: dict[str, Any]) -> Any:
    """Change the surface."""
    return await app.surface.change(lambda _: patch)


async def read() -> Any:
    """Read the surface."""
    now = await app.surface.read()
    return {"version": now.version, "state": now.state}


async def told() -> Any:
    """Which versions were told so far."""
    return changes


async def wait_told(count: int) -> Any:
    """Wait until so many were told."""
    while len(changes) < count:
        await news.wait()
    return changes


DO = {one.__name__: one for one in (begin, get, lie, open_surface, put, read, told, update, wait_told)}
