"""Every check over rows and traces goes red for a break of its own promise: a sound run, spoilt in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from kernel.core.capability_records import CapabilityRequest
from kernel.core.decision import AuditEntry, Origin, PumpOutbox, Speaker
from kernel.core.events import WorkerExited
from kernel.core.machines import CALL_OPEN, CallStatus, CapabilityStatus, InstanceState, InteractionStatus
from kernel.core.records import (
    InboxRow,
    Instance,
    Interaction,
    Key,
    OutboxKind,
    OutboxRow,
    PublishedInventory,
    Source,
    ToolCall,
    encode_body,
)
from kernel.core.retention_records import ForgottenCall
from kernel.core.surface_records import Surface
from kernel.protocol.agent import InertMessage
from kernel.protocol.host import AppClose, OutboxAcknowledge
from kernel.protocol.host_capabilities import CapabilityExecute
from kernel.protocol.host_interactions import InteractionAnswer, InteractionMove
from kernel.protocol.host_surfaces import SurfacePatch
from lineup_sdk.protocol import interaction_messages as i
from lineup_sdk.protocol import messages as m
from tests.invariants import CHECKS, TRACE_CHECKS, check_all, check_trace
from tests.model.sound_run import sound_run
from tests.model.test_model import Anything
from tests.trace import Answered, Decided, Drained, Event, Framed, Processed, Sent, Shown, Trace

Events = list[Event]


@pytest.fixture(scope="module")
def run() -> Iterator[Anything]:
    """A run that is over and sound."""
    model = sound_run()
    yield model
    model.kernel.end()


def test_the_run_is_sound(run: Anything) -> None:
    assert check_all(run.kernel.store._db._connection) == []
    assert check_trace(run.kernel.trace) == []


# --------------------------------------------------------------------------------- rows

SPOILT_ROWS = [
    ("08", "UPDATE focus SET instance_ids = '[' || substr(replace(hex(zeroblob(33)), '00', ',1'), 2) || ']'"),
    ("12", "UPDATE tool_call SET input_cbor = x'a0' WHERE tool_id = 'board.draw' AND status <> 'rejected'"),
    ("14", "UPDATE tool_call SET result_cbor = x'a0' WHERE tool_id = 'board.draw' AND result_cbor IS NOT NULL"),
    ("14", "DELETE FROM kept_descriptor"),
    ("21", "UPDATE instance SET life = life + 1"),
    ("21", "UPDATE instance SET state = 'stopped'"),
    ("22", "UPDATE interaction SET result_cbor = NULL WHERE status = 'completed'"),
    ("22", "UPDATE interaction SET answered_by_view = 'v' WHERE status = 'expired'"),
    ("23", "UPDATE interaction SET status = 'cancelled' WHERE kind = 'notice'"),
    ("23", "DELETE FROM interaction"),
    ("24", "UPDATE interaction SET owner_instance_id = 'another' WHERE source = 'miniapp_tool'"),
    ("24", "UPDATE interaction SET owner_app_scope = 'board' WHERE source = 'agent_tool'"),
    ("24", "UPDATE interaction SET owner_app_scope = 'chat' WHERE source = 'runtime_policy'"),
    ("27", "DELETE FROM timeline_message WHERE type = 'lineup.v1.interaction'"),
    ("27", "UPDATE interaction SET result_cbor = x'a0' WHERE kind = 'notice'"),
    ("37", "UPDATE instance SET state = 'background' WHERE state = 'foreground'"),
    ("51", "DELETE FROM surface_patch"),
    ("51", "DELETE FROM surface_snapshot"),
    ("51", "UPDATE surface SET version = version + 1"),
    ("55", "DELETE FROM audit WHERE event = 'interaction.expired'"),
    ("55", "DELETE FROM audit WHERE event = 'capability.done'"),
    ("56", "UPDATE audit SET event = 'a whole sentence' WHERE seq = 1"),
    ("57", "UPDATE tool_call SET error_code = 'nonsense' WHERE error_code IS NOT NULL"),
]


@pytest.mark.parametrize(("number", "spoil"), SPOILT_ROWS)
def test_a_spoilt_row_is_told_under_its_number(run: Anything, number: str, spoil: str) -> None:
    db = run.kernel.store._db._connection
    db.pragma("ignore_check_constraints", 1)
    db.execute("BEGIN")
    try:
        db.execute(spoil)
        assert db.changes() > 0
        found = CHECKS[number](db)
    finally:
        db.execute("ROLLBACK")
    assert found
    assert all(line.startswith(f"INV-{number}: ") for line in found)


# --------------------------------------------------------------------------------- traces


def _where(events: Events, is_it: Callable[[Any], bool]) -> int:
    return next(place for place, event in enumerate(events) if is_it(event))


def _decided(command: type | str, puts: type | None = None) -> Callable[[Any], bool]:
    """The first decision of a command that wrote, perhaps, a kind of record."""

    def is_it(event: Any) -> bool:
        if not isinstance(event, Decided) or (puts is not None and not event.puts_of(puts)):
            return False
        return event.name == command if isinstance(command, str) else isinstance(event.command, command) and not event.refused

    return is_it


def _is_close(event: Any) -> bool:
    """The answer that closed an App at work."""
    return _decided(InteractionAnswer, Instance)(event) and bool(event.puts_of(ToolCall))


def _with(value: Any, **facts: Any) -> Any:
    """A record, decision or stamp with other facts."""
    return value._replace(**facts) if isinstance(value, tuple) else replace(value, **facts)


def _change(is_it: Callable[[Any], bool], **facts: Any) -> Callable[[Events], None]:
    """Change a decision: origin=, stamp=, decision= are changes within those."""

    def spoil(events: Events) -> None:
        place = _where(events, is_it)
        old = events[place]
        changes = {name: _with(getattr(old, name), **value) if isinstance(value, dict) else value for name, value in facts.items()}
        events[place] = replace(old, **changes)

    return spoil


def _change_puts(is_it: Callable[[Any], bool], change: Callable[[Any], Any]) -> Callable[[Events], None]:
    """Change the records a decision wrote; None takes one away."""

    def spoil(events: Events) -> None:
        place = _where(events, is_it)
        old: Any = events[place]
        puts = tuple(new for record in old.decision.puts if (new := change(record)) is not None)
        assert puts != old.decision.puts
        events[place] = replace(old, decision=_with(old.decision, puts=puts))

    return spoil


def _of(kind: type, **facts: Any) -> Callable[[Any], Any]:
    return lambda record: replace(record, **facts) if isinstance(record, kind) else record


def _without(kind: type) -> Callable[[Any], Any]:
    return lambda record: None if isinstance(record, kind) else record


def _again(is_it: Callable[[Any], bool], **facts: Any) -> Callable[[Events], None]:
    """Let an event happen once more, at the end, perhaps otherwise."""
    return lambda events: events.append(replace(events[_where(events, is_it)], **facts))


def _framed(message: type) -> Callable[[Any], bool]:
    return lambda event: isinstance(event, Framed) and isinstance(event.message, message)


def _is_accepted_ack(event: Any) -> bool:
    if not isinstance(event, Answered) or not isinstance(event.outcome.turn.command, m.InboxAcknowledge):
        return False
    return bool((event.outcome.value or {})["acknowledged"])


def _deliver_again(events: Events) -> None:
    acknowledged = events[_where(events, _is_accepted_ack)].outcome.turn.command.message_id  # type: ignore[union-attr]
    events.append(events[_where(events, lambda one: _framed(m.InboxDelivered)(one) and one.message.message_id == acknowledged)])


def _rejected(code: str) -> Callable[[Any], bool]:
    return lambda one: isinstance(one, Decided) and any(call.error_code == code for call in one.puts_of(ToolCall))


def _deliver_refused(code: str) -> Callable[[Events], None]:
    def spoil(events: Events) -> None:
        call = events[_where(events, _rejected(code))].puts_of(ToolCall)[0]  # type: ignore[union-attr]
        events.append(Framed(instance_id="x", app_scope="board", life=1, message=m.ToolEnded(call_id=call.call_id, status="rejected")))

    return spoil


def _progress_after_the_end(events: Events) -> None:
    place = _where(events, lambda one: isinstance(one, Decided) and any(row.kind is OutboxKind.PROGRESS for row in one.puts_of(OutboxRow)))
    events.append(events[place])


def _expire_early(kind: type, status: Any) -> Callable[[Events], None]:
    is_it = lambda one: isinstance(one, Decided) and any(record.status is status for record in one.puts_of(kind))  # noqa: E731
    return _change(is_it, stamp={"boottime_ms": 1})


def _leave_a_row(events: Events) -> None:
    place = _where(events, _decided("ToolInvoke", OutboxRow))
    old: Any = events[place]
    row = replace(old.puts_of(OutboxRow)[0], message_id="left", number=9_999)
    drained = _where(events, lambda one: isinstance(one, Drained))
    events.insert(drained, replace(old, decision=_with(old.decision, puts=(row,), removed_rows=())))


def _leave_behind_a_newer_row(events: Events) -> None:
    sent: Any = events[_where(events, _is_sent)]
    events += [replace(sent, connection=99, number=9_999), replace(sent, connection=99)]


def _is_sent(event: Any) -> bool:
    return isinstance(event, Sent)


def _failing_exit(event: Any) -> bool:
    return (
        isinstance(event, Decided)
        and isinstance(event.command, WorkerExited)
        and any(one.state is InstanceState.FAILED for one in event.puts_of(Instance))
    )


def _question_on_a_channel(events: Events) -> None:
    asked = events[_where(events, _decided("RouteCall", Interaction))].puts_of(Interaction)[0]  # type: ignore[union-attr]
    message = i.UiChanged(interaction_id=asked.interaction_id, status="presented")
    events.append(Framed(instance_id="x", app_scope="board", life=1, message=message))


def _accept_unpresented(events: Events) -> None:
    notices = lambda one: _decided("PresentInteraction", Interaction)(one) and one.puts_of(Interaction)[0].kind.value == "notice"  # noqa: E731
    del events[_where(events, notices)]


def _change_outcome(events: Events) -> None:
    old: Any = events[_where(events, _decided("TimePassed", Interaction))]
    again = replace(old.puts_of(Interaction)[0], status=InteractionStatus.SUBMITTED)
    events.append(replace(old, decision=_with(old.decision, puts=(again,))))


def _close_at_the_end_of_a_call(events: Events) -> None:
    place = _where(events, _decided(m.ToolComplete, ToolCall))
    old: Any = events[place]
    app = next(one for event in events if isinstance(event, Decided) for one in event.puts_of(Instance))
    puts = (*old.decision.puts, replace(app, state=InstanceState.STOPPING))
    events[place] = replace(old, decision=_with(old.decision, puts=puts))


def _is_executed(event: Any) -> bool:
    return isinstance(event, Shown) and isinstance(event.message, CapabilityExecute)


def _is_grant(event: Any) -> bool:
    return isinstance(event, Decided) and any(one.status is CapabilityStatus.GRANTED for one in event.puts_of(CapabilityRequest))


_WELCOME = m.Welcome(wire=1, epoch="e1", context={"app_scope": "board", "person": "p"}, source={})
_STRANGER = Origin(speaker=Speaker.WORKER, instance_id="ins_other", life=1)
_ANSWERED = encode_body({"outcome": "answered", "answer": {"approved": 1}})


def _give_up_an_open_call(events: Events) -> None:
    place = _where(events, lambda one: isinstance(one, Decided) and any(call.status in CALL_OPEN for call in one.puts_of(ToolCall)))
    found: Any = events[place]
    gone = ForgottenCall(number=found.puts_of(ToolCall)[0].number)
    events.insert(place + 1, replace(found, decision=_with(found.decision, puts=(gone,))))


SPOILT_TRACES: list[tuple[str, Callable[[Events], None]]] = [
    ("01", _change_puts(_decided("DeliverMessages", InboxRow), _without(InboxRow))),
    ("02", _again(_framed(m.InboxDelivered))),
    ("03", _deliver_again),
    ("04", _again(_decided("ToolInvoke", Key))),
    ("05", _change(_decided(m.InboxAcknowledge, InboxRow), origin={"instance_id": "ins_other"})),
    ("06", _change(_decided("ToolInvoke", Key), decision={"audit": ()})),
    ("07", _change(_decided(InertMessage), decision={"effects": (PumpOutbox(destination=Source.AGENT),)})),
    ("08", _give_up_an_open_call),
    ("09", _again(_framed(m.ToolCalled))),
    ("11", _deliver_refused("inventory_revision_mismatch")),
    ("12", _deliver_refused("tool_input_invalid")),
    ("12", _deliver_refused("tool_not_advertised")),
    ("13", _change(_rejected("tool_input_invalid"), decision={"audit": (AuditEntry(event="a.b"), AuditEntry(event="a.c"))})),
    ("17", _change(_decided(m.ToolComplete, ToolCall), origin={"instance_id": "ins_other"})),
    ("18", _progress_after_the_end),
    ("19", _expire_early(ToolCall, CallStatus.EXPIRED)),
    ("20", _change(_decided(m.ToolComplete, ToolCall), origin={"speaker": Speaker.AGENT})),
    ("20", _change(_decided(InteractionAnswer, ToolCall), origin={"speaker": Speaker.WORKER})),
    ("21", _change(_decided(m.ToolComplete, ToolCall), origin={"life": 77})),
    ("22", _change_outcome),
    ("23", _change_puts(_decided(InteractionAnswer, ToolCall), _without(ToolCall))),
    ("24", _change_puts(_decided(i.UiRequest, Interaction), _of(Interaction, owner_instance_id="ins_other"))),
    ("25", _change(_decided(i.UiCancel, Interaction), origin={"instance_id": "ins_other"})),
    ("25", _change(_decided(InteractionAnswer, Interaction), origin={"speaker": Speaker.WORKER})),
    ("26", _question_on_a_channel),
    ("27", _accept_unpresented),
    ("28", _change_puts(_decided(InteractionMove, Interaction), _of(Interaction, answered_by_view="v"))),
    ("29", _change_puts(_decided(InteractionAnswer, Interaction), _of(Interaction, result_cbor=_ANSWERED))),
    ("31", _expire_early(Interaction, InteractionStatus.EXPIRED)),
    ("32", _leave_a_row),
    ("33", _again(_is_sent, body=b"\xa0")),
    ("33", _leave_behind_a_newer_row),
    ("34", _again(_is_sent, message_id="made up")),
    ("35", _change(_decided(OutboxAcknowledge, OutboxRow), origin={"source": Source.DEMO})),
    ("36", _change_puts(lambda one: _decided("Booted", Instance)(one) and len(one.puts_of(Instance)) > 1, _without(Instance))),
    ("38", _again(_decided("app.open", Instance))),
    ("39", _change(_decided("lifecycle.started", Instance), decision={"audit": ()})),
    ("39", _change_puts(_is_close, _of(Interaction, result_cbor=encode_body({"answer": {"approved": False}})))),
    ("39", _change(_is_close, command=AppClose(instance_id="x"))),
    ("40", _close_at_the_end_of_a_call),
    ("41", _change_puts(_failing_exit, _of(Instance, state=InstanceState.STARTING))),
    ("43", lambda events: events.append(Framed(instance_id="x", app_scope="board", life=1, message=_WELCOME))),
    ("49", _change(_decided(SurfacePatch, Surface), origin={"view_id": "view-9-other"})),
    ("51", _change_puts(_decided(SurfacePatch, Surface), _of(Surface, version=9))),
    ("52", _again(_is_executed)),
    ("52", _change_puts(_is_grant, _of(CapabilityRequest, provider_view_id="view-9-other"))),
    ("53", _again(_decided("app.disable", PublishedInventory))),
    ("54", _change(_decided("app.disable", PublishedInventory), name="tool.complete")),
    ("57", lambda events: events.append(_with_code(events))),
]


def _with_code(events: Events) -> Answered:
    answered: Any = events[_where(events, lambda one: isinstance(one, Answered))]
    return Answered(outcome=answered.outcome._replace(code="nonsense"))


@pytest.mark.parametrize(("number", "spoil"), SPOILT_TRACES, ids=[number for number, _ in SPOILT_TRACES])
def test_a_spoilt_trace_is_told_under_its_number(run: Anything, number: str, spoil: Callable[[Events], None]) -> None:
    events = list(run.kernel.trace.events)
    spoil(events)
    found = TRACE_CHECKS[number](Trace(events))
    assert found
    assert all(line.startswith(f"INV-{number}: ") for line in found)


def test_a_life_that_is_started_twice_is_told(run: Anything) -> None:
    events = list(run.kernel.trace.events)
    _again(lambda one: isinstance(one, Processed) and one.verb == "start")(events)
    assert any("started twice" in line for line in check_trace(Trace(events)))


def test_every_check_over_a_trace_has_been_seen_red() -> None:
    assert {number for number, _ in SPOILT_TRACES} == set(TRACE_CHECKS)
