"""The state machines: every pair of a state and an event, and the page that is made from them."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kernel.core import machines
from kernel.core.machines import (
    CALL,
    CALL_OPEN,
    CAPABILITY,
    CAPABILITY_OPEN,
    INBOX,
    INSTANCE,
    INSTANCE_FINAL,
    INSTANCE_LIVE,
    INTERACTION,
    INTERACTION_OPEN,
    MACHINES,
    OUTBOX,
    PERMISSION,
    CallEvent,
    CallStatus,
    CapabilityEvent,
    CapabilityStatus,
    InboxEvent,
    InboxState,
    InstanceEvent,
    InstanceState,
    InteractionEvent,
    InteractionStatus,
    NoSuchTransition,
    OutboxEvent,
    OutboxState,
    PermissionEvent,
    PermissionState,
    step,
)

ALL: list[tuple[str, Mapping[Any, Mapping[Any, Any]], Any, Any]] = [
    ("capability request", CAPABILITY, CapabilityStatus, CapabilityEvent),
    ("inbox row", INBOX, InboxState, InboxEvent),
    ("instance", INSTANCE, InstanceState, InstanceEvent),
    ("interaction", INTERACTION, InteractionStatus, InteractionEvent),
    ("outbox row", OUTBOX, OutboxState, OutboxEvent),
    ("permission", PERMISSION, PermissionState, PermissionEvent),
    ("tool call", CALL, CallStatus, CallEvent),
]
ROWS = [pytest.param(table, state, events, id=f"{name}-{state}") for name, table, states, events in ALL for state in states]

# SPEC 6.2 as it is written: from, and all it may become.
CALL_TABLE = {
    "received": {"routing", "rejected"},
    "routing": {"waiting_for_app", "running", "submitted", "rejected", "failed", "cancelled", "expired"},
    "waiting_for_app": {"running", "failed", "cancelled", "expired"},
    "running": {"submitted", "failed", "cancelled", "expired", "waiting_for_app"},
    "submitted": {"completed"},
    "completed": set(),
    "failed": set(),
    "cancelled": set(),
    "expired": set(),
    "rejected": set(),
}
# SPEC 7.1; the outcome is taken from pending or presented.
INTERACTION_TABLE = {
    "pending": {"presented", "submitted", "cancelled", "expired", "failed"},
    "presented": {"submitted", "cancelled", "expired", "failed"},
    "submitted": {"completed"},
    "completed": set(),
    "cancelled": set(),
    "expired": set(),
    "failed": set(),
}
# SPEC 8.1, and starting -> stopping (docs/decisions/0018).
INSTANCE_TABLE = {
    "starting": {"foreground", "background", "failed", "starting", "suspended", "stopping"},
    "foreground": {"background", "suspended", "starting", "stopping", "failed"},
    "background": {"foreground", "suspended", "starting", "stopping", "failed"},
    "suspended": {"starting", "stopped"},
    "stopping": {"stopped", "suspended"},
    "stopped": set(),
    "failed": set(),
}


@pytest.mark.invariant("10")
@pytest.mark.invariant("38")
@pytest.mark.parametrize(("table", "state", "events"), ROWS)
def test_every_event_moves_as_the_table_says_or_is_refused_and_changes_nothing(table: Any, state: Any, events: Any) -> None:
    before = {name: dict(steps) for name, steps in table.items()}
    for event in events:
        if event in table[state]:
            assert step(table, state, event) is table[state][event]
            assert step(table, state, event) in table
        else:
            with pytest.raises(NoSuchTransition):
                step(table, state, event)
    assert {name: dict(steps) for name, steps in table.items()} == before


@pytest.mark.parametrize(("name", "table", "states", "events"), ALL)
def test_table_names_every_state_and_every_event(name: str, table: Any, states: Any, events: Any) -> None:
    assert MACHINES[name] is table
    assert set(table) == set(states)
    assert {event for steps in table.values() for event in steps} == set(events)


def test_no_machine_is_left_out() -> None:
    assert set(MACHINES) == {name for name, _, _, _ in ALL}


@pytest.mark.clause("6.2")
def test_calls_move_exactly_as_the_specification_lists() -> None:
    assert {str(state): {str(target) for target in steps.values()} for state, steps in CALL.items()} == CALL_TABLE


@pytest.mark.clause("8.1")
def test_instances_move_exactly_as_the_specification_lists() -> None:
    assert {str(state): {str(target) for target in steps.values()} for state, steps in INSTANCE.items()} == INSTANCE_TABLE


@pytest.mark.clause("7.1")
@pytest.mark.invariant("22")
def test_interactions_move_exactly_as_the_specification_lists() -> None:
    assert {str(state): {str(target) for target in steps.values()} for state, steps in INTERACTION.items()} == INTERACTION_TABLE
    assert {state for state in INTERACTION if InteractionEvent.EXPIRE in INTERACTION[state]} == INTERACTION_OPEN


@pytest.mark.clause("10")
@pytest.mark.invariant("52")
def test_a_grant_is_given_once_and_never_given_back() -> None:
    into = {state for state, steps in CAPABILITY.items() if CapabilityStatus.GRANTED in steps.values()}
    assert into == {CapabilityStatus.ASKED}
    assert not CAPABILITY_OPEN & set(CAPABILITY[CapabilityStatus.GRANTED].values())
    assert {state for state, steps in CAPABILITY.items() if steps} == CAPABILITY_OPEN


@pytest.mark.invariant("10")
def test_outcomes_are_absorbing_except_that_a_delivered_result_is_completed() -> None:
    for state in set(CallStatus) - CALL_OPEN:
        assert set(CALL[state].values()) <= ({CallStatus.COMPLETED} if state is CallStatus.SUBMITTED else set())


def test_named_sets_of_states_agree_with_the_tables() -> None:
    assert {state for state, steps in INSTANCE.items() if not steps} == INSTANCE_FINAL
    assert set(InstanceState) - INSTANCE_FINAL - {InstanceState.SUSPENDED} == INSTANCE_LIVE
    outcomes = {CALL[state][event] for state in CALL_OPEN for event in CALL[state]} - CALL_OPEN
    assert outcomes == set(CallStatus) - CALL_OPEN - {CallStatus.COMPLETED}


def _maker() -> Any:
    path = Path(machines.__file__).parents[2] / "docs" / "make_machines.py"
    spec = importlib.util.spec_from_file_location("make_machines", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_page_of_the_machines_is_fresh(capsys: pytest.CaptureFixture[str]) -> None:
    assert _maker().main(["--check"]) == 0
    assert capsys.readouterr().err == ""


def test_stale_page_of_the_machines_is_noticed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    maker = _maker()
    maker.PAGE = tmp_path / "machines.md"
    assert maker.main(["--check"]) == 1
    assert maker.main([]) == 0
    assert maker.main(["--check"]) == 0
    maker.PAGE.write_text(maker.page().replace("rejected", "refused"), "utf-8")
    assert maker.main(["--check"]) == 1
    assert "stale" in capsys.readouterr().err
