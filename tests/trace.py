"""The record of one run of a kernel, or of several in a row: every durable decision, and everything that left the kernel, in order.

Rules:
1. Only what was committed is in it: a decision whose commit did not happen was told to nobody.
2. The events of a commit come first (Decided ..., Committed), then what they set off.
3. Whoever records puts the command object into Decided where it has it; a follow-up of the kernel has its name only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kernel.core.decision import Decision, Origin, Stamp
from kernel.core.records import Source
from kernel.turns import Outcome
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A kernel began to run. is_restored: over a database older than its kept head."""

    epoch: str
    is_restored: bool
    records: tuple[Any, ...] = ()  # what the restored database held


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A turn that became durable."""

    name: str
    command: object | None
    origin: Origin
    stamp: Stamp
    decision: Decision

    @property
    def refused(self) -> Code | None:
        """The code of a turn that was refused and left its audit row only."""
        return next((entry.code for entry in self.decision.audit if entry.event == "command.refused"), None)

    def puts_of(self, *kinds: type) -> list[Any]:
        """The records of some kinds that it wrote."""
        return [record for record in self.decision.puts if isinstance(record, kinds)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """Everything decided so far is durable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The asker of a turn was told how it ended."""

    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Framed:
    """A message on the channel of one life of an instance."""

    instance_id: str
    app_scope: str
    life: int
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A message on the channel of a view."""

    view_id: str
    message: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """An outbox row on the way to its receiver; connection counts the receiver's sessions."""

    destination: Source
    connection: int
    number: int
    message_id: str
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Processed:
    """start, stop or kill of a process."""

    verb: str
    instance_id: str
    life: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """Faults have stopped, and a receiver took whatever waited for it."""

    destination: Source


Event = Answered | Committed | Decided | Drained | Framed | Opened | Processed | Sent | Shown


@dataclass
class Trace:
    """Everything that happened, in order."""

    events: list[Event] = field(default_factory=list)

    def add(self, event: Event) -> None:
        """What happens now."""
        self.events.append(event)

    def decided(self) -> Iterator[Decided]:
        """Durable decisions, in order."""
        return (event for event in self.events if isinstance(event, Decided))

    def known_before(self, kind: type, key: str) -> Iterator[tuple[Decided, dict[Any, Any]]]:
        """Every durable decision, with the records of a kind as they stood when it was made."""
        known: dict[Any, Any] = {}
        for event in self.events:
            if isinstance(event, Opened) and event.is_restored:
                known = {getattr(record, key): record for record in event.records if isinstance(record, kind)}
            elif isinstance(event, Decided):
                yield event, known
                known |= {getattr(record, key): record for record in event.puts_of(kind)}

    def framed(self) -> Iterator[Framed]:
        """Frames to workers, in order."""
        return (event for event in self.events if isinstance(event, Framed))

    def answered(self) -> Iterator[Outcome]:
        """Answers, in order."""
        return (event.outcome for event in self.events if isinstance(event, Answered))

    def since_restore(self) -> Trace:
        """What belongs to the database there is now: from the last restore on."""
        starts = [place for place, event in enumerate(self.events) if isinstance(event, Opened) and event.is_restored]
        return Trace(self.events[starts[-1] :]) if starts else self
