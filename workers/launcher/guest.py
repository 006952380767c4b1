"""What a sealed process runs: wait for an instance, take its verified source, run it from memory.

Rules:
1. Nothing here happens before the seal is whole; source and app code only ever exist inside it.
2. `hello` is sent from inside trio.run, so a process that said it is ready to work (a spare).
3. Every file must have the name, size and SHA-256 that welcome announced, in that order, before any of it runs.
4. A module that is already loaded cannot be replaced by a file of the same name: such source is invalid.
5. Every end has its own ExitCode; the cause goes to the log, never into the code.
"""

from __future__ import annotations

import importlib
import io
import os
import socket
import sys
import traceback
from dataclasses import fields
from typing import NoReturn, Protocol, TypeVar

import trio

import lineup_sdk
from lineup_sdk.channel import Channel, ChannelClosed, ChannelOverflow
from lineup_sdk.protocol.control import ExitCode
from lineup_sdk.protocol.framing import ProtocolViolation, decode_item
from lineup_sdk.protocol.limits import MAX_FRAME_BYTES, MAX_WORKER_FRAME_BYTES, WIRE_VERSION
from lineup_sdk.protocol.messages import Chunk, Hello, Message, Welcome, to_frame
from workers.launcher.source import Gathering, MemoryImporter, SourceInvalid, read_announcement
from workers.launcher.stdio import LogBudget, LogStream

_SECONDS_TO_SAY_GOODBYE = 2.0

AnyMessage = TypeVar("AnyMessage", bound=Message)


class GuestEnds(Exception):
    """The guest cannot go on, for a reason that has an exit code."""

    def __init__(self, code: ExitCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class App(Protocol):
    """What an entry module offers under the name `app`."""

    async def serve(self, channel: Channel, welcome: Welcome) -> None:
        """Work until the kernel ends it."""


def run(channel_fd: int) -> NoReturn:
    """Be the guest on this channel; ends the process."""
    code = ExitCode.APP_FAILED
    try:
        code = trio.run(_live, channel_fd)
    except MemoryError:
        code = ExitCode.OUT_OF_MEMORY
    finally:
        os._exit(code)


async def _live(channel_fd: int) -> ExitCode:
    # Family and type are given: asking the system for them is refused here.
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=channel_fd)
    channel = Channel(sock, max_in_bytes=MAX_FRAME_BYTES, max_out_bytes=MAX_WORKER_FRAME_BYTES)
    _replace_stdio(channel)
    try:
        code = await _serve(channel)
    except BaseException as error:  # the last frame of a process: everything becomes a code
        code = _explain(error)
    with trio.move_on_after(_SECONDS_TO_SAY_GOODBYE):
        await _say_goodbye(channel)
    return code


async def _serve(channel: Channel) -> ExitCode:
    channel.send(to_frame(Hello(wire=WIRE_VERSION, sdk=lineup_sdk.__version__)))
    await channel.drain()
    frames = _Frames(channel)
    welcome = await frames.next(Welcome)
    try:
        announced = read_announcement(welcome.source)
        files = {file.name: await _receive_file(frames, Gathering(file)) for file in announced.files}
    except SourceInvalid as error:
        raise GuestEnds(ExitCode.SOURCE_INVALID, f"the source of the app is not valid: {error}") from error
    frames.give_back()
    MemoryImporter(files).install()
    app = _import_app(announced.entry.removesuffix(".py"))
    await app.serve(channel, welcome)
    return ExitCode.DONE


async def _receive_file(frames: _Frames, gathering: Gathering) -> bytes:
    while not gathering.is_whole:
        gathering.add(await frames.next(Chunk))
    return gathering.checked()


def _import_app(entry: str) -> App:
    """Run the entry module. Its import is already the app's own code: sealed, and in the loop the watchdog watches."""
    try:
        module = importlib.import_module(entry)
    except MemoryError:
        raise
    except BaseException as error:
        _log("".join(traceback.format_exception(error)))
        raise GuestEnds(ExitCode.IMPORT_FAILED, "the entry module could not be imported") from None
    app: App | None = getattr(module, "app", None)
    if app is None or not callable(getattr(app, "serve", None)):
        raise GuestEnds(ExitCode.NO_APP, "the entry module has no `app` with a serve method")
    return app


def _explain(error: BaseException) -> ExitCode:
    """Log what ended the guest and find its code."""
    if isinstance(error, ChannelClosed):
        return ExitCode.DONE
    if isinstance(error, GuestEnds):
        _log(f"{error}\n")
        return error.code
    if isinstance(error, MemoryError):
        error.__traceback__ = None  # its frames hold what filled the memory
        _log("out of memory\n")
        return ExitCode.OUT_OF_MEMORY
    if isinstance(error, ProtocolViolation | ChannelOverflow):
        _log("the channel is out of step\n")
        return ExitCode.WIRE_BROKEN
    _log("".join(traceback.format_exception(error)))
    return ExitCode.APP_FAILED


def _log(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


async def _say_goodbye(channel: Channel) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        await channel.drain()
    except ChannelClosed:
        return


def _replace_stdio(channel: Channel) -> None:
    budget = LogBudget()
    sys.stdin = sys.__stdin__ = io.StringIO()  # type: ignore[misc, assignment]
    sys.stdout = sys.__stdout__ = LogStream(channel, "stdout", budget)  # type: ignore[misc, assignment]
    sys.stderr = sys.__stderr__ = LogStream(channel, "stderr", budget)  # type: ignore[misc, assignment]


class _Frames:
    """Takes frames one by one and gives back the rest, so that the app sees every frame after its source."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._bodies: list[bytes] = []

    async def next(self, kind: type[AnyMessage]) -> AnyMessage:
        """Wait for the next frame, which must be of this kind. Raises: ProtocolViolation, ChannelClosed."""
        while not self._bodies:
            self._bodies = await self._channel.receive_bodies()
        frame = decode_item(self._bodies.pop(0))
        if frame.pop("type", None) != kind.TYPE:
            raise ProtocolViolation("out_of_turn")
        names = {field.name for field in fields(kind)}
        if not frame.keys() <= names:
            raise ProtocolViolation("fields")
        return kind(**frame)

    def give_back(self) -> None:
        """Leave what was not taken to the next reader of the channel."""
        self._channel.push_back(self._bodies)
