"""The promises that a trace shows: `check_inv_NN(trace)` returns one line a violation (tests/trace.py has the form of a trace).

Those of calls, inbox and doors. Instances and the inventory: invariants_of_traced_instances.py; questions, surfaces, capabilities:
invariants_of_traced_questions.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from kernel.core.decision import ArmDeadline, Origin, PumpOutbox, Speaker
from kernel.core.events import WorkerExited
from kernel.core.machines import CALL_OPEN, INTERACTION_OPEN, CallStatus, InboxState, InteractionStatus, OutboxState
from kernel.core.records import (
    InboxRow,
    Instance,
    Interaction,
    Key,
    OutboxKind,
    OutboxRow,
    PublishedInventory,
    TimelineMessage,
    ToolCall,
    decode_body,
)
from kernel.core.retention_records import ForgottenCall, ForgottenInboxRow, ForgottenInteraction, ForgottenOutboxRow
from kernel.protocol.agent import InertMessage, ToolInvoke
from kernel.protocol.host import OutboxAcknowledge
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol.codes import Code
from tests.trace import Answered, Decided, Drained, Framed, Opened, Sent, Trace


def check_inv_01(trace: Trace) -> list[str]:
    """A message is on a channel only after a commit held its row with that life in it; a call likewise (INV-09)."""
    found: list[str] = []
    stored: set[tuple[str, str, int | None]] = set()
    for event in trace.events:
        if isinstance(event, Decided):
            stored |= {(row.message_id, row.instance_id, row.delivered_life) for row in event.puts_of(InboxRow)}
            stored |= {(call.call_id, call.instance_id, call.delivered_life) for call in event.puts_of(ToolCall)}
        elif isinstance(event, Framed) and isinstance(event.message, m.InboxDelivered | m.ToolCalled):
            name = event.message.message_id if isinstance(event.message, m.InboxDelivered) else event.message.call_id
            if (name, event.instance_id, event.life) not in stored:
                found.append(f"INV-01: {name} was delivered before it was durable")
    return found


def check_inv_02(trace: Trace) -> list[str]:
    """Within a life messages come in the order of acceptance, and none is skipped."""
    numbers: dict[str, int] = {}
    newest: dict[tuple[str, int], int] = {}
    found: list[str] = []
    for event in trace.since_restore().events:
        if isinstance(event, Decided):
            numbers |= {row.message_id: row.number for row in event.puts_of(InboxRow)}
            if event.name == "inbox.retry":  # what the person sends again comes when it comes
                newest.clear()
        elif isinstance(event, Framed) and isinstance(event.message, m.InboxDelivered):
            number = numbers.get(event.message.message_id, 0)
            if number <= newest.get((event.instance_id, event.life), 0):
                found.append(f"INV-02: message {number} came out of order")
            newest[event.instance_id, event.life] = number
    return found


def check_inv_03(trace: Trace) -> list[str]:
    """What was acknowledged is never delivered again, and acknowledged once."""
    done: set[str] = set()
    found: list[str] = []
    for event in trace.since_restore().events:
        if isinstance(event, Answered) and isinstance(event.outcome.turn.command, m.InboxAcknowledge):
            if (event.outcome.value or {}).get("acknowledged"):
                if event.outcome.turn.command.message_id in done:
                    found.append("INV-03: a message was acknowledged twice")
                done.add(event.outcome.turn.command.message_id)
        elif isinstance(event, Framed) and isinstance(event.message, m.InboxDelivered) and event.message.message_id in done:
            found.append("INV-03: an acknowledged message was delivered")
    return found


def check_inv_04(trace: Trace) -> list[str]:
    """An id is taken once, and given up once: then its key gets an outcome and goes on standing for the same."""
    keys = [key for decided in trace.since_restore().decided() for key in decided.puts_of(Key)]
    taken = [key.digest for key in keys if key.outcome is None]
    given_up = [key.digest for key in keys if key.outcome is not None]
    found = ["INV-04: an id was taken twice"] if len(taken) != len(set(taken)) else []
    found += ["INV-04: an id was given up twice"] if len(given_up) != len(set(given_up)) else []
    stood_for = {(key.digest, key.content_digest) for key in keys}
    return found + (["INV-04: an id stands for something else"] if len(stood_for) != len({key.digest for key in keys}) else [])


def check_inv_05(trace: Trace) -> list[str]:
    """A worker acknowledges and lists its own rows only."""
    found: list[str] = []
    for decided, rows in trace.known_before(InboxRow, "message_id"):
        if decided.origin.speaker is Speaker.WORKER and isinstance(decided.command, m.InboxAcknowledge | m.InboxList):
            seen = [one["message_id"] for one in (decided.decision.value or {}).get("messages", [])]
            seen += [row.message_id for row in decided.puts_of(InboxRow)]
            found += [f"INV-05: {name} is another's" for name in seen if rows[name].instance_id != decided.origin.instance_id]
    return found


def check_inv_06(trace: Trace) -> list[str]:
    """An id is taken in the decision that also writes, or audits, what it was taken for; a call that comes again is for nothing new."""
    taken = (decided for decided in trace.decided() if decided.puts_of(Key) and not decided.decision.audit)
    return [
        f"INV-06: {one.name} took an id for nothing"
        for one in taken
        if one.name != "ToolCancelAsked" and not (one.name == "ToolInvoke" and not one.puts_of(ToolCall))
    ]


def check_inv_07(trace: Trace) -> list[str]:
    """What nobody here understands is kept and does nothing."""
    inert = [decided for decided in trace.decided() if isinstance(decided.command, InertMessage) and not decided.refused]
    return [
        "INV-07: an unknown envelope did something"
        for one in inert
        if one.decision.effects or any(not isinstance(record, Key | TimelineMessage) for record in one.decision.puts)
    ]


_OVER: tuple[tuple[type, type, Callable[[Any], bool]], ...] = (
    (ForgottenCall, ToolCall, lambda call: call.status not in {*CALL_OPEN, CallStatus.SUBMITTED}),
    (ForgottenInboxRow, InboxRow, lambda row: row.state is InboxState.ACKNOWLEDGED),
    (ForgottenInteraction, Interaction, lambda one: one.status not in {*INTERACTION_OPEN, InteractionStatus.SUBMITTED}),
    (ForgottenOutboxRow, OutboxRow, lambda row: row.state is not OutboxState.PENDING),
)


def check_inv_08(trace: Trace) -> list[str]:
    """Nothing that is waited for is given up, whatever its age."""
    found: list[str] = []
    for forgotten, kind, is_over in _OVER:
        for decided, known in trace.known_before(kind, "number"):
            gone = [known[one.number] for one in decided.puts_of(forgotten) if one.number in known]
            found += [
                f"INV-08: {decided.name} gave up {kind.__name__} {one.number}" for one in gone if one is not None and not is_over(one)
            ]
    return found


def check_inv_09(trace: Trace) -> list[str]:
    """A call is delivered at most once to a life, and has one record for its whole time."""
    delivered: set[tuple[str, str, int]] = set()
    found: list[str] = []
    for event in trace.since_restore().framed():
        if isinstance(event.message, m.ToolCalled):
            what = (event.message.call_id, event.instance_id, event.life)
            if what in delivered:
                found.append(f"INV-09: {what[0]} was delivered twice to a life")
            delivered.add(what)
    return found


def _rejected(trace: Trace, codes: frozenset[Code]) -> set[str]:
    return {
        call.call_id
        for decided in trace.decided()
        for call in decided.puts_of(ToolCall)
        if call.status is CallStatus.REJECTED and call.error_code in codes
    }


def _on_channels(trace: Trace, calls: set[str], name: str) -> list[str]:
    framed = (event.message for event in trace.framed())
    return [f"{name}: refused call {one.call_id} is on a channel" for one in framed if getattr(one, "call_id", None) in calls]


def check_inv_11(trace: Trace) -> list[str]:
    """A call of another revision than the newest is refused, and reaches no App."""
    found = _on_channels(trace, _rejected(trace, frozenset({Code.INVENTORY_REVISION_MISMATCH})), "INV-11")
    current = None
    for decided in trace.since_restore().decided():
        command = decided.command
        taken = [call for call in decided.puts_of(ToolCall) if call.status is not CallStatus.REJECTED]
        if isinstance(command, ToolInvoke) and taken and None not in (current, command.inventory_revision):
            found += [] if command.inventory_revision == current else [f"INV-11: call {command.call_id} of another revision was taken"]
        for one in decided.puts_of(PublishedInventory):
            current = f"{one.epoch}.{one.number}"
    return found


def check_inv_12(trace: Trace) -> list[str]:
    """A call of no tool, or with a bad input, reaches no App."""
    return _on_channels(trace, _rejected(trace, frozenset({Code.TOOL_NOT_ADVERTISED, Code.TOOL_INPUT_INVALID})), "INV-12")


def check_inv_13(trace: Trace) -> list[str]:
    """A refused invoke leaves one call, one audit row and one row for its asker, and wakes that asker's pump: nothing else."""
    found: list[str] = []
    for decided in trace.decided():
        calls = [call for call in decided.puts_of(ToolCall) if call.status is CallStatus.REJECTED]
        if not calls or decided.name == "RouteCall":
            continue
        others = [one for one in decided.decision.puts if not isinstance(one, Key | OutboxRow | ToolCall)]
        effects = [one for one in decided.decision.effects if not isinstance(one, ArmDeadline | PumpOutbox)]
        counts = (len(calls), len(decided.puts_of(OutboxRow)), len(decided.decision.audit))
        if others or effects or counts != (1, 1, 1):
            found.append(f"INV-13: {decided.name} refused a call and did more")
    return found


def check_inv_17(trace: Trace) -> list[str]:
    """Only the life that was given a call says anything of it that counts."""
    spoken = (m.ToolAccept, m.ToolCancel, m.ToolCancelSeen, m.ToolComplete, m.ToolFail, m.ToolProgress, m.ToolsGet)
    found: list[str] = []
    for decided, calls in trace.known_before(ToolCall, "call_id"):
        command, origin = decided.command, decided.origin
        if not isinstance(command, spoken) or not (decided.decision.puts or decided.decision.value):
            continue
        call = calls.get(command.call_id)
        if call is None or (call.instance_id, call.delivered_life) != (origin.instance_id, origin.life):
            found.append(f"INV-17: {decided.name} of a call that is not its own counted")
        elif isinstance(command, m.ToolComplete) and call.status is not CallStatus.RUNNING:
            found.append("INV-17: a call was completed that was not running")
    return found


def check_inv_18(trace: Trace) -> list[str]:
    """No progress row is written once a call has its final one."""
    ended: set[int | None] = set()
    found: list[str] = []
    for decided in trace.since_restore().decided():
        for row in decided.puts_of(OutboxRow):
            if row.kind is OutboxKind.PROGRESS and row.call_number in ended and decided.name == "tool.progress":
                found.append("INV-18: progress after the end")
            if row.kind is OutboxKind.FINAL:
                ended.add(row.call_number)
    return found


def check_inv_19(trace: Trace) -> list[str]:
    """A call expires once, and not before its deadline by the machine's clock; a question to the person has no clock of a call."""
    found: list[str] = []
    for decided, calls in trace.known_before(ToolCall, "number"):
        for call in decided.puts_of(ToolCall):
            before = calls.get(call.number)
            if call.status is CallStatus.EXPIRED and (before is None or before.status in CALL_OPEN):
                deadline = before.deadline if before is not None else None
                if deadline is not None and deadline.boot_id == decided.stamp.boot_id and deadline.at_ms > decided.stamp.boottime_ms:
                    found.append("INV-19: a call expired too early")
            if call.app_scope == "interaction" and call.status is CallStatus.RUNNING and call.deadline is not None:
                found.append("INV-19: a question has the clock of a call")
    return found


def check_inv_20(trace: Trace) -> list[str]:
    """A result comes from the App's worker, from the person for a question, or from the kernel for its own tools and notices."""
    found: list[str] = []
    for decided, calls in trace.known_before(ToolCall, "number"):
        for call in decided.puts_of(ToolCall):
            before = calls.get(call.number)
            if call.status is CallStatus.SUBMITTED and (before is None or before.status in CALL_OPEN):
                is_right = _may_give_result(call, decided.origin)
                found += [] if is_right else [f"INV-20: {decided.name} gave a result to call {call.number}"]
    return found


def _may_give_result(call: Any, origin: Origin) -> bool:
    match call.app_scope:
        case "runtime":
            return origin.speaker is Speaker.KERNEL
        case "interaction":
            return origin.speaker is (Speaker.KERNEL if call.tool_id == "interaction.notice" else Speaker.VIEW)
        case _:
            return (origin.speaker, origin.instance_id) == (Speaker.WORKER, call.instance_id)


def check_inv_21(trace: Trace) -> list[str]:
    """What an older life says or suffers changes nothing."""
    found: list[str] = []
    for decided, instances in trace.known_before(Instance, "instance_id"):
        origin, command = decided.origin, decided.command
        spoke = (origin.instance_id, origin.life) if origin.speaker is Speaker.WORKER else None
        if isinstance(command, WorkerExited):
            spoke = (command.instance_id, command.life)
        known = instances.get(spoke[0]) if spoke else None
        if spoke and known is not None and known.life != spoke[1] and decided.decision.puts:
            found.append(f"INV-21: {decided.name} of an older life changed something")
    return found


def check_inv_32(trace: Trace) -> list[str]:
    """After a receiver took all that waited, it had every row that was written for it and not replaced."""
    found: list[str] = []
    written: dict[int, OutboxRow] = {}
    sent: set[str] = set()
    for event in trace.since_restore().events:
        if isinstance(event, Decided):
            written |= {row.number: row for row in event.puts_of(OutboxRow)}
            written = {number: row for number, row in written.items() if number not in event.decision.removed_rows}
        elif isinstance(event, Sent):
            sent.add(event.message_id)
        elif isinstance(event, Drained):
            due = [row for row in written.values() if row.destination is event.destination and row.state is OutboxState.PENDING]
            found += [f"INV-32: row {row.number} never left" for row in due if row.message_id not in sent]
    return found


def check_inv_33(trace: Trace) -> list[str]:
    """The same id has the same bytes, and on one connection rows leave in the order they were written; one that was asked for again (its
    call came once more) leaves behind what had left by then."""
    bodies: dict[str, bytes] = {}
    newest: dict[int, int] = defaultdict(int)
    seen: set[tuple[int, int]] = set()
    known: set[int] = set()
    asked_again: set[int] = set()  # since something newer left
    found: list[str] = []
    for event in trace.events:
        if isinstance(event, Opened) and event.is_restored:
            known = {row.number for row in event.records if isinstance(row, OutboxRow)}
        if isinstance(event, Decided):
            written = {row.number for row in event.puts_of(OutboxRow) if row.state is OutboxState.PENDING}
            asked_again |= written & known
            known |= written
        if not isinstance(event, Sent):
            continue
        if bodies.setdefault(event.message_id, event.body) != event.body:
            found.append("INV-33: a row was sent again with other bytes")
        is_behind = event.number < newest[event.connection] and (event.connection, event.number) not in seen
        if is_behind and event.number not in asked_again:
            found.append("INV-33: a row left out of order")
        seen.add((event.connection, event.number))
        if event.number > newest[event.connection]:
            newest[event.connection] = event.number
            asked_again.clear()
    return found


def check_inv_34(trace: Trace) -> list[str]:
    """Nothing leaves but a row that was committed before."""
    rows: dict[str, bytes] = {}
    found: list[str] = []
    for event in trace.events:
        if isinstance(event, Decided):
            rows |= {row.message_id: row.envelope_cbor for row in event.puts_of(OutboxRow)}
        elif isinstance(event, Sent) and not _is_row(event, rows):
            found.append(f"INV-34: {event.message_id} left and is no row")
    return found


def _is_row(sent: Sent, rows: dict[str, bytes]) -> bool:
    return sent.message_id in rows and decode_body(rows[sent.message_id]) == decode_body(sent.body)


def check_inv_35(trace: Trace) -> list[str]:
    """An acknowledgement by another receiver, or of no row, changes nothing."""
    found: list[str] = []
    for decided, rows in trace.known_before(OutboxRow, "message_id"):
        if isinstance(decided.command, OutboxAcknowledge) and decided.decision.puts:
            row = rows.get(decided.command.message_id)
            if row is None or row.destination is not decided.origin.source:
                found.append("INV-35: a foreign acknowledgement counted")
    return found


def check_inv_57(trace: Trace) -> list[str]:
    """Every refusal that was said has a code of the closed list."""
    return [f"INV-57: {one.code} is no code" for one in trace.answered() if one.code is not None and one.code not in set(Code)]
