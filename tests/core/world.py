"""A World that runs turns over a DictView as the kernel does, without clock, disk or processes.

Rules:
1. A World stands still: time moves by `wait`, ids come from a counter.
2. One command is one turn; what follows (`Then`) is a turn of its own, after it. Everything else that would leave the kernel is
   collected in the Outcome.
3. A refused command leaves exactly its audit row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from kernel.core import commands, events
from kernel.core.decision import (
    AuditEntry,
    Decision,
    Detail,
    Effect,
    KernelBug,
    KillWorker,
    Origin,
    Rejected,
    SendToWorker,
    Speaker,
    Stamp,
    StartWorker,
    StopWorker,
    Then,
)
from kernel.core.grants import grants_for
from kernel.core.machines import InstanceState
from kernel.core.manifest import Manifest
from kernel.core.records import Instance, OutboxRow, Record, Source, ToolCall, decode_body, digest_of_parts
from kernel.protocol.agent import TOOL_CALL, Envelope, ToolInvoke
from kernel.protocol.host import AppClose
from kernel.protocol.host_interactions import InteractionAnswer
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject, Message
from tests.core.dict_view import CONVERSATION, DictView

START = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)

KERNEL = Origin(speaker=Speaker.KERNEL)
AGENT = Origin(speaker=Speaker.AGENT, source=Source.AGENT)
DEMO = Origin(speaker=Speaker.AGENT, source=Source.DEMO)
PERSON = Origin(speaker=Speaker.VIEW, source=Source.PERSON)


@dataclass(frozen=True)
class Outcome:
    """How a command ended, with all that it and its followers wrote and set off."""

    code: Code | None
    value: JsonObject | None
    detail: Detail | None
    decisions: tuple[Decision, ...]

    @property
    def audit(self) -> list[str]:
        """Events, in order; a refused command is `command.refused`."""
        return [entry.event for decision in self.decisions for entry in decision.audit]

    @property
    def puts(self) -> list[Record]:
        """Records, in order."""
        return [record for decision in self.decisions for record in decision.puts]

    @property
    def sent(self) -> list[tuple[str, Message]]:
        """(instance id, message) for every frame to a worker."""
        return [(effect.instance_id, effect.message) for effect in self.effects if isinstance(effect, SendToWorker)]

    @property
    def sent_types(self) -> list[str]:
        """The types of those frames."""
        return [message.TYPE for _, message in self.sent]

    @property
    def effects(self) -> list[Effect]:
        """Every effect that leaves the kernel."""
        return [effect for decision in self.decisions for effect in decision.effects if not isinstance(effect, Then)]

    @property
    def processes(self) -> list[str]:
        """start, stop and kill of processes, in order."""
        names = {StartWorker: "start", StopWorker: "stop", KillWorker: "kill"}
        return [names[type(effect)] for effect in self.effects if type(effect) in names]

    @property
    def outbox(self) -> list[JsonObject]:
        """The envelopes that it wrote."""
        return [decode_body(record.envelope_cbor) for record in self.puts if isinstance(record, OutboxRow)]


@dataclass
class World:
    """See the head of the file."""

    view: DictView = field(default_factory=DictView)
    boot_id: str = "boot-1"
    boottime_ms: int = 1_000_000
    now: datetime = START
    next_number: int = 1
    turns: int = 0

    def copy(self) -> World:
        """A second world that goes on from here."""
        return replace(self, view=self.view.copy())

    def wait(self, milliseconds: int) -> None:
        """Let time pass; nothing happens by itself."""
        self.boottime_ms += milliseconds
        self.now += timedelta(milliseconds=milliseconds)

    def say(self, origin: Origin, command: object) -> Outcome:
        """Run one command, and what follows from it."""
        first = self._turn(origin, command)
        decisions = list(first.decisions)
        waiting = [effect.command for decision in decisions for effect in decision.effects if isinstance(effect, Then)]
        while waiting:
            done = self._turn(KERNEL, waiting.pop(0))
            decisions.extend(done.decisions)
            waiting.extend(effect.command for decision in done.decisions for effect in decision.effects if isinstance(effect, Then))
        return replace(first, decisions=tuple(decisions))

    def only(self, origin: Origin, command: object) -> Outcome:
        """Run one command and leave what follows from it undone, as a death of the kernel would."""
        return self._turn(origin, command)

    def _turn(self, origin: Origin, command: object) -> Outcome:
        stamp = self.stamp()
        try:
            decision = commands.decide(self.view, origin, stamp, command)
        except Rejected as refusal:
            decision = Decision(audit=(AuditEntry(event="command.refused", code=refusal.code),))
            outcome = Outcome(refusal.code, None, refusal.detail, (decision,))
        else:
            outcome = Outcome(decision.refusal, decision.value, decision.detail, (decision,))
        _require_numbers(decision, stamp)
        self.write(decision, stamp, origin, commands.name_of(command))
        return outcome

    def stamp(self) -> Stamp:
        """The time and ids of one turn."""
        self.turns += 1
        return Stamp(
            now=self.now,
            boot_id=self.boot_id,
            boottime_ms=self.boottime_ms,
            token=f"{self.turns:032x}",
            first_number=self.next_number,
        )

    def write(self, decision: Decision, stamp: Stamp, origin: Origin, command: str) -> None:
        """Store what a turn decided."""
        self.view.apply(decision, self.boottime_ms)
        self.next_number += decision.numbers_used

    def put(self, *records: Record) -> None:
        """Make records as if earlier turns had; their numbers are taken."""
        top = max((number for record in records if (number := getattr(record, "number", None)) is not None), default=0)
        decision = Decision(puts=records, numbers_used=max(0, top + 1 - self.next_number))
        self.write(decision, self.stamp(), KERNEL, "test.turn")

    # --- who speaks

    def worker(self, instance_id: str, life: int | None = None) -> Origin:
        """The worker of an instance: of its present life, or of another."""
        instance = self.instance(instance_id)
        grants = grants_for(self.view.manifests[instance.app_scope], self.view.is_allowed)
        life = instance.life if life is None else life
        return Origin(speaker=Speaker.WORKER, instance_id=instance_id, app_scope=instance.app_scope, life=life, grants=grants)

    def tell(self, instance_id: str, message: Message) -> Outcome:
        """A message of the worker's present life."""
        return self.say(self.worker(instance_id), message)

    # --- what there is

    def instance(self, instance_id: str) -> Instance:
        """An instance that is known to be there."""
        found = self.view.instance(instance_id)
        assert found is not None
        return found

    def call(self, call_id: str) -> ToolCall:
        """A call that is known to be there."""
        found = self.view.call_by_id(call_id)
        assert found is not None
        return found

    def current(self, app_scope: str) -> Instance:
        """The App's one instance."""
        found = self.view.current_instance(app_scope)
        assert found is not None
        return found

    def rows(self, kind: type) -> list[Any]:
        """Every record of a kind, by number where it has one."""
        return sorted(self.view.tables[kind].values(), key=lambda record: getattr(record, "number", 0))

    # --- what happens often

    def boot(self, *, manifests: Mapping[str, Manifest] | None = None) -> Outcome:
        """A start of the kernel over what is stored."""
        self.view.reopen(self.view.manifests if manifests is None else manifests)
        return self.say(KERNEL, events.Booted())

    def invoke(self, call_id: str, tool_id: str, given: JsonObject | None = None, *, by: Origin = AGENT, **more: Any) -> Outcome:
        """A call under the inventory in force."""
        more = {"inventory_revision": self.view.inventory.revision, "envelope": None} | more
        return self.say(by, ToolInvoke(call_id=call_id, tool_id=tool_id, input=given or {}, **more))

    def start(self, instance_id: str) -> Outcome:
        """The worker comes up: subscribed to both, then started."""
        self.tell(instance_id, m.ToolsSubscribe())
        self.tell(instance_id, m.InboxSubscribe())
        return self.tell(instance_id, m.LifecycleStarted())

    def die(self, instance_id: str, death: events.Death = events.Death.CRASH) -> Outcome:
        """The process of the present life is gone."""
        life = self.instance(instance_id).life
        return self.say(KERNEL, events.WorkerExited(instance_id=instance_id, life=life, death=death))

    def close(self, instance_id: str) -> Outcome:
        """The person closes an App, and says yes if the kernel asks; how the last of it ended."""
        outcome = self.say(PERSON, AppClose(instance_id=instance_id))
        if outcome.value is None:
            return outcome
        asked = self.view.interaction(outcome.value["asked"])
        assert asked is not None
        shown = asked.shown_digest.hex()
        return self.say(PERSON, InteractionAnswer(interaction_id=asked.interaction_id, answer={"approved": True}, shown_digest=shown))

    def pass_time(self, milliseconds: int = 0) -> Outcome:
        """Wait, then look what is due."""
        self.wait(milliseconds)
        return self.say(KERNEL, events.TimePassed())

    def running(self, call_id: str, tool_id: str, given: JsonObject | None = None, **more: Any) -> str:
        """A call that its worker works on; gives the instance id."""
        assert self.invoke(call_id, tool_id, given, **more).code is None
        instance_id = self.call(call_id).instance_id
        assert instance_id is not None
        if self.instance(instance_id).state is InstanceState.STARTING:
            self.start(instance_id)
        assert self.tell(instance_id, m.ToolAccept(call_id=call_id)).code is None
        return instance_id


def _require_numbers(decision: Decision, stamp: Stamp) -> None:
    """Every new number comes from the turn, and every number it took is counted."""
    top = stamp.first_number + decision.numbers_used
    taken = [number for record in decision.puts if (number := getattr(record, "number", None)) is not None]
    if any(number >= top for number in taken if not isinstance(number, bool)):
        raise KernelBug("a number that the turn did not count")


def envelope(message_id: str, type_: str = TOOL_CALL, *, conversation_id: str = CONVERSATION, content: str = "", **more: Any) -> Envelope:
    """The outer part of what an Agent sent; content stands for its bytes."""
    digest = digest_of_parts(message_id, type_, conversation_id, content)
    facts: dict[str, Any] = {"app_scope": None, "instance_id": None, "created_at": "2030-01-02T03:04:05Z"} | more
    return Envelope(type=type_, message_id=message_id, conversation_id=conversation_id, digest=digest, **facts)
