"""How the good worker asks the kernel: requests with their one reply, and what comes in parts behind it."""

from __future__ import annotations

from typing import Any

import trio

from lineup_sdk.channel import Channel
from lineup_sdk.protocol.framing import ProtocolViolation
from lineup_sdk.protocol.messages import to_frame
from lineup_sdk.protocol.parsing import check_reply


class Refused(Exception):
    """The kernel refused a request."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Ticket:
    """A reply that is owed."""

    def __init__(self, message: Any) -> None:
        self.message = message
        self.settled = trio.Event()
        self.reply: Any = None
        self.parts = b""
        self.is_whole = trio.Event()


class Asking:
    """See the head of the file."""

    channel: Channel

    def __init__(self) -> None:
        self.last_id = 0
        self.owed: dict[int, Ticket] = {}
        self.content: dict[str, Ticket] = {}

    def send(self, message: Any) -> None:
        self.send_frame(to_frame(message))

    def send_frame(self, frame: dict[str, Any]) -> None:
        self.channel.send(frame)

    def write(self, data: bytes) -> None:
        """Bytes the channel itself would not take."""
        self.channel._queue += data
        self.channel._wake.set()

    def post(self, message: Any) -> Ticket:
        self.last_id += 1
        ticket = self.owed[self.last_id] = Ticket(message)
        ticket.request_id = self.last_id  # type: ignore[attr-defined]
        self.send_frame(to_frame(message, self.last_id))
        return ticket

    async def wait(self, ticket: Ticket) -> dict[str, Any]:
        await ticket.settled.wait()
        reply = ticket.reply
        if reply.receipt is not None and not reply.receipt["accepted"]:
            raise Refused(reply.receipt["code"])
        return reply.value or {}

    async def ask(self, message: Any) -> dict[str, Any]:
        return await self.wait(self.post(message))

    async def fetch(self, message: Any) -> bytes:
        ticket = self.post(message)
        await self.wait(ticket)
        await ticket.is_whole.wait()
        return ticket.parts

    def on_reply(self, reply: Any) -> None:
        if reply.id not in self.owed:
            raise ProtocolViolation("reply_id")
        ticket = self.owed.pop(reply.id)
        check_reply(reply, type(ticket.message))
        if reply.value and "of" in reply.value:
            self.content[reply.value["of"]] = ticket
        ticket.reply = reply
        ticket.settled.set()

    def on_chunk(self, chunk: Any) -> None:
        if chunk.of not in self.content:
            raise ProtocolViolation("chunk_of")
        ticket = self.content[chunk.of]
        ticket.parts += chunk.data
        if chunk.last:
            del self.content[chunk.of]
            ticket.is_whole.set()
