"""The kernel's end of view and admin channels: requests, snapshots and deltas (SPEC 2.6, 2.8).

Rules:
1. Requests that decide become turns; requests that read are answered at once from the store.
2. One delta a pass and view: what changed since the last, read after the commit. A view that lags is cut and comes back for a snapshot.
3. The person's own calls: whoever asked gets their rows, each once; when it leaves, the rows count as arrived (SPEC 11.4).
4. A session whose channel cannot go on (it does not read, it was refused too often) is closed; nothing here stops the kernel.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import trio

from kernel import capabilities_shown, interactions_shown, log, projection
from kernel.budget import YIELD_SECONDS
from kernel.contents import READERS, Contents
from kernel.core.capability_records import CapabilityRequest
from kernel.core.decision import Origin, PumpOutbox, Rejected, Speaker
from kernel.core.events import CallerLeft, ViewAttached, ViewLeft
from kernel.core.records import (
    FocusStack,
    Instance,
    Interaction,
    OutboxKind,
    OutboxRow,
    Policy,
    PublishedInventory,
    Record,
    Source,
    Switch,
    TimelineMessage,
    ToolCall,
    decode_body,
)
from kernel.core.surface_effects import SendToView, chunks_of
from kernel.core.surface_records import Surface
from kernel.protocol.host import (
    CallInvoke,
    Delta,
    EnvelopeSent,
    EnvelopeSubmit,
    Goodbye,
    HostHello,
    HostReply,
    HostWelcome,
    OutboxAcknowledge,
    Snapshot,
)
from kernel.protocol.host_interactions import DraftSave
from kernel.protocol.host_sessions import OutboxRefuse
from kernel.protocol.strict import Invalid, parse_host
from kernel.queries import QUERIES, Facts
from kernel.turns import KERNEL, Outcome, Turn
from kernel.unsent_rows import UnsentRows
from kernel.worker_port import receipt
from lineup_sdk.channel import Channel, ChannelClosed, ChannelOverflow
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.framing import ProtocolViolation
from lineup_sdk.protocol.limits import WIRE_VERSION
from lineup_sdk.protocol.messages import JsonObject, Message, to_frame

ROWS_A_PAGE = 256
PERSON = Origin(speaker=Speaker.VIEW, source=Source.PERSON)  # for rows that nobody is there to acknowledge


@dataclass(slots=True)
class _Session:
    """One view or admin."""

    origin: Origin
    channel: Channel
    is_view: bool
    seq: int = 0
    calls: set[int] = field(default_factory=set)  # numbers of the calls it waits for
    results: dict[str, int] = field(default_factory=dict)  # those whose result was sent, by the id of its envelope
    is_dirty: bool = False


class HostPort:
    """See the head of the file."""

    def __init__(self, post: Callable[..., None], facts: Facts, contents: Contents) -> None:
        self._post = post
        self._facts = facts
        self._contents = contents
        self._view = facts.view
        self._sessions: dict[int, _Session] = {}
        self._next_channel = 1
        self._changed: dict[tuple[str, Any], None] = {}
        self._must_pump = True  # rows of an earlier run have no caller any more
        self._rows = UnsentRows(facts.view, Source.PERSON)  # one for all callers: each row has one
        self._presence = facts.presence
        self._drafts = facts.drafts
        self._agent_said = facts.presence.agent_summary

    # ------------------------------------------------------------------ a session's life

    async def serve(self, channel: Channel, hello: HostHello) -> None:
        """Speak with one view or admin until its channel ends."""
        session = self._open(channel, hello)
        try:
            if session.is_view:
                self._post(Turn(command=ViewAttached(providers=frozenset(hello.providers or ())), origin=session.origin))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(channel.run_flusher)
                nursery.start_soon(self._read, session, nursery.cancel_scope)
        except* (ChannelClosed, ChannelOverflow):
            pass
        finally:
            self._close(session)

    def _open(self, channel: Channel, hello: HostHello) -> _Session:
        key = -self._next_channel  # apart from the worker port's keys, so that refusals are counted apart
        self._next_channel += 1
        view_id = f"view-{-key}-{hello.label or hello.role}"
        origin = Origin(speaker=Speaker.VIEW, channel=key, source=Source.PERSON, view_id=view_id)
        session = _Session(origin=origin, channel=channel, is_view=hello.role == "view")
        self._sessions[key] = session
        welcome = HostWelcome(
            wire=WIRE_VERSION,
            epoch=self._view.epoch,
            view_id=view_id,
            conversation_id=self._view.conversation_id,
            revision=self._view.inventory.revision,
        )
        self._put(session, welcome)
        if session.is_view:
            state = projection.snapshot(self._view, self._presence.agent_summary)
            state["consents"] = capabilities_shown.waiting_consents(self._view)
            state["interactions"] = interactions_shown.open_summaries(self._view, self._drafts)
            self._put(session, Snapshot(seq=0, state=state))
        self.flush()
        self._presence.host_opened(is_view=session.is_view)
        return session

    async def _read(self, session: _Session, until: trio.CancelScope) -> None:
        try:
            while True:
                began = time.monotonic()
                for frame in await session.channel.receive():
                    self._take(session, frame)
                    if time.monotonic() - began > YIELD_SECONDS:
                        self.flush()
                        await trio.lowlevel.checkpoint()
                        began = time.monotonic()
                self.flush()
        except (ChannelClosed, ChannelOverflow, ProtocolViolation):
            until.cancel()

    def _take(self, session: _Session, untrusted_frame: JsonObject) -> None:
        try:
            message, request_id = parse_host(untrusted_frame)
        except Invalid as error:
            request_id = untrusted_frame.get("id")
            if type(request_id) is not int:
                raise ProtocolViolation("shape") from error
            self._refuse(session, request_id, error.code.value, error.refusal.as_json())
            return
        if isinstance(message, HostHello | EnvelopeSubmit):
            raise ProtocolViolation("out_of_place")
        is_read = type(message) in QUERIES or type(message) in READERS
        if not is_read or request_id is None:
            self._post(Turn(command=message, origin=replace(session.origin, request_id=request_id)))
            return
        try:
            self._read_out(session, request_id, message)
        except Rejected as refusal:
            detail = refusal.detail.as_json() if refusal.detail else None
            self._refuse(session, request_id, refusal.code.value, detail)

    def _read_out(self, session: _Session, request_id: int, message: Message) -> None:
        """Answer with what the query finds, or with what there is to say of a content, and the content in chunks."""
        if query := QUERIES.get(type(message)):
            self._put(session, HostReply(id=request_id, value=query(self._facts, message)))
            if isinstance(message, DraftSave):
                self._changed["interaction", message.interaction_id] = None
            return
        of = f"{message.TYPE}:{request_id}"
        facts, data = READERS[type(message)](self._contents, message, of)
        self._put(session, HostReply(id=request_id, value=facts))
        for chunk in chunks_of(of, data):
            self._put(session, chunk)

    def _refuse(self, session: _Session, request_id: int, code: str, detail: JsonObject | None) -> None:
        said: JsonObject = {"accepted": False, "code": code}
        if detail is not None:
            said["detail"] = detail
        self._put(session, HostReply(id=request_id, receipt=said))

    def _close(self, session: _Session) -> None:
        session.channel.close()
        del self._sessions[session.origin.channel]
        self._presence.host_closed(is_view=session.is_view)
        self._post(*(Turn(command=CallerLeft(call_number=number), origin=KERNEL) for number in sorted(session.calls)))
        if session.is_view:
            self._post(Turn(command=ViewLeft(), origin=session.origin))

    # ------------------------------------------------------------------ after a commit

    def reply(self, outcome: Outcome) -> None:
        """Answer the request of a turn that is committed."""
        session = self._sessions.get(outcome.turn.origin.channel)
        if session is None:
            return
        command = outcome.turn.command
        if isinstance(command, OutboxAcknowledge | OutboxRefuse):
            session.calls.discard(session.results.pop(command.message_id, 0))
        self._answer(session, outcome)
        if outcome.is_violation:
            self._put(session, Goodbye(code=Code.PROTOCOL_VIOLATION))
            self._write(session)
            session.channel.close()

    def _answer(self, session: _Session, outcome: Outcome) -> None:
        command = outcome.turn.command
        if isinstance(command, CallInvoke) and outcome.value is not None:
            call = self._view.call_by_id(outcome.value["call_id"])
            if call is not None:
                session.calls.add(call.number)
        request_id = outcome.turn.origin.request_id
        if request_id is None:
            return
        if outcome.accepted and outcome.value is not None:
            self._put(session, HostReply(id=request_id, value=outcome.value))
        else:
            self._put(session, HostReply(id=request_id, receipt=receipt(outcome) | (outcome.value or {})))

    def send(self, effect: SendToView) -> None:
        """Effect: a message for one view; dropped when it is gone, because nothing it showed counts any more."""
        for session in self._sessions.values():
            if session.origin.view_id == effect.view_id:
                self._put(session, effect.message)

    def committed(self, records: Sequence[Record]) -> None:
        """Note what changed, for the delta of this pass."""
        self._drafts.follow(records)
        if not any(session.is_view for session in self._sessions.values()):
            return
        for record in records:
            for change in _changes_of(record):
                self._changed[change] = None

    def pump(self, effect: PumpOutbox) -> None:
        """Effect: rows for the person's callers may be waiting."""
        if effect.destination is Source.PERSON:
            self._must_pump = True
            if effect.resend_number is not None:
                self._rows.ask_again(effect.resend_number)

    def flush(self) -> None:
        """Send what this pass left: rows for callers, one delta a view, and all frames in one write a channel."""
        if self._must_pump:
            self._must_pump = False
            self._send_rows()
        if self._agent_said != self._presence.agent_summary:
            self._agent_said = self._presence.agent_summary
            self._changed["agent", None] = None
        if self._changed:
            self._send_delta()
        for session in list(self._sessions.values()):
            if session.is_dirty:
                session.is_dirty = False
                self._write(session)

    def _write(self, session: _Session) -> None:
        try:
            session.channel.flush()
        except ChannelClosed:
            session.channel.close()

    def _send_rows(self) -> None:
        sessions = {number: session for session in self._sessions.values() for number in session.calls}
        turns: list[Turn] = []
        while rows := self._rows.take(ROWS_A_PAGE):
            for row in rows:
                turns.extend(self._send_row(row, sessions))
        if turns:
            self._post(*turns)

    def _send_row(self, row: OutboxRow, sessions: Mapping[int, _Session]) -> list[Turn]:
        """Give a row to its caller; without one, the turns that end its waiting."""
        if row.call_number is None:  # a refusal: its asker has the reply
            return [Turn(command=OutboxAcknowledge(message_id=row.message_id), origin=PERSON)]
        session = sessions.get(row.call_number)
        if session is None:
            return [Turn(command=CallerLeft(call_number=row.call_number), origin=KERNEL)]
        if row.kind is OutboxKind.FINAL:
            session.results[row.message_id] = row.call_number
        self._put(session, EnvelopeSent(envelope=decode_body(row.envelope_cbor)))
        return []

    def _send_delta(self) -> None:
        changed, self._changed = self._changed, {}
        changes = [change for kind, key in changed if (change := self._change(kind, key)) is not None]
        if not changes:
            return
        for frame in projection.deltas(changes):
            for session in self._sessions.values():
                if session.is_view:
                    session.seq += 1
                    self._put(session, Delta(seq=session.seq, changes=frame))

    def _change(self, kind: str, key: Any) -> JsonObject | None:
        value = self._value_of(kind, key)
        return {"kind": kind, "value": value} if value is not None else None

    def _value_of(self, kind: str, key: Any) -> Any:
        match kind:
            case "call":
                call = self._view.call(key)
                return projection.call_summary(self._view, call) if call else None
            case "consent":
                request = self._view.capabilities.request(key)
                return capabilities_shown.consent_summary(self._view, request) if request else None
            case "instance":
                instance = self._view.instance(key)
                return projection.instance_summary(self._view, instance) if instance else None
            case "interaction":
                interaction = self._view.interaction(key)
                return interactions_shown.interaction_summary(self._view, self._drafts, interaction) if interaction else None
            case "message":
                found = self._view.message(key)
                return projection.message_summary(*found) if found else None
            case "surface":
                surface = self._view.surfaces.by_number(key)
                return projection.surface_summary(self._view, surface) if surface else None
            case "focus":
                return list(self._view.focus().instance_ids)
            case "apps":
                return projection.app_summaries(self._view)
            case "revision":
                return self._view.inventory.revision
            case _:
                return self._presence.agent_summary

    def _put(self, session: _Session, message: Message) -> None:
        try:
            session.channel.send(to_frame(message))
        except (ChannelClosed, ChannelOverflow):
            session.channel.close()
            return
        except ProtocolViolation:  # our own frame is too big for the wire; never the end of the kernel
            log.trouble("host.frame_too_big", view_id=session.origin.view_id)
            session.channel.close()
            return
        session.is_dirty = True


def _changes_of(record: Record) -> list[tuple[str, Any]]:
    match record:
        case ToolCall(number=number, instance_id=instance_id):
            return [("call", number)] + ([("instance", instance_id)] if instance_id else [])
        case Instance(instance_id=instance_id):
            return [("instance", instance_id)]
        case CapabilityRequest(request_id=request_id):
            return [("consent", request_id)]
        case Interaction(interaction_id=interaction_id):
            return [("interaction", interaction_id)]
        case TimelineMessage(number=number):
            return [("message", number)]
        case OutboxRow(kind=OutboxKind.MESSAGE, number=number):
            return [("message", number)]
        case FocusStack():
            return [("focus", None)]
        case Surface(number=number):
            return [("surface", number)]
        case Switch() | PublishedInventory():
            return [("apps", None), ("revision", None)]
        case Policy():  # whether an App may ask by itself stands with the App
            return [("apps", None)]
        case _:
            return []
