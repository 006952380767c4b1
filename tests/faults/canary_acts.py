"""What a person, an Agent and Apps do in the canary tests, one act at a time, with the marker in every field that is somebody's.

Rules:
1. An act opens its own channels and can be done on any kernel of `canary_apps`, again and again: ids that serve once are new each time.
2. An act says what it expects only where its way depends on it; that no word leaked is judged at the end (canary_judge.py).
"""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import trio

from kernel.protocol.host import (
    AppClose,
    FocusRaise,
    InstancesList,
    LogsRead,
    MessageSend,
    MessagesList,
)
from kernel.protocol.host_capabilities import ConsentAnswer, ConsentsList, PermissionsReset, PermissionsRevoke, ProviderResult
from kernel.protocol.host_interactions import DraftSave, InteractionAnswer, InteractionMove, PolicySet
from kernel.protocol.host_sessions import AppOpen, AppStartEmpty, ModeRequest, OutboxRefuse, SessionsContinue, SessionsShow
from kernel.protocol.host_surfaces import ArtifactRead, SurfaceEvent, SurfaceMount, SurfacePatch, SurfaceUnmount
from kernel.protocol.host_upkeep import BackupMake, Explain, InboxDrop, InboxParked, InboxRetry
from lineup_sdk.protocol.messages import JsonObject
from tests.faults.marked import MARK
from tests.processes.kernel_under_test import KernelUnderTest
from tests.processes.peers import Agent, Peer, Person, new_name
from tests.processes.written_app import ASKER, FIXTURE, write_app, write_raw_app

ABLE = ["artifact.save", "clipboard.write", "notification.show"]
_APPS = Path(__file__).resolve().parents[1] / "processes" / "apps"


def canary_apps(parent: Path) -> list[Path]:
    """The folders of the Apps that the acts use."""
    keeper = write_app(parent, "keeper", (_APPS / "keeper.py").read_bytes(), ["run"])
    asked = ("artifact.save", "clipboard.write", "microphone", "notification.show")
    scribe = write_app(parent, "scribe", (_APPS / "scribe.py").read_bytes(), ("ask", "copy", "put", "results"), asked)
    return [ASKER, FIXTURE, keeper, scribe, *(write_raw_app(parent, scope) for scope in ("other", "raw", "rude"))]


@dataclass(slots=True)
class Stage:
    """One running kernel and everybody who was ever attached to it."""

    kernel: KernelUnderTest
    nursery: trio.Nursery
    peers: list[Peer] = field(default_factory=list)

    async def person(self, role: str = "view", **more: Any) -> Person:
        """One view or admin more, whose own label is somebody's word too."""
        joined = await self.kernel.join(self.nursery, role, "console", **more)
        self.peers.append(joined)
        return joined

    async def agent(self) -> Agent:
        """The Agent; whoever was it before has to have left."""
        joined = await self.kernel.agent(self.nursery)
        self.peers.append(joined)
        return joined

    @property
    def frames(self) -> list[JsonObject]:
        """Everything that any of them got."""
        return [frame for peer in self.peers for frame in peer.frames]


async def leave(*peers: Peer) -> None:
    """Go, and wait until the channel ended."""
    for peer in peers:
        peer.close()
        await peer.wait_closed()


def _question(kind: str) -> JsonObject:
    forms: JsonObject = {
        "confirm": {},
        "choice": {"mode": "single-choice", "actions": [{"id": "a", "label": MARK}, {"id": MARK, "label": MARK, "description": MARK}]},
        "input": {"fields": [{"id": MARK, "label": MARK, "type": "textarea", "required": True}]},
    }
    return {"title": MARK, "prompt": MARK, **forms[kind]}


async def _shown(person: Person, call_id: str) -> JsonObject:
    return await person.interaction(lambda one: one.get("call_id") == call_id and one["status"] == "presented")


def _answer(card: JsonObject, answer: JsonObject) -> InteractionAnswer:
    return InteractionAnswer(interaction_id=card["interaction_id"], answer=answer, shown_digest=card["shown_digest"])


async def ask_the_person(stage: Stage) -> None:
    """The Agent's questions: drafted, wrongly answered, answered, late, dismissed, expired."""
    person, agent = await stage.person(), await stage.agent()
    for kind, wrong, right in (
        ("choice", {"action_ids": [MARK, MARK]}, {"action_ids": [MARK]}),
        ("confirm", {"approved": MARK}, {"approved": True}),
        ("input", {"fields": {"other": MARK}}, {"fields": {MARK: MARK}}),
    ):
        call_id = await agent.invoke(f"interaction.{kind}", _question(kind))
        card = await _shown(person, call_id)
        assert await person.ask(DraftSave(interaction_id=card["interaction_id"], draft={"fields": {MARK: MARK}})) == {"saved": True}
        await person.ask(InteractionMove(interaction_id=card["interaction_id"], place="inline"))
        assert (await person.ask(_answer(card, wrong)))["code"] == "answer_invalid"
        assert (await agent.send("tool.cancel", {"call_id": call_id}))["code"] == "use_dismiss"
        assert (await person.ask(_answer(card, right)))["accepted"]
        assert (await person.ask(_answer(card, right)))["code"] == "interaction_already_final"
        await agent.result(call_id)
    await agent.result(await agent.invoke("interaction.notice", {"title": MARK, "message": MARK}))
    call_id = await agent.invoke("interaction.choice", _question("choice"))
    await _shown(person, call_id)
    await agent.send("interaction.dismiss", {"call_id": call_id})
    for unknown in ({"interaction_id": MARK}, {"call_id": MARK}):
        await agent.send("interaction.dismiss", unknown)
    assert (await person.ask(DraftSave(interaction_id=MARK, draft={MARK: MARK})))["code"] == "interaction_not_found"
    assert not (await agent.send("tool.call", _call(agent, "interaction.confirm", {"title": MARK, MARK: MARK})))["accepted"]
    await leave(agent, person)


def _call(agent: Agent, tool_id: str, given: JsonObject, **more: Any) -> JsonObject:
    return {"call_id": new_name(f"call_{MARK}"), "tool_id": tool_id, "inventory_revision": agent.revision, "input": given, **more}


async def let_an_app_ask(stage: Stage) -> None:
    """An App's own questions, with and without the person's policy."""
    person, agent = await stage.person(), await stage.agent()
    await person.ask(PolicySet(name="standard-interaction:asker", allowed=False))
    asked = {"json": json.dumps({"kind": "confirm", **_question("confirm")}), "as_parent": True, "subscribe": True}
    await agent.result(await agent.invoke("asker.ask", asked))
    running = await person.instance("asker", "background", "foreground")
    await person.ask(AppClose(instance_id=running["instance_id"]))
    await person.ask(PolicySet(name="standard-interaction:asker", allowed=True))
    assert (await person.ask(PolicySet(name=f"standard-interaction:{MARK}", allowed=True)))["accepted"] is False
    await agent.result(await agent.invoke("asker.ask", asked | {"subscribe": False, "expires_at": "2026-01-01T00:00:00Z"}))
    call_id = await agent.invoke("asker.ask", asked)
    mine = await person.interaction(lambda one: one["source"] == "miniapp_tool" and one["status"] == "presented")
    await person.ask(_answer(mine, {"approved": True}))
    await agent.result(call_id)
    await agent.result(await agent.invoke("asker.meddle", {"interaction_id": MARK, "how": "get"}))
    for bad in ({"kind": MARK, MARK: MARK}, {"kind": "choice", "title": MARK, "prompt": MARK, "mode": MARK}):
        await agent.result(await agent.invoke("asker.ask", asked | {"json": json.dumps(bad)}))
    await leave(agent, person)


def _surface(person: Person, scope: str, text: str) -> JsonObject | None:
    found = [one for frame in person.of_type("snapshot") for one in frame["state"]["surfaces"]]
    found += [one["value"] for frame in person.of_type("delta") for one in frame["changes"] if one["kind"] == "surface"]
    return next((one for one in reversed(found) if one["app_scope"] == scope and one["is_open"] and text in one["text"]), None)


async def draw(stage: Stage) -> None:
    """A board: its title, its strokes, what a stale view sends, what is submitted."""
    person, agent = await stage.person(), await stage.agent()
    board_id = new_name(MARK)
    call_id = await agent.invoke("whiteboard.open", {"board_id": board_id, "title": MARK})
    await person.status(call_id, "running")
    surface_id = (await person.until(lambda: _surface(person, "whiteboard", board_id)))["surface_id"]
    mounted = await person.ask(SurfaceMount(surface_id=surface_id))
    facts = {"surface_id": surface_id, "mount_epoch": mounted["mount_epoch"]}
    patch = {"boards": {board_id: {"strokes": {MARK: {"color": "#2563eb", "width": 4, "points": [0.1, 0.2], "order": 1}}}}}
    assert "version" in await person.ask(SurfacePatch(**facts, base_version=mounted["version"], patch=patch))
    assert (await person.ask(SurfacePatch(**facts, base_version=0, patch={MARK: MARK})))["code"] == "version_conflict"
    assert (await person.ask(SurfacePatch(**facts | {"mount_epoch": 9_999}, base_version=0, patch={MARK: MARK})))["code"] == "stale_mount"
    assert (await person.ask(SurfaceMount(surface_id=MARK)))["code"] == "surface_unavailable"
    assert (await person.ask(SurfaceMount(surface_id=surface_id, surface_version=2)))["code"] == "surface_unavailable"
    assert "code" in await person.ask(SurfacePatch(**facts, base_version=9, patch={MARK: "x" * 60_000}))
    await person.ask(SurfaceEvent(**facts, name=MARK, body={MARK: MARK}))
    await person.ask(SurfaceEvent(**facts, name="submit", body={"board_id": board_id}))
    submitted = (await agent.result(call_id))["result"]
    assert "sha256" in await person.ask(ArtifactRead(artifact_id=submitted["artifact_id"]))
    assert (await person.ask(ArtifactRead(artifact_id=MARK)))["code"] == "artifact_not_found"
    await agent.result(await agent.invoke("whiteboard.submit", {"board_id": MARK}))
    await person.ask(SurfaceUnmount(**facts))
    await leave(agent, person)


async def keep(stage: Stage) -> None:
    """An App's own surface and bytes, as they should be and as they should not."""
    person, agent = await stage.person(), await stage.agent()
    said = []
    for order in (
        {"do": "open_surface"},
        {"do": "update", "patch": {MARK: MARK}},
        {"do": "read"},
        {"do": "put", "seed": 1, "size": 90_000, "media_type": f"text/{MARK}"},
        {"do": "get", "artifact_id": MARK},
        {"do": "lie", "size": 10, "sent": 9, "sha": None},
        {"do": "lie", "size": 9, "sent": 9, "sha": "0" * 64},
        {"do": "begin", "count": 5},
    ):
        result = await agent.result(await agent.invoke("keeper.run", {"json": json.dumps(order)}))
        said.append(json.loads(result["result"]["json"]))
    assert [one["refused"] for one in said[4:]] == ["artifact_not_found", "size_mismatch", "digest_mismatch", "limit_exceeded"]
    await agent.result(await agent.invoke("keeper.run", {"json": json.dumps({"do": "get", "artifact_id": said[3]["artifact_id"]})}))
    await leave(agent, person)


def _copy(**more: Any) -> JsonObject:
    return {"json": json.dumps({"capability": "clipboard.write", "reason": MARK, "arguments": {"text": MARK}} | more)}


async def ask_for_a_capability(stage: Stage) -> None:
    """A consent with the App's own words in it, answered, done, lost, taken back; and what is refused."""
    person, agent = await stage.person(providers=ABLE), await stage.agent()
    await agent.result(await agent.invoke("scribe.results", {"json": "0"}))
    instance = await person.instance("scribe", "background", "foreground")
    await person.ask(FocusRaise(instance_id=instance["instance_id"]))
    await person.instance("scribe", "foreground")
    for more in (
        {"capability": "microphone"},
        {"capability": "camera"},
        {"arguments": {MARK: MARK}},
        {"arguments": {"text": MARK * 1_000}},
        {"capability": "artifact.save", "arguments": {"artifact_id": MARK, "name": f"{MARK}.txt"}},
    ):
        assert "code" in json.loads((await agent.result(await agent.invoke("scribe.ask", _copy(**more))))["result"]["json"])
    for how in ("failed", "lost"):
        await agent.result(await agent.invoke("scribe.ask", _copy()))
        request_id = await _consent(person, "once")
        if how == "failed":
            result = ProviderResult(request_id=request_id, status="failed", reason="no_room")
            assert (await person.ask(result))["accepted"]
            assert (await person.ask(result))["code"] == "capability_denied"
    await person.ask(PermissionsRevoke(app_scope=MARK, capability=MARK))
    assert "code" in await person.ask(ConsentAnswer(request_id=MARK, decision="once", shown="0" * 64))
    await leave(person)
    results = ""
    while "unknown" not in results:
        results = json.dumps((await agent.result(await agent.invoke("scribe.results", {"json": "0"})))["result"])
    admin = await stage.person("admin")
    await admin.ask(PermissionsReset())
    await leave(agent, admin)


async def _consent(person: Person, decision: str) -> str:
    """Say yes to what waits; the id of the request whose action the host was asked for."""
    seen = len(person.of_type("capability.execute"))
    [asked] = (await person.ask(ConsentsList()))["consents"]
    assert (await person.ask(ConsentAnswer(request_id=asked["request_id"], decision=decision, shown=asked["shown"])))["accepted"]
    frame = (await person.until(lambda: person.of_type("capability.execute")[seen:]))[0]
    return str(frame["request_id"])


async def go_through_sessions(stage: Stage) -> None:
    """App sessions with what was said in them, and what the door would not take."""
    person, agent = await stage.person(), await stage.agent()
    opened = await person.ask(AppOpen(app_scope="fixture"))
    await person.ask(MessageSend(text=f"{MARK} \u00e9"))
    await agent.result(await agent.invoke("fixture.remember", {"value": MARK}))
    [session] = [one for one in person.instances.values() if one["instance_id"] == opened["instance_id"]]
    await person.ask(AppClose(instance_id=session["instance_id"]))
    for message in (AppOpen(app_scope=MARK), AppStartEmpty(app_scope=MARK), SessionsContinue(app_session_id=MARK)):
        assert "code" in await person.ask(message)
    assert (await person.ask(SessionsShow(app_session_id=MARK)))["code"] == "app_instance_not_found"
    assert (await person.ask(ModeRequest(mode="video")))["code"] == "mode_unavailable"
    assert (await person.ask(Explain(what=MARK)))["code"] == "call_not_found"
    assert "messages" in await person.ask(MessagesList())
    row = await person.ask(MessageSend(text=MARK))
    agent.put(OutboxRefuse(message_id=row["message_id"], code=MARK))
    agent.put(OutboxRefuse(message_id=MARK, code="no"))
    await agent.send("message.text", {"text": MARK})
    await leave(agent, person)


async def park_a_message(stage: Stage) -> None:
    """A message that kills its App twice, sent again and dropped."""
    person, agent = await stage.person(), await stage.agent()
    await agent.result(await agent.invoke("fixture.report", {"percents": []}))
    await agent.send("app.message", {"topic": "fixture.note", "body": {"text": MARK}}, app_scope="fixture")
    await agent.send("app.message", {"topic": "fixture.poison", "body": {}}, app_scope="fixture")
    while not (rows := (await person.ask(InboxParked()))["rows"]):
        seen = len(person.frames)
        await person.until(lambda seen=seen: len(person.frames) > seen)  # type: ignore[misc]
    await person.ask(InboxDrop(number=rows[0]["number"]))
    assert (await person.ask(InboxRetry(number=9_999_999)))["code"] == "call_not_found"
    await leave(agent, person)


async def report(stage: Stage) -> None:
    """What a worker sends of a call on its way, good and bad."""
    agent = await stage.agent()
    frames = [
        {"type": "tool.accept", "call_id": "THIS"},
        {"type": "tool.progress", "call_id": "THIS", "message": MARK, "data": {MARK: MARK}},
        {"type": "state.save", "state": {MARK: MARK}},
        {"type": "state.load", "owner": MARK},
        {"type": "inbox.acknowledge", "message_id": MARK},
    ]
    await agent.result(await agent.invoke("raw.send", {"json": json.dumps(frames)}))
    await leave(agent)


async def interrupt(stage: Stage) -> None:
    """Calls that end without a result: one half done when its process dies, one whose time is over."""
    person, agent = await stage.person(), await stage.agent()
    once = await agent.invoke("fixture.once", {"key": MARK})
    await person.status(once, "running")
    await person.until(lambda: person.calls[once].get("progress"))
    listed = await person.ask(InstancesList())
    ids = {one["instance_id"] for one in listed["instances"] if one["app_scope"] == "fixture"}
    [pid] = [one["pid"] for one in listed["workers"] if one["instance_id"] in ids]
    os.kill(pid, signal.SIGKILL)
    assert (await agent.result(once))["code"] == "interrupted"
    over = _call(agent, "fixture.slow", {"key": new_name(MARK)}, expires_at="2026-01-01T00:00:00Z")
    await agent.send("tool.call", over)
    assert (await agent.result(over["call_id"]))["code"] == "expired"
    await leave(agent, person)


async def end_the_zygote(stage: Stage) -> None:
    """The fork server dies, and calls go on with the next one."""
    agent = await stage.agent()
    for zygote in psutil.Process(stage.kernel.pid).children():
        zygote.kill()
    await agent.result(await agent.invoke("fixture.echo", {"text": MARK}))
    await leave(agent)


async def back_up(stage: Stage) -> None:
    """A backup into a folder of that name, and once more where it stands already."""
    person = await stage.person()
    target = stage.kernel.home.parent / f"{new_name('backup')}-{MARK}"
    for _ in range(2):
        made = len(person.of_type("backup.made"))
        await person.ask(BackupMake(path=str(target)))
        await person.until(lambda made=made: person.of_type("backup.made")[made:])  # type: ignore[misc]
    assert [frame["accepted"] for frame in person.of_type("backup.made")] == [True, False], person.of_type("backup.made")
    assert "text" in await person.ask(LogsRead(instance_id=next(iter(person.instances))))
    await leave(person)


ACTS = (
    ask_the_person,
    let_an_app_ask,
    draw,
    keep,
    ask_for_a_capability,
    go_through_sessions,
    park_a_message,
    report,
    interrupt,
    back_up,
)
