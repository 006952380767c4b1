"""Questions to the person through a real kernel: over an App, in the timeline, over kill -9; and an App's own questions (SPEC 7)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trio

from kernel.protocol.host import AppClose, MessagesList
from kernel.protocol.host_interactions import DraftSave, InteractionAnswer, InteractionMove, InteractionsList, PolicySet
from lineup_sdk.protocol.messages import JsonObject
from tests.processes.conftest import Starter
from tests.processes.kernel_under_test import KernelUnderTest
from tests.processes.peers import Agent, Person

CHOICE = {
    "title": "Colour",
    "prompt": "Which one?",
    "mode": "single-choice",
    "actions": [{"id": "red", "label": "Red"}, {"id": "blue", "label": "Blue"}],
}
INPUT = {"title": "Note", "prompt": "Say something.", "fields": [{"id": "note", "label": "Note", "type": "textarea"}]}
CONFIRM = {"kind": "confirm", "title": "Clear?", "prompt": "Clear the board."}
CANARY = "canary-5d1c-draft"


def reply_to(interaction: JsonObject, answer: JsonObject) -> InteractionAnswer:
    return InteractionAnswer(interaction_id=interaction["interaction_id"], answer=answer, shown_digest=interaction["shown_digest"])


async def presented(person: Person, call_id: str) -> JsonObject:
    return await person.interaction(lambda one: one.get("call_id") == call_id and one["status"] == "presented")


@pytest.mark.clause("7.2")
@pytest.mark.invariant("28")
async def test_a_card_over_an_app_then_in_the_timeline_then_the_app_closed_is_answered_once_from_two_views(
    start: Starter, nursery: trio.Nursery
) -> None:
    kernel = start()
    first = await kernel.first_view(nursery)
    second = await kernel.join(nursery, label="headless")
    agent = await kernel.agent(nursery)
    await agent.invoke("fixture.open", {"key": "never"})
    front = await first.instance("fixture", "foreground")
    call_id = await agent.invoke("interaction.choice", CHOICE)
    card = await presented(first, call_id)
    assert (card["kind"], card["place"], card["source"], card["owner_app_scope"]) == ("choice", "modal", "agent_tool", "chat")
    assert card["request"] == CHOICE
    assert await first.ask(InteractionMove(interaction_id=card["interaction_id"], place="inline")) == {"place": "inline"}
    await second.interaction(lambda one: one["interaction_id"] == card["interaction_id"] and one["place"] == "inline")
    await first.close_app(front["instance_id"])
    await first.instance("fixture", "stopped")
    assert (await first.ask(InteractionsList(state="open")))["interactions"][0]["interaction_id"] == card["interaction_id"]

    wrong = await second.ask(reply_to(card, {"action_ids": ["green"]}))
    assert (wrong["accepted"], wrong["code"], wrong["detail"]["pointer"]) == (False, "answer_invalid", "/answer/action_ids")
    assert (await second.ask(reply_to(card, {"action_ids": ["blue"]})))["accepted"]
    late = await first.ask(reply_to(card, {"action_ids": ["red"]}))
    assert (late["accepted"], late["code"]) == (False, "interaction_already_final")
    result = await agent.result(call_id)
    assert (result["status"], result["result"]) == ("completed", {"outcome": "answered", "answer": {"action_ids": ["blue"]}})
    for view in (first, second):
        closed = await view.interaction(lambda one: one["interaction_id"] == card["interaction_id"] and one["status"] == "completed")
        assert closed["answered_by"] == second.of_type("welcome")[0]["view_id"]
    said = [(entry["author"], entry["text"]) for entry in (await first.ask(MessagesList()))["messages"]]
    assert said == [("agent", "Colour: Which one?"), ("person", "Blue")]
    assert [envelope["payload"]["call_id"] for envelope in agent.envelopes if envelope["type"].endswith("result")].count(call_id) == 1


@pytest.mark.clause("12")
@pytest.mark.clause("7.3")
@pytest.mark.invariant("22")
@pytest.mark.invariant("30")
async def test_after_kill_9_a_question_is_back_and_answerable_and_its_draft_is_gone_and_was_never_on_disk(
    start: Starter, nursery: trio.Nursery
) -> None:
    kernel = start()
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    call_id = await agent.invoke("interaction.input", INPUT)
    card = await presented(person, call_id)
    draft = DraftSave(interaction_id=card["interaction_id"], draft={"fields": {"note": CANARY}})
    assert await person.ask(draft) == {"saved": True}
    late_view = await kernel.join(nursery)
    assert late_view.interactions[card["interaction_id"]]["draft"] == {"fields": {"note": CANARY}}
    unknown = await person.ask(DraftSave(interaction_id="int_of_nobody", draft={"a": 1}))
    assert unknown["code"] == "interaction_not_found"
    big = await person.ask(DraftSave(interaction_id=card["interaction_id"], draft={"a": "x" * 50_000}))
    assert big["code"] == "limit_exceeded"
    await kernel.kill_all()
    assert _files_with(kernel, CANARY) == []

    again = start()
    person = await again.first_view(nursery)
    assert "draft" not in person.interactions[card["interaction_id"]]
    agent = await again.agent(nursery)
    assert (await person.ask(reply_to(card, {"fields": {"note": "written"}})))["accepted"]
    assert (await agent.result(call_id))["result"]["answer"] == {"fields": [{"id": "note", "text": "written"}]}
    gone = await person.ask(draft)
    assert gone["code"] == "interaction_already_final"


def _files_with(kernel: KernelUnderTest, text: str) -> list[Path]:
    files = [path for path in kernel.home.rglob("*") if path.is_file()]
    assert kernel.home / "kernel.db" in files
    return [path for path in (*files, kernel.log) if text.encode() in path.read_bytes()]


@pytest.mark.clause("7.2")
@pytest.mark.invariant("26")
async def test_no_frame_of_an_agents_question_is_on_any_apps_channel(start: Starter, nursery: trio.Nursery) -> None:
    kernel = start()
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    await agent.result(await agent.invoke("witness.heard", {"json": ""}))
    for tool, request, given in (
        ("choice", CHOICE, {"action_ids": ["red"]}),
        ("input", INPUT, {"declined": True}),
        ("confirm", {"title": "Send?", "prompt": "Send."}, {"approved": False}),
    ):
        call_id = await agent.invoke(f"interaction.{tool}", request)
        await person.ask(reply_to(await presented(person, call_id), given))
        await agent.result(call_id)
    notice = await agent.result(await agent.invoke("interaction.notice", {"title": "Done", "message": "It is."}))
    assert notice["result"] == {"outcome": "accepted"}
    heard = json.loads((await agent.result(await agent.invoke("witness.heard", {"json": ""})))["result"]["json"])
    kinds = {frame["type"] if isinstance(frame, dict) else frame for frame in heard}
    assert kinds <= {"context.changed", "ping", "reply", "tool.called"}
    assert {one["app_scope"] for one in person.instances.values()} <= {"witness", "chat"}
    assert person.focus == []


async def _dismissed(agent: Agent, person: Person, by: str) -> JsonObject:
    call_id = await agent.invoke("interaction.choice", CHOICE)
    card = await presented(person, call_id)
    payload = {"interaction_id": card["interaction_id"]} if by == "interaction_id" else {"call_id": call_id}
    receipt = await agent.send("interaction.dismiss", payload)
    assert receipt["accepted"]
    late = await person.ask(reply_to(card, {"action_ids": ["red"]}))
    assert late["code"] == "interaction_already_final"
    return await agent.result(call_id)


@pytest.mark.clause("11.1")
async def test_the_agent_dismisses_by_either_id_and_asks_in_the_old_form(start: Starter, nursery: trio.Nursery) -> None:
    kernel = start()
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    for by in ("interaction_id", "call_id"):
        result = await _dismissed(agent, person, by)
        assert (result["status"], result["code"], result["result"]) == ("cancelled", "cancelled", {"outcome": "cancelled"})
    for payload in ({}, {"interaction_id": "a", "call_id": "b"}):
        assert not (await agent.send("interaction.dismiss", payload))["accepted"]
    old: JsonObject = {"call_id": "old_1", "tool_id": "choice", "input": {"kind": "choice", **CHOICE}}
    assert (await agent.send("tool.call", old))["accepted"]
    refused = await agent.send("tool.cancel", {"call_id": "old_1"})
    assert refused["code"] == "use_dismiss"
    await person.ask(reply_to(await presented(person, "old_1"), {"action_ids": ["red"]}))
    assert (await agent.result("old_1"))["result"]["answer"] == {"action_ids": ["red"]}


def _ask(**more: object) -> JsonObject:
    return {"json": json.dumps(CONFIRM), "as_parent": False, "subscribe": False} | more


async def _said(agent: Agent, tool: str, given: JsonObject) -> JsonObject:
    said: JsonObject = json.loads((await agent.result(await agent.invoke(f"asker.{tool}", given)))["result"]["json"])
    return said


@pytest.mark.clause("8.2")
@pytest.mark.clause("7.1")
async def test_the_kernels_question_about_a_close_is_on_both_views_outlives_kill_9_and_one_yes_closes(
    start: Starter, nursery: trio.Nursery
) -> None:
    kernel = start()
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    call_id = await agent.invoke("fixture.open", {"key": "never"})
    front = await person.instance("fixture", "foreground")
    shown = await person.close_app(front["instance_id"], approved=False)
    assert shown is not None
    assert (shown["source"], shown["owner_app_scope"], shown["kind"], shown["place"]) == ("runtime_policy", "runtime", "confirm", "modal")
    assert person.calls[call_id]["status"] == "running"
    asked = (await person.ask(AppClose(instance_id=front["instance_id"])))["asked"]
    await kernel.kill_all()

    kernel = start()
    one, two = await kernel.first_view(nursery), await kernel.join(nursery, label="headless")
    await kernel.agent(nursery)
    await one.status(call_id, "running")
    for view in (one, two):
        await view.interaction(lambda it: it["interaction_id"] == asked and it["status"] == "presented")
    card = two.interactions[asked]
    assert (await two.ask(reply_to(card, {"approved": True})))["accepted"]
    assert (await one.ask(reply_to(card, {"approved": False})))["code"] == "interaction_already_final"
    ended = await one.interaction(lambda it: it["interaction_id"] == asked and it["status"] == "completed")
    assert ended["answered_by"].endswith("headless")
    await one.status(call_id, "cancelled", "completed")
    await one.instance("fixture", "stopped")
    assert [entry for entry in (await one.ask(MessagesList()))["messages"] if "interaction" in entry["type"]] == []


@pytest.mark.clause("7.4")
@pytest.mark.invariant("24")
async def test_an_app_asks_only_with_the_persons_policy_and_its_result_comes_back_to_it_alone(
    start: Starter, nursery: trio.Nursery
) -> None:
    kernel = start()
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    assert await _said(agent, "ask", _ask()) == {"code": "capability_denied"}
    running = await person.instance("asker", "background")
    await person.ask(AppClose(instance_id=running["instance_id"]))
    await person.instance("asker", "stopped")
    assert (await person.ask(PolicySet(name="standard-interaction:asker", allowed=True)))["accepted"]
    assert (await person.ask(PolicySet(name="standard-interaction:fixture", allowed=True)))["code"] == "capability_denied"

    call_id = await agent.invoke("asker.ask", _ask(as_parent=True, subscribe=True))
    card = await person.interaction(lambda one: one["source"] == "miniapp_tool" and one["status"] == "presented")
    assert (card["owner_app_scope"], card["place"]) == ("asker", "modal")
    assert person.focus == []
    foreign = await agent.send("interaction.dismiss", {"interaction_id": card["interaction_id"]})
    assert foreign["code"] == "interaction_not_found"
    await person.ask(reply_to(card, {"approved": True}))
    result = json.loads((await agent.result(call_id))["result"]["json"])
    assert result == {
        "interaction_id": card["interaction_id"],
        "kind": "confirm",
        "outcome": "answered",
        "answer": {"approved": True},
    }
    await person.interaction(lambda one: one["interaction_id"] == card["interaction_id"] and one["status"] == "completed")
    assert (await _said(agent, "meddle", {"interaction_id": "int_of_nobody", "how": "get"})) == {"code": "interaction_not_found"}
    assert (await person.ask(MessagesList()))["messages"] == []
    assert "submitted" in (await _said(agent, "seen", {}))["seen"]


@pytest.mark.clause("7.4")
async def test_an_apps_question_survives_the_death_of_its_process_and_a_revoked_policy_ends_it(
    start: Starter, nursery: trio.Nursery
) -> None:
    kernel = start()
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    await person.ask(PolicySet(name="standard-interaction:asker", allowed=True))
    assert (await _said(agent, "leave", {"json": json.dumps(CONFIRM), "crash": True})) == {}
    card = await person.interaction(lambda one: one["source"] == "miniapp_tool" and one["status"] == "presented")
    await person.ask(reply_to(card, {"approved": False}))
    await person.interaction(lambda one: one["interaction_id"] == card["interaction_id"] and one["status"] == "completed")
    results = (await _said(agent, "seen", {}))["results"]
    assert [result["answer"] for result in results] == [{"approved": False}]

    call_id = await agent.invoke("asker.ask", _ask())
    await person.interaction(lambda one: one["source"] == "miniapp_tool" and one["status"] == "presented")
    await person.ask(PolicySet(name="standard-interaction:asker", allowed=False))
    result = json.loads((await agent.result(call_id))["result"]["json"])
    assert (result["outcome"], result["code"]) == ("cancelled", "capability_denied")
    assert await _said(agent, "ask", _ask()) == {"code": "capability_denied"}
