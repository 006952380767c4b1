"""What an author says in `conformance.json` about how to show what the App does, so that a case finds its occasion.

    {"left_out": {"app.tool": "why no case may call it"},
     "inputs":   {"app.tool": {…}},                              used instead of a generated input
     "answers":  PLAY,     a call that ends at once with a result    "stays_open": PLAY,  one that does not end by itself
     "ends_open": [STEP],  what ends the call of stays_open          "fails": PLAY, "reports": PLAY, "puts": PLAY,
     "asks_host": PLAY,    asks for a capability                     "asks_person": PLAY,  asks a question (lineup_sdk.ui)
     "asks_lifecycle": PLAY,                                         "remembers": {"first": PLAY, "then": PLAY with a result},
     "messages": [{"topic": …, "body": …, "saves": true?}],          "events": [{"name": …, "body": …}]}
    PLAY = {"tool": id, "input": {…}, "before"?: [STEP], "result"?: {members that the result has to have}}
    STEP = {"tool": …, "input": …} | {"topic": …, "body": …} | {"event": name, "body": {…}}

Every key may be missing. What a play can be found for by trying each tool once is found (probe.py); what is said wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conformance import inputs
from conformance.scenarios import ROLES, require_scenarios
from conformance.targets import App
from lineup_sdk.protocol.messages import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One act before or after a call: a call, a message or an event. `name` = tool_id, topic or event name."""

    kind: str  # tool | topic | event
    name: str
    body: JsonObject
    saves: bool = False  # of a message: what it changes is saved


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """One call and what has to happen before it."""

    tool_id: str
    input: JsonObject
    before: tuple[Step, ...] = ()
    result: JsonObject | None = None


@dataclass(slots=True, kw_only=True)
class Plays:
    """All that is known of how to show things."""

    roles: dict[str, Play] = field(default_factory=dict)
    remembers: tuple[Play, Play] | None = None
    ends_open: tuple[Step, ...] = ()
    messages: tuple[Step, ...] = ()
    events: tuple[Step, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)


def read_plays(app: App) -> Plays:
    """What the author says. Raises: TargetInvalid."""
    require_scenarios(app)
    said = app.scenarios
    remembers = said.get("remembers")
    return Plays(
        roles={role: _play(said[role]) for role in ROLES if role in said},
        remembers=(_play(remembers["first"]), _play(remembers["then"])) if remembers else None,
        ends_open=tuple(map(_step, said.get("ends_open", ()))),
        messages=tuple(map(_step, said.get("messages", ()))),
        events=tuple(Step(kind="event", name=row["name"], body=row["body"]) for row in said.get("events", ())),
        left_out=said.get("left_out", {}),
    )


def _play(said: JsonObject) -> Play:
    before = tuple(map(_step, said.get("before", ())))
    return Play(tool_id=said["tool"], input=said["input"], before=before, result=said.get("result"))


def _step(said: JsonObject) -> Step:
    kind = next(kind for kind in ("tool", "topic", "event") if kind in said)
    return Step(kind=kind, name=said[kind], body=said["input" if kind == "tool" else "body"], saves=said.get("saves", False))


def tools_to_try(app: App, plays: Plays) -> list[JsonObject]:
    """The tools a case may call."""
    return [tool for tool in app.tools if tool["id"] not in plays.left_out]


def first_input(app: App, tool: JsonObject) -> Any:
    """The input a tool is tried with."""
    return app.scenarios.get("inputs", {}).get(tool["id"], inputs.smallest(tool["input_schema"]))


def is_as_said(result: JsonObject | None, said: JsonObject | None) -> bool:
    """Whether a result has the members that the author named."""
    return said is None or (result is not None and said.items() <= result.items())
