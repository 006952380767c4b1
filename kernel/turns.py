"""The loop of the kernel: decide, commit, release effects (ARCHITECTURE, idea 3).

Use: ports call `post`; `run` is one task for the kernel's life. Nothing here waits: a turn is done when `post` returns, or waits
in the queue for the commit that this pass of the event loop shares.
Rules:
1. One command, one turn. The first command of a pass commits at once; all others of that pass share the next commit, so a lone
   call waits for nobody and a crowd pays for one fsync. What a turn sets off by Then is decided in the commit of that turn. A turn
   that may wait shares whatever commit comes next; one timer ends the wait of all that may.
2. Effects, replies and view changes leave only after the commit, in the order of the turns; channels are flushed once at the end.
3. A refused turn leaves its audit row and nothing else.
4. A commit that fails is undecided: StorageFailed goes up, nothing is answered, the kernel stops and rereads at its next start. Only a
   full disk is waited for: the store is read again as it was, and commands fare as kernel/starved.py says until one commits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol

import trio

from kernel.clock import Clock
from kernel.core import commands
from kernel.core.decision import ArmDeadline, AuditEntry, Decision, Detail, Origin, Rejected, Speaker, Stamp, Then, View
from kernel.core.events import StoreRecovered, TimePassed
from kernel.core.records import Record
from kernel.database import StorageFailed
from kernel.refusals import WINDOW_MS, Refusals
from kernel.starved import RETRY_SECONDS, Starved
from lineup_sdk.protocol.codes import Code

MAX_BATCH = 256
MAX_TURNS_A_COMMIT = 512  # a batch and what follows from it
MAX_WAIT_SECONDS = 0.01  # how long what may wait does so: a turn for the commit of another, a frame for the write of another

KERNEL = Origin(speaker=Speaker.KERNEL)


class Storage(Protocol):
    """What turns need of the store."""

    @property
    def view(self) -> View: ...
    @property
    def next_number(self) -> int: ...
    def begin(self) -> None: ...
    def apply(self, decision: Decision, *, stamp: Stamp, origin: Origin, command: str, cause: int | None) -> None: ...
    def commit(self) -> None: ...
    def reopen(self) -> None: ...
    @property
    def last_audit_seq(self) -> int: ...
    @property
    def is_checkpoint_due(self) -> bool: ...
    def checkpoint(self) -> None: ...


class Turn(NamedTuple):
    """A command on its way, with who said it and the turn that caused it."""

    command: object
    origin: Origin
    cause: int | None = None
    may_wait: bool = False  # nobody waits for it: it comes in its order, but makes no commit of its own for MAX_WAIT_SECONDS


class Outcome(NamedTuple):
    """How a turn ended, for the port that asked."""

    turn: Turn
    accepted: bool
    now: datetime
    value: dict[str, Any] | None = None
    code: Code | None = None
    detail: Detail | None = None
    is_violation: bool = False  # refused once too often: the channel has to be closed

    @property
    def at(self) -> str:
        """When, as wires write it (RFC 3339)."""
        return self.now.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Handlers:
    """What the rest of the kernel does after a commit; siblings meet only here."""

    effects: Mapping[type, Callable[[Any], None]]
    reply: Callable[[Outcome], None]
    committed: Callable[[Sequence[Record]], None]
    flush: Callable[[], None]
    flush_late: Callable[[], None] = lambda: None  # write also what may wait for the next write
    starving: Callable[[], None] = lambda: None  # the doors are not to be read until `fed`
    fed: Callable[[], None] = lambda: None


class PassCount(trio.abc.Instrument):
    """Counts the passes of the event loop: cheaper than a task that wakes in every pass to see that it is a new one."""

    def __init__(self) -> None:
        self.number = 0

    def after_io_wait(self, timeout: float) -> None:
        """A pass begins."""
        del timeout
        self.number += 1


class Turns:
    """See the head of the file."""

    def __init__(self, store: Storage, clock: Clock, handlers: Handlers) -> None:
        self._store = store
        self._clock = clock
        self._handlers = handlers
        self._refusals = Refusals()
        self._queue: deque[Turn] = deque()
        self._is_draining = False
        self._pass = PassCount()
        self._committed_in_pass = -1
        self._next_pass = trio.Event()
        self._has_waiting = trio.Event()
        self._deadline_ms: int | None = None
        self._deadline_moved = trio.Event()
        self._starved: Starved | None = None  # the disk is full; then nothing is drained
        self._became_starved = trio.Event()

    @property
    def is_starved(self) -> bool:
        """True while the disk is full."""
        return self._starved is not None

    def post(self, *turns: Turn) -> None:
        """Take commands. Raises: StorageFailed, KernelBug."""
        if self._starved is not None:
            self._sort(self._starved, turns)
            self._handlers.flush()
            return
        self._queue.extend(turns)
        if self._is_draining:
            return
        if all(turn.may_wait for turn in turns):
            self._has_waiting.set()
            return
        if self._committed_in_pass == self._pass.number:
            self._next_pass.set()
            return
        self._drain()

    async def run(self) -> None:
        """Commit what waits, pass by pass, and wake the kernel at its deadlines."""
        trio.lowlevel.add_instrument(self._pass)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._run_passes)
            nursery.start_soon(self._run_waiting)
            nursery.start_soon(self._run_deadlines)
            nursery.start_soon(self._run_starved)

    async def _run_passes(self) -> None:
        while True:
            await self._next_pass.wait()
            self._next_pass = trio.Event()
            if self._queue and self._starved is None:
                self._drain()

    async def _run_waiting(self) -> None:
        """One timer for all that may wait: one that runs out costs the event loop about as much as a turn."""
        while True:
            if not self._has_waiting.is_set():  # to wait for what is set costs a pass
                await self._has_waiting.wait()
            self._has_waiting = trio.Event()
            await trio.sleep(MAX_WAIT_SECONDS)
            if self._queue and self._starved is None:
                self._drain()
            self._handlers.flush_late()

    async def _run_starved(self) -> None:
        while True:
            await self._became_starved.wait()
            self._became_starved = trio.Event()
            await trio.sleep(RETRY_SECONDS)
            self._feed()

    def _feed(self) -> None:
        """Try to commit again, what was refused first; without room it is the same as before."""
        assert self._starved is not None
        self._queue.appendleft(Turn(command=StoreRecovered(refused=self._starved.refused), origin=KERNEL))
        self._starved = None
        self._drain()
        if self._starved is None:
            self._handlers.fed()
            self._arm(self._clock.boottime_ms())  # deadlines waited
            self._deadline_moved.set()

    def _starve(self) -> None:
        """Read the store again as it was before the commit that found no room. Raises: StorageFailed."""
        self._store.reopen()
        self._starved = Starved()
        turns, self._queue = self._queue, deque()
        self._handlers.starving()
        self._sort(self._starved, turns)
        self._became_starved.set()

    def _sort(self, starved: Starved, turns: Iterable[Turn]) -> None:
        for turn in turns:
            if starved.refuses(turn.origin):
                now = self._clock.stamp(self._store.next_number).now
                self._handlers.reply(Outcome(turn=turn, accepted=False, now=now, code=Code.STORE_FULL))
            elif starved.keeps(turn.command):
                self._queue.append(turn)

    def _drain(self) -> None:
        """Commit all that waits and let its effects leave. Raises: StorageFailed, KernelBug."""
        try:
            self._drain_queue()
        except StorageFailed as failure:
            if failure.code is not Code.STORE_FULL:
                raise
            self._is_draining = False
            self._starve()
            self._handlers.flush()

    def _drain_queue(self) -> None:
        self._committed_in_pass = self._pass.number
        self._is_draining = True
        while self._queue:
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), MAX_BATCH))]
            try:
                decided = self._commit(batch)
            except StorageFailed:
                self._queue.extendleft(reversed(batch))
                raise
            for outcome, decision, _ in decided:
                self._release(outcome, decision)
        self._is_draining = False
        self._handlers.flush()
        self._has_waiting.set()  # replies may have been left for a later write
        if self._store.is_checkpoint_due:
            self._store.checkpoint()

    def _commit(self, batch: Sequence[Turn]) -> list[tuple[Outcome, Decision, int]]:
        """Decide a batch and what follows from it in one transaction; nothing of either leaves before it is durable."""
        self._store.begin()
        waiting = deque(batch)
        decided: list[tuple[Outcome, Decision, int]] = []
        while waiting and len(decided) < MAX_TURNS_A_COMMIT:
            decided.append(self._decide(waiting.popleft()))
            _, decision, audit_seq = decided[-1]
            for effect in decision.effects:
                if isinstance(effect, Then):
                    waiting.append(Turn(effect.command, KERNEL, audit_seq))
        self._store.commit()
        self._queue.extendleft(reversed(waiting))
        return decided

    def _decide(self, turn: Turn) -> tuple[Outcome, Decision, int]:
        stamp = self._clock.stamp(self._store.next_number)
        try:
            decision = commands.decide(self._store.view, turn.origin, stamp, turn.command)
        except Rejected as refusal:
            decision, is_violation = self._refused(turn, refusal.code, stamp)
            outcome = Outcome(turn=turn, accepted=False, now=stamp.now, code=refusal.code, detail=refusal.detail, is_violation=is_violation)
        else:
            decision = self._with_counted_refusals(turn, decision, stamp)
            outcome = Outcome(turn, decision.refusal is None, stamp.now, decision.value, decision.refusal, decision.detail)
        name = commands.name_of(turn.command)
        self._store.apply(decision, stamp=stamp, origin=turn.origin, command=name, cause=turn.cause)
        return outcome, decision, self._store.last_audit_seq

    def _refused(self, turn: Turn, code: Code, stamp: Stamp) -> tuple[Decision, bool]:
        verdict = self._refusals.note(turn.origin.channel, code, stamp.boottime_ms)
        if not verdict.is_audited:
            return Decision(), verdict.is_violation
        entry = AuditEntry(event="command.refused", instance_id=turn.origin.instance_id or None, code=code)
        wake = ArmDeadline(at_ms=stamp.boottime_ms + WINDOW_MS)
        return Decision(audit=(entry,), effects=(wake,)), False

    def _with_counted_refusals(self, turn: Turn, decision: Decision, stamp: Stamp) -> Decision:
        if not isinstance(turn.command, TimePassed):
            return decision
        counted = tuple(
            AuditEntry(event="command.refused", code=code, count=count) for code, count in self._refusals.due(stamp.boottime_ms)
        )
        return Decision(
            puts=decision.puts,
            removed_rows=decision.removed_rows,
            audit=(*decision.audit, *counted),
            effects=decision.effects,
            numbers_used=decision.numbers_used,
        )

    def _release(self, outcome: Outcome, decision: Decision) -> None:
        if outcome.turn.origin.speaker is not Speaker.KERNEL:
            self._handlers.reply(outcome)
        if decision.puts:
            self._handlers.committed(decision.puts)
        for effect in decision.effects:
            if isinstance(effect, ArmDeadline):
                self._arm(effect.at_ms)
            elif not isinstance(effect, Then):  # that one was decided in the same commit
                self._handlers.effects[type(effect)](effect)

    def _arm(self, at_ms: int) -> None:
        if self._deadline_ms is None or at_ms < self._deadline_ms:
            self._deadline_ms = at_ms
            self._deadline_moved.set()

    async def _run_deadlines(self) -> None:
        """Sleep to the next deadline at most a minute at a time: the event loop's clock stops while the machine sleeps."""
        while True:
            with trio.move_on_after(self._wait_seconds()):
                await self._deadline_moved.wait()
                self._deadline_moved = trio.Event()
            self.check_deadlines()

    def check_deadlines(self) -> None:
        """Say that time passed, if the kernel wanted to be woken by now."""
        if self._starved is not None or self._deadline_ms is None or self._clock.boottime_ms() < self._deadline_ms:
            return
        self._deadline_ms = None
        self.post(Turn(command=TimePassed(), origin=KERNEL))
        for next_ms in (self._store.view.next_deadline_ms(), self._refusals.next_due_ms()):
            if next_ms is not None:
                self._arm(max(next_ms, self._clock.boottime_ms() + 1))

    def _wait_seconds(self) -> float:
        if self._deadline_ms is None or self._starved is not None:
            return 60.0
        return min(60.0, max(0.0, (self._deadline_ms - self._clock.boottime_ms()) / 1000))
