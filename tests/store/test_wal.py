"""Counting what a log holds."""

from __future__ import annotations

import pytest

from kernel.wal import HEADER_BYTES, WalFacts, read_wal
from tests.store.world import World, flip_bit

_FRAME_BYTES = 24 + 4096


def facts_of(world: World) -> WalFacts:
    with world.wal_path.open("rb") as log:
        return read_wal(log, world.wal_path.stat().st_size)


def test_commits_of_a_log_are_counted_in_frames(world: World) -> None:
    world.count(1)
    world.crash()
    one = facts_of(world)
    frames = (world.wal_path.stat().st_size - HEADER_BYTES) // _FRAME_BYTES
    assert one.last_commit == one.last_frame == frames
    assert 0 < one.commit_before < frames


def test_frames_of_an_older_round_do_not_count(world: World) -> None:
    world.count(50)
    world.store.checkpoint()
    world.count(2)
    world.crash()
    frames = (world.wal_path.stat().st_size - HEADER_BYTES) // _FRAME_BYTES
    assert 0 < facts_of(world).last_frame < frames


def test_an_empty_log_has_nothing_and_loses_nothing(world: World) -> None:
    world.count(3)
    world.close()
    assert facts_of(world) == WalFacts()
    assert not WalFacts().has_lost(0)


@pytest.mark.clause("12")
@pytest.mark.parametrize("offset", range(HEADER_BYTES))
def test_a_flip_in_the_header_of_a_log_is_rot(world: World, offset: int) -> None:
    world.count(2)
    world.crash()
    flip_bit(world.wal_path, offset)
    assert facts_of(world).has_lost(10_000)


@pytest.mark.clause("12")
@pytest.mark.parametrize("field", [8, 12])
def test_a_flipped_salt_does_not_hide_a_frame(world: World, field: int) -> None:
    world.count(3)
    world.crash()
    before = facts_of(world)
    flip_bit(world.wal_path, world.wal_path.stat().st_size - _FRAME_BYTES + field)
    assert facts_of(world) == before
