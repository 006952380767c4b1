"""Drafts and records: what a decider reads back, ids and numbers that only the kernel makes, nothing of anybody in the audit."""

from __future__ import annotations

import ast
from dataclasses import FrozenInstanceError, fields, replace
from enum import StrEnum
from pathlib import Path

import pytest

import kernel.core
from kernel.core.capability_records import ConsentScope
from kernel.core.decision import AuditEntry, Detail, Draft, Stamp
from kernel.core.events import AgentAttached
from kernel.core.machines import CallStatus, CapabilityStatus, InstanceState, InteractionStatus, PermissionState
from kernel.core.records import InboxRow, Instance, OutboxRow, ToolCall, decode_body, digest_of_parts, encode_body, encode_exact, key_digest
from kernel.protocol import host as h
from kernel.protocol.agent import APP_MESSAGE, MESSAGE_TEXT, AppMessageReceived, TextReceived, ToolCancelAsked
from lineup_sdk.protocol import messages as m
from tests.core.stories import world_of
from tests.core.world import AGENT, KERNEL, PERSON, START, World, envelope

STAMP = Stamp(now=START, boot_id="b", boottime_ms=5, token="ab" * 16, first_number=7)


def test_a_draft_reads_back_what_it_has_put_and_the_view_does_not() -> None:
    world = world_of(
        {
            "instances": [{"app": "board"}],
            "calls": [{"call_id": "c1", "tool_id": "board.draw"}],
            "inbox": [{"app": "board", "message_id": "m"}],
        }
    )
    draft = Draft(world.view, KERNEL, STAMP)
    call, instance, row = world.call("c1"), world.instance("ins_board"), world.rows(InboxRow)[0]
    draft.put(replace(call, attempts=2))
    draft.put(replace(call, attempts=3))
    draft.put(replace(instance, life=9))
    draft.put(replace(row, crash_count=1))
    staged = (draft.call(call.number), draft.instance("ins_board"), draft.staged_inbox_row(row))
    assert staged == (replace(call, attempts=3), replace(instance, life=9), replace(row, crash_count=1))
    assert draft.decision().puts == staged
    assert world.view.call(call.number) == call


def test_numbers_and_ids_of_a_turn_are_its_own_and_counted() -> None:
    draft = Draft(World().view, KERNEL, STAMP)
    assert [draft.new_number(), draft.new_number()] == [7, 8]
    assert [draft.new_id("msg"), draft.new_id("ins")] == ["msg_e1_" + "ab" * 16 + "01", "ins_e1_" + "ab" * 16 + "02"]
    assert draft.decision().numbers_used == 2
    assert STAMP.new_id("call", "e1") not in {draft.new_id("call") for _ in range(300)}


@pytest.mark.clause("2.5")
def test_a_detail_says_only_what_is_known() -> None:
    assert Detail().as_json() == {"pointer": ""}
    full = Detail(pointer="/a", expected="x", got_type="string", got_size=0, hint="h", more={"open_calls": 1})
    assert full.as_json() == {"pointer": "/a", "expected": "x", "got_type": "string", "got_size": 0, "hint": "h", "open_calls": 1}


def test_records_cannot_be_changed_in_place() -> None:
    world = world_of({"instances": [{"app": "board"}]})
    with pytest.raises(FrozenInstanceError):
        world.instance("ins_board").state = InstanceState.FAILED  # type: ignore[misc]


@pytest.mark.clause("6.4")
def test_equal_content_has_equal_bytes_and_no_two_lists_of_parts_collide() -> None:
    assert encode_exact({"b": 1, "a": [1.0, "é"]}) == encode_exact({"a": [1.0, "é"], "b": 1})
    assert decode_body(encode_body({"a": {"b": [None, True, 1.5]}})) == {"a": {"b": [None, True, 1.5]}}
    assert digest_of_parts("ab", "c") != digest_of_parts("a", "bc")
    assert digest_of_parts("a") == digest_of_parts(b"a")
    assert key_digest("call", "c", "x") != key_digest("message", "c", "x")


@pytest.mark.clause("17")
@pytest.mark.invariant("56")
def test_nothing_that_anybody_wrote_is_in_the_audit() -> None:
    canary = "CANARY"
    world = World()
    world.boot()
    board = world.running(f"call-{canary}", "board.open", {"title": canary})
    world.invoke(f"call-{canary}", "board.peek")
    world.invoke(f"bad-{canary}", f"board.{canary}")
    world.say(AGENT, AgentAttached())
    world.say(AGENT, TextReceived(envelope=envelope(f"m-{canary}", MESSAGE_TEXT), text=canary))
    outer = envelope(f"app-{canary}", APP_MESSAGE, app_scope="board")
    world.say(AGENT, AppMessageReceived(envelope=outer, topic="board.note", body={canary: canary}))
    world.say(AGENT, AppMessageReceived(envelope=envelope(f"x-{canary}", app_scope=canary), topic=canary, body={}))
    world.tell(board, m.InboxAcknowledge(message_id=f"app-{canary}"))
    world.tell(board, m.ToolProgress(call_id=f"call-{canary}", percent=3.0, message=canary, data={canary: 1}))
    world.tell(board, m.ToolComplete(call_id=f"call-{canary}", result={"ok": canary}))
    world.tell(board, m.StateSave(state={canary: canary}))
    world.say(AGENT, ToolCancelAsked(envelope=None, call_id=f"call-{canary}"))
    world.tell(board, m.ToolFail(call_id=f"call-{canary}", reason="no", message=canary))
    world.say(PERSON, h.MessageSend(text=canary))
    world.say(PERSON, h.AppDisable(name="board"))
    world.say(PERSON, h.AppDisable(name=canary))
    assert len(world.view.audit) > 20
    assert canary not in repr(world.view.audit)
    assert canary in repr(world.view.tables)


@pytest.mark.clause("17")
def test_every_audit_event_of_the_core_is_a_fixed_word() -> None:
    events: set[str] = set()
    for path in Path(kernel.core.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "audit":
                events |= _words(node.args[0])
                assert {keyword.arg for keyword in node.keywords} <= {field.name for field in fields(AuditEntry)}
    assert {event for event in events if event.count(".") != 1} == set()
    assert len(events) > 25


def _words(node: ast.expr) -> set[str]:
    if isinstance(node, ast.JoinedStr):
        built: dict[str, type[StrEnum]] = {
            "call.{ended.status.value}": CallStatus,
            "capability.{ended.status.value}": CapabilityStatus,
            "interaction.{ended.status.value}": InteractionStatus,
            "permission.{ended.state.value}": PermissionState,
            "permission.{scope.value}": ConsentScope,
        }
        text = ast.unparse(node).removeprefix("f'").removesuffix("'")
        assert text in built, text
        return {f"{text.partition('.')[0]}.{word}" for word in built[text]}
    if isinstance(node, ast.IfExp):
        return _words(node.body) | _words(node.orelse)
    assert isinstance(node, ast.Constant), ast.unparse(node)
    return {str(node.value)}


@pytest.mark.clause("4.6")
def test_every_id_that_the_kernel_makes_begins_with_its_kind_and_epoch() -> None:
    world = World()
    world.boot()
    world.running("c1", "board.peek")
    ids = [row.message_id for row in world.rows(OutboxRow)]
    ids += [one.instance_id for one in world.rows(Instance)] + [one.app_session_id for one in world.rows(Instance)]
    assert {one.split("_")[0] for one in ids} == {"msg", "ins", "ses"}
    assert all(one.split("_")[1] == "e1" for one in ids)
    assert {call.call_id for call in world.rows(ToolCall)} == {"c1"}
