"""The local socket, and the hello every host channel begins with (SPEC 2.6, 2.8).

Rules:
1. The socket stands in a 0700 folder; the peer's uid must be ours. Further views and admins show the pairing secret; the channel
   inherited from the launcher needs none.
2. Who is attached when the kernel ends on purpose is told so; a kernel that breaks says nothing, and its hosts start it again.
3. The socket is bound through the folder's descriptor: the length of a home's path is no limit for the name of a socket.
4. A peer that does not say hello in time, or says it wrong, is gone; with a code where it can read one.
"""

from __future__ import annotations

import errno
import hmac
import os
import socket
import struct
from contextlib import suppress
from pathlib import Path

import trio

from kernel import log
from kernel.agent_port import AgentPort
from kernel.host_port import HostPort
from kernel.protocol.host import Goodbye, HostHello
from kernel.protocol.strict import Invalid, parse_host
from lineup_sdk.channel import Channel, ChannelClosed, ChannelOverflow
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.framing import ProtocolViolation, decode_item
from lineup_sdk.protocol.limits import MAX_FRAME_BYTES, WIRE_VERSION
from lineup_sdk.protocol.messages import JsonObject, to_frame

HELLO_SECONDS = 5.0
FAREWELL_SECONDS = 1.0
MAX_CONNECTIONS = 64
NOT_ACCEPTED_SECONDS = 0.1  # the peer stays in the backlog, so asking again at once would be a busy loop
_BACKLOG = 16
_PASSING = frozenset({errno.ECONNABORTED, errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Listener:
    """Accepts host channels and hands each to its port."""

    def __init__(self, path: Path, pairing: str, host_port: HostPort, agent_port: AgentPort) -> None:
        self._path = path
        self._pairing = pairing
        self._host_port = host_port
        self._agent_port = agent_port
        self._places = trio.Semaphore(MAX_CONNECTIONS)
        self._served: set[Channel] = set()  # said hello and were admitted

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Accept until cancelled."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as plain:
            self._path.unlink(missing_ok=True)  # ours: the home's lock is held
            _bind(plain, self._path)
            plain.listen(_BACKLOG)
            listening = trio.socket.from_stdlib_socket(plain)
            task_status.started()
            async with trio.open_nursery() as nursery:
                while True:
                    await self._places.acquire()  # before a descriptor is taken: those who come too many wait in the backlog
                    peer = await _accept(listening)
                    nursery.start_soon(self._admit, socket.socket(fileno=peer.detach()))

    async def _admit(self, sock: socket.socket) -> None:
        try:
            _, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            if uid != os.getuid():
                log.trouble("host.foreign_uid")
                sock.close()
                return
            await self.serve(sock, is_trusted=False)
        finally:
            self._places.release()

    async def serve(self, sock: socket.socket, *, is_trusted: bool) -> None:
        """Read the hello of one channel and hand it to its port; the channel is closed when this returns."""
        channel = Channel(sock, max_in_bytes=MAX_FRAME_BYTES, max_out_bytes=MAX_FRAME_BYTES)
        try:
            hello = await _read_hello(channel)
            if hello is None:
                return
            refusal = self._refusal(hello, is_trusted=is_trusted)
            if refusal is not None:
                log.event("host.refused", role=hello.role, code=refusal)
                await say_goodbye(channel, refusal)
            else:
                await self._hand_over(channel, hello)
        finally:
            channel.close()

    async def _hand_over(self, channel: Channel, hello: HostHello) -> None:
        port = self._agent_port if hello.role == "agent" else self._host_port
        self._served.add(channel)
        try:
            await port.serve(channel, hello)
        finally:
            self._served.discard(channel)

    async def farewell(self, code: Code, hint: str) -> None:
        """Tell everybody who is attached why the kernel ends; who does not read misses it."""
        frame = to_frame(Goodbye(code=code.value, detail={"hint": hint}))
        with trio.move_on_after(FAREWELL_SECONDS):
            for channel in list(self._served):
                with suppress(ChannelClosed, ChannelOverflow):
                    channel.send(frame)
                    channel.flush()
            for channel in list(self._served):
                with suppress(ChannelClosed):
                    await channel.wait_queued_below(1)

    def _refusal(self, hello: HostHello, *, is_trusted: bool) -> Code | None:
        if hello.wire != WIRE_VERSION:
            return Code.UNSUPPORTED_VERSION
        if hello.role != "agent" and not is_trusted and not hmac.compare_digest((hello.pairing or "").encode(), self._pairing.encode()):
            return Code.CAPABILITY_DENIED
        return None


def _bind(plain: socket.socket, path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        plain.bind(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)


async def _accept(listening: trio.socket.SocketType) -> trio.socket.SocketType:
    while True:
        try:
            peer, _ = await listening.accept()
        except OSError as error:
            if error.errno not in _PASSING:
                raise
            log.trouble("host.not_accepted", reason=errno.errorcode[error.errno])
            await trio.sleep(NOT_ACCEPTED_SECONDS)
        else:
            return peer


async def _read_hello(channel: Channel) -> HostHello | None:
    with trio.move_on_after(HELLO_SECONDS):
        try:
            bodies = await channel.receive_bodies()
            message, _ = parse_host(decode_item(bodies[0]))
        except (ProtocolViolation, Invalid):
            await say_goodbye(channel, Code.PROTOCOL_VIOLATION)
            return None
        except ChannelClosed:
            return None
        if isinstance(message, HostHello) and len(bodies) == 1:
            return message
        await say_goodbye(channel, Code.PROTOCOL_VIOLATION)
    return None


async def say_goodbye(channel: Channel, code: Code, detail: JsonObject | None = None) -> None:
    """Tell a peer why its channel ends; a peer that does not read misses it."""
    with trio.move_on_after(1):
        try:
            channel.send(to_frame(Goodbye(code=code.value, detail=detail)))
            await channel.drain()
        except ChannelClosed:
            return
