"""Old bodies go from a running kernel, by its own hour and its own setting; a death in the middle of a sweep harms nothing (SPEC 16)."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
import trio

from kernel.protocol.host import CallsList
from kernel.protocol.host_interactions import InteractionAnswer
from kernel.protocol.host_sessions import SessionsContinue, SessionsList
from kernel.protocol.host_upkeep import Explain
from lineup_sdk.protocol.messages import JsonObject
from tests import invariants
from tests.faults.test_moments import program
from tests.invariants_of_questions import check_bytes_of_inv_51
from tests.processes.conftest import Starter
from tests.processes.kernel_under_test import KernelUnderTest, opened_copy
from tests.processes.peers import Agent, Person
from tests.processes.test_surfaces import of_app

MESSAGES = 250  # more than one turn gives up
CONFIRM = {"title": "Go?", "prompt": "Go on?"}


def later(moment: str = "never", command: str = "-") -> tuple[str, ...]:
    """A kernel 91 days on, when the default of 90 days is over."""
    _, _, *arguments = program(moment, command)
    return ("-m", "tests.faults.later_kernel", "91", *arguments)


async def _answer(person: Person, call_id: str) -> str:
    asked = await person.interaction(lambda one: one.get("call_id") == call_id and one["status"] == "presented")
    shown = asked["shown_digest"]
    answer = InteractionAnswer(interaction_id=asked["interaction_id"], answer={"approved": True}, shown_digest=shown)
    assert (await person.ask(answer))["accepted"]
    return str(asked["interaction_id"])


async def _draw_and_close(person: Person, agent: Agent) -> None:
    """A board that was submitted, and its App closed: an artifact, a surface, a saved state of a session that is over."""
    await agent.invoke("whiteboard.open", {"board_id": "b1", "title": "Plan"})
    await person.until(lambda: of_app(person, "whiteboard", "b1"))
    submitted = await agent.result(await agent.invoke("whiteboard.submit", {"board_id": "b1"}))
    assert submitted["status"] == "completed", submitted
    await person.close_app((await person.instance("whiteboard", "background", "foreground"))["instance_id"])
    await person.instance("whiteboard", "stopped")


async def _used_home(kernel: KernelUnderTest, nursery: trio.Nursery) -> dict[str, str]:
    """A home with much that is over and some that is waited for; ids of both."""
    person, agent = await kernel.first_view(nursery), await kernel.agent(nursery)
    await _draw_and_close(person, agent)
    over = await agent.invoke("fixture.report", {"percents": []}, call_id="over")
    asked = await agent.invoke("interaction.confirm", CONFIRM)
    question = await _answer(person, asked)
    for _ in range(MESSAGES):
        await agent.send("message.text", {"text": "said long ago"})
    for call_id in (over, asked):
        await person.status(call_id, "completed")
    waiting = await agent.invoke("interaction.confirm", CONFIRM)
    await person.interaction(lambda one: one.get("call_id") == waiting and one["status"] == "presented")
    return {"over": over, "asked": asked, "question": question, "waiting": waiting}


def _require_sound(home: Path) -> None:
    with opened_copy(home) as db:
        assert invariants.check_all(db) == []
        assert check_bytes_of_inv_51(db, home / "artifacts") == []


async def _explained(person: Person, what: str) -> JsonObject:
    """An explanation, once the body is gone."""
    with trio.fail_after(60):
        while "not kept" not in (said := await person.ask(Explain(what=what)))["sentences"][0]["text"]:
            await person.ask(CallsList())
    return said


@pytest.mark.clause("16")
@pytest.mark.invariant("51")
async def test_what_is_over_goes_after_its_time_what_is_waited_for_stays_and_all_of_it_is_still_explained(
    start: Starter, nursery: trio.Nursery
) -> None:
    kernel = start()
    names = await _used_home(kernel, nursery)
    artifacts = kernel.home / "artifacts"
    kept = [path for path in artifacts.iterdir() if path.is_file()]
    assert kept
    await kernel.kill_all()
    for moment in ("applied", "committed"):  # of one turn of the sweep; with the second, bytes are left that no row names
        kernel = start(program=later(moment, "SweepBodies"))
        await kernel.first_view(nursery)
        assert await kernel.wait_exited() == -signal.SIGKILL
        _require_sound(kernel.home)

    kernel = start(program=later())
    person, agent = await kernel.first_view(nursery), await kernel.agent(nursery)
    for name, kind in (("over", "call"), ("asked", "call"), ("question", "interaction")):
        said = await _explained(person, names[name])
        assert (said["kind"], said["state"]) == (kind, "completed")
        assert len(said["sentences"]) > 1
    again = await agent.invoke("fixture.report", {"percents": []}, call_id=names["over"])
    assert (await agent.result(again))["report"] == {"hint": "the result is not kept any more"}
    await _answer(person, names["waiting"])
    assert (await agent.result(names["waiting"]))["result"]["outcome"] == "answered"
    closed = next(one for one in (await person.ask(SessionsList()))["sessions"] if one["app_scope"] == "whiteboard")
    assert closed["state"] == "closed"
    assert (await person.ask(SessionsContinue(app_session_id=closed["app_session_id"])))["instance_id"]
    await kernel.kill_all()
    _require_sound(kernel.home)
    assert [path for path in kept if path.exists()] == []
    with opened_copy(kernel.home) as db:
        session = closed["app_session_id"]
        assert db.execute("SELECT count(*) FROM surface WHERE app_session_id = ?", (session,)).get == 0
        assert db.execute("SELECT count(*) FROM artifact").get == 0
        assert db.execute("SELECT count(*) FROM timeline_message").get == 2  # the card that waited, and its answer
