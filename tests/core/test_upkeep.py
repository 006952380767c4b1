"""Backup and restore as decisions, and the words of `explain`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel.core.capability_records import ConsentScope
from kernel.core.decision import StartWorker
from kernel.core.events import BackupEnded, Booted, StateRestored
from kernel.core.machines import CALL_OPEN, CallStatus, CapabilityStatus, InteractionStatus, PermissionState
from kernel.core.records import Interaction, ToolCall
from kernel.core.surface_effects import SendToView
from kernel.core.upkeep_effects import MakeBackup
from kernel.explain_words import CODE_WORDS, EVENT_WORDS
from kernel.protocol.host_upkeep import BackupMade, BackupMake
from lineup_sdk.protocol.codes import Code
from tests.core.stories import world_of
from tests.core.test_interactions import CONFIRM
from tests.core.world import KERNEL, PERSON, World

KERNEL_FOLDER = Path(__file__).parents[2] / "kernel"


@pytest.mark.clause("12")
def test_a_backup_is_begun_in_one_turn_and_told_in_another() -> None:
    world = World()
    begun = world.say(PERSON, BackupMake(path="/backups/new"))
    assert (begun.effects, begun.audit) == ([MakeBackup(path="/backups/new", view_id=PERSON.view_id)], ["backup.begun"])
    ended = world.say(KERNEL, BackupEnded(view_id="view-1-command", facts={"format": 1}))
    told = BackupMade(accepted=True, facts={"format": 1})
    assert (ended.effects, ended.audit) == ([SendToView(view_id="view-1-command", message=told)], ["backup.made"])
    failed = world.say(KERNEL, BackupEnded(view_id="view-1-command", code=Code.STORE_FULL, detail={"hint": "free some space"}))
    told = BackupMade(accepted=False, code="store_full", detail={"hint": "free some space"})
    assert (failed.effects, failed.audit) == ([SendToView(view_id="view-1-command", message=told)], ["backup.failed"])


@pytest.mark.clause("12")
@pytest.mark.parametrize("path", ["backup", "/backups/new\0", "\0"], ids=repr)
def test_a_backup_to_what_is_no_absolute_path_is_refused(path: str) -> None:
    assert World().say(PERSON, BackupMake(path=path)).code is Code.LIMIT_EXCEEDED


@pytest.mark.clause("4.6")
def test_calls_that_a_backup_holds_open_end_as_interrupted_and_are_not_run_again() -> None:
    """Whatever they stood at, questions among them: by the time of the restore they may long have ended."""
    calls = [
        {"call_id": f"c{number}", "tool_id": "board.draw", "status": status}
        for number, status in enumerate(["received", "routing", "waiting_for_app", "running"])
    ]
    world = world_of({"instances": [{"app": "board"}], "calls": calls})
    world.invoke("q1", "interaction.confirm", CONFIRM)
    assert world.call("q1").status in CALL_OPEN
    world.say(KERNEL, StateRestored())
    outcome = world.say(KERNEL, Booted())
    assert {call.status for call in world.rows(ToolCall)} == {CallStatus.FAILED}
    assert {call.error_code for call in world.rows(ToolCall)} == {Code.INTERRUPTED}
    assert {one.status for one in world.rows(Interaction)} == {InteractionStatus.FAILED}
    assert not [event for event in outcome.audit if event.startswith("call.")]


@pytest.mark.clause("4.6")
def test_a_restore_changes_no_call_that_had_ended_and_doing_it_twice_is_doing_it_once() -> None:
    world = world_of({"instances": [{"app": "board"}], "calls": [{"call_id": "c1", "tool_id": "board.draw"}]})
    world.say(KERNEL, StateRestored())
    once = world.call("c1")
    assert world.say(KERNEL, StateRestored()).audit == []
    assert world.call("c1") == once


@pytest.mark.clause("4.6")
@pytest.mark.clause("8.3")
def test_a_restore_gives_no_process_and_the_start_after_it_gives_each_one() -> None:
    """The end of the call gives the front back to an App that was suspended: were it started here, it would have two lives at once."""
    instances = [{"app": "notes", "state": "suspended"}, {"app": "board", "state": "foreground"}]
    raised = {"call_id": "c1", "tool_id": "board.open", "status": "running", "raised": True}
    world = world_of({"instances": instances, "focus": ["notes", "board"], "calls": [raised]})
    restored = world.say(KERNEL, StateRestored())
    assert world.view.focus().instance_ids == ("ins_notes",), "the case is one in which the front changes"
    assert not [effect for effect in restored.effects if isinstance(effect, StartWorker)]
    started = [effect.instance_id for effect in world.say(KERNEL, Booted()).effects if isinstance(effect, StartWorker)]
    assert started == ["ins_notes"]


@pytest.mark.clause("17")
def test_every_event_the_kernel_writes_to_the_audit_has_words() -> None:
    written = {event for path in KERNEL_FOLDER.rglob("*.py") for event in _events_in(path)}
    assert len(written) > 50
    assert written <= set(EVENT_WORDS)


def test_every_code_has_words() -> None:
    assert set(CODE_WORDS) == set(Code)


def _events_in(path: Path) -> Iterator[str]:
    """First arguments of audit(...), and event= of AuditEntry(...)."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name == "audit" and node.args:
            yield from _literals(node.args[0])
        elif name == "AuditEntry":
            yield from (event for word in node.keywords if word.arg == "event" for event in _literals(word.value))
    if path.name == "store_start.py":  # a table of names there
        yield from ("store.created", "store.restored", "audit.head_damaged")


# What stands in a name that is put together: the ends of the machine, not its open states.
_PARTS = {
    "call": {status.value for status in CallStatus if status not in CALL_OPEN} - {"completed"},
    "capability": {status.value for status in CapabilityStatus} - {"asked", "granted"},
    "interaction": {status.value for status in InteractionStatus} - {"pending", "presented"},
    "permission": {scope.value for scope in ConsentScope if scope is not ConsentScope.ONCE}
    | {state.value for state in PermissionState if state is not PermissionState.ACTIVE},
}


def _literals(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp():
            yield from _literals(node.body)
            yield from _literals(node.orelse)
        case ast.JoinedStr(values=[ast.Constant(value=str(head)), *_]):
            yield from (head + part for part in _PARTS[head.rstrip(".")])
        case ast.Name():
            return  # passed on: its literals stand where it comes from
        case _:
            raise AssertionError(f"an event whose name cannot be read: {ast.dump(node)}")
