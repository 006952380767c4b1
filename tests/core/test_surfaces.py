"""Surfaces: one check for worker and mount, one live mount, nothing of it for anyone else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cbor2
import pytest

from kernel.core import limits, merge_patch
from kernel.core.events import Death, ViewAttached, ViewLeft
from kernel.core.manifest import SURFACE_EVENT_TOPIC, SurfaceEntry
from kernel.core.records import InboxRow, Source, decode_body, encode_body
from kernel.core.surface_effects import SendToView, TellSurfaceChanged
from kernel.core.surface_records import AppendedPatch, Container, Surface
from kernel.protocol.host import AppClose, AppDisable
from kernel.protocol.host_surfaces import SurfaceEvent, SurfaceMount, SurfacePatch, SurfacePatched, SurfaceUnmount, SurfaceUnmounted
from lineup_sdk.protocol import limits as wire
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.surface_messages import SurfaceClose, SurfaceOpen, SurfaceRead, SurfaceUpdate
from tests.core.stories import world_of
from tests.core.world import PERSON, Outcome, World

APP = "ins_board"
ONE, TWO = (replace(PERSON, view_id=f"view-{name}") for name in ("one", "two"))

pytestmark = pytest.mark.clause("9.1")


def opened(*patches: dict[str, Any], at: dict[str, Any] | None = None) -> World:
    """The board with an open surface, changed by its worker."""
    world = world_of(at or {"instances": [{"app": "board"}, {"app": "notes"}]})
    assert world.tell(APP, SurfaceOpen()).value == {"version": 0}
    for patch in patches:
        assert update(world, patch).code is None
    return world


def surface(world: World) -> Surface:
    [found] = world.rows(Surface)
    return found


def state(world: World) -> Any:
    return cbor2.loads(merge_patch.encode(world.view.surfaces.state(surface(world).number)))


def update(world: World, patch: dict[str, Any], base_version: int | None = None) -> Outcome:
    version = surface(world).version if base_version is None else base_version
    return world.tell(APP, SurfaceUpdate(base_version=version, patch=patch))


def mount(world: World, view: Any = ONE) -> int:
    value = world.say(view, SurfaceMount(surface_id=surface(world).surface_id)).value
    assert value is not None
    return value["mount_epoch"]


def draw(world: World, patch: dict[str, Any], epoch: int, view: Any = ONE, base_version: int | None = None) -> Outcome:
    version = surface(world).version if base_version is None else base_version
    asked = SurfacePatch(surface_id=surface(world).surface_id, mount_epoch=epoch, base_version=version, patch=patch)
    return world.say(view, asked)


def act(world: World, epoch: int, name: str = "submit", body: dict[str, Any] | None = None, view: Any = ONE) -> Outcome:
    return world.say(view, SurfaceEvent(surface_id=surface(world).surface_id, mount_epoch=epoch, name=name, body=body or {}))


def told(outcome: Outcome) -> list[tuple[str, Any]]:
    return [(effect.view_id, effect.message) for effect in outcome.effects if isinstance(effect, SendToView)]


# --------------------------------------------------------------------------------- the App


def test_a_surface_is_of_its_app_session_and_opening_it_again_changes_nothing() -> None:
    world = opened({"a": 1})
    assert surface(world).container is Container.ISOLATED
    assert surface(world).app_session_id == world.instance(APP).app_session_id
    again = world.tell(APP, SurfaceOpen())
    assert (again.value, again.puts) == ({"version": 1}, [])


def test_the_app_changes_and_reads_its_state() -> None:
    world = opened({"a": 1, "b": {"c": 2}}, {"a": None, "b": {"d": [1, None]}})
    assert state(world) == {"b": {"c": 2, "d": [1, None]}}
    outcome = world.say(replace(world.worker(APP), request_id=7), SurfaceRead())
    assert outcome.value == {"version": 2, "size": surface(world).state_bytes, "of": "surface.read:7"}
    [(_, chunk)] = outcome.sent
    assert chunk == m.Chunk(of="surface.read:7", data=merge_patch.encode(world.view.surfaces.state(surface(world).number)), last=True)
    assert outcome.audit == []


def test_a_great_state_is_read_in_chunks() -> None:
    world = opened(*({f"k{number}": "x" * 40_000} for number in range(14)))
    chunks = [message for _, message in world.tell(APP, SurfaceRead()).sent if isinstance(message, m.Chunk)]
    assert [(len(chunk.data), chunk.last) for chunk in chunks][:-1] == [(wire.CHUNK_BYTES, False)] * 2
    assert cbor2.loads(b"".join(chunk.data for chunk in chunks)) == state(world)
    assert [chunk.last for chunk in chunks] == [False, False, True]


@pytest.mark.parametrize("base_version", [0, 2])
def test_a_change_on_another_version_is_refused_and_says_the_current_one(base_version: int) -> None:
    world = opened({"a": 1})
    before = world.view.copy()
    outcome = update(world, {"a": 2}, base_version)
    assert outcome.code is Code.VERSION_CONFLICT
    assert outcome.detail is not None
    assert outcome.detail.as_json()["version"] == 1
    assert world.view.tables == before.tables


@pytest.mark.clause("16")
@pytest.mark.parametrize(
    "patch",
    [
        {"a": "x" * wire.MAX_PATCH_BYTES},
        {"a": b"bytes"},
        {"a": float("nan")},
        {"a": [[[[[[[[[[[[1]]]]]]]]]]]]},
        {str(number): 0 for number in range(limits.MAX_SURFACE_MEMBERS + 1)},
    ],
    ids=["size", "bytes", "nan", "depth", "members"],
)
def test_a_patch_beyond_a_limit_is_refused_and_changes_nothing(patch: dict[str, Any]) -> None:
    world = opened({"a": 1})
    before = world.view.copy()
    assert update(world, patch).code is Code.LIMIT_EXCEEDED
    assert world.view.tables == before.tables


@pytest.mark.clause("16")
def test_a_state_of_four_mebibytes_is_full_and_can_still_shrink() -> None:
    world = opened()
    part = "x" * (wire.MAX_PATCH_BYTES - 100)
    for number in range(wire.MAX_SURFACE_BYTES // wire.MAX_PATCH_BYTES + 1):
        outcome = update(world, {f"k{number:03}": part})
        if outcome.code is not None:
            break
    assert outcome.code is Code.LIMIT_EXCEEDED
    assert surface(world).state_bytes > wire.MAX_SURFACE_BYTES - wire.MAX_PATCH_BYTES
    assert update(world, {"k000": None}).code is None


@pytest.mark.clause("16")
def test_a_state_of_as_many_members_as_there_may_be_is_full() -> None:
    world = opened({"a": 0, "b": 0})
    world.put(replace(surface(world), state_members=limits.MAX_SURFACE_MEMBERS - 1))
    assert update(world, {"c": 0, "d": {}}).code is Code.LIMIT_EXCEEDED
    assert update(world, {"a": None, "c": 0, "d": {}}).code is None
    assert surface(world).state_members == limits.MAX_SURFACE_MEMBERS


def test_the_surface_of_another_app_is_nobody_elses() -> None:
    world = opened({"a": 1})
    for message in (SurfaceRead(), SurfaceClose(), SurfaceUpdate(base_version=1, patch={"a": 2})):
        assert world.tell("ins_notes", message).code is Code.SURFACE_UNAVAILABLE
    world.tell("ins_notes", SurfaceOpen())
    assert [cbor2.loads(merge_patch.encode(world.view.surfaces.state(one.number))) for one in world.rows(Surface)] == [{"a": 1}, {}]


def test_a_closed_surface_takes_nothing_and_comes_back_as_it_was() -> None:
    world = opened({"a": 1})
    epoch = mount(world)
    outcome = world.tell(APP, SurfaceClose())
    gone = SurfaceUnmounted(surface_id=surface(world).surface_id, mount_epoch=epoch, reason="closed")
    assert told(outcome) == [("view-one", gone)]
    assert [update(world, {}).code, draw(world, {}, epoch).code, act(world, epoch).code] == [Code.SURFACE_UNAVAILABLE] * 3
    assert world.tell(APP, SurfaceOpen()).value == {"version": 1}
    assert state(world) == {"a": 1}
    assert draw(world, {}, epoch).code is Code.STALE_MOUNT


# --------------------------------------------------------------------------------- the mount


def test_a_mount_gets_the_state_then_every_change_of_the_app_and_its_own_reach_the_worker() -> None:
    world = opened({"a": 1})
    outcome = world.say(ONE, SurfaceMount(surface_id=surface(world).surface_id))
    assert outcome.value is not None
    of = outcome.value["of"]
    assert outcome.value == {"mount_epoch": 1, "version": 1, "size": surface(world).state_bytes, "of": of}
    assert told(outcome) == [("view-one", m.Chunk(of=of, data=encode_body({"a": 1}), last=True))]
    changed = SurfacePatched(surface_id=surface(world).surface_id, mount_epoch=1, version=2, patch={"b": 2})
    assert told(update(world, {"b": 2})) == [("view-one", changed)]
    drawn = draw(world, {"c": 3}, 1)
    assert (drawn.value, told(drawn)) == ({"version": 3}, [])
    assert [one for one in drawn.effects if isinstance(one, TellSurfaceChanged)] == [
        TellSurfaceChanged(instance_id=APP, life=world.instance(APP).life, version=3)
    ]
    assert state(world) == {"a": 1, "b": 2, "c": 3}


@pytest.mark.clause("9.2")
def test_a_second_view_takes_over_and_nothing_of_the_first_counts_any_more() -> None:
    world = opened()
    first = mount(world, ONE)
    taken = world.say(TWO, SurfaceMount(surface_id=surface(world).surface_id))
    gone = SurfaceUnmounted(surface_id=surface(world).surface_id, mount_epoch=first, reason="taken_over")
    assert told(taken)[0] == ("view-one", gone)
    before = world.view.copy()
    second = surface(world).mount_epoch
    unmount = SurfaceUnmount(surface_id=surface(world).surface_id, mount_epoch=first)
    stale = [draw(world, {"x": 1}, epoch, ONE) for epoch in (first, second)]
    stale += [act(world, first, view=ONE), draw(world, {"x": 1}, first, TWO), world.say(ONE, unmount)]
    assert [outcome.code for outcome in stale] == [Code.STALE_MOUNT] * 5
    assert [outcome.audit for outcome in stale] == [["command.refused"]] * 5
    assert world.view.tables == before.tables
    assert draw(world, {"x": 1}, second, TWO).code is None


@pytest.mark.clause("9.2")
def test_a_remount_of_the_same_view_is_a_new_epoch() -> None:
    world = opened()
    assert (mount(world), mount(world)) == (1, 2)
    assert draw(world, {"x": 1}, 1).code is Code.STALE_MOUNT
    assert draw(world, {"x": 1}, 2).code is None


@pytest.mark.clause("9.2")
def test_a_view_that_left_or_let_go_has_no_mount() -> None:
    for leave in (ViewLeft(), None):
        world = opened()
        world.say(ONE, ViewAttached())
        epoch = mount(world)
        mine = SurfaceUnmount(surface_id=surface(world).surface_id, mount_epoch=epoch)
        world.say(ONE, leave or mine)
        assert surface(world).mounted_view_id is None
        assert draw(world, {}, epoch).code is Code.STALE_MOUNT
        assert told(update(world, {"a": 1})) == []


@pytest.mark.clause("9.2")
@pytest.mark.parametrize("asked", [{"surface_id": "srf_unknown"}, {"surface_version": 2}, {"surface_version": 0}])
def test_an_unknown_surface_or_contract_is_unavailable(asked: dict[str, Any]) -> None:
    world = opened()
    outcome = world.say(ONE, SurfaceMount(**{"surface_id": surface(world).surface_id} | asked))
    assert outcome.code is Code.SURFACE_UNAVAILABLE
    assert surface(world).mounted_view_id is None


@pytest.mark.clause("9.2")
def test_a_surface_is_mounted_under_the_contract_its_manifest_names_and_under_no_neighbour() -> None:
    world = opened()
    manifests = dict(world.view.manifests)
    entry = manifests["board"].entry
    assert entry is not None
    declared = replace(entry, surface=SurfaceEntry(2, ("surface/board.js",), None))
    world.view.manifests = manifests | {"board": replace(manifests["board"], entry=declared)}
    for version, code in ((1, Code.SURFACE_UNAVAILABLE), (3, Code.SURFACE_UNAVAILABLE), (2, None)):
        assert world.say(ONE, SurfaceMount(surface_id=surface(world).surface_id, surface_version=version)).code is code


@pytest.mark.clause("8.2")
def test_what_the_person_does_in_a_surface_is_an_act_on_its_app_noted_once_a_second() -> None:
    world = opened()
    epoch = mount(world)
    world.wait(60_000)
    draw(world, {"a": 1}, epoch)
    assert world.instance(APP).act_ms == world.boottime_ms
    world.wait(500)
    assert not [one for one in draw(world, {"a": 2}, epoch).puts if type(one).__name__ == "Instance"]
    world.wait(600)
    act(world, epoch)
    assert world.instance(APP).act_ms == world.boottime_ms


# --------------------------------------------------------------------------------- events


def test_an_event_is_an_inbox_row_delivered_until_it_is_acknowledged() -> None:
    world = opened()
    outcome = act(world, mount(world), "submit", {"board_id": "b1"})
    [row] = world.rows(InboxRow)
    assert (row.topic, decode_body(row.body_cbor)) == (SURFACE_EVENT_TOPIC, {"name": "submit", "body": {"board_id": "b1"}})
    assert outcome.sent_types == ["inbox.delivered"]
    world.die(APP)
    again = world.start(APP)
    assert again.sent_types.count("inbox.delivered") == 1
    assert world.tell(APP, m.InboxAcknowledge(message_id=row.message_id)).value == {"acknowledged": True}


@pytest.mark.clause("16")
def test_an_event_beyond_a_limit_is_refused() -> None:
    world = opened()
    epoch = mount(world)
    for name, body in (("", {}), ("x" * (limits.MAX_EVENT_NAME + 1), {}), ("submit", {"a": "x" * wire.MAX_BODY_BYTES})):
        assert act(world, epoch, name, body).code is Code.LIMIT_EXCEEDED
    act(world, epoch)
    [row] = world.rows(InboxRow)
    world.put(*(replace(row, number=10_000 + number, message_id=f"msg-{number}") for number in range(limits.MAX_INBOX_ROWS - 1)))
    assert act(world, epoch).code is Code.LIMIT_EXCEEDED


def test_an_event_for_a_suspended_app_wakes_it_and_one_for_no_app_is_refused() -> None:
    world = opened()
    epoch = mount(world)
    world.die(APP, Death.VIOLATION)
    assert act(world, epoch).code is Code.APP_INSTANCE_NOT_FOUND
    assert draw(world, {"still": "here"}, epoch).code is None


# --------------------------------------------------------------------------------- its end, and a start


@pytest.mark.clause("8.4")
@pytest.mark.parametrize("how", ["person", "disabled"])
def test_a_real_close_ends_the_surface_and_a_crash_or_failure_does_not(how: str) -> None:
    world = opened({"a": 1})
    mount(world)
    world.die(APP)
    assert surface(world).closed_at is None
    assert surface(world).mounted_view_id == "view-one"
    world.start(APP)
    asked = AppDisable(name="board") if how == "disabled" else AppClose(instance_id=APP)
    world.say(PERSON, asked)
    ended = world.die(APP)
    assert surface(world).closed_at == world.now
    assert [message.reason for _, message in told(ended)] == ["closed"]


@pytest.mark.clause("12")
def test_a_start_finds_the_state_and_no_mount() -> None:
    world = opened({"a": 1})
    epoch = mount(world)
    draw(world, {"b": 2}, epoch)
    world.boot()
    assert surface(world).mounted_view_id is None
    assert draw(world, {"c": 3}, epoch).code is Code.STALE_MOUNT
    world.start(APP)
    assert world.tell(APP, SurfaceOpen()).value == {"version": 2}
    assert state(world) == {"a": 1, "b": 2}


# --------------------------------------------------------------------------------- patches fold


@pytest.mark.parametrize("strokes", [100, 900], ids=["a small board", "a board heavier than the least weight of a fold"])
def test_patches_fold_into_a_snapshot_once_they_weigh_as_much_as_the_state_and_nothing_is_seen_of_it(strokes: int) -> None:
    world = opened(*({"strokes": {f"s{number}": "x" * 400 for number in range(start, start + 100)}} for start in range(0, strokes, 100)))
    epoch = mount(world)
    weighed = surface(world).patch_bytes
    for _ in range(20):
        draw(world, {"again": "y" * 40_000}, epoch)
        weighed += 40_009
        if not surface(world).patch_bytes:
            break
    now = surface(world)
    threshold = max(limits.COMPACT_PATCH_BYTES, now.state_bytes)
    assert threshold <= weighed < threshold + 40_100
    assert now.snapshot_version == now.version
    assert world.rows(AppendedPatch) == []
    assert world.view.surfaces.state(now.number).keys() == {"strokes", "again"}
    assert merge_patch.weigh(world.view.surfaces.state(now.number)) == merge_patch.Weight(now.state_bytes, now.state_members)


def test_many_small_patches_fold_too() -> None:
    world = opened()
    small = replace(surface(world), version=limits.MAX_PATCHES - 1)
    patches = [
        AppendedPatch(surface_number=small.number, version=version, patch_cbor=encode_body({"n": version}), created_at=world.now)
        for version in range(1, limits.MAX_PATCHES)
    ]
    world.put(small, *patches)
    world.put(replace(small, state_bytes=merge_patch.weigh(world.view.surfaces.state(small.number)).size, state_members=1))
    assert update(world, {"n": 0}).code is None
    assert world.rows(AppendedPatch) == []
    assert state(world) == {"n": 0}


# --------------------------------------------------------------------------------- an App that needs a view


@pytest.mark.clause("4.1")
def test_an_app_that_needs_a_surface_is_refused_while_no_view_is_there_and_text_counts() -> None:
    world = world_of({})
    assert world.invoke("c1", "frame.show").code is Code.SURFACE_UNAVAILABLE
    world.say(ONE, ViewAttached())
    assert world.invoke("c2", "frame.show").code is None
    world.say(ONE, ViewLeft())
    assert world.invoke("c3", "frame.show").code is Code.SURFACE_UNAVAILABLE
    assert world.call("c1").source is Source.AGENT
