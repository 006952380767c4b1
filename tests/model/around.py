"""What stands around a kernel of the model: its clock, its death, its processes, the Agent's end of the door.

Rules: those of kernel.py.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

from kernel.core.decision import Decision, Origin, Stamp
from kernel.core.records import Source, encode_body
from kernel.database import StorageFailed
from kernel.store import Store
from lineup_sdk.channel import Channel
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.framing import FrameReader
from lineup_sdk.protocol.limits import MAX_FRAME_BYTES
from tests.trace import Committed, Decided, Sent

if TYPE_CHECKING:
    from tests.model.kernel import ModelKernel

START = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


class Died(Exception):
    """kill -9, at this very point."""


class FakeClock:
    """Stands still until it is moved. Wall time and machine time move apart on demand; tokens are never given twice."""

    def __init__(self) -> None:
        self.boot_id = "boot-1"
        self.boottime = 1_000_000
        self.now = START
        self._tokens = count(1)

    def boottime_ms(self) -> int:
        """Machine time of this boot."""
        return self.boottime

    def stamp(self, first_number: int) -> Stamp:
        """The time and ids of one turn."""
        token = f"{next(self._tokens):032x}"
        return Stamp(now=self.now, boot_id=self.boot_id, boottime_ms=self.boottime, token=token, first_number=first_number)

    def move(self, milliseconds: int) -> None:
        """Let both clocks run."""
        self.boottime += milliseconds
        self.now += timedelta(milliseconds=milliseconds)

    def jump(self, hours: int) -> None:
        """Somebody sets the wall clock."""
        self.now += timedelta(hours=hours)

    def boot_anew(self, slept_ms: int) -> None:
        """The machine was off for so long, and starts again: another boot, its clock near zero."""
        self.boot_id = f"{self.boot_id}+"
        self.boottime = 5_000
        self.now += timedelta(milliseconds=slept_ms)


class Recorder:
    """The store as turns see it; notes what becomes durable, and can die around it."""

    def __init__(self, store: Store, kernel: ModelKernel) -> None:
        self._store = store
        self._kernel = kernel
        self._waiting: list[Decided] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def begin(self) -> None:
        """Open the transaction."""
        self._waiting.clear()
        self._store.begin()

    def apply(self, decision: Decision, *, stamp: Stamp, origin: Origin, command: str, cause: int | None) -> None:
        """Write one decision."""
        self._kernel.point()
        self._store.apply(decision, stamp=stamp, origin=origin, command=command, cause=cause)
        said = self._kernel.commands.get(id(origin))
        self._waiting.append(Decided(name=command, command=said, origin=origin, stamp=stamp, decision=decision))

    def commit(self) -> None:
        """Make it durable; on a full disk it fails as a storage does: closed, and what was written is undecided."""
        self._kernel.point()
        if self._kernel.disk_is_full:
            self._store.abandon()
            raise StorageFailed(Code.STORE_FULL)
        self._store.commit()
        self._kernel.trace.events += (*self._waiting, Committed())
        self._kernel.point()


@dataclass
class Process:
    """A process of one life; origin once it has its instance."""

    life: int
    ready_ms: int
    origin: Origin | None = None
    is_planned: bool = False
    is_told: bool = False  # of a change of its surface, and it has not looked since


class UnwatchedChannel(Channel):
    """A channel outside of an event loop."""

    def close(self) -> None:
        """Close this end; no task waits on it."""
        if not self.is_closed:
            os.close(self._fd)
            self._fd = -1


class AgentEnd:
    """The Agent's end of the door: a real channel, and what arrived on it."""

    def __init__(self, kernel: ModelKernel, source: Source, connection: int) -> None:
        self._kernel = kernel
        self._source = source
        self._connection = connection
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self._socket = ours
        self._reader = FrameReader(MAX_FRAME_BYTES)
        self.channel = UnwatchedChannel(theirs, max_in_bytes=MAX_FRAME_BYTES, max_out_bytes=MAX_FRAME_BYTES)
        self.rows: dict[str, None] = {}  # arrived and not acknowledged here, in order

    def read(self) -> None:
        """Take what the kernel wrote."""
        if not self.channel.is_closed:
            self.channel.flush()
        with suppress(BlockingIOError):
            while data := self._socket.recv(1 << 20):
                self._reader.feed(data)
        while (frame := self._reader.next_frame()) is not None:
            if frame["type"] == "envelope":
                self._take(frame["envelope"])

    def _take(self, envelope: dict[str, Any]) -> None:
        message_id = envelope["message_id"]
        row = self._kernel.store.view.outbox_row(message_id)
        number = row.number if row is not None else 0
        sent = Sent(destination=self._source, connection=self._connection, number=number, message_id=message_id, body=encode_body(envelope))
        self._kernel.trace.add(sent)
        self.rows[message_id] = None

    def close(self) -> None:
        """The Agent is gone."""
        self.channel.close()
        self._socket.close()
