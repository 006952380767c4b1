"""What the kernel tells an App about what it asked for: a message in its inbox, like those of others (SPEC 5, 7.4, 10)."""

from __future__ import annotations

from kernel.core.decision import Draft, Then
from kernel.core.events import DeliverMessages
from kernel.core.records import InboxRow, Instance, encode_body
from lineup_sdk.protocol.messages import JsonObject


def store(draft: Draft, instance: Instance, topic: str, result: JsonObject) -> None:
    """Store it; its delivery is a turn of its own, after the commit (INV-01)."""
    row = InboxRow(
        number=draft.new_number(),
        message_id=draft.new_id("msg"),
        app_scope=instance.app_scope,
        conversation_id=instance.conversation_id,
        instance_id=instance.instance_id,
        topic=topic,
        body_cbor=encode_body(result),
        created_at=draft.stamp.now,
    )
    draft.put(row)
    draft.audit("inbox.stored", number=row.number, instance_id=instance.instance_id)
    draft.effect(Then(command=DeliverMessages(instance_id=instance.instance_id)))
