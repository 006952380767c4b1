"""Putting waiting calls and messages on a worker's channel (SPEC 5, 6.2).

Rules:
1. What is delivered is durable before: the frame is an effect of the turn that wrote `delivered_life`.
2. Calls go once the worker subscribed and is started; a call that needs the foreground waits until its App is in front, but for
   one that a life before had already: it goes on where it was, also behind (SPEC 6.8).
3. Messages go in order, at most INBOX_WINDOW unacknowledged ones; after a crash one at a time, so that a poisonous one shows itself.
"""

from __future__ import annotations

from kernel.core import calls, machines
from kernel.core.decision import Draft, SendToWorker
from kernel.core.limits import INBOX_WINDOW
from kernel.core.machines import CallStatus, InboxEvent, InstanceState
from kernel.core.records import InboxRow, Instance, ToolCall, decode_body, replace
from lineup_sdk.protocol.messages import InboxDelivered, ToolCalled

_READY = frozenset({InstanceState.FOREGROUND, InstanceState.BACKGROUND})


def deliver_calls(draft: Draft, instance: Instance) -> None:
    """Deliver every open call of the instance that its present life has not had."""
    for call in draft.view.open_calls(instance.instance_id):
        deliver_call(draft, draft.call(call.number) or call, instance)


def deliver_call(draft: Draft, call: ToolCall, instance: Instance) -> None:
    """Deliver one call if it waits and the instance can take it now."""
    if call.status is not CallStatus.WAITING_FOR_APP or call.delivered_life == instance.life:
        return
    if instance.state not in _READY or not instance.tools_subscribed:
        return
    descriptor = draft.view.descriptor(call.descriptor_digest)
    needs_front = descriptor.requires_foreground and call.delivered_life is None
    if needs_front and instance.state is not InstanceState.FOREGROUND:
        return
    draft.put(replace(call, delivered_life=instance.life, updated_at=draft.stamp.now))
    message = ToolCalled(
        call_id=call.call_id,
        tool_id=call.tool_id,
        input=calls.input_of(call),
        attempts=call.attempts,
        time_left_ms=calls.time_left_ms(draft.stamp, call),
    )
    draft.effect(SendToWorker(instance_id=instance.instance_id, life=instance.life, message=message))


def deliver_messages(draft: Draft, instance: Instance) -> None:
    """Deliver what the window allows, oldest first."""
    if instance.state not in _READY or not instance.inbox_subscribed:
        return
    rows = draft.view.inbox_rows(instance.instance_id, 0, INBOX_WINDOW + 1)
    settled = [draft.staged_inbox_row(row) for row in rows]
    waiting = [row for row in settled if row.state is machines.InboxState.DELIVERABLE]
    window = 1 if any(row.crash_count for row in waiting) else INBOX_WINDOW
    for row in waiting[:window]:
        if row.delivered_life != instance.life:
            _deliver_message(draft, row, instance)


def _deliver_message(draft: Draft, row: InboxRow, instance: Instance) -> None:
    delivered = replace(
        row,
        state=machines.step(machines.INBOX, row.state, InboxEvent.DELIVER),
        delivered_life=instance.life,
        delivery_count=row.delivery_count + 1,
    )
    draft.put(delivered)
    message = InboxDelivered(
        message_id=row.message_id,
        topic=row.topic,
        body=decode_body(row.body_cbor),
        delivery_count=delivered.delivery_count,
    )
    draft.effect(SendToWorker(instance_id=instance.instance_id, life=instance.life, message=message))
