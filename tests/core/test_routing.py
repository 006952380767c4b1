"""From an invoke to an instance: refused without a trace of an effect, judged again at routing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kernel.core.decision import PumpOutbox
from kernel.core.events import RouteCall
from kernel.core.machines import CallStatus, InstanceState
from kernel.core.records import Key, OutboxKind, OutboxRow, ToolCall, decode_body
from kernel.protocol import host as h
from kernel.protocol.agent import ToolInvoke
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol.codes import Code
from tests.core.dict_view import MANIFESTS, manifest_of
from tests.core.stories import world_of
from tests.core.world import AGENT, KERNEL, PERSON, World, envelope

REFUSED: list[tuple[Code, str, dict[str, Any]]] = [
    (Code.INVENTORY_REVISION_MISMATCH, "board.peek", {"inventory_revision": "e1.99"}),
    (Code.INVENTORY_REVISION_MISMATCH, "board.peek", {"inventory_revision": "another epoch.1"}),
    (Code.INVENTORY_REVISION_MISMATCH, "board.peek", {"inventory_revision": None}),
    (Code.TOOL_NOT_ADVERTISED, "board.fly", {}),
    (Code.TOOL_NOT_ADVERTISED, "", {}),
    (Code.TOOL_INPUT_INVALID, "board.draw", {}),
    (Code.APP_SCOPE_MISMATCH, "board.peek", {"app_scope": "notes"}),
    (Code.APP_INSTANCE_NOT_FOUND, "board.peek", {"instance_id": "ins_e1_nobody"}),
    (Code.APP_INSTANCE_NOT_FOUND, "notes.show", {"tool": "board.show"}),
    (Code.SURFACE_UNAVAILABLE, "frame.show", {}),
]


@pytest.mark.clause("6.3")
@pytest.mark.invariant("13")
@pytest.mark.parametrize(("code", "tool_id", "more"), REFUSED)
def test_a_refused_call_leaves_one_call_row_one_audit_row_one_outbox_row_and_its_keys(
    code: Code, tool_id: str, more: dict[str, Any]
) -> None:
    world = world_of({"instances": [{"app": "notes", "state": "foreground"}], "focus": ["notes"]})
    tool_id = more.pop("tool", tool_id)
    before = world.view.copy()
    outcome = world.invoke("c1", tool_id, envelope=envelope("m1"), **more)
    assert outcome.code is code
    changed = {kind.__name__ for kind, table in world.view.tables.items() if table != before.tables[kind]}
    assert changed == {"ToolCall", "Key", "OutboxRow"}
    assert len(world.rows(ToolCall)) == 1
    assert len(world.view.tables[Key]) == 2  # the message_id and the call_id: both spent
    assert [row.kind for row in world.rows(OutboxRow)] == [row.kind for row in before.tables[OutboxRow].values()] + [OutboxKind.FINAL]
    assert (outcome.audit, outcome.effects) == (["call.rejected"], [PumpOutbox(destination=AGENT.source)])
    assert (world.call("c1").status, world.call("c1").error_code, world.call("c1").input_cbor) == (CallStatus.REJECTED, code, b"\xa0")


@pytest.mark.clause("2.5")
def test_the_report_names_the_place_and_what_was_expected_and_never_what_came() -> None:
    world = world_of({"instances": [{"app": "board"}]})
    outcome = world.invoke("c1", "board.draw", {"x": "canary"})
    assert outcome.detail is not None
    assert outcome.detail.pointer == "/payload/input/x"
    payload = outcome.outbox[0]["payload"]
    assert payload["report"] == outcome.detail.as_json()
    assert (payload["status"], payload["code"]) == ("rejected", "tool_input_invalid")
    assert "canary" not in repr(payload)


@pytest.mark.clause("4.4")
def test_a_stale_revision_is_told_what_changed_since_in_one_step() -> None:
    world = World()
    world.boot()
    old = world.view.inventory.revision
    world.say(PERSON, h.AppDisable(name="board.once"))
    report = world.invoke("c1", "board.once", inventory_revision=old).outbox[0]["payload"]["report"]
    assert report["expected"] == world.view.inventory.revision
    assert report["difference"] == {"current": "e1.2", "added": [], "removed": ["board.once"], "changed": [], "this_tool": "removed"}
    assert world.invoke("c2", "board.peek", inventory_revision=old).outbox[0]["payload"]["report"]["difference"]["this_tool"] == "unchanged"
    assert world.invoke("c3", "board.peek").code is None


@pytest.mark.clause("6.2")
def test_an_accepted_call_is_received_in_a_turn_of_its_own_before_anything_moves() -> None:
    world = World()
    world.boot()
    before = world.view.copy()
    world.only(AGENT, invoke_of(world, "c1", "board.open"))
    changed = {kind.__name__ for kind, table in world.view.tables.items() if table != before.tables[kind]}
    assert changed == {"ToolCall", "Key"}
    assert world.call("c1").status is CallStatus.RECEIVED


def invoke_of(world: World, call_id: str, tool_id: str, **more: Any) -> ToolInvoke:
    facts: dict[str, Any] = {"envelope": None, "inventory_revision": world.view.inventory.revision, "input": {}} | more
    return ToolInvoke(call_id=call_id, tool_id=tool_id, **facts)


def close_board(world: World) -> None:
    world.close("ins_board")


def close_board_for_good(world: World) -> None:
    close_board(world)
    world.die("ins_board")


def fail_board(world: World) -> None:
    for _ in range(4):
        world.die("ins_board")


def disable_board(world: World) -> None:
    world.say(PERSON, h.AppDisable(name="board"))


def remove_board(world: World) -> None:
    world.view.reopen({scope: manifest for scope, manifest in MANIFESTS.items() if scope != "board"})


def change_board(world: World) -> None:
    tools = [tool for tool in manifest_of("board").tools if not tool.id.endswith(("peek", "show"))]
    world.view.reopen(MANIFESTS | {"board": manifest_of("board", tools=[tool.content for tool in tools])})


CHANGES: list[tuple[Callable[[World], None], str, bool, CallStatus, Code | None]] = [
    (close_board, "board.show", False, CallStatus.REJECTED, Code.APP_INSTANCE_NOT_FOUND),
    (close_board, "board.peek", False, CallStatus.ROUTING, None),
    (close_board, "board.peek", True, CallStatus.CANCELLED, Code.CANCELLED),
    (close_board_for_good, "board.peek", False, CallStatus.WAITING_FOR_APP, None),
    (fail_board, "board.peek", True, CallStatus.FAILED, Code.APP_CRASHED),
    (fail_board, "board.show", False, CallStatus.REJECTED, Code.APP_INSTANCE_NOT_FOUND),
    (disable_board, "board.peek", False, CallStatus.FAILED, Code.APP_DISABLED),
    (remove_board, "board.peek", False, CallStatus.REJECTED, Code.TOOL_NOT_ADVERTISED),
    (change_board, "board.peek", False, CallStatus.REJECTED, Code.TOOL_NOT_ADVERTISED),
    (lambda world: world.wait(5_000), "board.peek", False, CallStatus.EXPIRED, Code.EXPIRED),
]


@pytest.mark.clause("6.9")
@pytest.mark.parametrize(("change", "tool_id", "is_named", "status", "code"), CHANGES)
def test_what_changed_between_acceptance_and_routing_is_seen(
    change: Callable[[World], None], tool_id: str, is_named: bool, status: CallStatus, code: Code | None
) -> None:
    world = world_of({"instances": [{"app": "board"}]})
    named = {"instance_id": "ins_board"} if is_named else {}
    assert world.only(AGENT, invoke_of(world, "c1", tool_id, **named)).code is None
    change(world)
    world.say(KERNEL, RouteCall(number=world.call("c1").number))
    assert (world.call("c1").status, world.call("c1").error_code) == (status, code)
    finals = [row for row in world.rows(OutboxRow) if row.kind is OutboxKind.FINAL]
    assert len(finals) == (0 if status in {CallStatus.ROUTING, CallStatus.WAITING_FOR_APP} else 1)


@pytest.mark.clause("6.9")
def test_routing_twice_is_routing_once() -> None:
    world = World()
    world.boot()
    world.invoke("c1", "board.peek")
    again = world.say(KERNEL, RouteCall(number=world.call("c1").number))
    assert (again.puts, again.audit, again.effects) == ([], [], [])


@pytest.mark.clause("6.9")
def test_the_kernels_own_answer_fits_its_own_schema() -> None:
    world = world_of({"instances": [{"app": "board"}]})
    world.invoke("c1", "runtime.status")
    call = world.call("c1")
    assert call.result_cbor is not None
    result = decode_body(call.result_cbor)
    assert world.view.descriptor(call.descriptor_digest).output_schema.check(result) is None
    assert (result["epoch"], result["apps"], result["instances"]) == ("e1", 4, 1)


@pytest.mark.clause("6.9")
def test_a_direct_call_starts_its_app_behind_and_moves_no_focus() -> None:
    world = world_of({"instances": [{"app": "notes", "state": "foreground"}], "focus": ["notes"]})
    board = world.running("c1", "board.peek")
    assert world.instance(board).state is InstanceState.BACKGROUND
    assert world.view.focus().instance_ids == ("ins_notes",)


@pytest.mark.clause("6.9")
def test_a_foreground_call_lifts_the_app_and_other_calls_that_waited_for_it_go_too() -> None:
    world = world_of({"instances": [{"app": "board"}]})
    world.invoke("c1", "board.present")
    world.say(PERSON, h.FocusRaise(instance_id="chat"))
    world.tell("ins_board", m.ToolFail(call_id="c1", reason="no"))
    world.invoke("c2", "board.peek")
    waiting = world.only(AGENT, invoke_of(world, "c3", "board.present"))
    assert waiting.code is None
    routed = world.say(KERNEL, RouteCall(number=world.call("c3").number))
    assert [message.call_id for _, message in routed.sent if isinstance(message, m.ToolCalled)] == ["c3"]


@pytest.mark.clause("11.4")
def test_the_persons_call_gets_an_id_of_the_kernel_and_the_inventory_in_force() -> None:
    world = World()
    world.boot()
    value = world.say(PERSON, h.CallInvoke(tool_id="board.peek", input={})).value
    assert value is not None
    assert value["call_id"].startswith("call_e1_")
    assert world.call(value["call_id"]).inventory_revision == world.view.inventory.revision


@pytest.mark.clause("6.1")
def test_the_record_of_a_call_holds_what_it_was_accepted_under() -> None:
    world = world_of({"instances": [{"app": "board"}]})
    world.invoke("c1", "board.draw", {"x": 3})
    call = world.call("c1")
    descriptor = world.view.inventory.tool("board.draw")
    assert descriptor is not None
    assert (call.tool_id, call.app_scope, call.descriptor_digest) == ("board.draw", "board", descriptor.digest)
    assert (call.source, call.instance_id, decode_body(call.input_cbor)) == (AGENT.source, "ins_board", {"x": 3})
