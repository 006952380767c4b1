"""What the person does with parked messages (SPEC 5.4): send again, to the App's instance of now, or drop."""

from __future__ import annotations

from kernel.core import focus, machines
from kernel.core.decision import Decision, Detail, Draft, Origin, Rejected, Stamp, Then, View
from kernel.core.events import DeliverMessages
from kernel.core.limits import MAX_INBOX_BYTES, MAX_INBOX_ROWS
from kernel.core.machines import InboxEvent, InboxState, InstanceState
from kernel.core.records import InboxRow, Instance, replace
from kernel.protocol.host_upkeep import InboxDrop, InboxRetry
from lineup_sdk.protocol.codes import Code


def retry(view: View, origin: Origin, stamp: Stamp, command: InboxRetry) -> Decision:
    """Send a parked message again. Its crashes stay counted: it goes alone, and the next one it is there at parks it again.

    Raises: Rejected(call_not_found, app_instance_not_found, limit_exceeded).
    """
    draft = Draft(view, origin, stamp)
    row = _require_parked(view, command.number)
    instance = view.current_instance(row.app_scope)
    if instance is None:
        raise Rejected(Code.APP_INSTANCE_NOT_FOUND, Detail(hint="open the App first"))
    if instance.instance_id != row.instance_id:
        _require_room(view, instance, row)
    state = machines.step(machines.INBOX, row.state, InboxEvent.RETRY)
    draft.put(replace(row, state=state, instance_id=instance.instance_id, delivered_life=None))
    draft.audit("inbox.retried", number=row.number, instance_id=instance.instance_id)
    if instance.state is InstanceState.SUSPENDED:
        focus.revive(draft, instance)
    draft.effect(Then(command=DeliverMessages(instance_id=instance.instance_id)))
    return draft.decision({"instance_id": instance.instance_id})


def drop(view: View, origin: Origin, stamp: Stamp, command: InboxDrop) -> Decision:
    """Give a parked message up. Raises: Rejected(call_not_found)."""
    draft = Draft(view, origin, stamp)
    row = _require_parked(view, command.number)
    draft.put(replace(row, state=machines.step(machines.INBOX, row.state, InboxEvent.DROP)))
    draft.audit("inbox.dropped", number=row.number, instance_id=row.instance_id)
    return draft.decision()


def _require_parked(view: View, number: int) -> InboxRow:
    row = view.inbox_row_by_number(number)
    if row is None or row.state is not InboxState.PARKED:
        raise Rejected(Code.CALL_NOT_FOUND, Detail(pointer="/number", expected="the number of a parked message"))
    return row


def _require_room(view: View, instance: Instance, row: InboxRow) -> None:
    rows, held_bytes = view.inbox_size(instance.instance_id)
    if rows >= MAX_INBOX_ROWS or held_bytes + len(row.body_cbor) > MAX_INBOX_BYTES:
        raise Rejected(Code.LIMIT_EXCEEDED, Detail(expected="an inbox with room"))
