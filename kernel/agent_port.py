"""The loopback door: the kernel's end of the one Agent (SPEC 11).

Rules:
1. One Agent at a time: a second is door_busy; the demo Agent gives way to a real one.
2. Each inbound envelope gets one receipt, after the commit that accepted or refused it.
3. Only committed rows leave: in order, again after a reconnect until acknowledged, same id, same bytes; at most WINDOW in flight.
4. An acknowledgement may wait for the commit of something else: nobody is answered, and a lost one only makes its row come again.
   The receipt of an accepted call may wait for the write of something else: mostly its result is next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import trio

from kernel import log
from kernel.core.decision import Detail, Origin, PumpOutbox, Speaker
from kernel.core.events import AgentAttached, AgentLeft, EnvelopeRefused
from kernel.core.records import OutboxRow, Source, encode_body
from kernel.presence import Presence
from kernel.protocol.agent import Envelope, ToolInvoke
from kernel.protocol.envelopes import parse_envelope, readable_message_id
from kernel.protocol.host import EnvelopeReceipt, EnvelopeSent, EnvelopeSubmit, Goodbye, HostHello, HostWelcome, OutboxAcknowledge
from kernel.protocol.host_sessions import OutboxRefuse
from kernel.protocol.strict import Invalid, parse_host
from kernel.store_view import StoreView
from kernel.turns import Outcome, Turn
from kernel.unsent_rows import UnsentRows
from lineup_sdk.channel import Channel, ChannelClosed, ChannelOverflow
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.framing import ProtocolViolation
from lineup_sdk.protocol.limits import WIRE_VERSION
from lineup_sdk.protocol.messages import JsonObject, Message, to_frame

WINDOW = 256  # rows sent and not acknowledged
# The frame of a row up to its envelope, whose bytes stand in the row: an EnvelopeSent with its last byte, an empty map, taken off.
_ENVELOPE_SENT = encode_body(to_frame(EnvelopeSent(envelope={})))[:-1]
_Frame = TypeVar("_Frame")
_FIRST_CHANNEL = 1_000_000_000  # apart from the other ports' keys, so that refusals are counted apart


@dataclass(slots=True)
class _Door:
    """The Agent of this moment."""

    origin: Origin
    channel: Channel
    rows: UnsentRows
    in_flight: set[str] = field(default_factory=set)  # by message_id: a row may be replaced while it is out


class AgentPort:
    """See the head of the file."""

    def __init__(self, post: Callable[..., None], view: StoreView, presence: Presence) -> None:
        self._post = post
        self._view = view
        self._presence = presence
        self._door: _Door | None = None
        self._next_channel = _FIRST_CHANNEL
        self._must_pump = False
        self._is_dirty = False
        self._is_late = False  # a receipt waits for the next write
        self._may_read = trio.Event()
        self._may_read.set()

    def stop_reading(self) -> None:
        """The disk is full: what the Agent says waits with the Agent."""
        self._may_read = trio.Event()

    def read_on(self) -> None:
        """There is room again."""
        self._may_read.set()

    # ------------------------------------------------------------------ a session's life

    async def serve(self, channel: Channel, hello: HostHello) -> None:
        """Speak with an Agent until its channel ends."""
        source = Source.DEMO if hello.demo else Source.AGENT
        if not self._make_way(source):
            channel.send(to_frame(Goodbye(code=Code.DOOR_BUSY)))
            await channel.drain()
            channel.close()
            return
        door = self._open(channel, source)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(channel.run_flusher)
                nursery.start_soon(self._read, door, nursery.cancel_scope)
        except* (ChannelClosed, ChannelOverflow):
            pass
        finally:
            channel.close()
            if self._door is door:
                self._leave(door)

    def _make_way(self, source: Source) -> bool:
        """True when the door is free, or its demo Agent had to leave for a real one."""
        if self._door is None:
            return True
        if self._door.origin.source is not Source.DEMO or source is Source.DEMO:
            return False
        self._put(self._door, Goodbye(code=Code.DOOR_BUSY))
        self.flush()
        self._door.channel.close()
        self._leave(self._door)
        return True

    def _open(self, channel: Channel, source: Source) -> _Door:
        key = self._next_channel
        self._next_channel += 1
        origin = Origin(speaker=Speaker.AGENT, channel=key, source=source)
        door = _Door(origin=origin, channel=channel, rows=UnsentRows(self._view, source))
        self._door = door
        self._presence.agent_is(source)
        welcome = HostWelcome(
            wire=WIRE_VERSION,
            epoch=self._view.epoch,
            view_id=f"agent-{key}",
            conversation_id=self._view.conversation_id,
            revision=self._view.inventory.revision,
        )
        self._put(door, welcome)
        self._post(Turn(command=AgentAttached(), origin=door.origin))
        return door

    def _leave(self, door: _Door) -> None:
        self._door = None
        self._presence.agent_is(None)
        self._post(Turn(command=AgentLeft(), origin=door.origin))

    async def _read(self, door: _Door, until: trio.CancelScope) -> None:
        try:
            while True:
                if not self._may_read.is_set():  # to wait for what is set costs a pass of the event loop
                    await self._may_read.wait()
                turns = [self._turn_of(door, frame) for frame in await door.channel.receive()]
                if self._door is not door:
                    break
                self._post(*turns)
        except (ChannelClosed, ChannelOverflow, ProtocolViolation):
            pass
        until.cancel()

    def _turn_of(self, door: _Door, untrusted_frame: JsonObject) -> Turn:
        try:
            message, _ = parse_host(untrusted_frame)
        except Invalid as error:
            raise ProtocolViolation("shape") from error
        if isinstance(message, OutboxAcknowledge | OutboxRefuse):
            return Turn(command=message, origin=door.origin, may_wait=isinstance(message, OutboxAcknowledge))
        if not isinstance(message, EnvelopeSubmit):
            raise ProtocolViolation("out_of_place")
        return Turn(command=self._command_of(message.envelope), origin=door.origin)

    def _command_of(self, untrusted_envelope: JsonObject) -> object:
        try:
            return parse_envelope(untrusted_envelope)
        except Invalid as error:
            where = error.refusal
            detail = Detail(pointer=where.pointer, expected=where.expected, got_type=where.got_type, got_size=where.got_size)
            return EnvelopeRefused(message_id=readable_message_id(untrusted_envelope), code=error.code, detail=detail)

    # ------------------------------------------------------------------ after a commit

    def reply(self, outcome: Outcome) -> None:
        """The door's receipt for an envelope; an acknowledgement frees its place in the window."""
        door = self._door
        if door is None or outcome.turn.origin.channel != door.origin.channel:
            return
        command = outcome.turn.command
        if isinstance(command, OutboxAcknowledge | OutboxRefuse):
            door.in_flight.discard(command.message_id)
            self._must_pump = True
        elif isinstance(command, EnvelopeRefused):
            self._put_receipt(door, command.message_id, outcome)
        elif isinstance(envelope := getattr(command, "envelope", None), Envelope):
            self._put_receipt(door, envelope.message_id, outcome)
        if outcome.is_violation:
            self._put(door, Goodbye(code=Code.PROTOCOL_VIOLATION))
            self.flush()
            door.channel.close()

    def _put_receipt(self, door: _Door, message_id: str | None, outcome: Outcome) -> None:
        is_late = outcome.accepted and isinstance(outcome.turn.command, ToolInvoke)
        code = outcome.code.value if outcome.code is not None else None
        detail = outcome.detail.as_json() if outcome.detail is not None else None
        receipt = to_frame(EnvelopeReceipt(message_id=message_id, accepted=outcome.accepted, code=code, detail=detail))
        self._queue(door, receipt, door.channel.queue)
        self._is_dirty |= not is_late
        self._is_late |= is_late

    def pump(self, effect: PumpOutbox) -> None:
        """Effect: rows of this destination may be waiting."""
        door = self._door
        if door is None or effect.destination is not door.origin.source:
            return
        if effect.resend_number is not None:
            door.rows.ask_again(effect.resend_number)
        self._must_pump = True

    def flush(self) -> None:
        """Send waiting rows, then everything in one write."""
        door = self._door
        if door is None:
            return
        if self._must_pump:
            self._must_pump = False
            self._send_rows(door)
        if self._is_dirty:
            self._is_dirty = False
            try:
                door.channel.flush()
            except ChannelClosed:
                door.channel.close()

    def flush_late(self) -> None:
        """Write what waited for the next write."""
        self._is_dirty |= self._is_late
        self._is_late = False
        self.flush()

    def _send_rows(self, door: _Door) -> None:
        for row in door.rows.take(WINDOW - len(door.in_flight)):
            self._put_row(door, row)

    def _put_row(self, door: _Door, row: OutboxRow) -> None:
        door.in_flight.add(row.message_id)
        self._queue(door, _ENVELOPE_SENT + row.envelope_cbor, door.channel.queue_body)
        self._is_dirty = True

    def _put(self, door: _Door, message: Message) -> None:
        self._queue(door, to_frame(message), door.channel.queue)
        self._is_dirty = True

    def _queue(self, door: _Door, frame: _Frame, queue: Callable[[_Frame], None]) -> None:
        try:
            queue(frame)
        except (ChannelClosed, ChannelOverflow):
            door.channel.close()
        except ProtocolViolation:  # our own frame is too big for the wire; never the end of the kernel
            log.trouble("agent.frame_too_big")
            door.channel.close()
