"""Surfaces and artifacts in the store: round trips, states over restarts, compaction, and a cache that is bounded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cbor2
import pytest

from kernel import store_surfaces
from kernel.core import merge_patch
from kernel.core.records import encode_body
from kernel.core.surface_records import AppendedPatch, Artifact, Container, Surface, SurfaceSnapshot
from tests.store.world import NOW, World

pytestmark = pytest.mark.clause("9.1")


def surface(number: int = 1, **changes: Any) -> Surface:
    facts: dict[str, Any] = {
        "number": number,
        "surface_id": f"srf_{number}",
        "app_session_id": f"ses_{number}",
        "app_scope": "task-dashboard",
        "conversation_id": "conversation_e1_00",
        "container": Container.ISOLATED,
        "opened_at": NOW,
        "updated_at": NOW,
    }
    return Surface(**(facts | changes))


def artifact(number: int = 1, **changes: Any) -> Artifact:
    facts: dict[str, Any] = {
        "number": number,
        "artifact_id": f"art_{number}",
        "app_session_id": "ses_1",
        "app_scope": "task-dashboard",
        "conversation_id": "conversation_e1_00",
        "sha256": f"{number:064x}",
        "size": 10 * number,
        "media_type": "image/png",
        "created_at": NOW,
    }
    return Artifact(**(facts | changes))


def opened(world: World, number: int = 1) -> None:
    world.turn(surface(number), SurfaceSnapshot(surface_number=number, version=0, state_cbor=merge_patch.encode({})))


def patched(world: World, version: int, patch: dict[str, Any], number: int = 1) -> None:
    appended = AppendedPatch(surface_number=number, version=version, patch_cbor=encode_body(patch), created_at=NOW)
    state = world.store.view.surfaces.state(number)
    weight = merge_patch.weigh(state) + merge_patch.weigh_change(state, patch)
    world.turn(surface(number, version=version, state_bytes=weight.size, state_members=weight.members), appended)


def state_of(world: World, number: int = 1) -> Any:
    return cbor2.loads(merge_patch.encode(world.store.view.surfaces.state(number)))


FULL = surface(
    2,
    container=Container.TRUSTED,
    version=9,
    state_bytes=500,
    state_members=7,
    snapshot_version=4,
    patch_bytes=99,
    mount_epoch=3,
    mounted_view_id="view-1-web",
)


@pytest.mark.parametrize("record", [surface(), FULL, surface(3, closed_at=NOW)], ids=["new", "mounted", "closed"])
def test_a_surface_comes_back_as_it_was_put(world: World, record: Surface) -> None:
    world.turn(record)
    for is_restarted in (False, True):
        view = (world.reopen() if is_restarted else world.store).view
        assert view.surfaces.by_id(record.surface_id) == record
        assert view.surfaces.of_session(record.app_session_id) == record
        assert view.surfaces.by_number(record.number) == record
        assert view.surfaces.open_ones() == ([] if record.closed_at else [record])


def test_a_surface_that_closed_or_changed_is_read_as_it_is_now(world: World) -> None:
    world.turn(surface())
    changed = replace(surface(), version=1, mount_epoch=2)
    world.turn(changed)
    assert world.store.view.surfaces.of_session("ses_1") == changed
    world.turn(replace(changed, closed_at=NOW))
    assert world.store.view.surfaces.by_id("srf_1") == replace(changed, closed_at=NOW)
    world.turn(changed)
    assert world.store.view.surfaces.open_ones() == [changed]


@pytest.mark.clause("12")
def test_a_state_follows_its_patches_and_is_the_same_after_any_start(world: World) -> None:
    opened(world)
    for version, patch in enumerate(({"a": 1, "b": {"c": [1, None]}}, {"b": {"d": 2}}, {"a": None, "e": "f"}), start=1):
        patched(world, version, patch)
        expected = state_of(world)
        world.crash()
        assert state_of(world) == expected
    assert state_of(world) == {"b": {"c": [1, None], "d": 2}, "e": "f"}


def test_a_snapshot_takes_the_place_of_its_patches(world: World) -> None:
    opened(world)
    for version in range(1, 6):
        patched(world, version, {f"k{version}": version})
    snapshot = SurfaceSnapshot(surface_number=1, version=4, state_cbor=encode_body({f"k{n}": n for n in range(1, 5)}))
    before = state_of(world)
    world.turn(snapshot, surface(version=5, snapshot_version=4, state_bytes=21, state_members=5))
    assert state_of(world) == before
    assert state_of_reopened(world) == before
    world.close()


def state_of_reopened(world: World) -> Any:
    world.reopen()
    return state_of(world)


def test_states_used_longest_ago_leave_memory_and_are_read_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_surfaces, "CACHE_WEIGHT", 3_000)
    for number in range(1, 6):
        opened(world, number)
        patched(world, 1, {"text": "x" * 1_000, "n": number}, number)
    held = world.store.view.surfaces._states
    assert len(held) <= 2
    assert [state_of(world, number)["n"] for number in range(1, 6)] == [1, 2, 3, 4, 5]
    patched(world, 2, {"n": 100}, 1)
    assert state_of(world, 1)["n"] == 100
    assert len(held) <= 2


@pytest.mark.clause("9.4")
def test_an_artifact_comes_back_and_a_lost_one_counts_no_more(world: World) -> None:
    world.turn(artifact(1), artifact(2), artifact(3, app_session_id="ses_2", sha256=artifact(1).sha256))
    for is_restarted in (False, True):
        view = (world.reopen() if is_restarted else world.store).view
        assert view.artifacts.by_id("art_1") == view.artifacts.by_number(1) == artifact(1)
        assert view.artifacts.of_content("ses_1", artifact(2).sha256) == artifact(2)
        assert view.artifacts.of_content("ses_2", artifact(2).sha256) is None
        assert view.artifacts.size_of("ses_1") == (2, 30)
        assert view.artifacts.needs(artifact(1).sha256)
        assert view.artifacts.contents() == [(n, artifact(2 if n == 2 else 1).sha256, 10 * n) for n in (1, 2, 3)]
    world.turn(artifact(1, is_lost=True), artifact(3, app_session_id="ses_2", sha256=artifact(1).sha256, is_lost=True))
    view = world.store.view
    assert view.artifacts.by_id("art_1") == artifact(1, is_lost=True)
    assert view.artifacts.of_content("ses_1", artifact(1).sha256) is None
    assert view.artifacts.size_of("ses_1") == (1, 20)
    assert not view.artifacts.needs(artifact(1).sha256)
