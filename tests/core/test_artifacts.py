"""Artifacts in the core: metadata of bytes that are durable, for their own App session only."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernel.core import limits
from kernel.core.events import ArtifactReceived, ArtifactsLost
from kernel.core.surface_effects import SendArtifact
from kernel.core.surface_records import Artifact
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.surface_messages import ArtifactGet
from tests.core.stories import world_of
from tests.core.world import KERNEL, Outcome, World

APP = "ins_board"
SHA = "a" * 64

pytestmark = pytest.mark.clause("9.4")


def world_with_apps() -> World:
    return world_of({"instances": [{"app": "board"}, {"app": "notes"}]})


def put(world: World, sha256: str = SHA, size: int = 10, app: str = APP, trouble: Code | None = None) -> Outcome:
    received = ArtifactReceived(sha256=sha256, size=size, media_type="image/png", trouble=trouble)
    return world.say(replace(world.worker(app), request_id=3), received)


def artifact_id(outcome: Outcome) -> str:
    assert outcome.value is not None
    return outcome.value["artifact_id"]


def test_durable_bytes_become_an_artifact_and_the_same_bytes_the_same_one() -> None:
    world = world_with_apps()
    first = put(world)
    again = put(world)
    assert artifact_id(again) == artifact_id(first)
    assert (first.audit, again.audit, again.puts) == (["artifact.kept"], [], [])
    assert artifact_id(put(world, app="ins_notes")) != artifact_id(first)


@pytest.mark.parametrize("trouble", [Code.LIMIT_EXCEEDED, Code.SIZE_MISMATCH, Code.DIGEST_MISMATCH, Code.STORE_FULL, Code.UNKNOWN])
def test_bytes_that_were_not_taken_leave_no_metadata(trouble: Code) -> None:
    world = world_with_apps()
    assert put(world, trouble=trouble).code is trouble
    assert world.rows(Artifact) == []


@pytest.mark.clause("16")
def test_an_app_session_has_so_many_artifacts_and_so_many_bytes() -> None:
    world = world_with_apps()
    put(world)
    [one] = world.rows(Artifact)
    many = [replace(one, number=100 + n, artifact_id=f"art_{n}", sha256=f"{n:064}") for n in range(limits.MAX_ARTIFACTS_OF_SESSION - 1)]
    world.put(*many)
    assert put(world, "b" * 64).code is Code.LIMIT_EXCEEDED
    assert put(world).code is None
    world = world_with_apps()
    put(world, size=limits.MAX_ARTIFACT_BYTES_OF_SESSION - 5)
    assert put(world, "b" * 64, size=6).code is Code.LIMIT_EXCEEDED
    assert put(world, "b" * 64, size=5).code is None


@pytest.mark.invariant("45")
def test_an_app_reads_its_own_and_a_foreign_id_answers_as_an_unknown_one() -> None:
    world = world_with_apps()
    own = artifact_id(put(world))
    outcome = world.say(replace(world.worker(APP), request_id=9), ArtifactGet(artifact_id=own, offset=4))
    assert outcome.value == {"media_type": "image/png", "of": "artifact.get:9", "sha256": SHA, "size": 10}
    assert outcome.effects == [
        SendArtifact(instance_id=APP, life=world.instance(APP).life, of="artifact.get:9", sha256=SHA, size=10, offset=4)
    ]
    answers = [world.tell("ins_notes", ArtifactGet(artifact_id=name, offset=0)) for name in (own, "art_unknown")]
    assert [(one.code, one.detail, one.value, one.effects) for one in answers] == [(Code.ARTIFACT_NOT_FOUND, None, None, [])] * 2


@pytest.mark.invariant("51")
def test_lost_bytes_are_promised_no_more_and_can_be_put_again() -> None:
    world = world_with_apps()
    old = artifact_id(put(world))
    [number] = [one.number for one in world.rows(Artifact)]
    assert world.say(KERNEL, ArtifactsLost(numbers=(number, 99))).audit == ["artifact.lost"]
    assert world.say(KERNEL, ArtifactsLost(numbers=(number,))).audit == []
    assert world.tell(APP, ArtifactGet(artifact_id=old, offset=0)).code is Code.ARTIFACT_NOT_FOUND
    assert artifact_id(put(world)) != old
