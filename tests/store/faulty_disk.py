"""The store on a disk that loses power or fails, at every operation. Run as a program of its own: the checksum layer wraps whatever
file layer is the default when it is first loaded, so the faulty one has to be there before.

    faulty_disk.py power <first seed> <seeds>      cut the power at a random operation, keep a random part of what was not synced
    faulty_disk.py lie <first seed> <seeds>        the same on a disk that says it synced and did not: shows that the judge sees loss
    faulty_disk.py error <io | full>               fail operation N once, for N = 1, 2, 3 ... until a run ends without a failure

Prints one JSON object: how many runs ended how. Only "ok" (and "stopped": nobody was answered, nothing acknowledged was lost) is right.
"""

from __future__ import annotations

import io
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw

from kernel.audit import HeadFile, read_head
from kernel.core.builtin import RUNTIME
from kernel.core.decision import AuditEntry, Decision, Stamp
from kernel.core.machines import CallStatus
from kernel.core.records import OutboxKind
from kernel.database import Database, StorageFailed
from kernel.store import Store
from kernel.store_open import FileFacts, StoreRefused, connect
from kernel.store_start import KeptHead, Start
from kernel.wal import WalFacts, read_wal
from lineup_sdk.protocol.codes import Code
from tests.store.power_loss import SECTOR_BYTES, Op, arrived, do
from tests.store.world import AGENT, NOW, call, outbox_row

TURNS = 16


class PowerCut(Exception):
    """The machine is off."""


class Disk:
    """Files as the system reads them back, as they surely are on the platter, and what lies between."""

    def __init__(self) -> None:
        self.live: dict[str, bytearray] = {}
        self.durable: dict[str, bytearray] = {}
        self.unsynced: dict[str, list[Op]] = {}
        self.operations = 0
        self.is_lying = False
        self.fault: Callable[[int], None] = lambda operation: None

    def touch(self) -> None:
        self.operations += 1
        self.fault(self.operations)

    def change(self, name: str, op: Op) -> None:
        self.touch()
        do(self.live[name], op)
        self.unsynced[name].append(op)

    def sync(self, name: str) -> None:
        self.touch()
        if self.is_lying:
            return
        self.durable[name] = bytearray(self.live[name])
        self.unsynced[name] = []

    def make(self, name: str) -> None:
        if name not in self.live:
            self.live[name] = bytearray()
            self.unsynced[name] = []

    def delete(self, name: str, *, is_synced: bool) -> None:
        self.touch()
        del self.live[name]
        if is_synced:
            self.durable.pop(name, None)
            self.unsynced.pop(name, None)

    def rename(self, old: str, new: str) -> None:
        """Durable at once: the folder is synced after it."""
        self.live[new] = self.live.pop(old)
        self.durable[new] = self.durable.pop(old)
        self.unsynced[new] = self.unsynced.pop(old)

    def after_power_cut(self, chance: random.Random) -> Disk:
        """What may be found: of all that was not synced any part, in any order, torn at sectors; an unsynced delete may be undone."""
        found = Disk()
        for name in {*self.live, *self.durable}:
            base = self.durable.get(name)
            is_lost = base is None and chance.random() < 0.3
            is_back = name not in self.live and chance.random() < 0.5
            if is_lost or (name not in self.live and not is_back):
                continue
            image = bytearray(base or b"")
            for op in arrived(self.unsynced.get(name, []), chance):
                do(image, op)
            found.live[name], found.durable[name], found.unsynced[name] = image, bytearray(image), []
        return found


class DiskFile:
    """One open file, as SQLite's file layer wants it."""

    def __init__(self, disk: Disk, name: str) -> None:
        self._disk = disk
        self._name = name
        self._lock = 0
        disk.make(name)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        return bytes(self._disk.live[self._name][offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.change(self._name, ("write", offset, bytes(data)))

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._disk.change(self._name, ("truncate", size, b""))

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.sync(self._name)

    def xFileSize(self) -> int:  # noqa: N802
        return len(self._disk.live[self._name])

    def xClose(self) -> None:  # noqa: N802
        pass

    def xLock(self, level: int) -> None:  # noqa: N802
        self._lock = max(self._lock, level)

    def xUnlock(self, level: int) -> None:  # noqa: N802
        self._lock = level

    def xCheckReservedLock(self) -> bool:  # noqa: N802
        return self._lock > 1

    def xSectorSize(self) -> int:  # noqa: N802
        return SECTOR_BYTES

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        return apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE  # as the ordinary layer says: bytes beside a write are safe

    def xFileControl(self, operation: int, pointer: int) -> bool:  # noqa: N802
        return False


class DiskLayer(apsw.VFS):
    """The file layer over whatever disk is plugged in."""

    def __init__(self) -> None:
        self.disk = Disk()
        super().__init__("faulty", "unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802
        return DiskFile(self.disk, name.filename() if isinstance(name, apsw.URIFilename) else name)

    def xDelete(self, name: str, syncdir: bool) -> None:  # noqa: N802
        if name not in self.disk.live:
            raise apsw.exception_for(apsw.SQLITE_IOERR_DELETE_NOENT)
        self.disk.delete(name, is_synced=syncdir)

    def xAccess(self, name: str, flags: int) -> bool:  # noqa: N802
        return name in self.disk.live

    def xFullPathname(self, name: str) -> str:  # noqa: N802
        return name


class Trial:
    """One run: turns until a fault, then a start on what is left."""

    def __init__(self, layer: DiskLayer, folder: Path) -> None:
        self._layer = layer
        self._folder = folder
        self.acknowledged = 0
        self.in_doubt = 0  # turns whose commit was begun

    def make(self) -> None:
        """A new database, as kernel.store_open makes it: under another name, then renamed."""
        new = FileFacts(is_new=True, wal=WalFacts())
        connect("kernel.db.new", new, sync_folder=lambda: None).connection.close()
        self._layer.disk.rename("kernel.db.new", "kernel.db")

    def open(self) -> Store:
        log = bytes(self._layer.disk.live.get("kernel.db-wal", b""))
        facts = FileFacts(is_new=False, wal=read_wal(io.BytesIO(log), len(log)))
        opened = connect("kernel.db", facts, sync_folder=lambda: None)
        kept = KeptHead(read_head(self._folder), is_damaged=False)
        start = Start(
            Database(opened.connection),
            {"runtime": RUNTIME},
            kept,
            is_torn=opened.is_torn,
            make_epoch=lambda: "e1",
            make_id=lambda kind, epoch: f"{kind}_{epoch}_00",
            now=lambda: NOW,
        )
        return Store(start, HeadFile(self._folder))

    def work(self, store: Store, chance: random.Random) -> None:
        """Turns of one ended call each: its row, its audit row, its final outbox row. Some share a commit, some are refused."""
        while self.acknowledged < TURNS:
            group = chance.choice((1, 1, 1, 4))
            store.begin()
            for _ in range(group):
                self._turn(store, chance)
                self.in_doubt += 1
            store.commit()
            self.acknowledged = self.in_doubt
            if chance.random() < 0.15:
                store.checkpoint()

    def _turn(self, store: Store, chance: random.Random) -> None:
        number = store.next_number
        stamp = Stamp(now=NOW, boot_id="b", boottime_ms=number, token="", first_number=number)
        body = chance.randbytes(chance.randrange(10, 6000))
        puts = (
            call(number, CallStatus.FAILED, error_code=Code.TOOL_FAILED, input_cbor=body),
            outbox_row(number + 1, OutboxKind.FINAL, call_number=number),
        )
        decision = Decision(puts=puts, audit=(AuditEntry(event="call.failed", number=number),), numbers_used=2)
        store.apply(decision, stamp=stamp, origin=AGENT, command="test.turn")

    def judge(self) -> str:
        """Start on what is left and say what is wrong with it, or ok."""
        try:
            store = self.open()
        except StoreRefused as refused:
            return f"refused {refused.code}"
        view = store.view
        calls = [record.number for record in reversed(view.calls(limit=10_000))]
        finals = [row.call_number for number in calls if (row := view.final_row(number)) is not None]
        audited = [row["number"] for row in view.upkeep.audit_after(after=None, limit=10_000) if row["event"] == "call.failed"]
        verdict = "ok"
        if not calls == finals == audited:
            verdict = "torn"
        elif calls != list(range(1, 2 * len(calls) + 1, 2)):
            verdict = "gap"
        elif len(calls) < self.acknowledged:
            verdict = "lost"
        elif len(calls) not in {self.acknowledged, self.in_doubt}:
            verdict = "half a group"
        elif store.is_restored or view.epoch != "e1" or store.next_number != 2 * len(calls) + 1:
            verdict = "strange"
        store.abandon()
        return verdict


def power_cut(layer: DiskLayer, folder: Path, seed: int, *, is_lying: bool) -> str:
    """One run that ends in the dark."""
    chance = random.Random(seed)
    layer.disk = Disk()
    trial = Trial(layer, folder)
    trial.make()
    layer.disk.is_lying = is_lying
    last = layer.disk.operations + chance.randrange(1, 260)

    def cut(operation: int) -> None:
        if operation >= last:
            raise PowerCut

    layer.disk.fault = cut
    with suppress(PowerCut):
        trial.work(trial.open(), chance)
    layer.disk = layer.disk.after_power_cut(chance)
    return trial.judge()


def failure(layer: DiskLayer, folder: Path, kind: str, number: int) -> tuple[str, bool]:
    """One run whose operation of that number fails once. Returns the verdict and whether it failed at all."""
    layer.disk = Disk()
    trial = Trial(layer, folder)
    trial.make()
    first = layer.disk.operations
    has_failed = False

    def fail(operation: int) -> None:
        nonlocal has_failed
        if operation == first + number:
            has_failed = True
            raise apsw.exception_for(apsw.SQLITE_FULL if kind == "full" else apsw.SQLITE_IOERR_WRITE)

    layer.disk.fault = fail
    try:
        trial.work(trial.open(), random.Random(3))
    except StorageFailed as failed:
        if failed.code is not (Code.STORE_FULL if kind == "full" else Code.UNKNOWN):
            return f"called {failed.code}", has_failed
    except StoreRefused as refused:
        if trial.acknowledged or refused.code not in {Code.STORE_FULL, Code.UNKNOWN}:
            return f"refused {refused.code}", has_failed
    else:
        if has_failed:
            return "failed and went on", has_failed
    layer.disk.fault = lambda operation: None
    verdict = trial.judge()
    return ("stopped" if has_failed and verdict == "ok" else verdict), has_failed


def main(arguments: list[str]) -> None:
    """Run what the arguments say."""
    layer = DiskLayer()
    verdicts: Counter[str] = Counter()
    if arguments[0] in {"lie", "power"}:
        first, seeds = int(arguments[1]), int(arguments[2])
        for seed in range(first, first + seeds):
            with tempfile.TemporaryDirectory() as folder:
                verdicts[power_cut(layer, Path(folder), seed, is_lying=arguments[0] == "lie")] += 1
    else:
        number, has_failed = 0, True
        while has_failed:
            number += 1
            with tempfile.TemporaryDirectory() as folder:
                verdict, has_failed = failure(layer, Path(folder), arguments[1], number)
                verdicts[verdict] += 1
    sys.stdout.write(json.dumps(verdicts) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
