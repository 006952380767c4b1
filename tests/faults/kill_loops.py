"""kill -9, again and again, at a moment that a seed chooses: of kernels, and of what a kernel runs. Real processes, real sealed workers.

    python -m tests.faults.kill_loops kernels SEED COUNT [MODULE]     kernel_kills.py: homes side by side, one kernel after another
    python -m tests.faults.kill_loops workers SEED COUNT [MODULE]     worker_kills.py: one kernel, whose workers die while they have calls
    python -m tests.faults.kill_loops hosts SEED COUNT [MODULE]       host_kills.py: one kernel, whose web hosts die, pages and all

Prints one JSON object: what was done, what was counted, what broke. MODULE: the kernel's program, for one that is broken on purpose.
Rules:
1. Kernels are forked by a warm parent (tests/processes/warm_parent.py); some are executed, as a host does it.
2. Orphans, zombies and descriptors that stayed are counted in every run, and are violations of INV-42 each.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trio

from tests import invariants
from tests.faults.real_points import causes_of
from tests.faults.settling import Pace, settled_descriptors, settled_zombies
from tests.processes import orphans, peers
from tests.processes.kernel_under_test import KernelUnderTest, opened_copy
from tests.processes.orphans import children
from tests.processes.warm_parent import PROGRAM, WarmParent, sub_reaper

COUNTED = ("orphans", "zombies", "leaked_descriptors")


@dataclass
class Found:
    """What one run did and saw."""

    folder: Path
    seed: int
    count: int  # how many are to be killed
    parent: WarmParent
    counts: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(("done", *COUNTED), 0)))
    broken: list[str] = field(default_factory=list)
    known: set[int] = field(default_factory=children)  # children of this process that are no orphans; it changes while one is waited for

    def start(self, name: str, apps: Sequence[Path], *, is_executed: bool = False) -> KernelUnderTest:
        """One more kernel on the home of that name."""
        parent = None if is_executed else self.parent
        kernel = KernelUnderTest.start(self.folder / name, self.folder / f"{name}.log", apps=apps, parent=parent)
        self.known |= {kernel.pid, self.parent.pid}
        return kernel

    async def end(self, kernel: KernelUnderTest) -> None:
        """kill -9 a kernel, and see that nothing of it stays."""
        tree = kernel.tree()
        kernel.kill()
        await kernel.wait_exited()
        self.known.discard(kernel.pid)
        left = await tree.wait_ended(orphans.SECONDS)
        self.of_processes(left=sorted({*left, *await orphans.wait_orphans(self.known)}))

    def chance(self, lane: int) -> random.Random:
        """What a lane draws its lots from."""
        return random.Random(f"{self.seed} {lane}")

    def of_processes(self, *, left: Sequence[int] = (), zombies: int = 0, descriptors: int = 0) -> None:
        """Count what stayed of processes, and tell it (INV-42)."""
        self.counts.update(orphans=len(left), zombies=zombies, leaked_descriptors=max(0, descriptors))
        self.broken += invariants.PROCESS_CHECKS["42"](left, zombies=zombies, fd_growth=descriptors)

    async def of_rest(self, kernel: KernelUnderTest, pace: Pace, before: int) -> None:
        """What a kernel that has come to rest holds: zombies, and descriptors more than before."""
        grown = await settled_descriptors(kernel.pid, pace, at_most=before) - before
        self.of_processes(zombies=await settled_zombies(kernel.pid, pace), descriptors=grown)

    def of_rows(self, home: Path) -> None:
        """Look at every promise about the rows of a home; a database that was not made yet holds none."""
        with opened_copy(home) as db:
            if db.execute("SELECT 1 FROM sqlite_schema").fetchall():
                self.broken += invariants.check_all(db)


Loop = Callable[[Found], Awaitable[None]]


def main(kind: str, seed: int, count: int, module: str = PROGRAM) -> dict[str, Any]:
    """Run one loop."""
    from tests.faults import host_kills, kernel_kills, worker_kills

    loops: dict[str, Loop] = {"hosts": host_kills.run, "kernels": kernel_kills.run, "workers": worker_kills.run}
    peers.SECONDS = 90.0
    with sub_reaper(), tempfile.TemporaryDirectory(prefix="lineup-kills-") as name, closing(WarmParent(module)) as parent:
        found = Found(Path(name), seed, count, parent)
        try:
            trio.run(loops[kind], found)
        except BaseExceptionGroup as error:
            found.broken.append(f"{error}{causes_of(error)}"[:1500])
            found.broken += [f"{log.name} ends: {log.read_text()[-600:]}" for log in Path(name).glob("*.log")]
    violations = {f"{kind} from {seed}": "; ".join(found.broken)} if found.broken else {}
    return {**found.counts, "violations": violations}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:5])) + "\n")
