"""The surface and the artifacts of an App (SPEC 9)."""

from __future__ import annotations

from typing import Any

from conformance.case import NotApplicable, case, require
from conformance.plays import Play
from conformance.scripted_kernel import Session
from conformance.trace import Answered, Heard
from conformance.world import World
from lineup_sdk.protocol.limits import UPLOAD_CHUNK_BYTES
from lineup_sdk.protocol.messages import Chunk, Reply
from lineup_sdk.protocol.surface_messages import ArtifactGet, ArtifactPut, SurfaceChanged, SurfaceRead, SurfaceUpdate

_SPOILED: dict[str, Any] = {"tasks": [1], "boards": {"x": 5, "y": {"status": 7}}, "notes": "none", "unread": "many", "odd": [None, {}]}


def _drawing_play(world: World) -> Play:
    """A call during which the App changes its surface. Raises: NotApplicable."""
    world.require_seen(SurfaceUpdate.TYPE)
    remembers = world.plays.remembers
    return remembers[0] if remembers is not None else world.plays.roles.get("stays_open") or world.role("answers")


async def opens_first(world: World) -> None:
    """A surface is opened before it is read or changed."""
    world.require_seen("surface.open")
    for life in world.seen().lives:
        refused = [kind for kind, code in life.desk.refusals if code == "surface_unavailable"]
        require(not refused, f"{refused[:1]} came while the surface was not open")


async def changes_what_it_knows(world: World) -> None:
    """A change names the version that it was made on."""
    world.require_seen(SurfaceUpdate.TYPE)
    for life in world.seen().lives:
        told: set[int] = set()
        for entry in life.trace:
            if isinstance(entry, Reply) and entry.value and "version" in entry.value:
                told.add(entry.value["version"])
            elif isinstance(entry, SurfaceChanged):
                told.add(entry.version)
            elif isinstance(entry, Heard) and isinstance(entry.message, SurfaceUpdate):
                require(entry.message.base_version in told, "it changed a version that it was never told of")


async def changes_in_small_steps(world: World) -> None:
    """No change is over 48 KiB."""
    world.require_seen(SurfaceUpdate.TYPE)
    for life in world.seen().lives:
        require(("surface.update", "limit_exceeded") not in life.desk.refusals, "a patch has more than 48 KiB")


async def tries_again_on_a_newer_version(world: World) -> None:
    """A change that comes too late is made again on the newer version."""
    play = _drawing_play(world)
    session = await world.start_for(play)
    _patch_as_the_person(session, {"person": "was here"}, is_told=False)
    since = len(session.trace)
    call = world.new_call(session, play.tool_id, play.input)
    await session.until(lambda: _is_changed(session, since), "a change of the surface that is taken")
    await session.settle()
    require(session.desk.surface.state.get("person") == "was here", "what the person did is gone")
    require(call.status != "waiting_for_app", "the call was left")


def _is_changed(session: Session, since: int) -> bool:
    return any(isinstance(e, Answered) and isinstance(e.to, SurfaceUpdate) and not e.code for e in session.trace[since:])


def _patch_as_the_person(session: Session, patch: dict[str, Any], *, is_told: bool = True) -> None:
    surface = session.desk.surface
    version = surface.update(surface.version, patch)
    if is_told:
        session.send(SurfaceChanged(version=version))


async def lives_with_changes(world: World) -> None:
    """Changes by the person do no harm."""
    world.require_seen("surface.open")
    session = await world.start()
    await session.until(lambda: session.desk.surface.is_open, "surface.open")
    for number in range(3):
        _patch_as_the_person(session, {"person": number})
    await session.require_alive("after the person changed the surface")


async def lives_with_a_spoiled_surface(world: World) -> None:
    """A surface that a script spoiled does no harm."""
    play = _drawing_play(world)
    session = await world.start()
    await session.until(lambda: session.desk.surface.is_open, "surface.open")
    _patch_as_the_person(session, {**_SPOILED, **dict.fromkeys(session.desk.surface.state, 5)})
    await session.require_alive("after the person's frame spoiled the surface")
    call = world.new_call(session, play.tool_id, play.input)
    await session.until(lambda: call.status != "waiting_for_app", "tool.accept")
    await session.settle()
    require(call.status != "waiting_for_app", "a call was left after the surface was spoiled")
    await session.require_alive("after a call on a spoiled surface")


async def starts_from_its_surface(world: World) -> None:
    """A new life goes on from the surface that the last one left."""
    play = _drawing_play(world)
    session = await world.start()
    call = await world.play(session, play)
    await session.until(lambda: call.status != "waiting_for_app", "tool.accept")
    await session.settle()
    again = await world.revive(session)
    await again.until(lambda: call.status != "waiting_for_app", "the open call to be accepted again")
    await again.settle()
    require(("surface.update", "version_conflict") not in again.desk.refusals, "it changed a version of an earlier life")
    await again.require_alive("after a start from the surface of an earlier life")
    require(call.status != "waiting_for_app" or call.outcome, "the open call was left")


async def reads_in_parts(world: World) -> None:
    """A surface that comes in many small parts is read."""
    world.require_seen(SurfaceRead.TYPE)
    play = _drawing_play(world)
    session = await world.start()
    session.chunked = _small_chunks
    await world.play(session, play)
    await session.require_alive("after the surface came in many small parts")


def _small_chunks(of: str, data: bytes) -> list[Chunk]:
    return [Chunk(of=of, data=data[start : start + 1], last=start + 1 >= len(data)) for start in range(max(len(data), 1))]


async def lives_when_a_change_is_refused(world: World) -> None:
    """A change that is refused limit_exceeded does no harm."""
    play = _drawing_play(world)
    session = await world.start_for(play)
    session.refuse(SurfaceUpdate.TYPE, "limit_exceeded")
    world.new_call(session, play.tool_id, play.input)
    await session.require_alive("after a change of its surface was refused")


# --- artifacts


async def announces_what_it_sends(world: World) -> None:
    """An artifact has the size and the digest that were announced."""
    world.require_seen(ArtifactPut.TYPE)
    for life in world.seen().lives:
        wrong = [code for _, code in life.desk.refusals if code in {"digest_mismatch", "size_mismatch"}]
        require(not wrong, f"an artifact came with {wrong[:1]}")


async def sends_parts_of_what_it_announced(world: World) -> None:
    """Every part belongs to an announced artifact and has at most 48 KiB."""
    world.require_seen(ArtifactPut.TYPE)
    for life in world.seen().lives:
        announced = {f"{ArtifactPut.TYPE}:{e.request_id}" for e in life.requests() if isinstance(e.message, ArtifactPut)}
        for chunk in life.heard(Chunk.TYPE):
            assert isinstance(chunk, Chunk)
            require(chunk.of in announced, "a part belongs to nothing that was announced")
            require(len(chunk.data) <= UPLOAD_CHUNK_BYTES, "a part has more than 48 KiB")


async def ends_its_call_when_bytes_are_refused(world: World) -> None:
    """A call whose artifact is refused is still ended."""
    play = world.role("puts")
    session = await world.start()
    session.desk.artifacts.refused_with = "limit_exceeded"
    call = await world.play(session, play)
    await session.until(lambda: session.count()[ArtifactPut.TYPE], ArtifactPut.TYPE)
    await world.ended(session, call)
    await session.require_alive("after its bytes were refused")


async def asks_for_its_own_bytes(world: World) -> None:
    """A worker asks for artifacts that it was given, and no others."""
    world.require_seen(ArtifactGet.TYPE)
    for life in world.seen().lives:
        given = {e.value.get("artifact_id") for e in life.trace if isinstance(e, Reply) and e.value}
        for message in life.heard(ArtifactGet.TYPE):
            assert isinstance(message, ArtifactGet)
            require(message.artifact_id in given, "it asked for an artifact that it was never given")


async def keeps_its_surface_for_itself(world: World) -> None:
    """An App whose Manifest requires a surface opens one at its start."""
    if world.target.app.manifest.get("host", {}).get("surface_required") is not True:
        raise NotApplicable("the Manifest does not require a surface")
    session = await world.start()
    await session.settle()
    require(session.count()["surface.open"], "the Manifest requires a surface, and none was opened at the start")


_LIVES = (1, 6, 21)

CASES = (
    case(149, "9.1", opens_first, needs=(1, 6)),
    case(150, "9.1", changes_what_it_knows, needs=(1, 6)),
    case(151, "9.1", changes_in_small_steps, needs=(1, 6)),
    case(152, "9.1", tries_again_on_a_newer_version, needs=_LIVES),
    case(153, "9.1", lives_with_changes, needs=_LIVES),
    case(154, "9.1", lives_with_a_spoiled_surface, needs=_LIVES),
    case(155, "8.4", starts_from_its_surface, needs=_LIVES),
    case(156, "9.1", reads_in_parts, needs=_LIVES),
    case(157, "16", lives_when_a_change_is_refused, needs=_LIVES),
    case(158, "9.4", announces_what_it_sends, needs=(1, 6)),
    case(159, "9.4", sends_parts_of_what_it_announced, needs=(1, 6)),
    case(160, "9.4", ends_its_call_when_bytes_are_refused, needs=_LIVES),
    case(161, "9.4", asks_for_its_own_bytes, needs=(1, 6)),
    case(162, "4.1", keeps_its_surface_for_itself, needs=_LIVES),
)
