"""A refused call leaves one call row, one audit row, one outbox row, and not one frame on any worker's channel (SPEC 6.3)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from kernel.protocol.host import AppDisable, AppEnable, CallInvoke, KernelStatus
from tests.processes.conftest import Starter
from tests.processes.kernel_under_test import KernelUnderTest, opened_copy
from tests.processes.peers import Agent, new_name

Refused = tuple[str, dict[str, Any], dict[str, Any], str]

REFUSED: dict[str, Refused] = {
    "a revision that never was": ("fixture.echo", {"text": "x"}, {"inventory_revision": "0123.9"}, "inventory_revision_mismatch"),
    "no revision": ("fixture.echo", {"text": "x"}, {"inventory_revision": None}, "inventory_revision_mismatch"),
    "an unknown tool": ("fixture.no_such", {}, {}, "tool_not_advertised"),
    "an unknown app": ("nobody.echo", {}, {}, "tool_not_advertised"),
    "a property too few": ("fixture.echo", {}, {}, "tool_input_invalid"),
    "a property too many": ("fixture.echo", {"text": "x", "more": 1}, {}, "tool_input_invalid"),
    "true for text": ("fixture.echo", {"text": True}, {}, "tool_input_invalid"),
    "true for a number": ("fixture.crash", {"times": True}, {}, "tool_input_invalid"),
    "a number out of range": ("fixture.crash", {"times": 101}, {}, "tool_input_invalid"),
    "text beyond its bound": ("fixture.echo", {"text": "x" * 20_001}, {}, "tool_input_invalid"),
    "no instance of the app": ("task-dashboard.update", {"task_id": "t", "progress": 1}, {}, "app_instance_not_found"),
    "another app named": ("fixture.echo", {"text": "x"}, {"app_scope": "other"}, "app_scope_mismatch"),
    "another instance named": ("fixture.echo", {"text": "x"}, {"instance_id": "ins_unknown"}, "app_instance_not_found"),
    "an app switched off": ("deaf.heard", {"json": ""}, {}, "app_disabled"),
    "a tool switched off": ("noisy.seal", {"json": ""}, {}, "app_disabled"),
}
_TABLES = ("tool_call", "audit", "outbox_row", "instance", "inbox_row", "timeline_message", "app_session", "saved_state", "switch")
# Interact reads along and keeps what it has seen, and an App that came up a moment ago still subscribes: nobody's call asked for that.
_ROWS = {
    "audit": "SELECT * FROM audit WHERE speaker != 'worker'",
    "instance": "SELECT instance_id, state, life, app_session_id, act_ms, stopped_at FROM instance WHERE app_scope != 'chat'",
    "saved_state": "SELECT * FROM saved_state WHERE app_session_id NOT IN (SELECT app_session_id FROM instance WHERE app_scope = 'chat')",
}


def rows_of(home: Path) -> dict[str, set[tuple[Any, ...]]]:
    """Every row of every table that a decision could touch, and the focus; but for what Apps ask for by themselves."""
    with opened_copy(home) as db:
        rows = {table: set(db.execute(_ROWS.get(table, f"SELECT * FROM {table}")).fetchall()) for table in _TABLES}
        return rows | {"focus": set(db.execute("SELECT instance_ids FROM focus").fetchall())}


async def refuse(agent: Agent, tool_id: str, given: dict[str, Any], more: dict[str, Any], code: str) -> dict[str, Any]:
    """Make one call that has to be refused; returns the receipt."""
    outer = {name: more[name] for name in ("app_scope", "instance_id") if name in more}
    payload: dict[str, Any] = {"call_id": new_name("call"), "tool_id": tool_id, "inventory_revision": agent.revision, "input": given}
    payload |= {name: value for name, value in more.items() if name == "inventory_revision"}
    payload = {name: value for name, value in payload.items() if value is not None}
    receipt = await agent.send("tool.call", payload, **outer)
    assert (receipt["accepted"], receipt["code"]) == (False, code)
    result = await agent.result(payload["call_id"])
    assert (result["status"], result["code"]) == ("rejected", code)
    assert "result" not in result
    return receipt


async def frames_heard(agent: Agent) -> list[str]:
    """What one worker's channel has seen, its own questions and the watchdog's left out."""
    result = await agent.result(await agent.invoke("witness.heard", {"json": ""}))
    return [kind for kind in json.loads(result["result"]["json"]) if kind not in {"ping", "reply"}]


@pytest.mark.clause("6.3")
@pytest.mark.invariant("11")
@pytest.mark.invariant("12")
@pytest.mark.invariant("13")
async def test_a_refused_call_leaves_one_row_of_each_kind_and_no_frame(start: Starter, nursery: trio.Nursery) -> None:
    kernel = start()
    person = await kernel.first_view(nursery)
    for name in ("deaf", "noisy.seal"):
        assert "revision" in await person.ask(AppDisable(name=name))
    agent = await kernel.agent(nursery, acknowledges=False)
    await agent.until(lambda: agent.revision.endswith(".3"))
    heard = await frames_heard(agent)
    for name, (tool_id, given, more, code) in REFUSED.items():
        before = rows_of(kernel.home)
        workers = (await person.ask(KernelStatus()))["workers"]
        receipt = await refuse(agent, tool_id, given, more, code)
        after = rows_of(kernel.home)
        grown = {table: len(rows - before[table]) for table, rows in after.items() if rows != before[table]}
        assert grown == {"tool_call": 1, "audit": 1, "outbox_row": 1}, name
        assert all(before[table] <= rows for table, rows in after.items()), name
        assert [one["instance_id"] for one in (await person.ask(KernelStatus()))["workers"]] == [one["instance_id"] for one in workers]
        assert "x" * 100 not in json.dumps(receipt)
    assert await frames_heard(agent) == [*heard, "tool.called"]  # its own question before, and nothing else


@pytest.mark.clause("4.4")
async def test_a_stale_revision_is_told_the_difference_and_mended_in_one_step(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    person = await warm.join(nursery)
    agent = await warm.agent(nursery)
    stale = agent.revision
    await person.ask(AppDisable(name="fixture.operate"))
    await agent.until(lambda: agent.revision != stale)
    receipt = await refuse(agent, "fixture.echo", {"text": "x"}, {"inventory_revision": stale}, "inventory_revision_mismatch")
    detail = receipt["detail"]
    assert detail["expected"] == agent.revision
    assert detail["difference"]["removed"] == ["fixture.operate"]
    assert "result" in await agent.result(await agent.invoke("fixture.echo", {"text": "x"}))
    await person.ask(AppEnable(name="fixture.operate"))
    await agent.until(lambda: agent.revision not in {stale, detail["expected"]})


@pytest.mark.clause("6.4")
async def test_a_used_call_id_with_other_content_is_a_conflict_and_changes_nothing(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    agent = await warm.agent(nursery)
    person = await warm.join(nursery)
    call_id = await agent.invoke("fixture.echo", {"text": "first"})
    assert (await agent.result(call_id))["result"] == {"text": "first"}
    payload = {"call_id": call_id, "tool_id": "fixture.echo", "inventory_revision": agent.revision, "input": {"text": "second"}}
    assert (await agent.send("tool.call", payload))["code"] == "call_id_conflict"
    assert (await agent.until(lambda: agent.results[call_id].get("code"))) == "call_id_conflict"
    by_hand = await person.ask(CallInvoke(tool_id="fixture.echo", input={"text": "third"}, call_id=call_id))
    assert by_hand["code"] == "call_id_conflict"
    assert (await person.status(call_id, "completed"))["status"] == "completed"


@pytest.mark.clause("11.4")
async def test_a_conflict_of_the_person_leaves_no_row_waiting_for_ever(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    person = await warm.join(nursery)
    call_id = (await person.ask(CallInvoke(tool_id="runtime.status", input={})))["call_id"]
    await person.result(call_id)
    await person.status(call_id, "completed")
    waiting = await _pending_when_still(person)
    for number in range(3):
        said = await person.ask(CallInvoke(tool_id="fixture.echo", input={"text": str(number)}, call_id=call_id))
        assert said["code"] == "call_id_conflict"
    assert await _pending_when_still(person) == waiting


async def _pending_when_still(person: Any) -> int:
    """Rows that wait, once an own call has gone through whole: everything before it was looked at too."""
    call_id = (await person.ask(CallInvoke(tool_id="runtime.status", input={})))["call_id"]
    await person.result(call_id)
    await person.status(call_id, "completed")
    return int((await person.ask(KernelStatus()))["outbox_pending"])


@pytest.mark.clause("11.4")
async def test_a_caller_that_acknowledges_nothing_does_not_hold_up_another(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    """More rows wait for it than are looked at in one go."""
    silent = await warm.join(nursery, "admin")
    silent.acknowledges = False
    calls = [(await silent.ask(CallInvoke(tool_id="runtime.status", input={})))["call_id"] for _ in range(300)]
    other = await warm.join(nursery, "admin")
    call_id = (await other.ask(CallInvoke(tool_id="runtime.status", input={})))["call_id"]
    assert (await other.result(call_id))["status"] == "completed"
    await silent.until(lambda: len(silent.results) >= len(calls))
    silent.close()
    await silent.wait_closed()
    person = await warm.join(nursery)
    await person.until(lambda: all(person.calls[one]["status"] == "completed" for one in calls if one in person.calls))
