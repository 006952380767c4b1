"""Surfaces and artifacts through a real kernel: drawn by a view, kept over a kill, submitted to the Agent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import cbor2
import pytest
import trio

from kernel.protocol.host import FocusRaise
from kernel.protocol.host_surfaces import ArtifactRead, SurfaceEvent, SurfaceMount, SurfacePatch, SurfaceSource
from lineup_sdk.protocol.limits import MAX_ARTIFACT_BYTES
from lineup_sdk.protocol.messages import JsonObject
from tests.processes.conftest import Starter
from tests.processes.kernel_under_test import KernelUnderTest, opened_copy
from tests.processes.peers import Agent, Person, new_name
from tests.processes.written_app import write_app

ROOT = Path(__file__).resolve().parents[2]
KEEPER = Path(__file__).resolve().parent / "apps" / "keeper.py"
STROKE = {"color": "#2563eb", "width": 4, "points": [0.1, 0.2, 0.5, 0.5], "order": 1}


@pytest.fixture(scope="module")
def keeper(reaping: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KernelUnderTest]:
    folder = tmp_path_factory.mktemp("keeper")
    apps = [
        write_app(folder, scope, KEEPER.read_bytes().replace(b"keeper.run", scope.encode() + b".run"), ["run"])
        for scope in ("keeper", "spy")
    ]
    kernel = KernelUnderTest.start(folder / "home", folder / "kernel.log", apps=apps)
    try:
        kernel.wait_ready()
        yield kernel
    finally:
        kernel.close()


async def do(agent: Agent, what: str, scope: str = "keeper", **more: Any) -> Any:
    """Let the keeper do one thing; its answer."""
    call_id = await agent.invoke(f"{scope}.run", {"json": json.dumps({"do": what, **more})})
    result = await agent.result(call_id)
    assert "result" in result, result
    return json.loads(result["result"]["json"])


def surfaces(person: Person) -> dict[str, JsonObject]:
    """Every surface as the view knows it, by id."""
    found: dict[str, JsonObject] = {}
    for frame in person.frames:
        if frame["type"] == "snapshot":
            found = {one["surface_id"]: one for one in frame["state"]["surfaces"]}
        elif frame["type"] == "delta":
            found |= {one["value"]["surface_id"]: one["value"] for one in frame["changes"] if one["kind"] == "surface"}
    return found


def of_app(person: Person, scope: str, text: str = "") -> JsonObject | None:
    """The App's open surface as the view knows it, once that stands in it."""
    found = (one for one in surfaces(person).values() if one["app_scope"] == scope and one["is_open"] and text in one["text"])
    return next(found, None)


def content(person: Person, of: str) -> bytes | None:
    """What came in chunks of that name, once it is whole."""
    parts = [frame for frame in person.of_type("chunk") if frame["of"] == of]
    return b"".join(part["data"] for part in parts) if parts and parts[-1]["last"] else None


async def whole(person: Person, of: str) -> bytes:
    """Wait for it, though it may be empty."""
    await person.until(lambda: content(person, of) is not None)
    return content(person, of) or b""


async def mount(person: Person, surface_id: str) -> tuple[JsonObject, Any]:
    """Mount a surface: the value, and the state."""
    value = await person.ask(SurfaceMount(surface_id=surface_id))
    return value, cbor2.loads(await whole(person, value["of"]))


async def artifact(person: Person, artifact_id: str) -> bytes:
    """Every byte of an artifact, as a host reads it."""
    data = b""
    while True:
        value = await person.ask(ArtifactRead(artifact_id=artifact_id, offset=len(data)))
        of = value["of"]
        data += await whole(person, of)
        if len(data) == value["size"]:
            assert sha256(data).hexdigest() == value["sha256"]
            return data


@pytest.mark.clause("9.1")
@pytest.mark.clause("9.4")
@pytest.mark.clause("12")
async def test_a_board_is_opened_drawn_on_taken_over_killed_brought_back_and_submitted(start: Starter, nursery: trio.Nursery) -> None:
    kernel = start()
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    call_id = await agent.invoke("whiteboard.open", {"board_id": "b1", "title": "Plan"})
    await person.status(call_id, "running")
    surface = await person.until(lambda: of_app(person, "whiteboard", "b1"))
    assert surface["text"].splitlines() == ["boards:", "  b1:", "    title: Plan", "    status: open", "    strokes: 0 members"]
    mounted, state = await mount(person, surface["surface_id"])
    assert state["boards"]["b1"]["strokes"] == {}
    epoch, version = mounted["mount_epoch"], mounted["version"]

    def patch(**more: Any) -> SurfacePatch:
        facts = {"surface_id": surface["surface_id"], "mount_epoch": epoch, "base_version": version}
        return SurfacePatch(**facts | {"patch": {"boards": {"b1": {"strokes": {new_name("s"): STROKE}}}}} | more)

    for _ in range(3):
        version = (await person.ask(patch()))["version"]
    other = await kernel.join(nursery)
    taken, state = await mount(other, surface["surface_id"])
    assert len(state["boards"]["b1"]["strokes"]) == 3
    assert [frame["reason"] for frame in await person.until(lambda: person.of_type("surface.unmounted"))] == ["taken_over"]
    assert (await person.ask(patch()))["code"] == "stale_mount"
    stale = await other.ask(patch(mount_epoch=taken["mount_epoch"], base_version=0))
    assert (stale["code"], stale["detail"]["version"]) == ("version_conflict", version)
    await kernel.kill_all()

    kernel = start()
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    found = await person.until(lambda: of_app(person, "whiteboard"))
    assert "strokes: 3 members" in found["text"]
    assert (await person.ask(patch()))["code"] == "stale_mount"
    again, state = await mount(person, found["surface_id"])
    assert (again["version"], again["mount_epoch"]) == (version, taken["mount_epoch"] + 1)
    submitted = (await agent.result(await agent.invoke("whiteboard.submit", {"board_id": "b1"})))["result"]
    assert (submitted["summary"], submitted["strokes"]) == ("Plan: 3 strokes", 3)
    assert (await agent.result(call_id))["result"]["artifact_id"] == submitted["artifact_id"]
    patched = await person.until(lambda: person.of_type("surface.patched"))
    assert patched[-1]["patch"]["boards"]["b1"]["status"] == "submitted"
    drawing = ET.fromstring(await artifact(person, submitted["artifact_id"]))
    assert len(drawing.findall("{http://www.w3.org/2000/svg}polyline")) == 3
    assert len(json.loads(await artifact(person, submitted["data_artifact_id"]))["strokes"]) == 3


@pytest.mark.clause("9.1")
async def test_the_person_submits_in_the_surface_and_the_open_call_ends(start: Starter, nursery: trio.Nursery) -> None:
    kernel = start()
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    call_id = await agent.invoke("whiteboard.open", {"board_id": "b1", "title": "Plan"})
    surface = await person.until(lambda: of_app(person, "whiteboard"))
    await person.status(call_id, "running")
    mounted, _ = await mount(person, surface["surface_id"])
    event = SurfaceEvent(surface_id=surface["surface_id"], mount_epoch=mounted["mount_epoch"], name="submit", body={"board_id": "b1"})
    await person.ask(event)
    assert (await agent.result(call_id))["result"]["status"] == "submitted"


@pytest.mark.clause("4.1")
async def test_an_app_that_needs_a_view_is_refused_without_one(keeper: KernelUnderTest, nursery: trio.Nursery) -> None:
    agent = await keeper.agent(nursery)
    refused = await agent.result(await agent.invoke("whiteboard.open", {"board_id": "b1", "title": "Plan"}))
    assert refused["code"] == "surface_unavailable"
    person = await keeper.join(nursery)
    call_id = await agent.invoke("whiteboard.open", {"board_id": "b1", "title": "Plan"})
    await person.status(call_id, "running")
    agent.close()
    await agent.wait_closed()


@pytest.mark.clause("9.4")
@pytest.mark.clause("16")
async def test_bytes_go_up_and_down_in_chunks_to_the_limit_and_not_beyond(keeper: KernelUnderTest, nursery: trio.Nursery) -> None:
    agent = await keeper.agent(nursery)
    for seed, size in ((1, 0), (2, 1), (3, 200_000), (4, MAX_ARTIFACT_BYTES)):
        kept = await do(agent, "put", seed=seed, size=size)
        assert await do(agent, "get", artifact_id=kept["artifact_id"]) == {
            "size": size,
            "sha256": kept["sha256"],
            "media_type": "application/octet-stream",
        }
        assert (keeper.home / "artifacts" / kept["sha256"]).stat().st_size == size
        assert (await do(agent, "put", seed=seed, size=size))["artifact_id"] == kept["artifact_id"]
        assert await do(agent, "get", "spy", artifact_id=kept["artifact_id"]) == {"refused": "artifact_not_found"}
    assert await do(agent, "put", seed=5, size=MAX_ARTIFACT_BYTES + 1) == {"refused": "limit_exceeded"}
    assert await do(agent, "lie", size=MAX_ARTIFACT_BYTES + 1, sent=9, sha=None) == {"refused": "limit_exceeded"}
    assert await do(agent, "get", artifact_id="art_unknown") == {"refused": "artifact_not_found"}
    agent.close()
    await agent.wait_closed()


@pytest.mark.clause("9.4")
@pytest.mark.invariant("51")
async def test_other_bytes_than_announced_are_refused_and_leave_nothing(keeper: KernelUnderTest, nursery: trio.Nursery) -> None:
    agent = await keeper.agent(nursery)
    before = sorted(path.name for path in (keeper.home / "artifacts").rglob("*"))
    assert await do(agent, "lie", size=10, sent=9, sha=None) == {"refused": "size_mismatch"}
    assert await do(agent, "lie", size=9, sent=10, sha=None) == {"refused": "size_mismatch"}
    assert await do(agent, "lie", size=9, sent=9, sha="0" * 64) == {"refused": "digest_mismatch"}
    assert sorted(path.name for path in (keeper.home / "artifacts").rglob("*")) == before
    assert await do(agent, "begin", "spy", count=5) == {"refused": "limit_exceeded"}
    agent.close()
    await agent.wait_closed()


@pytest.mark.clause("9.1")
async def test_a_worker_is_told_once_until_it_looks_however_often_the_person_draws(keeper: KernelUnderTest, nursery: trio.Nursery) -> None:
    person, agent = await keeper.join(nursery), await keeper.agent(nursery)
    assert await do(agent, "open_surface") == 0
    surface = await person.until(lambda: of_app(person, "keeper"))
    mounted, _ = await mount(person, surface["surface_id"])
    version = mounted["version"]
    for round_ in (1, 2):
        for n in range(20):
            asked = SurfacePatch(surface_id=surface["surface_id"], mount_epoch=mounted["mount_epoch"], base_version=version, patch={"n": n})
            version = (await person.ask(asked))["version"]
        assert len(await do(agent, "wait_told", count=round_)) == round_
        assert await do(agent, "read") == {"version": version, "state": {"n": 19}}
    assert (await do(agent, "told")) == [1, 21]
    assert await do(agent, "update", patch={"app": True}) == version + 1
    patched = await person.until(lambda: person.of_type("surface.patched"))
    assert [(one["version"], one["patch"]) for one in patched] == [(version + 1, {"app": True})]
    agent.close()
    await agent.wait_closed()


@pytest.mark.clause("9.4")
@pytest.mark.invariant("51")
async def test_bytes_that_are_gone_at_a_start_are_promised_no_more(start: Starter, nursery: trio.Nursery) -> None:
    kernel = start()
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    await agent.invoke("whiteboard.open", {"board_id": "b1", "title": "Plan"})
    await person.until(lambda: of_app(person, "whiteboard", "b1"))
    submitted = (await agent.result(await agent.invoke("whiteboard.submit", {"board_id": "b1"})))["result"]
    await kernel.kill_all()
    folder = kernel.home / "artifacts"
    with opened_copy(kernel.home) as db:
        kept = dict(db.execute("SELECT artifact_id, sha256 FROM artifact"))
    assert {path.name for path in folder.iterdir() if path.is_file()} == set(kept.values())
    (folder / kept[submitted["artifact_id"]]).unlink()
    (folder / ("f" * 64)).write_bytes(b"an orphan")
    (folder / "partial" / "9").write_bytes(b"cut off")

    kernel = start()
    person = await kernel.first_view(nursery)
    refused = await person.ask(ArtifactRead(artifact_id=submitted["artifact_id"]))
    assert refused["code"] == "artifact_not_found"
    assert json.loads(await artifact(person, submitted["data_artifact_id"]))["board_id"] == "b1"
    assert [path.name for path in folder.rglob("*") if path.is_file()] == [kept[submitted["data_artifact_id"]]]
    assert await person.ask(FocusRaise(instance_id="chat"))


@pytest.mark.clause("9.2")
@pytest.mark.invariant("48")
async def test_a_host_gets_the_code_of_a_surface_as_the_manifest_names_it_and_none_where_there_is_none(
    keeper: KernelUnderTest, nursery: trio.Nursery
) -> None:
    person = await keeper.join(nursery)
    agent = await keeper.agent(nursery)
    await agent.invoke("whiteboard.open", {"board_id": "b1", "title": "Plan"})
    board = await person.until(lambda: of_app(person, "whiteboard", "b1"))
    value = await person.ask(SurfaceSource(surface_id=board["surface_id"]))
    code = await whole(person, value["of"])
    entry = json.loads((ROOT / "manifests" / "whiteboard.json").read_bytes())["entry"]
    data = {file["name"]: (ROOT / "workers" / "whiteboard" / file["name"]).read_bytes() for file in entry["files"]}
    script = b"\n".join(data[name] for name in entry["surface"]["scripts"])
    style = data[entry["surface"]["style"]]
    assert code == script + style
    facts = {name: value[name] for name in ("version", "script", "style", "size")}
    assert facts == {"version": 1, "script": len(script), "style": len(style), "size": len(code)}
    assert {name: sha256(one).hexdigest() for name, one in data.items()} == {file["name"]: file["sha256"] for file in entry["files"]}
    await do(agent, "open_surface")
    plain = await person.until(lambda: of_app(person, "keeper"))
    for surface_id in (plain["surface_id"], "srf_unknown"):
        assert (await person.ask(SurfaceSource(surface_id=surface_id)))["code"] == "surface_unavailable"
    agent.close()
    await agent.wait_closed()
