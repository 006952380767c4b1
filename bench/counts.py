"""What one call costs in statements, commits, frames and system calls. Counts do not drift with the machine, so they are compared exactly.

Statements, commits and frames are counted inside the kernel (bench/counted_kernel.py), system calls by strace on a kernel of its own.
Without strace the report says so; a commit is one fdatasync, apart from those of the checkpoints.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from bench.kernel_process import Running, kernel

CALLS = 200
WAIT_SECONDS = 10.0
SYSTEM_CALLS = ("epoll_ctl", "epoll_wait", "fdatasync", "fsync", "getrandom", "pread64", "pwrite64", "read", "write")

Json = dict[str, object]


def per_call() -> Json:
    """Counts of one sequential call, and of one in a crowd of 32."""
    return {"sequential": {**_inside("sequential"), **_outside("sequential")}, "crowd_of_32": _inside("concurrent")}


def _inside(do: str) -> Json:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "counts"
        os.environ["LINEUP_BENCH_COUNTS"] = str(path)
        with kernel(["bench-1"], module="bench.counted_kernel") as running, running.agent(["bench-1.calc"]) as agent:
            agent.measure("sequential", 20)
            before = _read(running, path, 1)
            agent.measure(do, CALLS, width=25)
            after = _read(running, path, 2)
    return {name: round((after[name] - before[name]) / CALLS, 2) for name in before}


def _read(running: Running, path: Path, lines: int) -> dict[str, int]:
    time.sleep(0.1)  # the last acknowledgement is on its way
    running.process.send_signal(signal.SIGUSR1)
    until = time.monotonic() + WAIT_SECONDS
    while not path.exists() or len(found := path.read_text().splitlines()) < lines:
        if time.monotonic() > until:
            raise SystemExit("the counted kernel did not tell its counts")
        time.sleep(0.01)
    counts: dict[str, int] = json.loads(found[-1])
    return counts


def _outside(do: str) -> Json:
    strace = shutil.which("strace")
    if strace is None:
        return {"system_calls": "not counted: strace is not installed"}
    with kernel(["bench-1"]) as running, running.agent(["bench-1.calc"]) as agent:
        agent.measure("sequential", 20)
        traced = [strace, "-c", "-e", "trace=" + ",".join(SYSTEM_CALLS), "-p", str(running.process.pid)]
        with subprocess.Popen(traced, stderr=subprocess.PIPE, text=True) as tracer:
            assert tracer.stderr is not None
            attached = tracer.stderr.readline()
            if "attached" not in attached:
                return {"system_calls": f"not counted: strace said {attached.strip()!r}"}
            agent.measure(do, CALLS)
            tracer.send_signal(signal.SIGINT)
            table = tracer.stderr.read()
    return {"system_calls": {name: round(count / CALLS, 2) for name, count in _counted(table).items()}}


def _counted(table: str) -> dict[str, int]:
    rows = [line.split() for line in table.splitlines()]
    return {row[-1]: int(row[3]) for row in rows if len(row) >= 5 and row[-1] in SYSTEM_CALLS}
