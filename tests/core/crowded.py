"""Worlds that are nearly full: copies of a record instead of as many turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kernel.core import limits
from kernel.protocol.agent import APP_MESSAGE, AppMessageReceived, ToolInvoke
from tests.core.dict_view import MANIFESTS, DictView, renamed
from tests.core.stories import world_of
from tests.core.world import AGENT, Outcome, World, envelope


def board_world(*calls: dict[str, Any], **instance: Any) -> World:
    return world_of({"instances": [{"app": "board", **instance}], "calls": list(calls)})


def seed(world: World, template: Any, count: int, **changes: Callable[[int], Any]) -> None:
    """Put copies of a record into the store, each with its own number."""
    for _ in range(count):
        number = world.next_number
        made = {name: make(number) for name, make in changes.items()}
        world.view.tables[type(template)][number] = replace(template, number=number, **made)
        world.next_number += 1


def seed_calls(world: World, count: int, **fields: Any) -> None:
    template = replace(world.call("c1"), **fields)
    seed(world, template, count, call_id=lambda number: f"seeded_{number}")


def full_world() -> World:
    """As many instances as may be, suspended, each of an App of its own (notes00 ...); nobody else runs."""
    names = [f"notes{number:02}" for number in range(limits.MAX_INSTANCES)]
    world = World(view=DictView(MANIFESTS | {name: renamed("notes", name) for name in names}))
    return world_of({"instances": [{"app": name, "state": "suspended"} for name in names]}, world)


def message(world: World, message_id: str, size: int = 0) -> Outcome:
    outer = envelope(message_id, APP_MESSAGE, app_scope="board")
    return world.say(AGENT, AppMessageReceived(envelope=outer, topic="board.note", body={"text": "x" * size}))


def peek_of(world: World, call_id: str) -> ToolInvoke:
    return ToolInvoke(envelope=None, call_id=call_id, tool_id="board.peek", inventory_revision=world.view.inventory.revision, input={})
