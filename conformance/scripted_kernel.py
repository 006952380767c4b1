"""One life of a worker as the kernel sees it: everything it says is read strictly, written down and answered by the kernel's rules.

Rules:
1. Requests are answered by the SDK's own rules of the kernel (lineup_sdk.testing.rules); a script refuses some, holds replies back, or
   sends any bytes beside them.
2. What the wire does not admit is written down with its reason and ends the channel, as in the kernel.
3. A wait is bounded by `patience` seconds and ends early when the worker is gone. Quiet is not a time: a worker is quiet when it answered
   QUIET_ROUNDS pings, one after the other, and said nothing but log lines. So a loaded machine makes it slow, not wrong.
4. When the time of a wait is over, a worker that has started is late only if it had its turn since: it is pinged, and what it says before
   it is quiet still counts. A ping may take as long as LATE_PATIENCES waits.
5. A worker that never stops talking is not listened to for ever: over MAX_HEARD frames in a life end the channel, a wait for quiet in
   which it spoke behind MAX_RESTLESS_ROUNDS pings is over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import cbor2
import trio

from conformance.case import Broken
from conformance.sealed import Process
from conformance.trace import Answered, Entry, Heard, framed, hear
from conformance.wire import Wire
from lineup_sdk.errors import Refused
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.framing import encode_frame
from lineup_sdk.protocol.limits import MAX_FRAME_BYTES
from lineup_sdk.protocol.messages import (
    Chunk,
    InboxDelivered,
    JsonObject,
    LogWrite,
    Message,
    Ping,
    Pong,
    Reply,
    to_frame,
)
from lineup_sdk.protocol.parsing import CONTENT_FOLLOWS, REPLY_VALUES
from lineup_sdk.protocol.surface_messages import ArtifactPut
from lineup_sdk.testing.records import FakeCall, FakeMessage
from lineup_sdk.testing.rules import Desk, content_of
from lineup_sdk.testing.surfaces import chunks_of

QUIET_ROUNDS = 6
LATE_PATIENCES = 4
MAX_HEARD = 20_000  # of a life: ten seconds of all that a kernel takes (SPEC 16), and many times what any case has a worker say
MAX_RESTLESS_ROUNDS = 500
_FIRST_PING = 1_000_000  # of those that only ask for quiet


class Session:
    """See the head of the file."""

    def __init__(self, process: Process, desk: Desk, granted: frozenset[str], patience: float) -> None:
        self.process = process
        self.desk = desk
        self.patience = patience
        self.trace: list[Entry] = []
        self.wire = Wire(process.sock, self._take_body, self._notify)
        self.broken = ""  # the reason, once the worker broke the wire
        self.pongs: list[int] = []
        self._granted = granted
        self._refusals: dict[str, list[str]] = {}
        self._held_types: set[str] = set()
        self.held: list[tuple[Message, int]] = []  # requests that got no reply yet, while their type is held
        self._delivered: set[str] = set()
        self._together: list[Message] | None = None  # deliveries that wait to leave together
        self._changed = trio.Event()
        self._began = trio.current_time()
        self._last_ping = _FIRST_PING
        self._heard = 0
        self._said = 0  # how often the worker said something that is neither pong nor log
        self.is_deaf = False  # it left a ping without an answer

    @property
    def is_ended(self) -> bool:
        """True once the channel is closed, by either end."""
        return self.wire.is_ended

    # --- what came

    def _take_body(self, body: bytes | None) -> None:
        at = trio.current_time() - self._began
        self._take(Heard(at=at, size=0, trouble="frame_size") if body is None else hear(body, at))

    def _take(self, heard: Heard) -> None:
        self.trace.append(heard)
        message, request_id = heard.message, heard.request_id
        self._heard += 1
        self._said += not isinstance(message, LogWrite | Pong)
        if self._heard > MAX_HEARD:
            self._break("flood")
        elif message is None:
            self._take_trouble(heard)
        elif message.TYPE not in self._granted:
            self._refuse(message, request_id or 0, Refused(Code.CAPABILITY_DENIED))
        elif isinstance(message, Pong):
            self.pongs.append(message.n)
        elif isinstance(message, Chunk):
            self._take_chunk(message)
        elif request_id is None:
            if message.TYPE != "hello":
                self.desk.answer(message)
        elif message.TYPE in self._held_types:
            self.held.append((message, request_id))
        else:
            self.answer(message, request_id)
        self.deliver_waiting()

    def _take_trouble(self, heard: Heard) -> None:
        request_id = heard.frame.get("id")
        if heard.trouble == "identity" and type(request_id) is int:  # refused, not the end of the channel (SPEC 2.3)
            self.send_frame({"type": "reply", "id": request_id, "receipt": _receipt(Code.CAPABILITY_DENIED)})
        elif heard.trouble != "identity":
            self._break(heard.trouble)

    def _break(self, trouble: str) -> None:
        self.broken = trouble
        self.wire.hang_up()

    def answer(self, message: Message, request_id: int) -> None:
        """Answer a request as the kernel would, or as the script says."""
        if codes := self._refusals.get(message.TYPE):
            self._refuse(message, request_id, Refused(codes.pop(0)))
            return
        try:
            if isinstance(message, ArtifactPut):
                self.desk.check(message, lambda: self.desk.artifacts.begin(message, request_id))
                return
            value = self.desk.answer(message)
        except Refused as refused:
            self._refuse(message, request_id, refused)
            return
        self._accept(message, request_id, value)

    def _accept(self, message: Message, request_id: int, value: JsonObject | None) -> None:
        self.trace.append(Answered(to=message, request_id=request_id, code=""))
        if type(message) in CONTENT_FOLLOWS:
            of = f"{message.TYPE}:{request_id}"
            self.send(Reply(id=request_id, value={**(value or {}), "of": of}))
            for chunk in self.chunked(of, content_of(self.desk, message)):
                self.send(chunk)
        elif type(message) in REPLY_VALUES:
            self.send(Reply(id=request_id, value=value))
        else:
            self.send(Reply(id=request_id, receipt={"accepted": True, "at": _at()}))

    chunked: Callable[[str, bytes], list[Chunk]] = staticmethod(chunks_of)

    def _refuse(self, message: Message, request_id: int, refused: Refused) -> None:
        self.trace.append(Answered(to=message, request_id=request_id, code=str(refused.code)))
        self.send(Reply(id=request_id, receipt={**_receipt(str(refused.code)), "detail": refused.detail}))

    def _take_chunk(self, chunk: Chunk) -> None:
        whole = self.desk.artifacts.take(chunk)
        if whole is None:
            return
        request_id = int(chunk.of.rpartition(":")[2])
        try:
            value = self.desk.check(whole[0], lambda: self.desk.artifacts.keep(*whole))
        except Refused as refused:
            self._refuse(whole[0], request_id, refused)
        else:
            self._accept(whole[0], request_id, value)

    # --- what the script says

    def send(self, *messages: Message) -> None:
        """Queue messages; they leave in one write."""
        self.trace.extend(messages)
        self.wire.write(b"".join(encode_frame(to_frame(message), MAX_FRAME_BYTES) for message in messages))

    def send_frame(self, frame: JsonObject) -> None:
        """Queue any map, also one no message has."""
        self.wire.write(framed(cbor2.dumps(frame)))

    def refuse(self, message_type: str, *codes: str) -> None:
        """Refuse the next requests of a type with these codes, one each."""
        self._refusals.setdefault(message_type, []).extend(codes)

    def hold(self, *message_types: str) -> None:
        """Give no reply to requests of these types until `let_go`."""
        self._held_types |= set(message_types)

    def let_go(self, order: Callable[[Message], Any] | None = None) -> None:
        """Answer all that was held, in this order, and hold nothing more."""
        self._held_types = set()
        held, self.held = self.held, []
        for message, request_id in held if order is None else sorted(held, key=lambda one: order(one[0])):
            self.answer(message, request_id)
        self.deliver_waiting()
        self._notify()

    @contextmanager
    def holding_deliveries(self, shuffle: Callable[[list[Message]], None]) -> Iterator[None]:
        """What is made in the block is delivered at its end, in the order that `shuffle` gives it, in one write."""
        together: list[Message] = []
        self._together = together
        try:
            yield
        finally:
            self._together = None
        shuffle(together)
        self.send(*together)

    def _deliver(self, message: Message) -> None:
        if self._together is None:
            self.send(message)
        else:
            self._together.append(message)

    def deliver_waiting(self) -> None:
        """Deliver, once a life, calls and messages that wait, if the worker asked for them."""
        for call in self.desk.open_calls() if self.desk.is_subscribed_to_tools else ():
            if call.call_id not in self._delivered:
                self._delivered.add(call.call_id)
                call.is_delivered = True
                self._deliver(call.called())
        for message in self.desk.messages.values() if self.desk.is_subscribed_to_inbox else ():
            if not message.is_acknowledged and message.message_id not in self._delivered:
                self._delivered.add(message.message_id)
                self._deliver(delivery_of(message))

    def mark_delivered(self, call: FakeCall) -> None:
        """The script delivers this call itself."""
        self._delivered.add(call.call_id)
        call.is_delivered = True

    # --- waiting

    async def until(self, is_true: Callable[[], object], what: str, seconds: float | None = None) -> None:
        """Wait until something is so. Raises: Broken when it is not in time, or the worker is gone before."""
        bound = self.patience if seconds is None else seconds
        with trio.move_on_after(bound):
            while not is_true():
                if self.is_ended:
                    raise Broken(await self.end_seen(what))
                await self._changed.wait()
            return
        if not await self._comes_late(is_true):
            raise Broken(f"waited {bound:g} s for this: {what}")

    async def _comes_late(self, is_true: Callable[[], object]) -> bool:
        """Rule 4. One that never stops talking is not waited for any longer."""
        seconds = LATE_PATIENCES * self.patience
        if self.desk.is_started:
            with trio.move_on_after(seconds):
                await self.settle(seconds, is_true)
        return bool(is_true())

    async def end_seen(self, what: str = "") -> str:
        """Say how the worker ended, while something was awaited."""
        if self.broken:
            return f"the worker broke the wire ({self.broken})" + (f" before this: {what}" if what else "")
        with trio.move_on_after(1):
            await self.process.ended.wait()
        how = self.process.how or "closed its channel"
        return f"the worker ended ({how})" + (f" before this: {what}" if what else "")

    async def accepted(self, call: FakeCall) -> None:
        """Wait until a call is accepted. Raises: Broken."""
        await self.until(lambda: call.status != "waiting_for_app", f"a call of {call.tool_id} to be accepted")

    async def acknowledged(self, message: FakeMessage, what: str) -> None:
        """Wait until a message is taken over. Raises: Broken."""
        await self.until(lambda: message.is_acknowledged, what)

    async def until_ended(self, what: str, seconds: float | None = None) -> None:
        """Wait until the worker closed its channel. Raises: Broken."""
        with trio.move_on_after(self.patience if seconds is None else seconds):
            while not self.is_ended:
                await self._changed.wait()
            return
        raise Broken(what)

    async def until_process_ended(self) -> None:
        """Wait until the process is gone. Raises: Broken."""
        with trio.move_on_after(self.patience):
            await self.process.ended.wait()
            return
        raise Broken("the process lives on although its channel is closed")

    async def listen_for(self, seconds: float) -> None:
        """Wait so long, or until the worker says something or ends."""
        heard = len(self.trace)
        with trio.move_on_after(seconds):
            while heard == len(self.trace) and not self.is_ended:
                await self._changed.wait()

    async def settle(self, seconds: float | None = None, is_enough: Callable[[], object] = lambda: False) -> None:
        """Wait until the worker has nothing more to say to what it was told: it answers QUIET_ROUNDS pings and says nothing that matters.

        seconds: how long it may take to answer one; is_enough: what ends this before. Raises: Broken (rule 5).
        """
        rounds = restless = 0
        while rounds < QUIET_ROUNDS and not self.is_ended and not self.is_deaf and not is_enough():
            said = self._said
            await self._wait_pong(self.ping(), self.patience if seconds is None else seconds)
            rounds, restless = (rounds + 1, restless) if said == self._said else (0, restless + 1)
            if restless > MAX_RESTLESS_ROUNDS:
                raise Broken(f"the worker never stops talking: it spoke behind {restless} pings")

    async def _wait_pong(self, n: int, seconds: float) -> None:
        with trio.move_on_after(seconds):
            while n not in self.pongs and not self.is_ended:
                await self._changed.wait()
            return
        self.is_deaf = True

    def ping(self, n: int | None = None) -> int:
        """Ask for a sign of life."""
        self._last_ping = self._last_ping + 1 if n is None else n
        self.send(Ping(n=self._last_ping))
        return self._last_ping

    async def require_alive(self, after: str) -> None:
        """Raises: Broken when the worker is gone, or answers no ping, after what was done to it."""
        await self.settle()
        if self.is_ended:
            raise Broken(f"{await self.end_seen()}, {after}")
        if self.is_deaf:
            raise Broken(f"the worker answers no ping, {after}")

    def _notify(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    # --- what was heard

    def heard(self, *message_types: str, since: int = 0) -> list[Message]:
        """The worker's messages of these types (or all), from a place of the trace on."""
        found = (entry.message for entry in self.trace[since:] if isinstance(entry, Heard))
        return [m for m in found if m is not None and (not message_types or m.TYPE in message_types)]

    def requests(self) -> list[Heard]:
        """Every request of the worker."""
        return [entry for entry in self.trace if isinstance(entry, Heard) and entry.request_id is not None]

    def about(self, call_id: str, since: int = 0) -> list[str]:
        """The types of what the worker said about a call, in order."""
        return [m.TYPE for m in self.heard(since=since) if getattr(m, "call_id", None) == call_id]

    def place_of(self, message_type: str, call: FakeCall) -> int:
        """The place of the trace behind the first message of a type about a call."""
        return 1 + next(
            place
            for place, entry in enumerate(self.trace)
            if isinstance(entry, Heard)
            and entry.message is not None
            and message_type == entry.message.TYPE
            and getattr(entry.message, "call_id", None) == call.call_id
        )

    def place_of_pong(self, n: int) -> int:
        """The place of the trace behind the pong of a number."""
        return 1 + next(place for place, entry in enumerate(self.trace) if isinstance(entry, Heard) and entry.message == Pong(n=n))

    def count(self) -> Counter[str]:
        """How often each type was heard."""
        return Counter(message.TYPE for message in self.heard())


def delivery_of(message: FakeMessage) -> InboxDelivered:
    """The next delivery of a message."""
    message.delivery_count += 1
    return InboxDelivered(message_id=message.message_id, topic=message.topic, body=message.body, delivery_count=message.delivery_count)


def open_again(call: FakeCall, *, is_crash: bool) -> None:
    """Make an open call wait for the next life."""
    call.attempts += is_crash and call.is_delivered
    call.status = "waiting_for_app"


def _at() -> str:
    return datetime.now(UTC).isoformat()


def _receipt(code: str) -> JsonObject:
    return {"accepted": False, "code": code, "at": _at()}
