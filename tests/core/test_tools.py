"""What a worker says of its calls."""

from __future__ import annotations

import pytest

from kernel.core.machines import CallStatus
from kernel.core.records import OutboxKind, OutboxRow, decode_body
from kernel.protocol import host as h
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol.codes import Code
from tests.core.dict_view import MANIFESTS, manifest_of
from tests.core.stories import world_of
from tests.core.world import AGENT, World


def running() -> World:
    return world_of({"instances": [{"app": "board"}], "calls": [{"call_id": "c1", "tool_id": "board.draw"}]})


def progress_rows(world: World) -> list[OutboxRow]:
    return [row for row in world.rows(OutboxRow) if row.kind is OutboxKind.PROGRESS]


def report(world: World, percent: float | None = None, **more: object) -> Code | None:
    world.wait(1_000)
    return world.tell("ins_board", m.ToolProgress(call_id="c1", percent=percent, **more)).code  # type: ignore[arg-type]


@pytest.mark.clause("6.5")
def test_a_newer_report_replaces_the_unsent_one_and_follows_a_sent_one() -> None:
    world = running()
    for percent in (10, 20):
        report(world, percent)
    assert len(progress_rows(world)) == 1
    world.say(AGENT, h.OutboxAcknowledge(message_id=progress_rows(world)[0].message_id))
    report(world, 30)
    assert [decode_body(row.envelope_cbor)["payload"]["percent"] for row in progress_rows(world)] == [20, 30]


@pytest.mark.clause("6.5")
def test_the_agent_never_sees_progress_fall_not_even_over_a_crash() -> None:
    world = running()
    said = [50.0, None, 10.0, 60.0, 0.0]
    for percent in said[:3]:
        report(world, percent, message="at work")
    world.die("ins_board")
    world.start("ins_board")
    world.tell("ins_board", m.ToolAccept(call_id="c1"))
    shown = [decode_body(progress_rows(world)[-1].envelope_cbor)["payload"]["percent"]]
    for percent in said[3:]:
        report(world, percent)
        shown.append(decode_body(progress_rows(world)[-1].envelope_cbor)["payload"]["percent"])
    assert shown == [50, 60, 60]


@pytest.mark.clause("6.5")
def test_a_report_holds_what_was_said_and_nothing_else() -> None:
    world = running()
    report(world, message="half", data={"n": 1})
    assert decode_body(progress_rows(world)[0].envelope_cbor)["payload"] == {"call_id": "c1", "message": "half", "data": {"n": 1}}
    for percent in (-0.5, 100.5):
        assert report(world, percent) is Code.TOOL_OUTPUT_INVALID
    assert [report(world, percent) for percent in (0, 100, 100.0)] == [None, None, None]


@pytest.mark.invariant("18")
def test_no_report_follows_the_end() -> None:
    world = running()
    report(world, 10)
    world.tell("ins_board", m.ToolComplete(call_id="c1", result={"ok": True}))
    before = world.view.copy()
    assert report(world, 20) is Code.CALL_ALREADY_FINAL
    assert world.view.tables == before.tables
    numbers = [row.number for row in world.rows(OutboxRow) if row.call_number == world.call("c1").number]
    assert [world.view.tables[OutboxRow][number].kind for number in numbers] == [OutboxKind.PROGRESS, OutboxKind.FINAL]


@pytest.mark.clause("6.5")
@pytest.mark.invariant("14")
def test_a_result_is_judged_by_the_schema_in_force_when_the_call_was_accepted() -> None:
    world = running()
    tools = [tool.content | {"output_schema": {"type": "object", "additionalProperties": False}} for tool in manifest_of("board").tools]
    world.boot(manifests=MANIFESTS | {"board": manifest_of("board", tools=tools)})
    world.start("ins_board")
    world.tell("ins_board", m.ToolAccept(call_id="c1"))
    assert world.tell("ins_board", m.ToolComplete(call_id="c1", result={})).code is Code.TOOL_OUTPUT_INVALID
    assert world.tell("ins_board", m.ToolComplete(call_id="c1", result={"ok": True})).code is None


@pytest.mark.clause("6.5")
def test_a_bad_result_is_told_where_and_what_and_the_call_stays_open() -> None:
    world = running()
    refused = world.tell("ins_board", m.ToolComplete(call_id="c1", result={"ok": "canary"}))
    assert refused.detail is not None
    assert (refused.detail.pointer, refused.detail.got_type) == ("/result/ok", "string")
    assert "canary" not in repr(refused.detail)
    assert world.call("c1").status is CallStatus.RUNNING


@pytest.mark.clause("6.5")
def test_a_failure_says_its_reason_and_message_to_the_agent() -> None:
    world = running()
    payload = world.tell("ins_board", m.ToolFail(call_id="c1", reason="no_ink", message="The pen is empty.")).outbox[0]["payload"]
    expected = {"reason": "no_ink", "message": "The pen is empty."}
    assert payload == {"call_id": "c1", "status": "failed", "code": "tool_failed", "report": expected}


@pytest.mark.clause("6.7")
def test_an_app_may_cancel_by_itself_and_the_report_says_so() -> None:
    world = running()
    payload = world.tell("ins_board", m.ToolCancel(call_id="c1", reason="bored")).outbox[0]["payload"]
    assert payload["report"] == {"cancel": "app", "reason": "bored"}


@pytest.mark.clause("6.5")
def test_a_call_is_delivered_once_a_life_with_the_time_it_has_left() -> None:
    world = world_of({"instances": [{"app": "board", "state": "starting", "tools_subscribed": False}]})
    world.invoke("c1", "board.peek")
    world.wait(1_500)
    world.tell("ins_board", m.LifecycleStarted())
    first = world.tell("ins_board", m.ToolsSubscribe())
    assert [message for _, message in first.sent] == [
        m.ToolCalled(call_id="c1", tool_id="board.peek", input={}, attempts=0, time_left_ms=3_500)
    ]
    assert world.tell("ins_board", m.ToolsSubscribe()).sent == []
    assert world.tell("ins_board", m.LifecycleStarted()).sent == []


@pytest.mark.clause("6.6")
def test_a_launch_without_a_clock_says_no_time() -> None:
    world = world_of({"instances": [{"app": "board"}]})
    called = [message for _, message in world.invoke("c1", "board.open").sent if isinstance(message, m.ToolCalled)]
    assert [message.time_left_ms for message in called] == [None]
