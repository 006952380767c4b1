"""What leaves for an Agent or a caller: envelopes as durable rows, and their acknowledgement (SPEC 11).

Rules:
1. A row's bytes are fixed when it is written; it is sent with the same id and bytes until acknowledged.
2. An acknowledgement names a row of the asker's own destination; any other id changes nothing (INV-35).
3. The acknowledgement of the final row is what makes a submitted call completed, and its interaction with it (SPEC 6.2, 7.3).
"""

from __future__ import annotations

from kernel.core import interaction_ends, machines
from kernel.core.decision import Decision, Draft, Origin, PumpOutbox, Rejected, Stamp, View
from kernel.core.events import AgentAttached, AgentLeft, CallerLeft
from kernel.core.limits import MAX_OUTBOX_ROWS
from kernel.core.machines import CallEvent, CallStatus, OutboxEvent, OutboxState
from kernel.core.records import Door, OutboxKind, OutboxRow, Source, encode_body, replace
from kernel.protocol.agent import CLIENT_INVENTORY
from kernel.protocol.host import OutboxAcknowledge
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject

_WAKE = {destination: PumpOutbox(destination=destination) for destination in Source}


def rfc3339(stamp: Stamp) -> str:
    """The turn's wall time as wires write it."""
    return stamp.now.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def send(
    draft: Draft,
    destination: Source,
    type_: str,
    payload: JsonObject,
    *,
    kind: OutboxKind,
    call_number: int | None = None,
    app_scope: str | None = None,
) -> OutboxRow:
    """Write one envelope for a destination and wake its pump."""
    message_id = draft.new_id("msg")
    envelope: JsonObject = {
        "type": type_,
        "message_id": message_id,
        "conversation_id": draft.view.conversation_id,
        "created_at": rfc3339(draft.stamp),
        "payload": payload,
    }
    if app_scope:
        envelope["app_scope"] = app_scope
    row = OutboxRow(
        number=draft.new_number(),
        message_id=message_id,
        destination=destination,
        conversation_id=draft.view.conversation_id,
        kind=kind,
        envelope_cbor=encode_body(envelope),
        created_at=draft.stamp.now,
        call_number=call_number,
    )
    draft.put(row)
    draft.effect(_WAKE[destination])
    return row


def require_room(view: View, rows: int = 1) -> None:
    """Refuse what would take a slot that is reserved for the end of an open call. Raises: Rejected(limit_exceeded)."""
    if is_full(view, rows):
        raise Rejected(Code.LIMIT_EXCEEDED)


def is_full(view: View, rows: int = 1) -> bool:
    """True when the outbox, with one slot reserved for each open call, cannot take that many rows more."""
    return view.outbox_pending_count() + view.open_call_count() + rows > MAX_OUTBOX_ROWS


def send_again(draft: Draft, row: OutboxRow) -> None:
    """Send a stored row once more because its receiver asked again; not one that its relay refused for good.

    Raises: Rejected(limit_exceeded) when it would have to wait again and there is no room for it.
    """
    if row.state is OutboxState.REFUSED:
        return
    if row.state is OutboxState.ACKNOWLEDGED:
        require_room(draft.view)
    draft.put(replace(row, state=machines.step(machines.OUTBOX, row.state, OutboxEvent.RESEND)))
    draft.effect(PumpOutbox(destination=row.destination, resend_number=row.number))


def acknowledge(view: View, origin: Origin, stamp: Stamp, command: OutboxAcknowledge) -> Decision:
    """Take the receiver's word that a row has arrived."""
    draft = Draft(view, origin, stamp)
    row = view.outbox_row(command.message_id)
    if row is not None and row.destination is origin.source and row.state is OutboxState.PENDING:
        _acknowledge_row(draft, row)
    return draft.decision()


def _acknowledge_row(draft: Draft, row: OutboxRow) -> None:
    draft.put(replace(row, state=machines.step(machines.OUTBOX, row.state, OutboxEvent.ACKNOWLEDGE)))
    call = draft.call(row.call_number) if row.call_number is not None and row.kind is OutboxKind.FINAL else None
    if call is not None and call.status is CallStatus.SUBMITTED:
        status = machines.step(machines.CALL, call.status, CallEvent.ACKNOWLEDGE)
        draft.put(replace(call, status=status, updated_at=draft.stamp.now))
        if call.app_scope == interaction_ends.SCOPE and (interaction := draft.view.interaction_of_call(call.number)) is not None:
            interaction_ends.acknowledge(draft, interaction)
    draft.audit("outbox.acknowledged", number=row.number)


def refuse_row(draft: Draft, row: OutboxRow, code: str) -> None:
    """End the delivery of a row that its receiver will never take."""
    draft.put(replace(row, state=machines.step(machines.OUTBOX, row.state, OutboxEvent.REFUSE), refused_code=code))
    draft.audit("outbox.refused", number=row.number)
    draft.effect(PumpOutbox(destination=row.destination))


def caller_left(view: View, origin: Origin, stamp: Stamp, command: CallerLeft) -> Decision:
    """Acknowledge what waits for a caller that is answered or gone (SPEC 11.4)."""
    draft = Draft(view, origin, stamp)
    for row in (view.final_row(command.call_number), view.pending_progress_row(command.call_number)):
        if row is not None and row.destination is Source.PERSON and row.state is OutboxState.PENDING:
            _acknowledge_row(draft, row)
    return draft.decision()


def agent_attached(view: View, origin: Origin, stamp: Stamp, command: AgentAttached) -> Decision:
    """Give a new Agent the inventory in force, in place of an older one that it never took."""
    draft = Draft(view, origin, stamp)
    draft.audit("agent.attached")
    draft.put(Door(destination=origin.source))
    send_inventory(draft, origin.source)
    return draft.decision()


def agent_left(view: View, origin: Origin, stamp: Stamp, command: AgentLeft) -> Decision:
    """The Agent is gone; its rows wait."""
    draft = Draft(view, origin, stamp)
    draft.audit("agent.left")
    return draft.decision()


def send_inventory(draft: Draft, destination: Source, content: JsonObject | None = None) -> None:
    """Tell an Agent the inventory; an older one still waiting is replaced."""
    waiting = draft.view.pending_inventory_row(destination)
    if waiting is not None:
        draft.remove_row(waiting.number)
    inventory = draft.view.inventory
    payload = content if content is not None else {"inventory_revision": inventory.revision, **inventory.content}
    send(draft, destination, CLIENT_INVENTORY, payload, kind=OutboxKind.INVENTORY)
