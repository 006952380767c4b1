"""What the person switches on and off."""

from __future__ import annotations

import pytest

from kernel.core.records import KeptDescriptor, PublishedInventory, Switch
from kernel.protocol import host as h
from lineup_sdk.protocol.codes import Code
from tests.core.stories import world_of
from tests.core.world import PERSON, World


def booted() -> World:
    world = World()
    world.boot()
    return world


@pytest.mark.clause("4.5")
def test_chat_and_the_kernels_own_tools_cannot_be_switched_off_and_unknown_names_do_not_exist() -> None:
    world = booted()
    before = world.view.copy()
    refusals = {"runtime": Code.LIFECYCLE_DENIED, "runtime.status": Code.LIFECYCLE_DENIED, "nobody": Code.TOOL_NOT_ADVERTISED}
    refusals |= {"board.fly": Code.TOOL_NOT_ADVERTISED, "": Code.TOOL_NOT_ADVERTISED, "board.": Code.TOOL_NOT_ADVERTISED}
    for name, code in refusals.items():
        assert world.say(PERSON, h.AppDisable(name=name)).code is code, name
    assert world.say(PERSON, h.AppEnable(name="nobody")).code is Code.TOOL_NOT_ADVERTISED
    assert world.view.tables == before.tables


@pytest.mark.clause("4.4")
@pytest.mark.invariant("53")
def test_every_change_of_the_content_is_a_new_revision_and_no_other() -> None:
    world = booted()
    revisions = []
    steps = [h.AppDisable(name="board"), h.AppDisable(name="board.once"), h.AppDisable(name="board"), h.AppEnable(name="board")]
    steps += [h.AppEnable(name="board.once"), h.AppEnable(name="board.once")]
    for step in steps:
        value = world.say(PERSON, step).value
        assert value is not None
        assert value["revision"] == world.view.inventory.revision
        revisions.append(value["revision"])
    assert revisions == ["e1.2", "e1.2", "e1.2", "e1.3", "e1.4", "e1.4"]
    assert [one.number for one in world.rows(PublishedInventory)] == [1, 2, 3, 4]
    assert {one.name: one.enabled for one in world.rows(Switch)} == {"board": True, "board.once": True}


@pytest.mark.clause("6.1")
def test_every_descriptor_that_was_ever_published_is_kept() -> None:
    world = booted()
    world.say(PERSON, h.AppDisable(name="board"))
    kept = {one.digest for one in world.rows(KeptDescriptor)}
    assert kept == {tool.digest for manifest in world.view.manifests.values() for tool in manifest.tools}


@pytest.mark.clause("4.5")
def test_a_suspended_app_that_is_switched_off_is_closed_at_once() -> None:
    world = world_of({"instances": [{"app": "board", "state": "suspended"}]})
    done = world.say(PERSON, h.AppDisable(name="board"))
    assert (done.audit, done.processes) == (["switch.disabled", "instance.stopped", "inventory.published"], [])
