"""Villains that break section 2 of the specification, or stop giving signs of life. Each names its clause and the cases it fails."""

from __future__ import annotations

import os
from typing import Any

import cbor2
import trio
from good_worker import GoodWorker, die

from lineup_sdk.channel import ChannelClosed
from lineup_sdk.protocol.framing import ProtocolViolation
from lineup_sdk.protocol.messages import TO_WORKER
from lineup_sdk.protocol.parsing import parse_frame


class TakesAnything(GoodWorker):
    """Reads frames as if nothing could be wrong with them, and passes over what it does not understand."""

    clause = "2.1"
    fails = frozenset(range(35, 78)) | {12}

    async def read(self) -> None:
        data = b"".join(len(body).to_bytes(4, "big") + body for body in self.channel._pushed_back)
        while True:
            while len(data) >= 4 and len(data) >= 4 + int.from_bytes(data[:4], "big"):
                size = int.from_bytes(data[:4], "big")
                self.take_anything(data[4 : 4 + size])
                data = data[4 + size :]
            try:
                more = os.read(self.channel._fd, 65536)
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self.channel._fd)
                continue
            if not more and not data:
                raise ChannelClosed
            data += more
            await trio.lowlevel.checkpoint()

    def take_anything(self, body: bytes) -> None:
        try:
            frame = cbor2.loads(body)
            if type(frame) is dict and frame.get("type") == "ping" and isinstance(frame.get("n"), int):
                self.pong(int(frame["n"]) % 2**53)
            elif type(frame) is dict:
                self.take(parse_frame(frame, TO_WORKER)[0])
        except (AttributeError, KeyError, ProtocolViolation, TypeError, ValueError, cbor2.CBORError):
            return


class LivesWithoutAKernel(GoodWorker):
    """Stays when its channel has ended."""

    clause = "8.3"
    fails = frozenset({77, 78})

    async def read(self) -> None:
        try:
            await super().read()
        except ChannelClosed:
            await trio.sleep_forever()


class TakesAnyWelcome(GoodWorker):
    """Looks at nothing in its welcome."""

    clause = "3"
    fails = frozenset({10, 13, 14, 15})

    def require_welcome(self, welcome: Any) -> None:
        """Anything is welcome."""


class TakesAnotherWelcome(GoodWorker):
    """Passes over a second welcome."""

    clause = "2.6"
    fails = frozenset({12})

    def take(self, message: Any) -> None:
        if message.TYPE not in {"chunk", "welcome"} or getattr(message, "of", "").count(":"):
            super().take(message)


class TakesAnyState(GoodWorker):
    """Believes in states that do not exist."""

    clause = "3"
    fails = frozenset({72})

    def on_context_changed(self, changed: Any) -> None:
        """Any state will do."""


class DropsWhatCameEarly(GoodWorker):
    """Throws away what stood behind its welcome."""

    clause = "2.1"
    fails = frozenset({18})

    async def serve(self, channel: Any, welcome: Any) -> None:
        channel._pushed_back = []
        await super().serve(channel, welcome)


class ReadsWholeFramesOnly(GoodWorker):
    """Takes each read for one whole frame."""

    clause = "2.1"
    fails = frozenset({34})

    async def read(self) -> None:
        for body in self.channel._pushed_back:
            self.take(self.parse(body))
        while True:
            try:
                data = os.read(self.channel._fd, 2**20)
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self.channel._fd)
                continue
            if not data:
                raise ChannelClosed
            while len(data) > 4 and len(data) >= 4 + int.from_bytes(data[:4], "big") > 4:
                size = 4 + int.from_bytes(data[:4], "big")
                self.take(self.parse(data[4:size]))
                data = data[size:]
            if data[:4] == bytes(4) or int.from_bytes(data[:4].ljust(4, b"\0"), "big") > 2**20:
                raise ProtocolViolation("frame_size")
            await trio.lowlevel.checkpoint()


class ReadsOneEncoding(GoodWorker):
    """Takes a frame only in the very bytes that it would have written."""

    clause = "2.1"
    fails = frozenset({28, 29, 32, 33})

    def parse(self, body: bytes) -> Any:
        if cbor2.dumps(cbor2.loads(body)) != body or (cbor2.loads(body).get("type") == "ping" and body[1:6] != b"\x64type"):
            raise ProtocolViolation("encoding")
        return super().parse(body)


class SaysHelloAgain(GoodWorker):
    """Says hello once more when it has started."""

    clause = "2.6"
    fails = frozenset({19})

    async def after_start(self) -> None:
        self.send_frame({"type": "hello", "wire": 1, "sdk": "again"})


class TakesRepliesInOrder(GoodWorker):
    """Gives each reply to the oldest request, whatever its id says."""

    clause = "2.5"
    fails = frozenset({91})

    def on_reply(self, reply: Any) -> None:
        oldest = min(self.owed) if self.owed else reply.id
        super().on_reply(type(reply)(id=oldest, value=reply.value, receipt=reply.receipt))


class DiesAtAStrangeCode(GoodWorker):
    """Knows only some codes."""

    clause = "2.5"
    fails = frozenset({112})

    async def wait(self, ticket: Any) -> dict[str, Any]:
        await ticket.settled.wait()
        if ticket.reply.receipt and ticket.reply.receipt.get("code") == "a_code_of_tomorrow":
            die()
        return await super().wait(ticket)


class SaysNothingBack(GoodWorker):
    """Answers no ping."""

    clause = "16"
    fails = frozenset({21})

    def pong(self, n: int) -> None:
        """Silence."""


class TakesZeroForNothing(GoodWorker):
    """Answers ping 0 with 1."""

    clause = "16"
    fails = frozenset({22})

    def pong(self, n: int) -> None:
        super().pong(n or 1)


class CountsInThirtyTwoBits(GoodWorker):
    """Loses the upper half of numbers."""

    clause = "2.1"
    fails = frozenset({23})

    def pong(self, n: int) -> None:
        super().pong(n & 0xFFFFFFFF)


class AnswersTheNewestPing(GoodWorker):
    """Of pings that come together, answers one."""

    clause = "16"
    fails = frozenset({24})

    async def read(self) -> None:
        while True:
            messages = [self.parse(body) for body in await self.channel.receive_bodies()]
            pings = [message for message in messages if message.TYPE == "ping"]
            for message in messages:
                if message.TYPE != "ping" or message is pings[-1]:
                    self.take(message)


class DeafDuringACall(GoodWorker):
    """Answers no ping while a call waits."""

    clause = "16"
    fails = frozenset({25})

    def pong(self, n: int) -> None:
        if not self.gates or all(gate.is_set() for gate in self.gates.values()):
            super().pong(n)


class DeafWhileItWaits(GoodWorker):
    """Answers no ping while a reply is owed."""

    clause = "16"
    fails = frozenset({20, 26})

    def pong(self, n: int) -> None:
        if not self.owed:
            super().pong(n)


class AnswersTwice(GoodWorker):
    """Answers the first ping of its life again a little later."""

    clause = "16"
    fails = frozenset({27})

    first = 0

    def pong(self, n: int) -> None:
        self.first = self.first or n
        super().pong(n)

    async def do_fail(self, called: Any) -> dict[str, Any]:
        super().pong(self.first)
        return await super().do_fail(called)
