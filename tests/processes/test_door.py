"""The Agent's door as an Agent sees it (SPEC 11): receipts, order, resending, and who may stand in it."""

from __future__ import annotations

import json

import pytest
import trio

from kernel.protocol.host import CallsShow, KernelStatus, MessageSend, MessagesList
from lineup_sdk.protocol.messages import JsonObject
from tests.processes.conftest import Starter
from tests.processes.kernel_under_test import KernelUnderTest
from tests.processes.peers import Agent, new_name


@pytest.mark.clause("11.4")
async def test_a_second_agent_is_told_that_the_door_is_busy(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    first = await warm.agent(nursery)
    second = await warm.knock(nursery)
    await second.wait_closed()
    assert second.goodbye == "door_busy"
    assert (await first.send("message.text", {"text": "still here"}))["accepted"]


@pytest.mark.clause("11.4")
async def test_the_demo_agent_gives_way_to_a_real_one_and_its_rows_stay_its_own(start: Starter, nursery: trio.Nursery) -> None:
    kernel = start()
    await kernel.first_view(nursery)
    demo = await kernel.agent(nursery, demo=True, acknowledges=False)
    demo_call = await demo.invoke("runtime.status", {})
    await demo.result(demo_call)
    agent = await kernel.agent(nursery)
    await demo.wait_closed()
    assert demo.goodbye == "door_busy"
    await agent.result(await agent.invoke("runtime.status", {}))
    assert demo_call not in agent.results
    agent.close()
    await agent.wait_closed()
    again = await kernel.agent(nursery, demo=True)
    assert (await again.result(demo_call))["status"] == "completed"


@pytest.mark.clause("11.4")
async def test_a_demo_agent_does_not_push_a_real_one_out(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    agent = await warm.agent(nursery)
    demo = await warm.knock(nursery, demo=True)
    await demo.wait_closed()
    assert demo.goodbye == "door_busy"
    assert (await agent.send("message.text", {"text": "still here"}))["accepted"]


@pytest.mark.clause("11.3")
@pytest.mark.invariant("32")
@pytest.mark.invariant("33")
async def test_rows_not_acknowledged_come_again_in_order_with_the_same_bytes(start: Starter, nursery: trio.Nursery) -> None:
    """After a reconnect and after kill -9 of the kernel."""
    kernel = start()
    person = await kernel.first_view(nursery)
    first = await kernel.agent(nursery, acknowledges=False)
    calls = [await first.invoke("fixture.echo", {"text": str(n)}) for n in range(5)]
    for call_id in calls:
        await first.result(call_id)
    await person.ask(MessageSend(text="and a word of the person"))
    await first.until(lambda: [one for one in first.envelopes if one["type"].endswith("message.text")])
    sent = _without_inventory(first)

    first.close()
    await first.wait_closed()
    second = await kernel.agent(nursery, acknowledges=False)
    await second.until(lambda: len(_without_inventory(second)) >= len(sent))
    assert _without_inventory(second) == sent

    await kernel.kill_all()
    kernel = start()
    person = await kernel.first_view(nursery)
    third = await kernel.agent(nursery)
    await third.until(lambda: len(_without_inventory(third)) >= len(sent))
    assert _without_inventory(third) == sent
    for call_id in calls:
        await person.status(call_id, "completed")


def _without_inventory(agent: Agent) -> list[JsonObject]:
    """A new Agent gets the inventory anew: that row is another one each time."""
    return [one for one in agent.envelopes if not one["type"].endswith("client.inventory")]


@pytest.mark.clause("11.2")
async def test_every_envelope_gets_its_receipt(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    agent = await warm.agent(nursery)
    good = {"call_id": new_name("call"), "tool_id": "runtime.status", "inventory_revision": agent.revision, "input": {}}
    cases: list[tuple[JsonObject, str | None]] = [
        (agent.envelope("message.text", {"text": "hello"}), None),
        (agent.envelope("task.update", {"task_id": "t", "title": "T", "state": "running"}), None),
        (agent.envelope("task.update", {"task_id": "t", "title": "T", "state": "running", "progress": 100}), None),
        (agent.envelope("task.update", {"task_id": "t", "title": "T", "state": "running", "progress": 101}), "protocol_violation"),
        (agent.envelope("tool.call", good), None),
        (agent.envelope("tool.call", good | {"call_id": new_name("call"), "tool_id": "no.such"}), "tool_not_advertised"),
        (agent.envelope("tool.cancel", {"call_id": "no such"}), "call_not_found"),
        (agent.envelope("app.message", {"topic": "fixture.go", "body": {}}, app_scope="nobody"), "app_instance_not_found"),
        (agent.envelope("message.text", {"text": "hello"}, conversation_id="another"), "capability_denied"),
        (agent.envelope("message.text", {"text": 5}), "protocol_violation"),
        (agent.envelope("message.text", {"text": "hello"}, created_at="yesterday"), "protocol_violation"),
        (agent.envelope("message.text", {"text": "hello"}, owner="me"), "protocol_violation"),
        (agent.envelope("no.such.type", {"any": 1}), "unsupported_type"),
        (agent.envelope("message.text", {"text": "hello"}, type="lineup.v2.message.text"), "unsupported_version"),
    ]
    for envelope, code in cases:
        receipt = await agent.resend(envelope)
        assert (receipt["accepted"], receipt.get("code")) == (code is None, code)


@pytest.mark.clause("11.2")
@pytest.mark.invariant("04")
async def test_the_same_bytes_are_acknowledged_again_and_other_bytes_are_refused(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    person = await warm.join(nursery)
    agent = await warm.agent(nursery)
    envelope = agent.envelope("message.text", {"text": new_name("text")})
    assert (await agent.resend(envelope))["accepted"]
    assert (await agent.resend(envelope))["accepted"]
    refused = await agent.resend(envelope | {"payload": {"text": "other"}})
    assert (refused["accepted"], refused["code"]) == (False, "call_id_conflict")
    listed = (await person.ask(MessagesList(limit=200)))["messages"]
    assert [one["text"] for one in listed if one["message_id"] == envelope["message_id"]] == [envelope["payload"]["text"]]


@pytest.mark.clause("6.4")
async def test_a_call_sent_again_gets_its_stored_row_again_and_never_runs_twice(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    person = await warm.join(nursery)
    agent = await warm.agent(nursery)
    payload: JsonObject = {
        "call_id": new_name("call"),
        "tool_id": "fixture.remember",
        "inventory_revision": agent.revision,
        "input": {"value": "x"},
    }
    envelope = agent.envelope("tool.call", payload)
    await agent.resend(envelope)
    await agent.result(payload["call_id"])
    await person.status(payload["call_id"], "completed")
    first = [one for one in agent.envelopes if one["payload"].get("call_id") == payload["call_id"]]
    await agent.resend(envelope)
    await agent.until(lambda: [one for one in agent.envelopes if one["payload"].get("call_id") == payload["call_id"]][len(first) :])
    again = [one for one in agent.envelopes if one["payload"].get("call_id") == payload["call_id"]]
    assert again[-1] == first[-1]
    shown = await person.ask(CallsShow(call_id=payload["call_id"]))
    assert shown["result"] == first[-1]["payload"]["result"]


@pytest.mark.clause("11.2")
@pytest.mark.invariant("07")
async def test_an_unknown_type_is_kept_as_inert_text_and_moves_nothing(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    person = await warm.join(nursery)
    agent = await warm.agent(nursery)
    before = await person.ask(KernelStatus())
    payload: JsonObject = {"call_id": new_name("call"), "tool_id": "fixture.echo", "input": {"text": "x"}}
    for kind in ("lineup.v1.tool.calls", "lineup.v2.tool.call", "tool.call", "LINEUP.V1.TOOL.CALL"):
        receipt = await agent.send("x", payload, type=kind)
        assert receipt["code"] in {"unsupported_type", "unsupported_version"}
    after = await person.ask(KernelStatus())
    assert after["open_calls"] == before["open_calls"]
    assert after["instances"] == before["instances"]
    assert (await person.ask(CallsShow(call_id=payload["call_id"])))["code"] == "call_not_found"


@pytest.mark.clause("11.3")
@pytest.mark.invariant("35")
async def test_acknowledgements_of_foreign_or_unknown_rows_change_nothing(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    person = await warm.join(nursery)
    agent = await warm.agent(nursery, acknowledges=False)
    call_id = await agent.invoke("fixture.echo", {"text": "x"})
    await agent.result(call_id)
    row = next(one for one in agent.envelopes if one["payload"].get("call_id") == call_id)
    person.channel.send({"type": "outbox.acknowledge", "message_id": row["message_id"]})  # the person's hand on the Agent's row
    agent.acknowledge("no such row")
    await person.ask(KernelStatus())
    await agent.send("message.text", {"text": "after both"})
    assert person.calls[call_id]["status"] == "submitted"
    agent.acknowledge(row["message_id"])
    await person.status(call_id, "completed")


@pytest.mark.clause("2.1")
@pytest.mark.clause("6.5")
@pytest.mark.parametrize("data", ["deep", "bytes"])
async def test_no_report_of_an_app_becomes_an_envelope_that_the_agent_has_to_refuse(
    start: Starter, nursery: trio.Nursery, data: str
) -> None:
    """An envelope adds depth, and has no byte strings: what would not fit an Agent's frame is refused to the App."""
    kernel = start()
    await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    nested: JsonObject = {}
    for _ in range(13):
        nested = {"d": nested}
    progress = {"type": "tool.progress", "call_id": "THIS", "percent": 5, "data": nested if data == "deep" else {"b": "BYTES"}}
    asked = json.dumps([{"type": "tool.accept", "call_id": "THIS"}, progress])
    result = await agent.result(await agent.invoke("other.send", {"json": asked}))
    assert [one["accepted"] for one in json.loads(result["result"]["json"])] == [True, False]
