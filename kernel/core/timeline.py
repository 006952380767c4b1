"""What person and Agent say to each other (SPEC 9.3, 11): kept, shown, never executed.

Rules:
1. A message is an entry of the timeline and, from the person, a row of the outbox, in one commit.
2. What the kernel does not understand is kept as inert text: INV-07.
"""

from __future__ import annotations

from kernel.core import envelopes, focus, outbox
from kernel.core.decision import Decision, Detail, Draft, Origin, Rejected, Stamp, View
from kernel.core.limits import MAX_TEXT_LENGTH
from kernel.core.records import OutboxKind, Source, TimelineMessage, encode_body
from kernel.protocol.agent import MESSAGE_TEXT, InertMessage, TaskUpdated, TextReceived
from kernel.protocol.host import MessageSend
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject


def send_text(view: View, origin: Origin, stamp: Stamp, command: MessageSend) -> Decision:
    """The person's text goes to the Agent. Raises: Rejected(limit_exceeded)."""
    draft = Draft(view, origin, stamp)
    if not 0 < len(command.text) <= MAX_TEXT_LENGTH:
        raise Rejected(
            Code.LIMIT_EXCEEDED,
            Detail(pointer="/text", expected=f"1 to {MAX_TEXT_LENGTH} code points", got_type="string", got_size=len(command.text)),
        )
    outbox.require_room(view)
    row = outbox.send(draft, view.door(), MESSAGE_TEXT, {"text": command.text}, kind=OutboxKind.MESSAGE)
    _record(draft, Source.PERSON, row.message_id, MESSAGE_TEXT, {"text": command.text}, row.number)
    draft.audit("message.sent", number=row.number)
    return draft.decision({"message_id": row.message_id})


def receive_text(view: View, origin: Origin, stamp: Stamp, command: TextReceived) -> Decision:
    """The Agent's text."""
    draft = Draft(view, origin, stamp)
    if envelopes.is_new(draft, command.envelope):
        _receive(draft, command.envelope.message_id, command.envelope.type, {"text": command.text})
    return draft.decision()


def receive_task(view: View, origin: Origin, stamp: Stamp, command: TaskUpdated) -> Decision:
    """A task card."""
    draft = Draft(view, origin, stamp)
    if envelopes.is_new(draft, command.envelope):
        _receive(draft, command.envelope.message_id, command.envelope.type, command.task)
    return draft.decision()


def receive_inert(view: View, origin: Origin, stamp: Stamp, command: InertMessage) -> Decision:
    """An envelope nobody here understands: kept with its code, and said so in the receipt."""
    draft = Draft(view, origin, stamp)
    if envelopes.is_new(draft, command.envelope):
        body = {"code": command.code.value, "payload": command.payload}
        _receive(draft, command.envelope.message_id, command.envelope.type, body, command.code)
    return draft.decision(refusal=command.code)


def _receive(draft: Draft, message_id: str, type_: str, body: JsonObject, code: Code | None = None) -> None:
    number = draft.new_number()
    _record(draft, draft.origin.source, message_id, type_, body, number)
    draft.audit("message.received", number=number, code=code)


def _record(draft: Draft, author: Source, message_id: str, type_: str, body: JsonObject, number: int) -> None:
    front = focus.front(draft)
    instance = draft.instance(front) if front else None
    draft.put(
        TimelineMessage(
            number=number,
            message_id=message_id,
            conversation_id=draft.view.conversation_id,
            author=author,
            type=type_,
            body_cbor=encode_body(body),
            created_at=draft.stamp.now,
            app_session_id=instance.app_session_id if instance else None,
        )
    )
