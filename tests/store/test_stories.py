"""Every golden story of the core, played over a real Store: the two views answer alike, through every write and every start."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.stories import world_of
from tests.core.test_golden import STORIES, play_story
from tests.store.stored import StoredWorld


@pytest.mark.parametrize("name", STORIES)
def test_a_story_over_the_store_is_the_story_of_the_core(name: str, tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    try:
        play_story(STORIES[name], world_of(STORIES[name].get("state", {}), world))
    finally:
        world.store.close()
