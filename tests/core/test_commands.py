"""The one table: who may say what, and nothing that is not in it."""

from __future__ import annotations

import inspect
from types import ModuleType

import pytest

from kernel.core import events
from kernel.core.commands import TABLE, decide, name_of
from kernel.core.decision import Origin, Rejected, Speaker, Stamp
from kernel.core.grants import EXTENSIONS, GRANTS, STANDARD_INTERACTION, grants_of
from kernel.core.manifest import Kind
from kernel.protocol import agent as a
from kernel.protocol.host import FROM_HOST
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol.codes import Code
from tests.core.world import AGENT, KERNEL, PERSON, START, World

STAMP = Stamp(now=START, boot_id="b", boottime_ms=1, token="0" * 32, first_number=1)
# Reads are no turns; hello and envelope.submit are the port's own.
READ_BY_THE_PORTS = {"apps.list", "calls.list", "calls.show", "envelope.submit", "hello", "instances.list", "inventory.show"}
READ_BY_THE_PORTS |= {"artifact.get", "surface.source", "consents.list", "permissions.list"}
READ_BY_THE_PORTS |= {"sessions.list", "sessions.show"}
READ_BY_THE_PORTS |= {"audit.tail", "explain", "inbox.parked"}
READ_BY_THE_PORTS |= {"kernel.status", "logs.read", "messages.list", "draft.save", "interactions.list"}
OF_THE_SYSTEM_APP = {"conversation.send_text", "lifecycle.request_mode", "timeline.place", "timeline.subscribe"}
KEPT_BY_THE_PORT = {"artifact.put", "chunk", "hello", "log.write", "pong"}  # of a worker: never a turn


@pytest.mark.clause("2.4")
@pytest.mark.parametrize("speaker", list(Speaker))
def test_a_command_of_a_speaker_that_is_not_in_its_row_is_refused_before_it_is_looked_at(speaker: Speaker) -> None:
    view = World().view
    for kind, row in TABLE.items():
        if speaker not in row.speakers:
            with pytest.raises(Rejected) as refused:
                decide(view, Origin(speaker=speaker), STAMP, object.__new__(kind))
            assert refused.value.code is Code.CAPABILITY_DENIED, kind


@pytest.mark.clause("2.4")
def test_a_worker_without_the_grant_is_refused_whatever_it_asks() -> None:
    view = World().view
    for kind, row in TABLE.items():
        if Speaker.WORKER in row.speakers:
            with pytest.raises(Rejected) as refused:
                decide(view, Origin(speaker=Speaker.WORKER, grants=frozenset({"another.type"})), STAMP, object.__new__(kind))
            assert refused.value.code is Code.CAPABILITY_DENIED, kind


def test_a_command_that_is_not_in_the_table_is_a_bug_and_not_a_refusal() -> None:
    with pytest.raises(KeyError):
        decide(World().view, KERNEL, STAMP, object())


def test_every_message_that_is_a_turn_has_its_row_and_no_row_is_for_nothing() -> None:
    worker = {kind for name, kind in m.FROM_WORKER.items() if name not in KEPT_BY_THE_PORT}
    host = {kind for name, kind in FROM_HOST.items() if name not in READ_BY_THE_PORTS}
    assert set(TABLE) == worker | host | (classes_of(a) - {a.Envelope}) | (classes_of(events) - {events.Death})


def classes_of(module: ModuleType) -> set[type]:
    return {kind for _, kind in inspect.getmembers(module, inspect.isclass) if kind.__module__ == module.__name__}


@pytest.mark.clause("2.4")
def test_what_a_worker_may_send_is_what_the_table_lets_workers_say() -> None:
    turns = {name for name, kind in m.FROM_WORKER.items() if kind in TABLE and Speaker.WORKER in TABLE[kind].speakers}
    for kind in (Kind.SYSTEM, Kind.BUNDLED, Kind.INSTALLED):
        others = EXTENSIONS[STANDARD_INTERACTION] | (frozenset() if kind is Kind.SYSTEM else OF_THE_SYSTEM_APP)
        assert GRANTS[kind] == (turns - others) | (KEPT_BY_THE_PORT - {"hello"})
    assert grants_of(Kind.RUNTIME) == frozenset()


@pytest.mark.clause("2.4")
def test_no_grant_is_for_a_type_that_does_not_exist_or_was_never_granted() -> None:
    for types in GRANTS.values():
        assert types <= set(m.FROM_WORKER)
        assert not types & m.UNGRANTED_TYPES


def test_commands_are_named_by_their_wire_type_or_their_class() -> None:
    assert name_of(m.ToolsSubscribe()) == "tools.subscribe"
    assert name_of(events.Booted()) == "Booted"
    assert len({name_of(object.__new__(kind)) for kind in TABLE}) == len(TABLE)


@pytest.mark.clause("2.3")
def test_a_denied_request_is_refused_whoever_brings_it() -> None:
    world = World()
    for origin in (AGENT, PERSON, KERNEL):
        assert world.say(origin, events.DeniedRequest()).code is Code.CAPABILITY_DENIED
