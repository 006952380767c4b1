"""Nearly right messages as turns of a whole kernel (tests/model): whoever gets past the border meets the deciders and the store, and no
word of anybody may end the kernel.

    python -m tests.fuzz.turns FIRST COUNT     prints one JSON object: how many messages were decided, and what broke

Rules:
1. The n-th message depends on n alone, and so does the home it comes to (HOME messages each); `python -m tests.fuzz.turns` of a multiple of
   HOME makes a finding again.
2. Ids of what there is are put in for most ids, so that a message is about something.
3. After each home every promise is looked at.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from kernel.protocol.envelopes import parse_envelope
from kernel.protocol.host import FROM_HOST, EnvelopeSubmit, HostHello
from kernel.protocol.strict import Denied, Invalid, parse_host, parse_worker
from kernel.queries import QUERIES
from lineup_sdk.protocol.framing import ProtocolViolation, check_value, decode_item
from lineup_sdk.protocol.messages import Chunk, Hello, LogWrite, Pong
from lineup_sdk.protocol.surface_messages import ArtifactPut
from tests.faults.story import STORY
from tests.fuzz.mutate import with_changed_value
from tests.fuzz.seeds import seeds
from tests.model.agent_rules import QUESTIONS
from tests.model.base import ADMIN
from tests.model.test_model import Anything

HOME = 400
SPEAKERS = ("worker", "host", "envelope")
_OF_THE_PORT = (Chunk, Hello, LogWrite, Pong, ArtifactPut, HostHello, EnvelopeSubmit)  # never a command
_APPS = ("board", "notes", "asker", "chat")


_CONTENTS = ("answer", "arguments", "body", "data", "draft", "input", "patch", "payload", "request", "result", "state")
_MORE: dict[str, tuple[dict[str, Any], ...]] = {
    "envelope": (),
    "host": tuple(
        {"type": "interaction.answer", "id": 1, "interaction_id": "i", "shown_digest": "0" * 64, "answer": answer}
        for answer in (
            {"action_ids": ["a"]},
            {"fields": {"f": 1}},
            {"fields": [{"id": "f", "text": "t"}]},
            {"declined": True},
            {"approved": True},
        )
    ),
    "worker": (
        *(
            {"type": "ui.request", "id": 1, "request": {"kind": name.partition(".")[2], **request}}
            for name, request in sorted(QUESTIONS.items())
        ),
        *(
            {"type": "capability.request", "id": 1, "capability": name, "reason": "r", "arguments": arguments}
            for name, arguments in (
                ("artifact.save", {"artifact_id": "a", "name": "n"}),
                ("clipboard.write", {"text": "t"}),
                ("notification.show", {"title": "t"}),
            )
        ),
    ),
}


def _good_ones(speaker: str) -> list[dict[str, Any]]:
    found = list(_MORE[speaker])
    for data in seeds()[speaker]:
        try:
            found.append(decode_item(data))
        except ProtocolViolation:
            continue
    return found


_GOOD = {speaker: _good_ones(speaker) for speaker in SPEAKERS}


def message_of(number: int) -> tuple[str, dict[str, Any]]:
    """The n-th message as it came, and who says it: a good one, changed within its content more than around it."""
    chance = random.Random(number)
    speaker = SPEAKERS[number % len(SPEAKERS)]
    value = chance.choice(_GOOD[speaker])
    for _ in range(chance.randint(0, 3)):
        if not isinstance(value, dict):
            break
        inside = [name for name in _CONTENTS if isinstance(value.get(name), dict)]
        if inside and chance.random() < 0.8:
            name = chance.choice(inside)
            value = {**value, name: with_changed_value(value[name], chance)}
        else:
            value = with_changed_value(value, chance)
    if not isinstance(value, dict):
        raise ProtocolViolation("not_a_map")
    check_value(value)
    return speaker, value


def _known(machine: Anything) -> dict[str, list[str]]:
    """Ids of what there is, by the field that names them."""
    view = machine.view
    return {
        "app_scope": list(_APPS),
        "call_id": [call.call_id for call in view.calls(limit=6)],
        "conversation_id": [view.conversation_id],
        "instance_id": [one.instance_id for one in view.current_instances()],
        "interaction_id": [one.interaction_id for one in view.interactions(limit=6)],
        "inventory_revision": [view.inventory.revision],
        "request_id": [row[0] for row in machine.kernel.store._db.run("SELECT request_id FROM capability_request LIMIT 6")],
        "shown_digest": [one.shown_digest.hex() for one in view.interactions(limit=1)],
        "surface_id": [one.surface_id for one in view.surfaces.open_ones()],
        "tool_id": ["board.draw", "board.peek", "interaction.confirm", "interaction.input"],
    }


def _about_something(message: Any, known: dict[str, list[str]], chance: random.Random) -> Any:
    names = [one.name for one in fields(message) if isinstance(getattr(message, one.name), str)]
    changes = {name: chance.choice(known[name]) for name in names if known.get(name) and chance.random() < 0.8}
    return replace(message, **changes)


def _worker_says(machine: Anything, data: dict[str, Any], chance: random.Random) -> tuple[Any, Any] | None:
    message, _ = parse_worker(data)
    origin = machine.come_up(chance.choice(_APPS))
    return (origin, message) if origin is not None and not isinstance(message, _OF_THE_PORT) else None


def _host_says(machine: Anything, data: dict[str, Any], chance: random.Random) -> tuple[Any, Any] | None:
    message, _ = parse_host(data)
    return (
        None if isinstance(message, _OF_THE_PORT) or type(message) in QUERIES or type(message) not in _TURNS_OF_HOSTS else (ADMIN, message)
    )


def _agent_says(machine: Anything, data: dict[str, Any], chance: random.Random) -> tuple[Any, Any] | None:
    command = parse_envelope({**data, "conversation_id": machine.view.conversation_id, "message_id": machine.new_id()})
    return machine.agent(), command


_SAY: dict[str, Callable[[Anything, dict[str, Any], random.Random], tuple[Any, Any] | None]] = {
    "envelope": _agent_says,
    "host": _host_says,
    "worker": _worker_says,
}


def _turns_of_hosts() -> set[type]:
    from kernel.core.commands import TABLE

    return {kind for kind in FROM_HOST.values() if kind in TABLE and kind.TYPE not in {"kernel.stop", "backup.make"}}


_TURNS_OF_HOSTS = _turns_of_hosts()


def _begun() -> Anything:
    machine = Anything()
    machine.begin(is_used=True)
    for act in STORY[:18]:
        act(machine)
    return machine


def _ended(machine: Anything, number: int) -> dict[str, str]:
    """Every promise, at the end of a home."""
    try:
        machine.teardown()
    except AssertionError as broken:
        return {f"the home before {number}": str(broken)}
    return {}


def run(first: int, count: int) -> dict[str, Any]:
    """That many messages, HOME to a home."""
    decided = 0
    found: dict[str, str] = {}
    machine = _begun()
    for number in range(first, first + count):
        chance = random.Random(number)
        speaker = SPEAKERS[number % len(SPEAKERS)]
        try:
            said = _SAY[speaker](machine, message_of(number)[1], chance)
            if said is not None:
                machine.kernel.say(said[0], _about_something(said[1], _known(machine), chance))
                decided += 1
        except (Denied, Invalid, ProtocolViolation):
            continue
        except Exception as error:
            found[f"{speaker} {number}"] = f"{type(error).__name__}: {str(error)[:300]}"
            machine.kernel.end()
            machine = _begun()
        if number % HOME == HOME - 1:
            found |= _ended(machine, number)
            machine = _begun()
    found |= _ended(machine, first + count)
    return {"done": decided, "violations": found}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(int(sys.argv[1]), int(sys.argv[2]))) + "\n")
