"""A world with the system App: chat beside the Apps of the tests."""

from __future__ import annotations

import json
from pathlib import Path

from kernel.core.decision import StopWorker
from kernel.core.limits import IDLE_AFTER_MS
from kernel.core.machines import InstanceState
from kernel.core.manifest import Manifest, parse_manifest
from kernel.core.records import Instance
from kernel.protocol.host_sessions import AppOpen
from tests.core.dict_view import MANIFESTS, DictView
from tests.core.world import PERSON, World

CHAT: Manifest = parse_manifest(json.loads((Path(__file__).parents[2] / "manifests" / "chat.json").read_bytes()))
WITH_CHAT: dict[str, Manifest] = MANIFESTS | {"chat": CHAT}


def world_with_chat(manifests: dict[str, Manifest] | None = None) -> World:
    """Booted, with chat up and in front."""
    world = World(view=DictView(WITH_CHAT if manifests is None else manifests))
    world.boot()
    world.start(chat_of(world).instance_id)
    return world


def chat_of(world: World) -> Instance:
    """Chat's one instance."""
    return world.current("chat")


def states(world: World) -> dict[str, InstanceState]:
    """Where the newest instance of each App stands."""
    return {one.app_scope: one.state for one in world.rows(Instance)}


def opened(world: World, *apps: str) -> None:
    """The person opens them, one after the other."""
    for app in apps:
        assert world.say(PERSON, AppOpen(app_scope=app)).code is None
        if world.current(app).state is InstanceState.STARTING:
            world.start(world.current(app).instance_id)


def idle(world: World) -> list[str]:
    """Let the time pass; the Apps whose process was stopped for that."""
    stopped = [effect for effect in world.pass_time(IDLE_AFTER_MS).effects if isinstance(effect, StopWorker)]
    assert {effect.reason for effect in stopped} <= {"suspend"}
    return [world.instance(effect.instance_id).app_scope for effect in stopped]
