"""A real kernel that dies at a crash point: `-m tests.faults.point_kernel POINT SIDE WAY SKIP SEED HOME serve ...`.

WAY is `kill` (kill -9 of itself) or `power` (its home is left as a power cut would leave it, then kill -9). The file `passed` beside the
home is made when the point is passed, so that a run that never came there is told from one that did.
Rule: nothing of the kernel is imported before the disk is noted (platter.py, rule 3). A warm parent may fork it.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

from tests.faults.platter import NotedLayer, Platter

LAYER = NotedLayer()

import kernel.__main__ as program  # noqa: E402
import kernel.store  # noqa: E402
from kernel.worker_port import WorkerPort  # noqa: E402
from tests.faults.crash_points import Act, Side, plant  # noqa: E402

PORTS: list[WorkerPort] = []


class Death:
    """How the kernel of a home is to die."""

    def __init__(self, home: Path, way: str) -> None:
        self._home = home
        self._way = way

    def come(self) -> NoReturn:
        """Die."""
        (self._home.parent / "passed").touch()
        if self._way == "power" and LAYER.platter is not None:
            LAYER.platter.lose_power()
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    def come_in_half_a_frame(self) -> NoReturn:
        """Half of what waits for the workers leaves before the end."""
        for worker in PORTS:
            for one in worker._dirty:
                if not one.channel.is_closed and one.channel._queue:
                    os.write(one.channel._fd, one.channel._queue[: len(one.channel._queue) // 2])
        self.come()


def _remember_the_port() -> None:
    real = WorkerPort.__init__

    def remember(port: WorkerPort, *arguments: object) -> None:
        real(port, *arguments)  # type: ignore[arg-type]
        PORTS.append(port)

    WorkerPort.__init__ = remember  # type: ignore[method-assign,assignment]


def main() -> int:
    """Run a kernel that dies there."""
    point, side, way, skip, seed, home = sys.argv[1:7]
    del sys.argv[1:7]
    _remember_the_port()
    folder = Path(home)
    folder.mkdir(mode=0o700, exist_ok=True)
    if way == "power":
        LAYER.watch(Platter(folder, int(seed)))
        LAYER.note_calls()
    kernel.store.CHECKPOINT_COMMITS = 6  # so that some come
    if point != "-":
        death = Death(folder, way)
        act: Act = death.come_in_half_a_frame if point == "half_a_frame" and side == "before" else death.come
        plant(point, _SIDES[side], act, skip=int(skip))
    return program.main()


_SIDES: dict[str, Side] = {"before": "before", "after": "after"}

if __name__ == "__main__":
    sys.exit(main())
