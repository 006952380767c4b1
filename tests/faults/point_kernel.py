"""A real kernel that dies at a crash point: `-m tests.faults.point_kernel POINT SIDE WAY SKIP SEED HOME serve ...`.

WAY is `kill` (kill -9 of itself) or `power` (its home is left as a power cut would leave it, then kill -9). The file `passed` beside the
home is made when the point is passed, so that a run that never came there is told from one that did.
Rule: nothing of the kernel is imported before the disk is noted (platter.py, rule 3).
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from tests.faults.platter import NotedLayer, Platter

POINT, SIDE, WAY, SKIP, SEED, HOME = sys.argv[1:7]
LAYER = NotedLayer()

import kernel.store  # noqa: E402
from kernel.__main__ import main  # noqa: E402
from kernel.worker_port import WorkerPort  # noqa: E402
from tests.faults.crash_points import plant  # noqa: E402


def _die() -> None:
    (Path(HOME).parent / "passed").touch()
    if WAY == "power" and LAYER.platter is not None:
        LAYER.platter.lose_power()
    os.kill(os.getpid(), signal.SIGKILL)


def _write_half() -> None:
    """Half of what waits for the workers leaves before the end."""
    for worker in PORTS:
        for one in worker._dirty:
            if not one.channel.is_closed and one.channel._queue:
                os.write(one.channel._fd, one.channel._queue[: len(one.channel._queue) // 2])
    _die()


PORTS: list[WorkerPort] = []

if __name__ == "__main__":
    del sys.argv[1:7]
    real = WorkerPort.__init__

    def remember(port: WorkerPort, *arguments: object) -> None:
        """Know the one port there is."""
        real(port, *arguments)  # type: ignore[arg-type]
        PORTS.append(port)

    WorkerPort.__init__ = remember  # type: ignore[method-assign,assignment]
    Path(HOME).mkdir(mode=0o700, exist_ok=True)
    if WAY == "power":
        LAYER.watch(Platter(Path(HOME), int(SEED)))
        LAYER.note_calls()
    kernel.store.CHECKPOINT_COMMITS = 6  # so that some come
    if POINT != "-":
        plant(POINT, SIDE, _write_half if POINT == "half_a_frame" and SIDE == "before" else _die, skip=int(SKIP))  # type: ignore[arg-type]
    sys.exit(main())
