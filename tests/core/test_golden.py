"""Every golden story is what the core does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lineup_sdk.protocol.codes import Code
from tests.core.stories import play, world_of
from tests.core.world import World

GOLDEN = Path(__file__).parent.parent / "golden"
FILES = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(GOLDEN.glob("*__*.json"))}
STORIES = {name: story for name, story in FILES.items() if "steps" in story}
EXACT = ("code", "audit", "outbox", "frames", "processes")
GIVEN = ("calls", "instances", "interactions", "focus", "value")
NOTHING: dict[str, Any] = {"code": None, "audit": [], "outbox": [], "frames": [], "processes": []}


@pytest.mark.parametrize("name", STORIES)
def test_story(name: str) -> None:
    play_story(STORIES[name], world_of(STORIES[name].get("state", {})))


def play_story(story: dict[str, Any], world: World) -> None:
    """Play every step of a story and compare."""
    for number, step in enumerate(story["steps"], start=1):
        what = play(world, step)
        if what is None:
            continue
        expected = NOTHING | step.get("then", {})
        assert {key: what[key] for key in EXACT} == {key: expected[key] for key in EXACT}, f"step {number}"
        for key in GIVEN:
            if key in expected:
                shown = {one: what[key].get(one) for one in expected[key]} if key in {"calls", "instances", "interactions"} else what[key]
                assert shown == expected[key], f"step {number}: {key}"


def test_every_story_names_its_clause_and_its_rule_and_only_known_keys() -> None:
    for name, story in STORIES.items():
        assert set(story) <= {"clause", "rule", "state", "steps"}, name
        assert story["clause"], name
        assert story["rule"].endswith("."), name
        for step in story["steps"]:
            assert set(step) <= {"wait_ms", "by", "say", "with", "then"}, name
            assert set(step.get("then", {})) <= {*EXACT, *GIVEN}, name


def test_codes_of_the_stories_are_in_the_closed_list() -> None:
    named = {step["then"]["code"] for story in STORIES.values() for step in story["steps"] if step.get("then", {}).get("code")}
    assert named <= {code.value for code in Code}
    assert len(named) >= 12  # what a decider refuses with has a story
