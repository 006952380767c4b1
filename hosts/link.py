"""One end of the host channel: connect to a running kernel, ask, hear (SPEC 2.6, 2.8). Shared by all hosts.

Use: `link = await connect(nursery, home, hello)`; `await link.request(message)` for a value; `async for event in link.events`.
Rules:
1. A link lives once. When it ends, `events` ends, every open request raises LinkLost, and `farewell` says what the kernel said last.
2. A view or admin whose reader lags is cut here (its events may not hold up its replies); it comes back and gets a new snapshot.
   An agent, which asks nothing, is slowed instead: what it has not taken stays with the kernel.
3. The socket is reached through the descriptor of the run folder, so that the length of a path is no limit and a swapped link no way in.
   Folder and peer must be this user's before the pairing secret is shown.
4. What comes is parsed strictly: an unknown type or field ends the link.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import trio

from hosts.homes import Home
from kernel.protocol.host import TO_HOST, Goodbye, HostHello, HostReply, HostWelcome
from lineup_sdk.channel import Channel, ChannelClosed, ChannelOverflow
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.framing import ProtocolViolation, check_value
from lineup_sdk.protocol.limits import MAX_FRAME_BYTES, WIRE_VERSION
from lineup_sdk.protocol.messages import Chunk, JsonObject, Message, to_frame

Event = Message  # every frame of TO_HOST that is not part of an answer or of the channel's own life

MAX_WAITING_EVENTS = 1024
_PEER = struct.Struct("3i")  # pid, uid, gid


class Refused(Exception):
    """The kernel refused. `code` is one of lineup_sdk.protocol.codes.Code; `detail` says where and what was expected."""

    def __init__(self, code: str, detail: JsonObject | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail or {}


class KernelUnreachable(Exception):
    """No kernel answers on this home. `code` says why, `detail.hint` what to do."""

    def __init__(self, code: str, detail: JsonObject | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail or {}


class LinkLost(Exception):
    """The channel ended while a request was open: whether it was done is not known."""


def hello(role: str, *, label: str | None = None, demo: bool = False, providers: list[str] | None = None) -> HostHello:
    """Build the first frame of a link. role: view | admin | agent; providers: the capabilities a view can carry out."""
    return HostHello(wire=WIRE_VERSION, role=role, demo=demo, label=label, providers=providers)


def _parse(frame: dict[str, Any]) -> Message:
    fields = dict(frame)
    name = fields.pop("type", "")
    kind = TO_HOST.get(name) if type(name) is str else None  # what is no text may have no hash to look for
    if kind is None:
        raise ProtocolViolation("type")
    try:
        return kind(**fields)
    except TypeError as error:
        raise ProtocolViolation("fields") from error


class _Answer:
    """The slot a request waits on."""

    __slots__ = ("arrived", "content", "ended", "reply")

    def __init__(self) -> None:
        self.arrived = trio.Event()
        self.reply: HostReply | None = None
        self.content = bytearray()  # of the chunks that follow the reply, for a request that fetches
        self.ended = trio.Event()


class HostLink:
    """See the head of the file. Made by connect() and greet() only."""

    def __init__(self, channel: Channel, role: str, welcome: HostWelcome, early: Iterable[dict[str, Any]]) -> None:
        self.welcome = welcome
        self.farewell: Goodbye | None = None
        self._channel = channel
        self._role = role
        self._early = list(early)
        self._answers: dict[int, _Answer] = {}
        self._next_id = 1
        self._ended = trio.Event()
        self._to_events, self.events = trio.open_memory_channel[Event](MAX_WAITING_EVENTS)

    @property
    def is_lost(self) -> bool:
        """True once the link ended."""
        return self._ended.is_set()

    async def request(self, message: Message) -> JsonObject:
        """Ask, and return the value or the accepted receipt.

        Raises: Refused(code, detail), LinkLost. Waits as long as the kernel takes: deadlines are the caller's.
        """
        request_id, self._next_id = self._next_id, self._next_id + 1
        answer = self._answers[request_id] = _Answer()
        try:
            self._queue(message, request_id)
            await answer.arrived.wait()
        finally:
            del self._answers[request_id]
        return _value_of(answer.reply)

    async def fetch(self, message: Message) -> tuple[JsonObject, bytes]:
        """Ask for what is answered by a value and content in chunks (artifact.get, surface.mount); return both. Raises: as request."""
        request_id, self._next_id = self._next_id, self._next_id + 1
        answer = self._answers[request_id] = _Answer()
        try:
            self._queue(message, request_id)
            await answer.arrived.wait()
            value = _value_of(answer.reply)
            await answer.ended.wait()
        finally:
            del self._answers[request_id]
        if self.is_lost:
            raise LinkLost
        return value, bytes(answer.content)

    def send(self, message: Message) -> None:
        """Send what gets no reply (envelope.submit, outbox.acknowledge). Raises: LinkLost, Refused(limit_exceeded | protocol_violation)."""
        self._queue(message, None)

    def close(self) -> None:
        """End the link; its tasks finish."""
        self._channel.close()

    async def wait_lost(self) -> None:
        """Wait until the link has ended."""
        await self._ended.wait()

    def _queue(self, message: Message, request_id: int | None) -> None:
        if self.is_lost:
            raise LinkLost
        frame = to_frame(message, request_id)
        try:
            check_value(frame)  # an argument of the command line may be anything; the kernel would close the channel over it
        except ProtocolViolation as error:
            raise Refused(Code.PROTOCOL_VIOLATION, {"expected": "a value that the wire admits", "reason": error.reason}) from error
        try:
            self._channel.send(frame)
            self._channel.flush()
        except ProtocolViolation as error:
            raise Refused(Code.LIMIT_EXCEEDED, {"expected": f"at most {MAX_FRAME_BYTES} bytes in one message"}) from error
        except ChannelOverflow as error:
            self.close()
            raise LinkLost from error
        except ChannelClosed as error:
            raise LinkLost from error

    async def run(self) -> None:
        """Read and write until the channel ends; never raises for the peer's doing."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write)
                await self._read()
                nursery.cancel_scope.cancel()
        finally:
            self._end()

    async def _write(self) -> None:
        try:
            await self._channel.run_flusher()
        except ChannelClosed:
            return  # the reader sees it too, after whatever the kernel said last

    async def _read(self) -> None:
        try:
            await self._take_all(self._early)
            while True:
                await self._take_all(await self._channel.receive())
        except ChannelClosed:
            return
        except ProtocolViolation:
            self.farewell = Goodbye(code=Code.PROTOCOL_VIOLATION)

    async def _take_all(self, frames: Iterable[dict[str, Any]]) -> None:
        for frame in frames:
            await self._take(_parse(frame))

    async def _take(self, message: Message) -> None:
        match message:
            case HostReply():
                if type(message.id) is not int:
                    raise ProtocolViolation("fields")
                if answer := self._answers.get(message.id):
                    answer.reply = message
                    answer.arrived.set()
            case Chunk():
                self._take_chunk(message)
            case Goodbye():
                self.farewell = message
            case HostWelcome():
                raise ProtocolViolation("order")
            case _:
                await self._hand_over(message)

    def _take_chunk(self, chunk: Chunk) -> None:
        """Content comes after its reply and bears the name the reply gave it; what nobody waits for any more is dropped."""
        for answer in self._answers.values():
            if answer.reply is not None and (answer.reply.value or {}).get("of") == chunk.of:
                answer.content += chunk.data
                if chunk.last:
                    answer.ended.set()

    async def _hand_over(self, event: Event) -> None:
        if self._role == "agent":
            await self._to_events.send(event)
            return
        try:
            self._to_events.send_nowait(event)
        except trio.WouldBlock as lagging:
            raise ChannelClosed from lagging  # rule 2

    def _end(self) -> None:
        self._ended.set()
        self._channel.close()
        self._to_events.close()
        for answer in self._answers.values():
            answer.arrived.set()
            answer.ended.set()


def _value_of(reply: HostReply | None) -> JsonObject:
    if reply is None:
        raise LinkLost
    if reply.receipt is None:
        return reply.value or {}
    if not reply.receipt.get("accepted"):
        raise Refused(str(reply.receipt.get("code", Code.UNKNOWN)), reply.receipt.get("detail"))
    return reply.receipt


async def greet(nursery: trio.Nursery, sock: socket.socket, greeting: HostHello) -> HostLink:
    """Say hello on a fresh socket and return the link once welcomed; its tasks run in the nursery.

    Raises: Refused(code) when the kernel says goodbye, KernelUnreachable when it says nothing or something else.
    """
    channel = Channel(sock, max_in_bytes=MAX_FRAME_BYTES, max_out_bytes=MAX_FRAME_BYTES)
    try:
        channel.send(to_frame(greeting))
        await channel.drain()
        first, *rest = await channel.receive()
        welcome = _require_welcome(_parse(first))
    except BaseException as error:
        channel.close()
        if isinstance(error, ChannelClosed):
            raise KernelUnreachable("kernel_unreachable", {"hint": "the kernel closed the connection before it answered"}) from error
        if isinstance(error, ProtocolViolation):
            raise KernelUnreachable(Code.PROTOCOL_VIOLATION, {"hint": "what answers on the socket is not a LineUp kernel"}) from error
        raise
    link = HostLink(channel, greeting.role, welcome, rest)
    nursery.start_soon(link.run)
    return link


def _require_welcome(message: Message) -> HostWelcome:
    if isinstance(message, Goodbye):
        raise Refused(message.code, message.detail)
    if not isinstance(message, HostWelcome):
        raise ProtocolViolation("order")
    if message.wire != WIRE_VERSION:
        raise Refused(Code.UNSUPPORTED_VERSION, {"hint": "the running kernel is of another version; run `lineup stop` and try again"})
    return message


async def connect(nursery: trio.Nursery, home: Home, greeting: HostHello) -> HostLink:
    """Attach to the running kernel of this home.

    Raises: KernelUnreachable when none runs, Refused(capability_denied | door_busy | unsupported_version).
    """
    if greeting.role != "agent":
        greeting = replace(greeting, pairing=home.pairing())
    return await greet(nursery, _open_socket(home), greeting)


def _open_socket(home: Home) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.setblocking(False)
    folder = -1
    try:
        folder = os.open(home.run_folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        _require_own_folder(folder)
        sock.connect(f"/proc/self/fd/{folder}/kernel.sock")
        _require_own_peer(sock)
    except OSError as error:
        sock.close()
        raise KernelUnreachable("kernel_unreachable", {"hint": "start one with `lineup run`"}) from error
    except KernelUnreachable:
        sock.close()
        raise
    finally:
        if folder >= 0:
            os.close(folder)
    return sock


def _require_own_folder(folder: int) -> None:
    found = os.fstat(folder)
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise KernelUnreachable(Code.STORE_FOREIGN, {"hint": "the run folder of this home is open to other users"})


def _require_own_peer(sock: socket.socket) -> None:
    _, uid, _ = _PEER.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    if uid != os.geteuid():
        raise KernelUnreachable(Code.STORE_FOREIGN, {"hint": "the socket of this home belongs to another user"})
