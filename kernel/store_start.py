"""What an opened database is: new, continued, or older than its kept head; and what the store holds in memory of it.

Rules:
1. It reads; `write` alone writes, inside the transaction of the opening.
2. A database that lacks the kept head counts as a restore: a new epoch, so that no id is ever given twice (SPEC 4.6). Unless its log
   holds a transaction that cannot be replayed: then the head knows what is lost, and the store is refused as corrupt.
3. Manifests that differ from those of the newest published revision ask for the next one; the first turn publishes it
   (kernel.core.recovery).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from kernel.audit import FIRST_HASH, Head, HeadDamaged, read_head
from kernel.core.manifest import Manifest
from kernel.core.records import Door, Policy, Source, Switch
from kernel.database import Database
from kernel.store_interactions import ALLOWED_POLICIES, OPEN_INTERACTIONS, read_interaction
from kernel.store_memory import Memory
from kernel.store_open import RESTORE_MARK, refusal
from kernel.store_rows import (
    CURRENT_INSTANCES,
    OPEN_CALLS,
    read_focus,
    read_instance,
    read_published_inventory,
    read_tool_call,
    time_value,
)
from lineup_sdk.protocol.codes import Code


@dataclass(frozen=True, slots=True)
class KeptHead:
    """What the head file said before the opening."""

    head: Head | None
    is_damaged: bool
    is_restored: bool = False  # `restore` put this database here, and no start since then got as far as its first turns


def keep_head(folder: Path) -> KeptHead:
    """Read the head file of a home. Raises: StoreRefused (unknown) when there is something that cannot be read."""
    is_restored = (folder / RESTORE_MARK).exists()
    try:
        return KeptHead(read_head(folder), is_damaged=False, is_restored=is_restored)
    except HeadDamaged:
        return KeptHead(None, is_damaged=True, is_restored=is_restored)
    except OSError as error:
        raise refusal(Code.UNKNOWN) from error


def mark_restore(folder: Path) -> None:
    """Note that the database of this home counts as restored, until its first turn after that is durable."""
    descriptor = os.open(folder / RESTORE_MARK, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def forget_restore(folder: Path) -> None:
    """The start after a restore is done."""
    (folder / RESTORE_MARK).unlink(missing_ok=True)


class Start:
    """One opening. events: what it has to write to the audit chain, in order."""

    def __init__(
        self,
        database: Database,
        manifests: Mapping[str, Manifest],
        kept: KeptHead,
        *,
        is_torn: bool,
        make_epoch: Callable[[], str],
        make_id: Callable[[str, str], str],
        now: Callable[[], datetime],
    ) -> None:
        self.database = database
        self.now = now()
        self.head = self._newest_head()
        row = database.run_one("SELECT epoch, conversation_id FROM kernel WHERE one = 1")
        self.is_first = row is None
        is_older = kept.head is not None and not self._has(kept.head)
        if is_older and (is_torn or self.is_first):
            raise refusal(Code.STORE_CORRUPT)
        self.is_restored = is_older or kept.is_restored
        epoch = make_epoch() if row is None or self.is_restored else row[0]
        conversation_id = make_id("conversation", epoch) if row is None else row[1]
        self.memory = Memory(epoch=epoch, conversation_id=conversation_id, manifests=manifests)
        self.next_number, oldest_open, self.boot_id, self.boottime_ms = self._clock()
        self._load(oldest_open)
        facts = {
            "store.created": self.is_first,
            "store.restored": self.is_restored,
            "audit.head_damaged": kept.is_damaged,
        }
        self.events = [event for event, is_true in facts.items() if is_true]

    def write(self) -> None:
        """Keep the epoch and the name of the conversation."""
        self.database.run(
            "INSERT INTO kernel VALUES (1, ?, ?, ?) ON CONFLICT (one) DO UPDATE SET epoch = excluded.epoch",
            (self.memory.epoch, self.memory.conversation_id, time_value(self.now)),
        )

    def _newest_head(self) -> Head:
        row = self.database.run_one("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1")
        return Head(0, FIRST_HASH) if row is None else Head(row[0], row[1])

    def _has(self, kept: Head) -> bool:
        row = self.database.run_one("SELECT hash FROM audit WHERE seq = ?", (kept.seq,))
        return row is not None and row[0] == kept.hash

    def _clock(self) -> tuple[int, int, str, int]:
        row = self.database.run_one("SELECT next_number, oldest_open, boot_id, boottime_ms FROM clock WHERE one = 1")
        return (1, 1, "", 0) if row is None else (row[0], row[1], row[2], row[3])

    def _load(self, oldest_open: int) -> None:
        run, memory = self.database.run, self.memory
        memory.recall(Switch(name=row[0], enabled=False) for row in run("SELECT name FROM switch WHERE enabled = 0"))
        memory.recall(Door(destination=Source(row[0])) for row in run("SELECT destination FROM door WHERE one = 1"))
        memory.recall(read_published_inventory(row) for row in run("SELECT * FROM published_inventory ORDER BY number DESC LIMIT 1"))
        memory.recall(read_tool_call(row) for row in run(OPEN_CALLS, (oldest_open,)))
        memory.recall(read_instance(row) for row in run(CURRENT_INSTANCES))
        memory.recall(read_interaction(row) for row in run(OPEN_INTERACTIONS))
        memory.recall(Policy(name=row[0], allowed=True) for row in run(ALLOWED_POLICIES))
        memory.recall(read_focus(row) for row in run("SELECT * FROM focus WHERE one = 1"))
        for number, message_id in run("SELECT number, message_id FROM outbox_row WHERE state = 'pending'"):
            memory.note_pending(number, message_id)


def reread(database: Database, memory: Memory, kept: KeptHead) -> Start:
    """Read an opened database again into a memory of its own, in the run that `memory` belongs to."""
    return Start(
        database,
        memory.manifests,
        replace(kept, is_restored=False),
        is_torn=False,
        make_epoch=lambda: memory.epoch,
        make_id=lambda _kind, _epoch: memory.conversation_id,
        now=lambda: datetime.now(UTC),
    )
