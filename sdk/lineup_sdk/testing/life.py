"""One life of the app under test: its `serve` task at one end of a socketpair, the fake kernel's reader at the other.

Rules:
1. Every frame is decoded and parsed as the kernel does it; what the kernel would refuse as a wire error closes the channel and
   stands in `failure`.
2. What the app had sent before it died is still read and answered for, as after a real kill -9.
3. A call or message is delivered once a life, oldest first, after the app subscribed.
"""

from __future__ import annotations

import socket
from datetime import UTC, datetime

import trio

from lineup_sdk.app import MiniApp
from lineup_sdk.channel import Channel, ChannelClosed
from lineup_sdk.errors import Refused
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.framing import ProtocolViolation
from lineup_sdk.protocol.limits import MAX_FRAME_BYTES, MAX_WORKER_FRAME_BYTES, WIRE_VERSION
from lineup_sdk.protocol.messages import (
    FROM_WORKER,
    IDENTITY_KEYS,
    UNGRANTED_TYPES,
    Chunk,
    Hello,
    InboxDelivered,
    JsonObject,
    Message,
    Pong,
    Reply,
    Welcome,
    to_frame,
)
from lineup_sdk.protocol.parsing import CONTENT_FOLLOWS, REPLY_VALUES, parse_frame
from lineup_sdk.protocol.surface_messages import ArtifactPut
from lineup_sdk.testing.records import FakeMessage
from lineup_sdk.testing.rules import Desk, content_of
from lineup_sdk.testing.surfaces import chunks_of


class AppEnded(AssertionError):
    """The app ended while the test waited for something of it; the cause is chained."""


class Life:
    """See the head of the file."""

    def __init__(self, app: MiniApp, desk: Desk, context: JsonObject) -> None:
        self.app = app
        self.failure: Exception | None = None
        self.pongs: set[int] = set()
        self._desk = desk
        self._context = context
        self._scope = trio.CancelScope()
        self._serve_ended = trio.Event()
        self._read_ended = trio.Event()
        self._is_end_expected = False
        self._delivered: set[str] = set()
        ours, self._app_socket = socket.socketpair()
        self._channel = Channel(ours, max_in_bytes=MAX_WORKER_FRAME_BYTES, max_out_bytes=MAX_FRAME_BYTES)

    def start(self, nursery: trio.Nursery) -> None:
        """Begin."""
        nursery.start_soon(self._serve)
        nursery.start_soon(self._flush)
        nursery.start_soon(self._read)

    def send(self, frame: JsonObject) -> None:
        """Queue a frame for the app. Raises: AppEnded."""
        if self._serve_ended.is_set():
            raise AppEnded("the app has ended") from self.failure
        self._channel.send(frame)

    def expect_end(self) -> None:
        """The test ends this life: that is no trouble for whoever waits."""
        self._is_end_expected = True

    def kill(self) -> None:
        """End the app without a word to it."""
        self.expect_end()
        self._scope.cancel()

    async def wait_ended(self) -> None:
        """Wait until the app is gone and all it sent was read; then close the channel."""
        await self._serve_ended.wait()
        await self._read_ended.wait()
        self._channel.close()

    async def _serve(self) -> None:
        channel = Channel(self._app_socket, max_in_bytes=MAX_FRAME_BYTES, max_out_bytes=MAX_WORKER_FRAME_BYTES)
        try:
            with self._scope:
                await self.app.serve(channel, Welcome(wire=WIRE_VERSION, epoch="fake", context=dict(self._context)))
        except Exception as error:
            self.failure = self.failure or error
        finally:
            channel.close()
            self._serve_ended.set()
            if not self._is_end_expected:
                trouble = self._desk.changes.trouble = AppEnded("the app has ended")
                trouble.__cause__ = self.failure
            self._desk.changes.notify()

    async def _flush(self) -> None:
        try:
            await self._channel.run_flusher()
        except ChannelClosed:
            return

    async def _read(self) -> None:
        try:
            while True:
                for frame in await self._channel.receive():
                    self._take(frame)
        except ChannelClosed:
            return
        except ProtocolViolation as violation:  # the kernel fails the instance at once (SPEC 2.2)
            self.failure = violation
            self._channel.close()
        finally:
            self._read_ended.set()

    def _take(self, frame: JsonObject) -> None:
        request_id = frame.get("id")
        name = frame.get("type")
        is_ungranted = type(name) is str and name in UNGRANTED_TYPES  # what is no text may have no hash to look for
        if type(request_id) is int and (is_ungranted or frame.keys() & IDENTITY_KEYS):
            self._send_receipt(request_id, Refused(Code.CAPABILITY_DENIED))
            return
        message, parsed_id = parse_frame(frame, FROM_WORKER)
        match message:
            case Pong():
                self.pongs.add(message.n)
            case Hello():  # was said before serve
                raise ProtocolViolation("out_of_place")
            case Chunk():
                self._take_chunk(message)
            case ArtifactPut() if parsed_id is not None:
                self._begin_artifact(message, parsed_id)
            case _ if parsed_id is None:
                self._desk.answer(message)
            case _:
                self._answer(message, parsed_id)
        self._desk.changes.notify()

    def _answer(self, message: Message, request_id: int) -> None:
        try:
            value = self._desk.answer(message)
        except Refused as refused:
            self._send_receipt(request_id, refused)
            return
        if type(message) in CONTENT_FOLLOWS:
            self._send_content(message, request_id, value or {})
        elif type(message) in REPLY_VALUES:
            self._channel.send(to_frame(Reply(id=request_id, value=value)))
        else:
            self._send_receipt(request_id, None)
        self.deliver_waiting()

    def _send_content(self, message: Message, request_id: int, value: JsonObject) -> None:
        of = f"{message.TYPE}:{request_id}"
        self._channel.send(to_frame(Reply(id=request_id, value={**value, "of": of})))
        for chunk in chunks_of(of, content_of(self._desk, message)):
            self._channel.send(to_frame(chunk))

    def _begin_artifact(self, message: ArtifactPut, request_id: int) -> None:
        try:
            self._desk.check(message, lambda: self._desk.artifacts.begin(message, request_id))
        except Refused as refused:
            self._send_receipt(request_id, refused)

    def _take_chunk(self, chunk: Chunk) -> None:
        whole = self._desk.artifacts.take(chunk)
        if whole is None:
            return
        request_id = int(chunk.of.rpartition(":")[2])
        try:
            value = self._desk.check(whole[0], lambda: self._desk.artifacts.keep(*whole))
        except Refused as refused:
            self._send_receipt(request_id, refused)
            return
        self._channel.send(to_frame(Reply(id=request_id, value=value)))

    def _send_receipt(self, request_id: int, refused: Refused | None) -> None:
        receipt: JsonObject = {"accepted": refused is None, "at": datetime.now(UTC).isoformat()}
        if refused is not None:
            receipt |= {"code": str(refused.code), "detail": refused.detail}
        self._channel.send(to_frame(Reply(id=request_id, receipt=receipt)))

    def deliver_waiting(self) -> None:
        """Deliver what waits (rule 3)."""
        desk = self._desk
        for call in desk.open_calls() if desk.is_subscribed_to_tools else ():
            if call.call_id not in self._delivered:
                self._delivered.add(call.call_id)
                call.is_delivered = True
                self._channel.send(to_frame(call.called()))
        for message in desk.messages.values() if desk.is_subscribed_to_inbox else ():
            if not message.is_acknowledged and message.message_id not in self._delivered:
                self._delivered.add(message.message_id)
                self._channel.send(to_frame(_delivery(message)))


def _delivery(message: FakeMessage) -> InboxDelivered:
    message.delivery_count += 1
    return InboxDelivered(message_id=message.message_id, topic=message.topic, body=message.body, delivery_count=message.delivery_count)
