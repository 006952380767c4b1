"""Two sealed processes that wait inside their event loop for an instance, refilled in the background.

Use: `spares = Spares(zygote)`; `nursery.start_soon(spares.run)`; `ready = await spares.take()`.
Rules:
1. A spare has said hello with our wire version; what follows on its channel is the instance's.
2. A process that has not said hello in SPAWN_SECONDS is killed; who takes next gets SpawnFailed, and the place is refilled.
3. A failed spawn holds its place until it is taken, so a machine that cannot fork is asked once a taker, not in a loop.
4. Spares belong to one zygote; with a new zygote come new spares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import trio

from kernel.zygote import SpawnedProcess, SpawnFailed, Zygote
from lineup_sdk.channel import Channel, ChannelClosed
from lineup_sdk.protocol.framing import ProtocolViolation
from lineup_sdk.protocol.limits import MAX_FRAME_BYTES, MAX_WORKER_FRAME_BYTES, WIRE_VERSION

SPARES = 2
SPAWN_SECONDS = 5.0
MAX_SDK_NAME = 64


@dataclass(frozen=True, slots=True)
class Ready:
    """A sealed process whose hello was read and checked. No task runs on the channel yet. sdk = the version it said."""

    process: SpawnedProcess
    channel: Channel
    sdk: str


class Spares:
    """See the head of the file."""

    def __init__(self, zygote: Zygote, size: int = SPARES) -> None:
        self._zygote = zygote
        self._places = trio.Semaphore(size)
        self._put, self._get = trio.open_memory_channel[Ready | SpawnFailed](size)

    async def run(self) -> None:
        """Keep the places filled, until cancelled or the zygote is dead; spares nobody took are then killed."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._refill, nursery)
                await self._zygote.wait_dead()
                nursery.cancel_scope.cancel()
        finally:
            self._close()

    async def take(self) -> Ready:
        """Wait for a spare that lives. Raises: SpawnFailed (deadline, hello_missing, hello_invalid, zygote_dead, or the system's)."""
        while True:
            try:
                outcome = await self._get.receive()
            except (trio.EndOfChannel, trio.ClosedResourceError) as error:
                raise SpawnFailed("zygote_dead") from error
            self._places.release()
            if isinstance(outcome, SpawnFailed):
                raise SpawnFailed(outcome.reason) from outcome
            if outcome.process.is_alive:
                return outcome
            outcome.channel.close()

    async def _refill(self, nursery: trio.Nursery) -> None:
        while True:
            await self._places.acquire()
            nursery.start_soon(self._fill_place)

    async def _fill_place(self) -> None:
        try:
            outcome: Ready | SpawnFailed = await spawn_ready(self._zygote)
        except SpawnFailed as error:
            outcome = error
        self._put.send_nowait(outcome)

    def _close(self) -> None:
        self._put.close()
        while True:
            try:
                outcome = self._get.receive_nowait()
            except (trio.WouldBlock, trio.EndOfChannel):
                break
            if isinstance(outcome, Ready):
                outcome.process.kill()
                outcome.channel.close()
        self._get.close()


async def spawn_ready(zygote: Zygote) -> Ready:
    """Spawn one process and wait for its hello. Raises: SpawnFailed; the process is then killed."""
    process: SpawnedProcess | None = None
    channel: Channel | None = None
    has_hello = False
    try:
        with trio.fail_after(SPAWN_SECONDS):
            process = await zygote.spawn()
            channel = Channel(process.sock, max_in_bytes=MAX_WORKER_FRAME_BYTES, max_out_bytes=MAX_FRAME_BYTES)
            sdk = await _read_hello(channel)
        has_hello = True
        return Ready(process, channel, sdk)
    except trio.TooSlowError as error:
        raise SpawnFailed("deadline") from error
    finally:
        if not has_hello:
            if channel is not None:
                channel.close()
            if process is not None:
                process.kill()


async def _read_hello(channel: Channel) -> str:
    try:
        frames = await channel.receive()
    except ChannelClosed as error:
        raise SpawnFailed("hello_missing") from error
    except ProtocolViolation as error:
        raise SpawnFailed("hello_invalid") from error
    if len(frames) != 1:
        raise SpawnFailed("hello_invalid")
    return _check_hello(frames[0])


def _check_hello(untrusted_hello: dict[str, Any]) -> str:
    sdk = untrusted_hello.get("sdk")
    if untrusted_hello.keys() != {"type", "wire", "sdk"} or untrusted_hello["type"] != "hello":
        raise SpawnFailed("hello_invalid")
    if type(untrusted_hello["wire"]) is not int or type(sdk) is not str or len(sdk) > MAX_SDK_NAME:
        raise SpawnFailed("hello_invalid")
    if untrusted_hello["wire"] != WIRE_VERSION:
        raise SpawnFailed("unsupported_version")
    return sdk
