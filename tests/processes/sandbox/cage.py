"""What the sandbox tests share: a zygote, whole or with named steps taken out, and the hostile app in one of its processes."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from kernel.launch import launch_command
from kernel.spares import Ready, Spares, spawn_ready
from kernel.zygote import Exit, Zygote
from lineup_sdk.channel import Channel, ChannelClosed
from lineup_sdk.protocol.limits import CHUNK_BYTES, WIRE_VERSION

HERE = Path(__file__).resolve().parent
HOSTILE = HERE / "hostile_app"


def weakened_command(*steps: str) -> list[str]:
    """The command of a zygote that only pretends to take these steps. Exists for tests alone."""
    return [*launch_command()[:-1], str(HERE / "weakened_zygote.py"), launch_command()[-1], ",".join(steps)]


@asynccontextmanager
async def open_zygote(without: Sequence[str] = ()) -> AsyncIterator[Zygote]:
    async with trio.open_nursery() as nursery:
        with trio.fail_after(60):
            zygote = await Zygote.start(nursery, weakened_command(*without) if without else launch_command())
        try:
            yield zygote
        finally:
            zygote.close()
            with trio.fail_after(30):
                await zygote.wait_dead()


@asynccontextmanager
async def open_spares(zygote: Zygote, size: int) -> AsyncIterator[Spares]:
    spares = Spares(zygote, size)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(spares.run)
        try:
            yield spares
        finally:
            nursery.cancel_scope.cancel()


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.py"))}


def announce(files: dict[str, bytes], entry: str = "app.py") -> dict[str, Any]:
    return {
        "entry": entry,
        "files": [{"name": n, "size": len(d), "sha256": hashlib.sha256(d).hexdigest()} for n, d in files.items()],
    }


def send_app(channel: Channel, files: dict[str, bytes], source: dict[str, Any] | None = None) -> None:
    context = {"app_scope": "hostile", "instance_id": "i", "conversation_id": "c", "app_version": "1.0.0", "state": "starting"}
    source = source or announce(files)
    channel.send({"type": "welcome", "wire": WIRE_VERSION, "epoch": "e", "context": context, "source": source})
    for name, data in files.items():
        parts = [data[start : start + CHUNK_BYTES] for start in range(0, max(len(data), 1), CHUNK_BYTES)]
        for number, part in enumerate(parts, 1):
            channel.send({"type": "chunk", "of": name, "data": part, "last": number == len(parts)})


class Captive:
    """The hostile app in one process."""

    def __init__(self, ready: Ready) -> None:
        self.process = ready.process
        self.channel = ready.channel
        self.log = ""
        self._waiting: list[dict[str, Any]] = []

    async def ask(self, name: str, **more: Any) -> Any:
        """Tell it to attack. Returns its outcome, or how the process ended."""
        try:
            self.channel.send({"type": "attempt", "name": name, **more})
            await self.channel.drain()
            while (frame := await self.next_frame())["type"] != "outcome":
                pass
            return frame["text"]
        except ChannelClosed:
            return how(await self.process.wait_exited())

    async def next_frame(self) -> dict[str, Any]:
        while not self._waiting:
            for frame in await self.channel.receive():
                if frame["type"] == "log.write":
                    self.log += frame["text"]
                else:
                    self._waiting.append(frame)
        return self._waiting.pop(0)

    async def end(self) -> Exit:
        self.channel.close()
        with trio.fail_after(30):
            return await self.process.wait_exited()


def how(ended: Exit) -> str:
    return "SIGSYS" if ended.kind == "sigsys" else f"{ended.kind} {ended.status}"


async def capture(zygote: Zygote | Spares, files: dict[str, bytes] | None = None) -> Captive:
    with trio.fail_after(30):
        ready = await (zygote.take() if isinstance(zygote, Spares) else spawn_ready(zygote))
        send_app(ready.channel, files or files_of(HOSTILE))
        await ready.channel.drain()
    return Captive(ready)
