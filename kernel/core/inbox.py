"""Messages for Apps: stored, delivered, acknowledged (SPEC 5).

Rules:
1. Stored before delivered; delivered again until acknowledged; in order.
2. A worker sees and acknowledges its own rows only; a foreign id answers exactly as an unknown one.
3. A tool call is never an inbox row.
"""

from __future__ import annotations

from kernel.core import delivery, envelopes, focus, instances, interaction_ends, machines
from kernel.core.decision import Decision, Detail, Draft, Origin, Rejected, Stamp, Then, View
from kernel.core.events import DeliverMessages
from kernel.core.limits import MAX_INBOX_BYTES, MAX_INBOX_ROWS
from kernel.core.machines import InboxEvent, InboxState, InstanceState
from kernel.core.records import InboxRow, Instance, decode_body, encode_body, replace
from kernel.protocol.agent import AppMessageReceived
from lineup_sdk.protocol import limits as wire
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.framing import ProtocolViolation, check_value
from lineup_sdk.protocol.interaction_messages import INTERACTION_RESULT
from lineup_sdk.protocol.messages import InboxAcknowledge, InboxList, InboxSubscribe

_LIST_ROWS = 16
_LIST_BYTES = wire.MAX_FRAME_BYTES // 2


def receive(view: View, origin: Origin, stamp: Stamp, command: AppMessageReceived) -> Decision:
    """Store a message for the live instance of an App, and deliver it.

    Raises: Rejected(app_instance_not_found, topic_not_subscribed, app_disabled, limit_exceeded; envelope codes).
    """
    draft = Draft(view, origin, stamp)
    if not envelopes.is_new(draft, command.envelope):
        return draft.decision()
    instance = _require_target(view, command)
    body = _require_body(command)
    rows, held_bytes = view.inbox_size(instance.instance_id)
    if rows >= MAX_INBOX_ROWS or held_bytes + len(body) > MAX_INBOX_BYTES:
        raise Rejected(Code.LIMIT_EXCEEDED, Detail(expected="an inbox with room", hint="wait until the App acknowledged"))
    number = draft.new_number()
    draft.put(
        InboxRow(
            number=number,
            message_id=command.envelope.message_id,
            app_scope=instance.app_scope,
            conversation_id=view.conversation_id,
            instance_id=instance.instance_id,
            topic=command.topic,
            body_cbor=body,
            created_at=stamp.now,
        )
    )
    draft.audit("inbox.stored", number=number, instance_id=instance.instance_id)
    # The row is not in this turn's view yet; its delivery is a turn of its own, after the commit (INV-01).
    draft.effect(Then(command=DeliverMessages(instance_id=instance.instance_id)))
    return draft.decision()


def _require_body(command: AppMessageReceived) -> bytes:
    """What has to reach a worker fits its frames (SPEC 2.1)."""
    try:
        check_value(command.body, max_depth=wire.MAX_BODY_DEPTH, allow_bytes=False)
    except ProtocolViolation as violation:
        detail = Detail(pointer="/payload/body", expected=f"JSON values of the wire ({violation.reason})")
        raise Rejected(Code.LIMIT_EXCEEDED, detail) from None
    body = encode_body(command.body)
    if len(body) > wire.MAX_BODY_BYTES:
        expected = f"at most {wire.MAX_BODY_BYTES} bytes as CBOR"
        detail = Detail(pointer="/payload/body", expected=expected, got_type="object", got_size=len(body))
        raise Rejected(Code.LIMIT_EXCEEDED, detail)
    return body


def _require_target(view: View, command: AppMessageReceived) -> Instance:
    scope = command.envelope.app_scope
    manifest = view.manifests.get(scope) if scope else None
    if manifest is not None and not view.enablement.is_enabled(manifest.app_scope):
        raise Rejected(Code.APP_DISABLED, Detail(pointer="/app_scope", expected="an App that is switched on"))
    instance = view.current_instance(scope) if scope and manifest else None
    if manifest is None or instance is None:
        raise Rejected(Code.APP_INSTANCE_NOT_FOUND, Detail(pointer="/app_scope", expected="an App with an instance"))
    if command.envelope.instance_id not in (None, instance.instance_id):
        raise Rejected(Code.APP_INSTANCE_NOT_FOUND, Detail(pointer="/instance_id", expected="the App's instance"))
    if command.topic not in manifest.subscriptions:
        raise Rejected(Code.TOPIC_NOT_SUBSCRIBED, Detail(pointer="/payload/topic", expected="a topic of the Manifest"))
    return instance


def subscribe(view: View, origin: Origin, stamp: Stamp, command: InboxSubscribe) -> Decision:
    """Begin to deliver messages to this life."""
    draft = Draft(view, origin, stamp)
    instance = instances.require_own(draft)
    if not instance.inbox_subscribed:
        instance = replace(instance, inbox_subscribed=True)
        draft.put(instance)
        delivery.deliver_messages(draft, instance)
    return draft.decision()


def list_rows(view: View, origin: Origin, stamp: Stamp, command: InboxList) -> Decision:
    """Read own undelivered rows, a page at a time."""
    draft = Draft(view, origin, stamp)
    instance = instances.require_own(draft)
    after = 0
    if command.after is not None:
        row = view.inbox_row(instance.instance_id, command.after)
        after = row.number if row is not None else 0
    rows = view.inbox_rows(instance.instance_id, after, _LIST_ROWS + 1)
    page: list[InboxRow] = []
    size = 0
    for row in rows[:_LIST_ROWS]:
        size += len(row.body_cbor)
        if page and size > _LIST_BYTES:
            break
        page.append(row)
    messages = [
        {
            "message_id": row.message_id,
            "topic": row.topic,
            "body": decode_body(row.body_cbor),
            "delivery_count": row.delivery_count,
        }
        for row in page
    ]
    return draft.decision({"messages": messages, "more": len(rows) > len(page)})


def acknowledge(view: View, origin: Origin, stamp: Stamp, command: InboxAcknowledge) -> Decision:
    """The App took a message over: true once, false after and for any row that is not its own."""
    draft = Draft(view, origin, stamp)
    instance = instances.require_own(draft)
    row = view.inbox_row(instance.instance_id, command.message_id)
    if row is None or row.state is not InboxState.DELIVERABLE:
        return draft.decision({"acknowledged": False})
    draft.put(replace(row, state=machines.step(machines.INBOX, row.state, InboxEvent.ACKNOWLEDGE)))
    draft.audit("inbox.acknowledged", number=row.number, instance_id=instance.instance_id)
    focus.watch_idle(draft)
    if row.topic == INTERACTION_RESULT:
        _complete_interaction(draft, row)
    delivery.deliver_messages(draft, instance)
    return draft.decision({"acknowledged": True})


def _complete_interaction(draft: Draft, row: InboxRow) -> None:
    """The owner took over the result of its question (SPEC 7.4)."""
    interaction = draft.view.interaction(decode_body(row.body_cbor)["interaction_id"])
    if interaction is not None and interaction.owner_app_scope == row.app_scope:
        interaction_ends.acknowledge(draft, interaction)


def deliver(view: View, origin: Origin, stamp: Stamp, command: DeliverMessages) -> Decision:
    """Deliver what came into an inbox, if its worker can take it; a suspended App gets a process for it (SPEC 8.3)."""
    draft = Draft(view, origin, stamp)
    instance = view.instance(command.instance_id)
    if instance is not None and instance.state is InstanceState.SUSPENDED:
        focus.revive(draft, instance)
    elif instance is not None:
        delivery.deliver_messages(draft, instance)
    return draft.decision()
