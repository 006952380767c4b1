"""What person and Agent say to each other (SPEC 9.3, 11): kept, shown, never executed.

Rules:
1. A message is an entry of the timeline and, from the person, a row of the outbox, in one commit.
2. What the kernel does not understand is kept as inert text: INV-07.
3. The system App only projects: it may fold an entry and speak for the person by the same command; the entries are the kernel's.
4. A row its receiver refuses for good is shown to the person: on its own entry when it is a message, else by an entry of its own.
"""

from __future__ import annotations

from kernel.core import envelopes, focus, instances, outbox
from kernel.core.decision import Decision, Detail, Draft, FeedTimeline, Origin, Rejected, Stamp, View
from kernel.core.machines import OutboxState
from kernel.core.records import Key, OutboxKind, OutboxRow, Source, TimelineMessage, digest_of_parts, encode_body, key_digest, replace
from kernel.protocol.agent import MESSAGE_TEXT, PREFIX, InertMessage, TaskUpdated, TextReceived
from kernel.protocol.host import MessageSend
from kernel.protocol.host_sessions import OutboxRefuse
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.limits import MAX_TEXT_LENGTH
from lineup_sdk.protocol.messages import JsonObject
from lineup_sdk.protocol.system_messages import ConversationSendText, TimelinePlace, TimelineSubscribe

ROW_REFUSED = PREFIX + "outbox.refused"  # an entry that only the kernel writes; it never travels


def send_text(view: View, origin: Origin, stamp: Stamp, command: MessageSend) -> Decision:
    """The person's text goes to the Agent. Raises: Rejected(limit_exceeded)."""
    draft = Draft(view, origin, stamp)
    return draft.decision({"message_id": _send(draft, command.text).message_id})


def _send(draft: Draft, text: str) -> OutboxRow:
    if not 0 < len(text) <= MAX_TEXT_LENGTH:
        raise Rejected(
            Code.LIMIT_EXCEEDED,
            Detail(pointer="/text", expected=f"1 to {MAX_TEXT_LENGTH} code points", got_type="string", got_size=len(text)),
        )
    outbox.require_room(draft.view)
    row = outbox.send(draft, draft.view.door(), MESSAGE_TEXT, {"text": text}, kind=OutboxKind.MESSAGE)
    _record(draft, Source.PERSON, row.message_id, MESSAGE_TEXT, {"text": text}, row.number)
    draft.audit("message.sent", number=row.number)
    return row


def app_sends_text(view: View, origin: Origin, stamp: Stamp, command: ConversationSendText) -> Decision:
    """The system App sends what the person wrote in it: the same command (SPEC 11.5), once a key.

    Raises: as send_text; Rejected(call_id_conflict) for another text under a used key.
    """
    draft = Draft(view, origin, stamp)
    instances.require_own(draft)
    if command.key is None:
        return draft.decision({"message_id": _send(draft, command.text).message_id})
    digest, content = key_digest("text", view.conversation_id, command.key), digest_of_parts(command.text)
    known = view.key(digest)
    entry = view.timeline_entry(known.number) if known is not None else None
    if known is None or entry is None:
        row = _send(draft, command.text)
        draft.put(Key(digest=digest, content_digest=content, number=row.number))
        return draft.decision({"message_id": row.message_id})
    if known.content_digest != content:
        raise Rejected(Code.CALL_ID_CONFLICT, Detail(pointer="/key", expected="a key not used for other text"))
    return draft.decision({"message_id": entry.message_id})


def subscribe(view: View, origin: Origin, stamp: Stamp, command: TimelineSubscribe) -> Decision:
    """Feed the timeline to this life of the system App."""
    draft = Draft(view, origin, stamp)
    instance = instances.require_own(draft)
    draft.effect(FeedTimeline(instance_id=instance.instance_id, life=instance.life))
    return draft.decision()


def place(view: View, origin: Origin, stamp: Stamp, command: TimelinePlace) -> Decision:
    """The system App folds an entry, or unfolds it; where it stands changes nothing else."""
    draft = Draft(view, origin, stamp)
    instances.require_own(draft)
    entry = view.timeline_entry(command.number)
    if entry is not None and entry.is_folded is not command.folded:
        draft.put(replace(entry, is_folded=command.folded))
        draft.audit("timeline.placed", number=entry.number)
    return draft.decision({"placed": entry is not None})


def receiver_refuses(view: View, origin: Origin, stamp: Stamp, command: OutboxRefuse) -> Decision:
    """The receiver of a row will never take it: its delivery ends, the person sees it, the next row goes (SPEC 11.3)."""
    draft = Draft(view, origin, stamp)
    row = view.outbox_row(command.message_id)
    if row is not None and row.destination is origin.source and row.state is OutboxState.PENDING:
        outbox.refuse_row(draft, row, command.code)
        if row.kind is not OutboxKind.MESSAGE:
            _show_refused(draft, row, command.code)
    return draft.decision()


def _show_refused(draft: Draft, row: OutboxRow, code: str) -> None:
    call = draft.call(row.call_number) if row.call_number is not None else None
    body: JsonObject = {"title": "Not delivered", "state": code, "kind": row.kind.value}
    if call is not None:
        body["tool_id"] = call.tool_id
    number = draft.new_number()
    _record(draft, row.destination, draft.new_id("msg"), ROW_REFUSED, body, number)


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
