"""The whole kernel on a disk that loses power, all of it from one seed: core, turns, store, door and boot are the real ones; clock,
ids, processes, views, Agent and disk are made up (tests/model, platter.py). A program of its own: see platter.py, rule 3.

    simulation.py power FIRST SEEDS         a home each, STEPS steps of anybody, the power cut again and again while they are done
    simulation.py lie FIRST SEEDS           the same on a disk that says it synced and did not: shows that loss is seen
    simulation.py error KIND SEED [FIRST STEP LAST]   operation N of a run fails, for N = 1, 2, 3 ... until one meets none
                                            io | full: once; io-on | full-on: and all after it; read: the Nth reading or opening of SQLite

Prints one JSON object: cuts or failures, a hash over all that happened and over every byte that was found after a cut (the same for the
same seeds, in any process), and what broke.
Rules:
1. After each cut the kernel starts on what is found, and every promise of tests/invariants.py is looked at; over the trace at the end.
2. A commit that was under way when the power went may be there or not, whole; any other must be.
3. A disk that fails on and on is changed for a sound one once REFUSED_STARTS starts were refused, and at the end.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import apsw

from tests.faults.platter import Fault, NotedLayer, Platter, PowerCut, no_fault

LAYER = NotedLayer()  # before the kernel is imported

from kernel.core.decision import Stamp  # noqa: E402
from kernel.database import StorageFailed, load_checksums  # noqa: E402
from kernel.store import Store  # noqa: E402
from kernel.store_open import StoreRefused  # noqa: E402
from lineup_sdk.protocol.codes import Code  # noqa: E402
from tests.invariants import check_after_a_turn  # noqa: E402
from tests.model.around import Died, FakeClock, Recorder  # noqa: E402
from tests.model.base import require_none  # noqa: E402
from tests.model.kernel import ModelKernel  # noqa: E402
from tests.model.memory import left_undone, unlike_the_rows  # noqa: E402
from tests.model.steps import step  # noqa: E402
from tests.model.test_model import Anything  # noqa: E402
from tests.trace import Committed, Decided, Framed, Sent, Shown, Trace  # noqa: E402

STEPS = 60
STEPS_OF_A_SWEEP = 12
CUTS_A_STEP = 0.8
REFUSED_STARTS = 3
WITHIN_OPERATIONS = 16  # how far ahead a cut is laid
_BEYOND_THE_PLATTER = frozenset({"back up", "restore", "person_uses_the_backup_tool"})  # what copies files past it


class Clock(FakeClock):
    """Goes on by a millisecond with every turn, so that each commit can be told from any other by its clock row."""

    boots = 1

    def stamp(self, first_number: int) -> Stamp:
        """The time and ids of one turn."""
        self.move(1)
        return super().stamp(first_number)

    def boot_anew(self, slept_ms: int) -> None:
        """The machine was off for so long."""
        super().boot_anew(slept_ms)
        self.boots += 1
        self.boot_id = f"boot-{self.boots}"


class NotingRecorder(Recorder):
    """Knows which commit is under way."""

    def commit(self) -> None:
        """Make it durable."""
        kernel, store = self._kernel, self._store
        assert isinstance(kernel, PoweredKernel)
        known = len(kernel.trace.events)
        moment = (store._boot_id, store._boottime_ms) if store._has_written else kernel.durable
        kernel.in_doubt, kernel.may_be = tuple(self._waiting), moment
        try:
            super().commit()
        finally:
            if len(kernel.trace.events) > known:
                kernel.in_doubt, kernel.durable = (), moment


class PoweredKernel(ModelKernel):
    """A kernel of the model whose machine may go dark at any operation of its disk."""

    make_clock = Clock

    def __init__(self, folder: Path) -> None:
        MADE["kernel"] = self
        self.platter = LAYER.platter = Platter(folder, MADE_OF["seed"])
        self.platter.is_lying = bool(MADE_OF.get("is_lying"))
        self.platter.fault = MADE_OF.get("fault", no_fault)
        self.platter.read_fault = MADE_OF.get("read_fault", no_fault)
        self.in_doubt: tuple[Decided, ...] = ()
        self.durable = self.may_be = ("", 0)
        self.cuts = 0
        super().__init__(folder)

    def _recorder(self) -> Recorder:
        if self.clock.boot_id != self.durable[0]:
            self.durable = self.may_be  # the deadlines were rebased, and that is a commit
        return NotingRecorder(self.store, self)

    def open(self) -> None:
        """Start over what is found, as often as the power goes while it does."""
        for number in itertools.count(1):
            if number > REFUSED_STARTS:
                self.get_a_sound_disk()
            try:
                super().open()
                return
            except PowerCut:
                self._lose_power()
            except Died:
                self._abandon()
            except (StoreRefused, StorageFailed) as error:
                self._require_injected(error.code)
                self._abandon()

    def get_a_sound_disk(self) -> None:
        """Nothing fails any more."""
        self.platter.fault = self.platter.read_fault = no_fault

    def _abandon(self) -> None:
        with suppress(AttributeError):  # the first start did not get as far as a store
            self.store.abandon()

    def _lose_power(self) -> None:
        self._abandon()
        self.platter.lose_power()
        self.cuts += 1
        self.clock.boot_anew(0)

    def _require_injected(self, code: Code) -> None:
        """A storage may fail only where it was made to."""
        assert self.platter.failed, f"INV-60: {code} although nothing failed"

    def _open_store(self) -> Store:
        store = super()._open_store()
        found = (store._boot_id, store._boottime_ms)
        if found == self.may_be and self.in_doubt:
            self.trace.events += (*self.in_doubt, Committed())
        elif found not in {self.durable, self.may_be}:
            store.abandon()
            raise AssertionError(f"INV-60: the newest commit found is {found} and not {self.durable} or {self.may_be}")
        if store.is_restored:
            store.abandon()
            raise AssertionError("INV-60: the database is older than its kept head")
        self.in_doubt = ()
        self.durable, self.may_be = found, (self.clock.boot_id, self.clock.boottime)  # of the rebase that comes now
        return store

    def stop_and_start(self) -> None:
        """End tidily, and start again."""
        store = self.store
        self._guarded(store.close)
        if self.store is store:
            self.open()

    def _guarded(self, act: Callable[[], object]) -> None:
        try:
            super()._guarded(act)
        except PowerCut:
            self._hear_the_rest()
            self._lose_power()
            self.open()
            self.look()
        except Died:  # in the start after a death
            self.restart()
        except StorageFailed as failed:
            self._require_injected(failed.code)
            self._hear_the_rest()
            self.restart()
            self.look()

    def _hear_the_rest(self) -> None:
        """What left before the end arrives."""
        if self.door is not None:
            self.door.read()

    def look(self) -> None:
        """Rule 1."""
        require_none(check_after_a_turn(self.store._db._connection))
        require_none(unlike_the_rows(self.store))
        require_none(left_undone(self.store))


class Powered(Anything):
    """Anybody, on such a kernel."""

    make_kernel: ClassVar[Callable[[Path], ModelKernel]] = PoweredKernel

    def kernel_starts_again(self, how: str) -> None:
        """What copies files past the platter is a kill here."""
        super().kernel_starts_again("killed" if how in _BEYOND_THE_PLATTER else how)


MADE_OF: dict[str, Any] = {}  # of the run that begins: what hypothesis-made machines cannot be given
MADE: dict[str, PoweredKernel] = {}  # what such a machine made, also when it came no further


def work(machine: Powered, chance: random.Random, steps: int = STEPS, cuts_a_step: float = CUTS_A_STEP) -> None:
    """That many steps of anybody; some of them in the dark."""
    machine.begin(is_used=chance.random() < 0.8)
    platter = machine.kernel.platter  # type: ignore[attr-defined]
    for _ in range(steps):
        if platter.cut_at is None and chance.random() < cuts_a_step:
            platter.cut_at = platter.operations + chance.randrange(1, WITHIN_OPERATIONS)
        one_step(machine, chance)
    platter.cut_at = None


def one_step(machine: Anything, chance: random.Random) -> None:
    """One step of anybody, but for what copies files past the platter."""
    step(machine, chance, _BEYOND_THE_PLATTER)


def digest_of(trace: Trace) -> str:
    """A hash over every decision, and over everything that left, in order."""
    state = sha256()
    for event in trace.events:
        match event:
            case Decided():
                records = [(type(one).__name__, getattr(one, "number", None)) for one in event.decision.puts]
                said = (event.name, event.stamp.boottime_ms, event.stamp.token, event.decision.audit, records)
            case Framed() | Sent() | Shown():
                said = (repr(event),)
            case _:
                said = (type(event).__name__,)
        state.update(repr(said).encode())
    return state.hexdigest()


Work = Callable[[Powered, random.Random], None]


def run(seed: int, act: Work = work, **made_of: Any) -> tuple[PoweredKernel, str]:
    """One home from its making to the end of all faults; what is left of its kernel, and what broke ("" is nothing).

    made_of: is_lying (a disk that says it synced), fault and read_fault (those of Platter, from the first operation on).
    """
    MADE_OF.clear()
    MADE_OF.update(made_of, seed=seed)
    load_checksums()  # asks for chance itself, and only in the first run of a process
    LAYER.salts = random.Random(seed)
    apsw.randomness(0)  # what SQLite wants next it asks of them
    try:
        machine = Powered()
        act(machine, random.Random(seed))
        MADE["kernel"].get_a_sound_disk()
        machine.teardown()
    except (AssertionError, StoreRefused) as broken:
        return MADE["kernel"], str(broken) or type(broken).__name__
    except Exception as ended:  # in the making of the home, too: a kernel that ends so breaks a promise, and this seed shows it
        return MADE["kernel"], f"{type(ended).__name__}: {ended} {traceback.format_tb(ended.__traceback__)[-1]}"
    finally:
        kernel = MADE["kernel"]
        kernel.platter.cut_at = LAYER.platter = None
        with suppress(AttributeError):  # it did not get as far as a store
            kernel.end()
    return kernel, ""


def power(first: int, seeds: int, *, is_lying: bool) -> dict[str, Any]:
    """Homes that lose power."""
    cuts, broken, state, last = 0, {}, sha256(), ""
    for seed in range(first, first + seeds):
        kernel, violation = run(seed, is_lying=is_lying)
        cuts += kernel.cuts
        last = f"{digest_of(kernel.trace)} {kernel.platter.found.hexdigest()}"
        state.update(last.encode())
        if violation:
            broken[str(seed)] = violation
    return {"done": cuts, "hash": state.hexdigest(), "hash_of_the_last": last, "seeds": seeds, "violations": broken}


def _faults(kind: str, number: int) -> dict[str, Fault]:
    """What fails: `io`, `full` and `read` once, at that operation; with `-on` behind it that one and all that come."""
    name, _, lasts = kind.partition("-")

    def fault(operation: int) -> str | None:
        return name if operation == number or (lasts and operation > number) else None

    return {"read_fault" if name == "read" else "fault": fault}


def failures(kind: str, seed: int, first: int = 1, step: int = 1, last: int = sys.maxsize) -> tuple[int, dict[str, str]]:
    """One run again and again, each time with a later operation failing. How many failed, and what broke."""
    broken: dict[str, str] = {}
    for failed in itertools.count():
        number = first + failed * step
        kernel, violation = run(seed, lambda machine, chance: work(machine, chance, STEPS_OF_A_SWEEP, 0.0), **_faults(kind, number))
        if violation:
            broken[f"{seed} at {number}"] = violation
        if not kernel.platter.failed or number >= last:
            break
    return failed, broken


def main(arguments: list[str]) -> None:
    """Run what the arguments say."""
    LAYER.note_calls()
    if arguments[0] == "error":
        failed, broken = failures(arguments[1], *map(int, arguments[2:]))
        said: dict[str, Any] = {"done": failed, "violations": broken}
    else:
        said = power(int(arguments[1]), int(arguments[2]), is_lying=arguments[0] == "lie")
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
