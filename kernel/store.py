"""The store: what the kernel knows, durable. It owns the connection, the audit chain and the head file; turns is its one user.

    store = Store.open(path, manifests=..., make_epoch=..., make_id=..., now=...)
    store.rebase_deadlines(boot_id, boottime_ms)
    store.begin(); decide on store.view; store.apply(...); ...; store.commit()

Rules:
1. One transaction holds one turn, or several that wait. A decider refuses before it writes and apply runs after it decided, so a turn
   is applied whole or not at all: savepoints (3.7 us each) would never be rolled back to and are left out.
2. Every transaction that writes anything writes the clock row: the next local number, and the last (boot id, boottime) that was seen.
   One that writes nothing costs no sync.
3. A StorageFailed anywhere, commit above all, leaves the outcome undecided and the store closed: no reply, open again, read back.
   A KernelBug closes it too; what was not committed is gone, and nobody was told of it.
4. The kept head is written after the commit; so it may lag behind the chain and never runs ahead of it.
5. Checkpoints are the caller's to run, between turns, when `is_checkpoint_due`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from kernel.audit import Head, HeadFile, hash_row
from kernel.core.capability_records import AttachedViews
from kernel.core.decision import AuditEntry, Decision, KernelBug, Origin, Speaker, Stamp
from kernel.core.manifest import Manifest
from kernel.core.records import Deadline, Interaction, Key, OutboxRow, Record, ToolCall
from kernel.database import Database, StorageFailed
from kernel.store_capabilities import PUTS as CAPABILITY_PUTS
from kernel.store_interactions import PUTS as INTERACTION_PUTS
from kernel.store_open import StoreRefused, open_again, open_connection, refusal
from kernel.store_outbox import PUTS as OUTBOX_PUTS
from kernel.store_outbox import UPDATE_OUTBOX_ROW
from kernel.store_retention import PUTS as RETENTION_PUTS
from kernel.store_rows import PUTS as ROW_PUTS
from kernel.store_rows import UPDATE_TOOL_CALL, Values, time_value, updated_call_values
from kernel.store_start import Start, keep_head, mark_restore, reread
from kernel.store_surface_rows import PUTS as SURFACE_PUTS
from kernel.store_view import StoreView
from lineup_sdk.protocol.codes import Code

__all__ = ["StorageFailed", "Store", "StoreRefused"]

PUTS: Mapping[type, tuple[str, Callable[[Any], Values]]] = {
    **ROW_PUTS,
    **CAPABILITY_PUTS,
    **INTERACTION_PUTS,
    **OUTBOX_PUTS,
    **RETENTION_PUTS,
    **SURFACE_PUTS,
}
UNSTORED = frozenset({AttachedViews})  # of this run: followed in memory, never a row
_OF_CALLS = frozenset({Key, OutboxRow, ToolCall})  # nothing of surfaces or capabilities: what the way of a call writes

# Every fourth of a MiB more makes the next start a little slower and every call cheaper: a call writes about 30 pages, mostly the same
# ones, and a checkpoint costs two syncs. At 1 MiB it came every 8 calls and the mean of a call was 40 % higher.
CHECKPOINT_COMMITS = 400
CHECKPOINT_WAL_PAGES = 1024  # 4 MiB
MAX_AUDIT_WORDS = 1024
# Whatever the audit names is an id the kernel made or a word of its code: no space, so no sentence of anybody gets in.
_AUDIT_WORD = re.compile(r"[A-Za-z0-9_.:#-]{1,160}")


class Store:
    """One open database. Made by `open` only."""

    def __init__(self, start: Start, head_file: HeadFile) -> None:
        self._db = start.database
        self._memory = start.memory
        self._head_file = head_file
        self._view = StoreView(self._db, self._memory)
        # changed by a turn, durable with its commit
        self._head = self._durable_head = start.head
        self.next_number = start.next_number
        self._boot_id = start.boot_id
        self._boottime_ms = start.boottime_ms
        self._has_written = False
        self._unwritten_audit: list[Values] = []  # of the transaction under way; written together, at its end
        # facts of this opening
        self.is_first_start = start.is_first
        self.is_restored = start.is_restored  # the database is older than its kept head: a new epoch began
        self._commits_at_checkpoint = 0
        self._first_number = self.next_number  # of the transaction under way
        self._audit_words: set[str] = set()  # judged before
        if start.events:
            self._write_start(start)

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        manifests: Mapping[str, Manifest],
        make_epoch: Callable[[], str],
        make_id: Callable[[str, str], str],
        now: Callable[[], datetime],
    ) -> Store:
        """Open, or make, the database of a home.

        path: kernel.db in a folder of its owner. make_id(kind, epoch) names the main conversation at the first start. The epoch is
        made at the first start and when the database is older than its kept head. When Manifests changed, view.inventory has a
        revision of which view.fingerprint knows nothing yet; the first turn publishes it.
        Raises: StoreRefused. Source: SPEC 4.4, 4.6, 12.
        """
        kept = keep_head(path.parent)
        opened = open_connection(path)
        database = Database(opened.connection)
        head_file = None
        try:
            start = Start(database, manifests, kept, is_torn=opened.is_torn, make_epoch=make_epoch, make_id=make_id, now=now)
            if start.is_restored:
                mark_restore(path.parent)  # it counts as one until the first turn after it is durable
            head_file = HeadFile(path.parent)
            return cls(start, head_file)
        except BaseException as error:
            database.close()
            if head_file is not None:
                head_file.close()
            if isinstance(error, StorageFailed):
                raise refusal(error.code) from error
            if isinstance(error, OSError):  # of the head file
                raise refusal(Code.UNKNOWN) from error
            raise

    def _write_start(self, start: Start) -> None:
        self.begin()
        start.write()
        stamp = Stamp(now=start.now, boot_id=self._boot_id, boottime_ms=self._boottime_ms, token="", first_number=self.next_number)
        decision = Decision(audit=tuple(AuditEntry(event=event) for event in start.events))
        self.apply(decision, stamp=stamp, origin=Origin(speaker=Speaker.KERNEL), command="store.open")
        self.commit()

    @property
    def view(self) -> StoreView:
        """What may be read. Raises: StorageFailed once the store is closed: memory may then hold what never became durable."""
        if self._db.is_closed:
            raise StorageFailed(Code.UNKNOWN)
        return self._view

    # ----------------------------------------------------------------------------- a transaction

    def begin(self) -> None:
        """Open the transaction. Raises: StorageFailed."""
        self._db.begin()
        self._has_written = False
        self._unwritten_audit = []
        self._first_number = self.next_number

    def apply(self, decision: Decision, *, stamp: Stamp, origin: Origin, command: str, cause: int | None = None) -> None:
        """Write one decision: rows, audit rows, clock. Durable only after `commit`.

        command: the name of the command in the table. cause: seq of the audit row of the turn that set this one off (`last_audit_seq`).
        Raises: StorageFailed; KernelBug for a record that breaks the schema, or a stamp whose first number is not `next_number`.
        """
        try:
            self._write(decision, stamp, origin, command, cause)
        except KernelBug:
            self.abandon()
            raise

    def _write(self, decision: Decision, stamp: Stamp, origin: Origin, command: str, cause: int | None) -> None:
        if not self._db.is_in_transaction:
            raise KernelBug("apply outside a transaction")
        if stamp.first_number != self.next_number:
            raise KernelBug("a stamp with another first number")
        for number in decision.removed_rows:
            self._remove_row(number)
        self._put(decision.puts)
        self._memory.touch(decision.puts, stamp.boottime_ms)
        if decision.audit:
            self._append(decision.audit, stamp, origin, command, cause)
        self.next_number += decision.numbers_used
        self._boot_id, self._boottime_ms = stamp.boot_id, stamp.boottime_ms
        self._has_written |= bool(decision.removed_rows or decision.puts or decision.audit or decision.numbers_used)

    def commit(self) -> None:
        """Make the transaction durable, then keep the head.

        Raises: StorageFailed: whether it is durable is undecided, the store is closed and nobody may be answered.
        """
        if self._has_written:
            self._write_calls()
            self._db.run_many("INSERT INTO audit VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)", self._unwritten_audit)
            oldest_open = self._memory.open.oldest(self.next_number)
            self._db.run(_PUT_CLOCK, (self.next_number, oldest_open, self._boot_id, self._boottime_ms))
        self._db.commit()
        self._durable_head = self._head
        if self._has_written:
            self._keep_head()

    def _write_calls(self) -> None:
        """Write every call that this transaction changed, as it is at its end (kernel/store_memory.py, OpenCalls)."""
        unwritten, self._memory.open.unwritten = self._memory.open.unwritten, {}
        for call in unwritten.values():
            if call.number < self._first_number:
                self._db.run(UPDATE_TOOL_CALL, updated_call_values(call))
                if self._db.changes():
                    continue
            sql, values = PUTS[ToolCall]
            self._db.run(sql, values(call))

    def _keep_head(self) -> None:
        try:
            self._head_file.write(self._head)
        except OSError as error:
            self.abandon()
            raise StorageFailed(Code.UNKNOWN) from error

    def _put(self, records: tuple[Record, ...]) -> None:
        for record in records:
            kind = type(record)
            if kind is ToolCall or kind in UNSTORED or (isinstance(record, OutboxRow) and self._has_updated(record)):
                continue
            sql, values = PUTS[kind]
            self._db.run(sql, values(record))
        self._memory.remember(records)
        if not _OF_CALLS.issuperset(map(type, records)):
            self._view.surfaces.follow(records)
            self._view.capabilities.follow(records)

    def _has_updated(self, row: OutboxRow) -> bool:
        """Change an outbox row that was there before the transaction: the cheap half of an upsert. False when it was not."""
        if row.number >= self._first_number:
            return False
        self._db.run(UPDATE_OUTBOX_ROW, (row.state, row.refused_code, row.number))
        return bool(self._db.changes())

    def _remove_row(self, number: int) -> None:
        self._db.run("DELETE FROM outbox_row WHERE number = ? AND state = 'pending' AND kind <> 'final'", (number,))
        if self._db.changes() != 1:
            raise KernelBug("a removed row is not there, or may not be removed")
        self._memory.forget_row(number)

    def _append(self, entries: tuple[AuditEntry, ...], stamp: Stamp, origin: Origin, command: str, cause: int | None) -> None:
        turn = (time_value(stamp.now), origin.speaker.value, origin.view_id or None, command, cause)
        seq, digest = self._head.seq, self._head.hash
        for entry in entries:
            for word in (entry.event, command, entry.instance_id, origin.view_id or None):
                if word is not None and word not in self._audit_words:
                    self._admit_word(word)
            seq += 1
            code = None if entry.code is None else Code(entry.code).value
            fields = (seq, *turn, entry.event, entry.number, entry.instance_id, code, entry.count)
            previous, digest = digest, hash_row(digest, fields)
            self._unwritten_audit.append((*fields, previous, digest))
        self._head = Head(seq, digest)

    def _admit_word(self, word: str) -> None:
        """Judge a word of the audit once. Raises: KernelBug for what may be a text of somebody."""
        if not _AUDIT_WORD.fullmatch(word):
            raise KernelBug("an audit row would hold text")
        if len(self._audit_words) < MAX_AUDIT_WORDS:
            self._audit_words.add(word)

    # ----------------------------------------------------------------------------- between turns

    @property
    def last_audit_seq(self) -> int:
        """The newest audit row, also of a transaction under way: the cause of what follows from it."""
        return self._head.seq

    @property
    def commits(self) -> int:
        """Commits since the opening."""
        return self._db.commits

    @property
    def statements(self) -> int:
        """Statements since the opening, BEGIN and COMMIT among them."""
        return self._db.statements

    @property
    def is_checkpoint_due(self) -> bool:
        """True about every 400 commits, or when the log has grown to 4 MiB."""
        return self._db.commits - self._commits_at_checkpoint >= CHECKPOINT_COMMITS or self._db.wal_pages >= CHECKPOINT_WAL_PAGES

    def checkpoint(self) -> None:
        """Move the log into the main file; outside a transaction, after the effects left. Raises: StorageFailed."""
        self._db.checkpoint()
        self._commits_at_checkpoint = self._db.commits

    def rebase_deadlines(self, boot_id: str, boottime_ms: int) -> None:
        """After another boot, give every deadline the time it had left when the old boot was last seen (SPEC 6.6).

        On the same boot nothing changes: downtime counts. Call it once, before the first turn. Raises: StorageFailed.
        """
        if boot_id == self._boot_id:
            return
        shift_ms = boottime_ms - self._boottime_ms
        self.begin()
        questions = (_with_rebased_deadline(one, boot_id, shift_ms) for one in self._memory.interactions.values())
        self._put((*(_rebased(call, boot_id, shift_ms) for call in self._memory.open.all()), *questions))
        self._boot_id, self._boottime_ms = boot_id, boottime_ms
        self._has_written = True
        self.commit()

    def backup_steps(self, copy: apsw.Connection, pages: int) -> Generator[None, None, None]:
        """Copy the database into another connection, some pages a step. Raises: StorageFailed."""
        return self._db.backup_steps(copy, pages)

    def reopen(self) -> None:
        """After the disk was found full: read everything again, as it was before the transaction that found no room.

        Raises: StorageFailed: it cannot be read, or that transaction is there after all, and nobody was answered.
        """
        folder, path, memory = self._head_file.folder, Path(self._db.name), self._memory
        self.abandon()
        try:
            kept = keep_head(folder)
            opened = open_again(path)
        except StoreRefused as refused:
            raise StorageFailed(refused.code) from refused
        self._db.attach(opened.connection)
        start = reread(self._db, memory, kept)
        if start.head != self._durable_head or start.is_restored:
            self.abandon()
            raise StorageFailed(Code.UNKNOWN)
        memory.take_over(start.memory)
        self._view.forget_cached()
        try:
            self._head_file = HeadFile(folder)
        except OSError as error:
            self.abandon()
            raise StorageFailed(Code.UNKNOWN) from error
        self._head, self.next_number = start.head, start.next_number
        self._boot_id, self._boottime_ms = start.boot_id, start.boottime_ms
        self._has_written = False

    def close(self) -> None:
        """End tidily: fold the log into the main file. A transaction under way is lost. Raises: StorageFailed."""
        try:
            if not self._db.is_closed and not self._db.is_in_transaction:
                self._db.fold()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close at once; what was not committed is gone. Closing twice is fine."""
        self._head_file.close()
        self._db.close()


_PUT_CLOCK = """
INSERT INTO clock VALUES (1, ?, ?, ?, ?)
ON CONFLICT (one) DO UPDATE SET next_number = excluded.next_number, oldest_open = excluded.oldest_open, boot_id = excluded.boot_id,
  boottime_ms = excluded.boottime_ms
"""


def _rebased(call: ToolCall, boot_id: str, shift_ms: int) -> ToolCall:
    return replace(call, deadline=_moved(call.deadline, boot_id, shift_ms), cancel_deadline=_moved(call.cancel_deadline, boot_id, shift_ms))


def _with_rebased_deadline(interaction: Interaction, boot_id: str, shift_ms: int) -> Interaction:
    return replace(interaction, deadline=_moved(interaction.deadline, boot_id, shift_ms))


def _moved(deadline: Deadline | None, boot_id: str, shift_ms: int) -> Deadline | None:
    if deadline is None or deadline.boot_id == boot_id:
        return deadline
    return Deadline(boot_id, deadline.at_ms + shift_ms)
