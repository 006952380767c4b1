"""Commands that the kernel gives itself: what happened, as past facts, and what has to go on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from kernel.core.decision import Detail
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject
from lineup_sdk.protocol.surface_messages import ArtifactPut


class Death(StrEnum):
    """Why a worker process is gone."""

    CRASH = "crash"  # unplanned: exit, signal, memory, CPU, watchdog, spawn deadline
    VIOLATION = "violation"  # broke the wire or the seal
    KILLED = "killed"  # the kernel ended it on purpose; counts as no crash
    ZYGOTE = "zygote"  # it died with its zygote; counts as no crash


@dataclass(frozen=True, slots=True, kw_only=True)
class Booted:
    """The store is open, nothing runs yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRestored:
    """This start opened a restored database: what it holds open may long have ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupEnded:
    """A backup is whole, or could not be made (code, detail)."""

    view_id: str
    code: Code | None = None
    detail: JsonObject | None = None
    facts: JsonObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteCall:
    """A received call has to be taken up."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimePassed:
    """Some deadline may be due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerExited:
    """The process of that life is gone and reaped."""

    instance_id: str
    life: int
    death: Death


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAttached:
    """An Agent opened the door; it gets the inventory and all that waits for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLeft:
    """The Agent closed the door; what waits for it waits on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerLeft:
    """The person's caller of this call is answered or gone: nobody else waits for its rows."""

    call_number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverCalls:
    """This instance came to the front; calls that waited for that can go to its worker."""

    instance_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverMessages:
    """Rows came into this instance's inbox."""

    instance_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentInteraction:
    """A pending interaction is durable and can be shown."""

    interaction_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticePresented:
    """The card of a notice is durable: it is accepted."""

    interaction_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewAttached:
    """A view is there; providers = the capabilities it can carry out. Who it is stands in the origin."""

    providers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewLeft:
    """That view is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverCapabilities:
    """A start: what the last run granted has an unknown end, and an update that asks for more waits for the person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepBodies:
    """Give up bodies of before that instant that nobody waits for."""

    before: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRecovered:
    """There is room on the disk again. refused: how many messages of workers were refused while there was none."""

    refused: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRanShort:
    """The machine has little memory left; an App that nobody uses can give its own back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeniedRequest:
    """A worker named itself, or asked for a type that exists but was not granted; always refused, so that it is audited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeRefused:
    """The door could not read an envelope; always refused with this code, so that it is audited and gets its receipt."""

    message_id: str | None
    code: Code
    detail: Detail


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactSurface:
    """The patches of a surface weigh as much as its state."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactReceived:
    """The bytes of an artifact.put are durable and as announced; or trouble says why they are not, with pointer and expected.

    It stands for that request: the port makes it, under the worker's grant.
    """

    TYPE: ClassVar[str] = ArtifactPut.TYPE
    sha256: str
    size: int
    media_type: str
    trouble: Code | None = None
    pointer: str = ""
    expected: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactsLost:
    """A start did not find the bytes of these artifacts, by number, or found others."""

    numbers: tuple[int, ...]
