"""Seven calls of one Agent, each brought to its own state and held there, so that one kill meets them all (SPEC 6.8).

The state received is passed within one turn of the loop; tests/faults stops a kernel there.
"""

from __future__ import annotations

from dataclasses import dataclass

import trio

from kernel.protocol.host import AppClose, InstancesList
from tests.processes.peers import Agent, Person


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The calls by what they wait for."""

    routing: str  # its App is being closed and will not end by itself
    starting: str  # its App hangs in its start
    delivered: str  # its App has it and did not accept it
    running: str
    reporting: str  # running, progress reported, may run again
    once: str  # running, progress reported, may not run again
    cancelling: str  # the App saw the request and asked for time
    submitted: str  # the Agent has the result and did not acknowledge it

    def all(self) -> tuple[str, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)


async def hold_all(person: Person, agent: Agent) -> Held:
    """Bring all of them about; the Agent must be one that acknowledges nothing."""
    held = Held(
        routing=await _hold_routing(person, agent),
        starting=await _hold_starting(person, agent),
        delivered=await agent.invoke("raw.hold", {"json": "[]"}),
        running=await agent.invoke("fixture.slow", {"key": "running"}),
        reporting=await agent.invoke("task-dashboard.open", {"task_id": "t1", "title": "A task"}),
        once=await agent.invoke("fixture.once", {"key": "once"}),
        cancelling=await agent.invoke("fixture.ignore_cancel", {"key": "cancelling", "acknowledge": True}),
        submitted=await agent.invoke("fixture.echo", {"text": "submitted"}),
    )
    await person.instance("raw", "background")
    await person.status(held.delivered, "waiting_for_app")
    for call_id in (held.running, held.reporting, held.once, held.cancelling):
        await person.status(call_id, "running")
    moved = await agent.invoke("task-dashboard.update", {"task_id": "t1", "progress": 40})
    await agent.result(moved)
    await person.until(lambda: "progress" in person.calls[held.reporting] and "progress" in person.calls[held.once])
    await agent.result(held.submitted)
    await person.status(held.submitted, "submitted")
    await agent.send("tool.cancel", {"call_id": held.cancelling})
    await person.until(lambda: person.calls[held.cancelling]["cancel"] == "acknowledged")
    return held


async def _hold_routing(person: Person, agent: Agent) -> str:
    await agent.result(await agent.invoke("stubborn.heard", {"json": ""}))
    instance = await person.instance("stubborn", "background")
    await person.ask(AppClose(instance_id=instance["instance_id"]))
    call_id = await agent.invoke("stubborn.send", {"json": "[]"})
    await person.status(call_id, "routing")
    return call_id


async def _hold_starting(person: Person, agent: Agent) -> str:
    call_id = await agent.invoke("sleeper.send", {"json": "[]"})
    await person.status(call_id, "waiting_for_app")
    while not await _has_slept(person):
        await trio.lowlevel.checkpoint()
    assert person.calls[call_id]["status"] == "waiting_for_app"
    return call_id


async def _has_slept(person: Person) -> bool:
    """state.load and state.save have come: the next start goes through."""
    listed = await person.ask(InstancesList())
    sleeper = next(one["instance_id"] for one in listed["instances"] if one["app_scope"] == "sleeper")
    return any(one["instance_id"] == sleeper and one["frames"] >= 2 for one in listed["workers"])


async def release_all(agent: Agent) -> None:
    """Let everything that is held go on."""
    await agent.go("raw")
    for key in ("running", "once", "cancelling"):
        await agent.go("fixture", key)
    await agent.invoke("task-dashboard.update", {"task_id": "t1", "state": "completed"})


async def require_outcomes(person: Person, agent: Agent, held: Held) -> None:
    """Wait for the one right outcome of each: never lost, never doubled, never done without a result."""
    expected = dict.fromkeys(held.all(), "completed") | {held.once: "failed", held.cancelling: "cancelled"}
    for call_id, status in expected.items():
        payload = await agent.result(call_id)
        assert payload["status"] == status, (call_id, payload)
        assert ("result" in payload) == (status == "completed")
        await person.status(call_id, status)
    assert agent.results[held.once]["code"] == "interrupted"
    assert agent.results[held.cancelling]["report"]["cancel"] == "stopped"
    assert agent.results[held.running]["result"]["key"] == "running"


def finals_of(agent: Agent) -> dict[str, set[str]]:
    """The message ids of the results this Agent saw, by call; more than one of a call would be a second outcome."""
    seen: dict[str, set[str]] = {}
    for envelope in agent.envelopes:
        if envelope["type"].endswith("tool.result"):
            seen.setdefault(envelope["payload"]["call_id"], set()).add(envelope["message_id"])
    return seen


def attempts_of(person: Person, *calls: str) -> list[int]:
    return [person.calls[call_id]["attempts"] for call_id in calls]
