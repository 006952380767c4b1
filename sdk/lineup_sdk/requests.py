"""What a MiniApp asks the kernel, and the one reply to each question.

Use: `await requests.request(message)` for the reply; `await requests.post(message)` to queue the frame now and wait for the reply later.
Rules:
1. A frame is queued before `post` waits for anything, as long as fewer than MAX_IN_FLIGHT replies are owed: what is posted in
   one step leaves in one write.
2. Every value is held against its message and walked before it leaves. What the wire does not admit is the author's mistake
   (Unsendable), never a wire error: that would cost the instance its life.
3. A slot belongs to the reply that is owed, not to the task that waits: a cancelled wait gives it back only when the reply comes.
4. A reply nobody asked for, or of a wrong shape, is a ProtocolViolation.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from lineup_sdk.channel import Channel, ChannelClosed
from lineup_sdk.errors import Refused
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.framing import ProtocolViolation, check_value
from lineup_sdk.protocol.limits import MAX_WORKER_FRAME_BYTES
from lineup_sdk.protocol.messages import FROM_WORKER, Chunk, JsonObject, Message, Reply, to_frame
from lineup_sdk.protocol.parsing import CONTENT_FOLLOWS, BadField, check_fields, check_reply

MAX_IN_FLIGHT = 256  # above the 64 calls an instance may have open (SPEC 16), each with an accept and an ending


class Unsendable(ValueError):
    """A value holds something no wire admits: `reason` is a fixed word such as number, integer_range, key, value_kind, depth.

    field_kind, field_bound and field_missing tell of an argument that is not what its message says: `pointer` names it (`/call_id`),
    `expected` says what it has to be.
    """

    def __init__(self, reason: str, pointer: str = "", expected: str = "") -> None:
        place = f" at {pointer}: expected {expected}" if pointer else ""
        super().__init__(f"the value cannot travel: {reason}{place}")
        self.reason = reason
        self.pointer = pointer
        self.expected = expected


class Content:
    """What comes in chunks after a value."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._is_whole = False
        self._ended = trio.Event()

    def add(self, data: bytes, *, last: bool) -> None:
        """Take the next part."""
        self._parts.append(data)
        if last:
            self._is_whole = True
            self._ended.set()

    def cut(self) -> None:
        """No more will come."""
        self._ended.set()

    async def wait(self) -> bytes:
        """Return all of it. Raises: ChannelClosed."""
        await self._ended.wait()
        if not self._is_whole:
            raise ChannelClosed
        return b"".join(self._parts)


class Ticket:
    """The right to one reply."""

    def __init__(self, request_id: int, message: Message, on_refused: Callable[[str], None] | None) -> None:
        self.request_id = request_id
        self.message = message
        self.content: Content | None = None  # what follows the value, once that is here
        self._on_refused = on_refused
        self._is_settled = trio.Event()
        self._reply: Reply | None = None

    @property
    def is_settled(self) -> bool:
        """True once the reply is here, or none will come."""
        return self._is_settled.is_set()

    def settle(self, reply: Reply | None) -> None:
        """Hand over the reply, or None when none will ever come."""
        self._reply = reply
        self._is_settled.set()
        if self._on_refused and reply and reply.receipt and not reply.receipt["accepted"]:
            self._on_refused(reply.receipt["code"])

    async def wait(self) -> JsonObject:
        """Return the value or the accepted receipt. Raises: Refused, ChannelClosed."""
        await self._is_settled.wait()
        reply = self._reply
        if reply is None:
            raise ChannelClosed
        if reply.receipt is None:
            return reply.value or {}
        if not reply.receipt["accepted"]:
            raise Refused(reply.receipt["code"], reply.receipt.get("detail"))
        return reply.receipt


class Requests:
    """See the head of the file. Lives as long as the MiniApp; a channel is open only while it is served."""

    def __init__(self) -> None:
        self._channel: Channel | None = None
        self._was_open = False
        self._owed: dict[int, Ticket] = {}
        self._arriving: dict[str, Content] = {}  # by the name its chunks have
        self._slots = trio.Semaphore(MAX_IN_FLIGHT)
        self._last_id = 0

    def open(self, channel: Channel) -> None:
        """Begin to speak on a channel. Raises: RuntimeError when one is open."""
        if self._channel is not None:
            raise RuntimeError("this MiniApp is already being served")
        self._channel = channel
        self._was_open = True

    def close(self) -> None:
        """Forget the channel; whoever still waits for a reply gets ChannelClosed."""
        self._channel = None
        owed, self._owed = self._owed, {}
        self._slots = trio.Semaphore(MAX_IN_FLIGHT)
        for ticket in owed.values():
            ticket.settle(None)
        arriving, self._arriving = self._arriving, {}
        for content in arriving.values():
            content.cut()

    def send(self, message: Message) -> None:
        """Queue a message that is not answered. Raises: Unsendable, Refused(limit_exceeded), ChannelClosed, ChannelOverflow."""
        self._queue(to_frame(message))

    async def post(self, message: Message, on_refused: Callable[[str], None] | None = None) -> Ticket:
        """Queue a request and return its ticket; waits only while MAX_IN_FLIGHT replies are owed. Raises: as send."""
        slots = self._slots
        try:
            slots.acquire_nowait()
        except trio.WouldBlock:
            await slots.acquire()
        self._last_id += 1
        try:
            self._queue(to_frame(message, self._last_id))
        except BaseException:
            slots.release()
            raise
        ticket = self._owed[self._last_id] = Ticket(self._last_id, message, on_refused)
        return ticket

    async def request(self, message: Message) -> JsonObject:
        """Ask and wait: the value, or the accepted receipt. Raises: Refused with the kernel's code; as send. Source: SPEC 2.5."""
        return await (await self.post(message)).wait()

    async def fetch(self, message: Message) -> tuple[JsonObject, bytes]:
        """Ask for what comes in chunks: the value, and the content that follows it. Raises: as request, ChannelClosed."""
        ticket = await self.post(message)
        value = await ticket.wait()
        if ticket.content is None:
            raise ProtocolViolation("reply")
        return value, await ticket.content.wait()

    def take_reply(self, reply: Reply) -> None:
        """Settle the ticket a reply belongs to. Raises: ProtocolViolation."""
        ticket = self._owed.pop(reply.id, None)
        if ticket is None:
            raise ProtocolViolation("reply_id")
        check_reply(reply, type(ticket.message))
        self._slots.release()
        if reply.value is not None and type(ticket.message) in CONTENT_FOLLOWS:
            ticket.content = self._arriving[reply.value["of"]] = Content()
        ticket.settle(reply)

    def take_chunk(self, chunk: Chunk) -> None:
        """Take a part of what follows a value. Raises: ProtocolViolation for a part of nothing."""
        content = self._arriving.get(chunk.of)
        if content is None:
            raise ProtocolViolation("chunk_of")
        content.add(chunk.data, last=chunk.last)
        if chunk.last:
            del self._arriving[chunk.of]

    async def wait_queued_below(self, max_bytes: int) -> None:
        """Wait until less than that waits for the kernel to read. Raises: ChannelClosed."""
        if self._channel is None:
            raise ChannelClosed
        await self._channel.wait_queued_below(max_bytes)

    def flush(self) -> None:
        """Write now what is queued. Raises: ChannelClosed."""
        if self._channel is not None:
            self._channel.flush()

    def _queue(self, frame: JsonObject) -> None:
        if self._channel is None:
            if self._was_open:
                raise ChannelClosed
            raise RuntimeError("this MiniApp is not being served: the kernel can be asked from its handlers only")
        try:
            check_fields(FROM_WORKER[frame["type"]], {name: value for name, value in frame.items() if name not in ("type", "id")})
            check_value(frame)
        except BadField as bad:
            raise Unsendable(bad.reason, bad.pointer, bad.expected) from None
        except ProtocolViolation as violation:
            raise Unsendable(violation.reason) from None
        try:
            self._channel.send(frame)
        except ProtocolViolation:  # the one refusal left: the size
            expected = f"a message of at most {MAX_WORKER_FRAME_BYTES} bytes"
            raise Refused(Code.LIMIT_EXCEEDED, {"pointer": "", "expected": expected}) from None
