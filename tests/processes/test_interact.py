"""The system App and App sessions in a real kernel (SPEC 3, 8.2, 8.4, 9.3, 11.3)."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest
import trio

from kernel.protocol.host import AppClose, FocusRaise, InstancesList, MessageSend, MessagesList
from kernel.protocol.host_interactions import InteractionAnswer
from kernel.protocol.host_sessions import AppOpen, ModeRequest, SessionsContinue, SessionsList, SessionsShow
from lineup_sdk.protocol.messages import JsonObject
from tests.processes.conftest import Starter
from tests.processes.kernel_under_test import WAIT_SECONDS
from tests.processes.peers import Agent, Person
from tests.processes.test_crash_loop import pid_of


async def asked_until(person: Person, message: object, is_so: Callable[[JsonObject], bool]) -> JsonObject:
    """Ask again, at the pace of the kernel's answers, until it is so."""
    with trio.fail_after(WAIT_SECONDS):
        while True:
            said = await person.ask(message)  # type: ignore[arg-type]
            if is_so(said):
                return said


async def crash(person: Person, scope: str) -> None:
    os.kill(await pid_of(person, scope), signal.SIGKILL)


def folded(said: JsonObject) -> list[bool]:
    return [entry["folded"] for entry in said["messages"] if "task" in entry]


@pytest.mark.clause("8.2")
async def test_chat_is_up_and_in_front_from_the_first_moment_and_comes_back_after_a_restart(start: Starter, nursery: trio.Nursery) -> None:
    kernel = start()
    person = await kernel.first_view(nursery)
    chat = await person.instance("chat", "foreground")
    assert (await person.ask(AppClose(instance_id=chat["instance_id"])))["code"] == "lifecycle_denied"
    assert (await person.ask(ModeRequest(mode="video")))["code"] == "mode_unavailable"
    opened = await person.ask(AppOpen(app_scope="fixture"))
    await person.instance("fixture", "foreground")
    await person.instance("chat", "background")
    assert person.focus == [opened["instance_id"]]
    await kernel.kill_all()
    kernel = start()
    person = await kernel.first_view(nursery)
    assert (await person.instance("chat", "background"))["instance_id"] == chat["instance_id"]
    await person.instance("fixture", "foreground")


@pytest.mark.clause("9.3")
async def test_interact_projects_the_timeline_and_its_next_life_goes_on_with_it(start: Starter, nursery: trio.Nursery) -> None:
    kernel = start()
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    await person.instance("chat", "foreground")
    for state in ("pending", "running"):
        await agent.send("task.update", {"task_id": "t1", "title": "Build", "state": state})
    await asked_until(person, MessagesList(), lambda said: folded(said) == [True, False])
    await crash(person, "chat")
    await person.instance("chat", "starting")
    await agent.send("task.update", {"task_id": "t1", "title": "Build", "state": "completed"})
    await person.instance("chat", "foreground")
    await asked_until(person, MessagesList(), lambda said: folded(said) == [True, True, False])


@pytest.mark.clause("8.3")
@pytest.mark.invariant("41")
async def test_with_chat_failed_everything_goes_on_and_going_to_it_makes_it_anew(start: Starter, nursery: trio.Nursery) -> None:
    kernel = start()
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    first = (await person.instance("chat", "foreground"))["instance_id"]
    for _ in range(4):
        await person.instance("chat", "foreground")
        await crash(person, "chat")
        await person.instance("chat", "starting", "failed")
    assert (await person.instance("chat", "failed"))["error"] == "app_crashed"
    sent = await person.ask(MessageSend(text="is anybody there?"))
    await agent.until(lambda: [one for one in agent.envelopes if one["message_id"] == sent["message_id"]])
    assert "result" in await agent.result(await agent.invoke("fixture.echo", {"text": "yes"}))
    await agent.send("message.text", {"text": "I am"})
    said = await person.ask(MessagesList())
    assert [entry["text"] for entry in said["messages"]] == ["is anybody there?", "I am"]
    question = await agent.invoke("interaction.confirm", {"title": "Still here?", "prompt": "Say so."})
    card = await person.interaction(lambda one: one.get("call_id") == question and one["status"] == "presented")
    answer = InteractionAnswer(interaction_id=card["interaction_id"], answer={"approved": True}, shown_digest=card["shown_digest"])
    assert (await person.ask(answer))["accepted"]
    assert (await agent.result(question))["result"]["outcome"] == "answered"
    assert (await person.ask(FocusRaise(instance_id="chat")))["accepted"]
    again = await person.instance("chat", "foreground")
    assert again["instance_id"] != first


@pytest.mark.clause("11.3")
async def test_a_row_that_the_door_refuses_is_shown_and_the_next_one_goes(start: Starter, nursery: trio.Nursery) -> None:
    kernel = start()
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery, acknowledges=False)
    bad = (await person.ask(MessageSend(text="too long")))["message_id"]
    good = (await person.ask(MessageSend(text="fine")))["message_id"]
    await _arrived(agent, good)
    agent.channel.send({"type": "outbox.refuse", "message_id": bad, "code": "too_long"})
    agent.acknowledge(good)
    agent.channel.flush()
    said = await asked_until(person, MessagesList(), lambda said: [one["state"] for one in said["messages"]] == ["refused", "acknowledged"])
    assert [one.get("code") for one in said["messages"]] == ["too_long", None]
    agent.close()
    await agent.wait_closed()
    later = await kernel.agent(nursery)
    next_one = (await person.ask(MessageSend(text="and again")))["message_id"]
    await _arrived(later, next_one)
    assert bad not in [one["message_id"] for one in later.envelopes]


async def _arrived(agent: Agent, message_id: str) -> None:
    await agent.until(lambda: [one for one in agent.envelopes if one["message_id"] == message_id])


@pytest.mark.clause("8.4")
async def test_a_closed_session_is_read_and_gone_on_with(start: Starter, nursery: trio.Nursery) -> None:
    kernel = start()
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    instance_id = (await person.ask(AppOpen(app_scope="fixture")))["instance_id"]
    await person.ask(MessageSend(text="in the App"))
    await agent.result(await agent.invoke("fixture.remember", {"value": "kept"}))
    await person.close_app(instance_id)
    await person.instance("fixture", "stopped")
    await person.ask(MessageSend(text="in the conversation"))
    newest = (await person.ask(SessionsList(limit=1)))["sessions"][0]
    assert (newest["app_scope"], newest["state"], newest["failed"], newest["messages"]) == ("fixture", "closed", False, 1)
    shown = await person.ask(SessionsShow(app_session_id=newest["app_session_id"]))
    assert [entry["text"] for entry in shown["messages"]] == ["in the App"]
    again = await person.ask(SessionsContinue(app_session_id=newest["app_session_id"]))
    await person.instance("fixture", "foreground")
    told = await agent.result(await agent.invoke("fixture.remember", {"value": "newer"}))
    assert told["result"] == {"previous": "kept"}
    linked = (await person.ask(SessionsList(limit=1)))["sessions"][0]
    assert (linked["continues"], linked["instance_id"]) == (newest["app_session_id"], again["instance_id"])
    assert (await person.ask(SessionsShow(app_session_id="ses_nobody")))["code"] == "app_instance_not_found"
    await person.ask(FocusRaise(instance_id="chat"))
    await person.close_app(again["instance_id"])
    assert (await person.ask(InstancesList()))["focus"] == []
