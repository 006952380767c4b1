"""What a view knows of the kernel: the last snapshot with every delta since applied (SPEC 2.6). Pure.

Rules:
1. A delta must be the next one; a gap means the view missed something: OutOfStep, and the owner of the link asks for a new snapshot.
   A kind this host does not know is left out: a newer kernel may say more, and a new snapshot would not help.
2. The mirror never guesses: a request changes nothing here until the kernel's delta says so.
3. Windows: all that is open, and the newest MAX_ENDED_CALLS ended calls, MAX_ENDED_INTERACTIONS ended questions and MAX_MESSAGES
   messages; older ones are read by request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kernel.protocol.host import Delta, Snapshot
from lineup_sdk.protocol.messages import JsonObject

MAX_ENDED_CALLS = 200
MAX_MESSAGES = 500
MAX_GONE_INSTANCES = 50
MAX_ENDED_INTERACTIONS = 100

ENDED_STATUSES = frozenset({"submitted", "completed", "failed", "cancelled", "expired", "rejected"})
GONE_STATES = frozenset({"stopped", "failed"})
WAITING_STATUSES = frozenset({"pending", "presented"})  # of an interaction
CHAT = "chat"  # the system App: the conversation itself


class OutOfStep(Exception):
    """A delta is missing before this one, or what it holds is not what its kind says."""


@dataclass(slots=True)
class Mirror:
    """See the head of the file. calls and messages by local number, the others by id."""

    seq: int = 0
    calls: dict[int, JsonObject] = field(default_factory=dict)
    instances: dict[str, JsonObject] = field(default_factory=dict)
    messages: dict[int, JsonObject] = field(default_factory=dict)
    focus: list[str] = field(default_factory=list)
    apps: list[JsonObject] = field(default_factory=list)
    interactions: dict[str, JsonObject] = field(default_factory=dict)
    surfaces: dict[str, JsonObject] = field(default_factory=dict)  # the open ones
    consents: dict[str, JsonObject] = field(default_factory=dict)  # questions of Apps for a capability that wait for the person
    revision: str = ""
    agent: JsonObject = field(default_factory=dict)
    kernel: JsonObject = field(default_factory=dict)

    def call(self, call_id: str) -> JsonObject | None:
        """Return the summary of a call in the window."""
        return next((call for call in self.calls.values() if call["call_id"] == call_id), None)

    def open_calls(self) -> list[JsonObject]:
        """Return the calls without an outcome, oldest first."""
        return [call for _, call in sorted(self.calls.items()) if call["status"] not in ENDED_STATUSES]

    def ended_calls(self) -> list[JsonObject]:
        """Return the calls with an outcome, newest first."""
        return [call for _, call in sorted(self.calls.items(), reverse=True) if call["status"] in ENDED_STATUSES]

    def live_instances(self) -> list[JsonObject]:
        """Return the instances that are neither stopped nor failed."""
        return [instance for instance in self.instances.values() if instance["state"] not in GONE_STATES]

    def front(self) -> JsonObject | None:
        """Return the instance in front, or None for the conversation."""
        return self.instances.get(self.focus[-1]) if self.focus else None

    def title_of(self, app_scope: str) -> str:
        """Return the title of an app as its Manifest gives it, or its scope."""
        return next((str(app["title"]) for app in self.apps if app["app_scope"] == app_scope), app_scope)

    def waiting_questions(self) -> list[JsonObject]:
        """Return the interactions that can be answered, oldest first; a notice asks for nothing."""
        waiting = [one for one in self.interactions.values() if one["status"] in WAITING_STATUSES and one["kind"] != "notice"]
        return sorted(waiting, key=lambda one: int(one["number"]))

    def waiting_consents(self) -> list[JsonObject]:
        """Return the consent questions that wait, oldest first."""
        return sorted(self.consents.values(), key=lambda one: int(one["number"]))

    def surface_of(self, app_scope: str) -> JsonObject | None:
        """Return the open surface of an App, the newest if there are more."""
        found = [surface for surface in self.surfaces.values() if surface["app_scope"] == app_scope]
        return found[-1] if found else None

    def chat_state(self) -> JsonObject:
        """Return what the system App makes of the timeline: {unread?, summaries?: [{number, text}]}; {} while it has said nothing."""
        surface = self.surface_of(CHAT)
        return dict(surface.get("state") or {}) if surface is not None else {}

    def learn_ended(self, questions: Iterable[JsonObject]) -> None:
        """Take ended questions that were read by request: a snapshot has the open ones alone. What is known already is as new or newer."""
        for one in questions:
            self.interactions.setdefault(str(one["interaction_id"]), one)

    def has_lost_chat(self) -> bool:
        """True when the system App failed: without it nobody places cards, folds tasks or counts what is unread."""
        is_known = any(app["app_scope"] == CHAT for app in self.apps)
        return is_known and all(instance["app_scope"] != CHAT for instance in self.live_instances())

    def timeline(self) -> list[JsonObject]:
        """Return the messages of the window, oldest first."""
        return [message for _, message in sorted(self.messages.items())]


def from_snapshot(snapshot: Snapshot) -> Mirror:
    """Start a mirror anew."""
    state = snapshot.state
    return Mirror(
        seq=snapshot.seq,
        calls={call["number"]: call for call in state["calls"]},
        instances={instance["instance_id"]: instance for instance in state["instances"]},
        messages={message["number"]: message for message in state["messages"]},
        focus=list(state["focus"]),
        apps=list(state["apps"]),
        interactions={one["interaction_id"]: one for one in state["interactions"]},
        surfaces={surface["surface_id"]: surface for surface in state["surfaces"]},
        consents={consent["request_id"]: consent for consent in state["consents"]},
        revision=str(state["revision"]),
        agent=dict(state["agent"]),
        kernel=dict(state["kernel"]),
    )


def apply(mirror: Mirror, delta: Delta) -> None:
    """Bring the mirror one step on. Raises: OutOfStep."""
    if delta.seq != mirror.seq + 1:
        raise OutOfStep
    mirror.seq = delta.seq
    for change in delta.changes:
        _apply_one(mirror, str(change["kind"]), change["value"])
    _trim(mirror)


_KEYED: Mapping[str, tuple[str, str, JsonObject]] = {  # kind: where it is kept, by which field, and while what of it is so
    "call": ("calls", "number", {}),
    "consent": ("consents", "request_id", {"status": "asked"}),
    "instance": ("instances", "instance_id", {}),
    "interaction": ("interactions", "interaction_id", {}),
    "message": ("messages", "number", {}),
    "surface": ("surfaces", "surface_id", {"is_open": True}),
}
_WHOLE: Mapping[str, type] = {"agent": dict, "apps": list, "focus": list, "revision": str}


def _apply_one(mirror: Mirror, kind: str, value: Any) -> None:
    if kind in _WHOLE:
        if not isinstance(value, _WHOLE[kind]):
            raise OutOfStep
        setattr(mirror, kind, value)
    elif kind in _KEYED:
        name, key, kept_while = _KEYED[kind]
        if not isinstance(value, dict) or key not in value:
            raise OutOfStep
        kept = getattr(mirror, name)
        if kept_while.items() <= value.items():
            kept[value[key]] = value
        else:
            kept.pop(value[key], None)


def _trim(mirror: Mirror) -> None:
    if len(mirror.calls) > MAX_ENDED_CALLS:
        for call in mirror.ended_calls()[MAX_ENDED_CALLS:]:
            del mirror.calls[call["number"]]
    for number in sorted(mirror.messages)[:-MAX_MESSAGES]:
        del mirror.messages[number]
    ended = sorted(
        (one for one in mirror.interactions.values() if one["status"] not in WAITING_STATUSES), key=lambda one: int(one["number"])
    )
    for one in ended[:-MAX_ENDED_INTERACTIONS]:
        del mirror.interactions[one["interaction_id"]]
    gone = [instance_id for instance_id, instance in mirror.instances.items() if instance["state"] in GONE_STATES]
    for instance_id in gone[:-MAX_GONE_INSTANCES]:
        del mirror.instances[instance_id]
