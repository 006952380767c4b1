"""Interactions in the store: what is open and what is listed, the clock over another boot, and the one outcome over a real database."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from kernel.core.machines import INTERACTION_OPEN, InteractionStatus
from kernel.core.records import Deadline, Interaction, encode_body
from tests.core.stories import interaction_of
from tests.core.test_interactions import CHOICE, OUTCOMES, answer, dismiss, finals
from tests.store.stored import StoredWorld
from tests.store.world import World, interaction

ALL = [
    interaction(
        10 + at,
        status,
        call_number=at,
        deadline=Deadline("boot-1", 10_000 - at),
        result_cbor=None if status in INTERACTION_OPEN else encode_body({"outcome": "answered"}),
    )
    for at, status in enumerate(InteractionStatus)
]


@pytest.mark.clause("7.1")
def test_every_interaction_is_found_by_its_id_and_its_call_and_listed_by_its_status(world: World) -> None:
    world.turn(*ALL)
    for is_restarted in (False, True):
        view = (world.reopen() if is_restarted else world.store).view
        assert [view.interaction(one.interaction_id) for one in ALL] == ALL
        assert [view.interaction_of_call(at) for at in range(len(ALL))] == ALL
        assert (view.interaction("nobody"), view.interaction_of_call(99)) == (None, None)
        assert view.open_interactions() == ALL[:2]
        assert view.next_deadline_ms() == 9_999
        assert view.interactions() == ALL[::-1]
        assert view.interactions(before=12, limit=1) == [ALL[1]]
        assert view.interactions(state="open") == [ALL[1], ALL[0]]
        assert view.interactions(state="ended") == ALL[:1:-1]
        for status in InteractionStatus:
            assert view.interactions(state=status.value) == [one for one in ALL if one.status is status]


@pytest.mark.clause("6.6")
@pytest.mark.invariant("31")
def test_after_another_boot_an_open_question_has_the_time_it_had_left(world: World) -> None:
    world.turn(*ALL)
    left_ms = 10_000 - world.boottime_ms
    world.close()
    world.boot_id, world.boottime_ms = "boot-2", 77
    world.store.rebase_deadlines(world.boot_id, world.boottime_ms)
    for is_restarted in (False, True):
        store = world.reopen() if is_restarted else world.store
        pending, presented, ended = (store.view.interaction(one.interaction_id) for one in ALL[:3])
        assert pending is not None
        assert presented is not None
        assert pending.deadline == Deadline("boot-2", 77 + left_ms)
        assert presented.deadline == Deadline("boot-2", 77 + left_ms - 1)
        assert ended == ALL[2]


@pytest.mark.clause("7.3")
@pytest.mark.invariant("22")
@pytest.mark.invariant("23")
def test_of_four_endings_at_one_instant_one_is_stored_in_every_order_with_a_restart_between(tmp_path: Path) -> None:
    for number, order in enumerate(permutations(OUTCOMES)):
        folder = tmp_path / str(number)
        folder.mkdir()
        world = StoredWorld(folder)
        try:
            world.boot()
            world.invoke("c1", "interaction.choice", CHOICE, expires_at="2030-01-02T03:05:05Z")
            world.wait(60_000)
            order[0](world)
            world.boot()
            ended, rows = interaction_of(world, "c1"), finals(world)
            status, call_status, _, _ = OUTCOMES[order[0]]
            assert (ended.status, world.call("c1").status, len(rows)) == (status, call_status, 1)
            for ending in order[1:]:
                ending(world)
            assert (interaction_of(world, "c1"), finals(world)) == (ended, rows)
        finally:
            world.store.close()


@pytest.mark.clause("12")
def test_what_was_asked_of_the_person_survives_a_restart_and_is_answerable_once(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    try:
        world.boot()
        world.invoke("c1", "interaction.choice", CHOICE)
        asked = interaction_of(world, "c1")
        world.boot()
        assert world.rows(Interaction) == [asked]
        assert answer(world, view_id="view-2-console").code is None
        world.boot()
        assert interaction_of(world, "c1").answered_by_view == "view-2-console"
        assert dismiss(world).code is not None
    finally:
        world.store.close()
