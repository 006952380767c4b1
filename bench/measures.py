"""What is measured, and how: everything that is compared alternates within one run.

Rules:
1. The machine's speed drifts while a bench runs, so ours and the peer's take turns in short rounds; only their ratios mean anything.
2. A call waits for its commits on the disk; fdatasync is timed in the same rounds, and a second kernel, whose home is in memory, shows
   the same call without it.
3. One worker may send 2,000 frames and use 50 ms of the kernel a second (SPEC 16), so crowds are measured on one worker and on eight.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.kernel_process import DISK, MEMORY, ROOT, Running, kernel
from bench.lines import LineProcess, Sample
from kernel.protocol.host import KernelStatus

SCOPES = [f"bench-{number}" for number in range(1, 9)]
PEER_PYTHON = ROOT / ".venv-bench" / "bin" / "python"
ROUNDS = 8
STARTS = 4
SEQUENTIAL_CALLS = 60
CROWD = 32
CROWD_CALLS = 256
SYNC_BYTES = 32 * 1024  # about what one commit of a call writes
SYNCS = 20

Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class Latency:
    """Microseconds of many calls."""

    micros: Sequence[int]

    @property
    def p50(self) -> float:
        """The median."""
        return statistics.median(self.micros)

    def as_json(self) -> Json:
        """Minimum, median and 99th percentile."""
        ordered = sorted(self.micros)
        return {"samples": len(ordered), "min_us": ordered[0], "p50_us": self.p50, "p99_us": ordered[int(len(ordered) * 0.99)]}


def ratio(ours: float, peers: float) -> float:
    """Ours against the peer's."""
    return round(ours / peers, 3)


@contextmanager
def peer() -> Iterator[LineProcess]:
    """The peer's client, with its server running."""
    with LineProcess.start([str(PEER_PYTHON), str(ROOT / "bench" / "peer_client.py")], ROOT) as client:
        yield client


def tools() -> list[str]:
    """One tool an App."""
    return [f"{scope}.calc" for scope in SCOPES]


# --------------------------------------------------------------------------------- calls


@dataclass(frozen=True, slots=True)
class Contest:
    """The three sides, warm."""

    on_disk: LineProcess
    in_memory: LineProcess
    peer: LineProcess


def calls(contest: Contest) -> Json:
    """Latency of one call after the other, and calls a second of 32 at once."""
    lone: dict[str, list[Sample]] = {"ours": [], "ours_in_memory": [], "peer": []}
    crowd: dict[str, list[Sample]] = {"ours_one_worker": [], "ours": [], "ours_in_memory": [], "peer": []}
    syncs: list[int] = []
    for _ in range(ROUNDS):
        lone["ours"].append(contest.on_disk.measure("sequential", SEQUENTIAL_CALLS))
        lone["peer"].append(contest.peer.measure("sequential", SEQUENTIAL_CALLS))
        lone["ours_in_memory"].append(contest.in_memory.measure("sequential", SEQUENTIAL_CALLS))
        syncs += sync_micros(Path(DISK))
        crowd["ours"].append(contest.on_disk.measure("concurrent", CROWD_CALLS, width=CROWD, tools=len(SCOPES)))
        crowd["peer"].append(contest.peer.measure("concurrent", CROWD_CALLS, width=CROWD))
        crowd["ours_in_memory"].append(contest.in_memory.measure("concurrent", CROWD_CALLS, width=CROWD, tools=len(SCOPES)))
        crowd["ours_one_worker"].append(contest.on_disk.measure("concurrent", CROWD_CALLS, width=CROWD))
    return {"one_call": _one_call(lone), "crowd_of_32": _crowd(crowd), "fdatasync": Latency(syncs).as_json()}


def _one_call(lone: dict[str, list[Sample]]) -> Json:
    latencies = {side: Latency([micros for sample in samples for micros in sample.micros]) for side, samples in lone.items()}
    peers = latencies["peer"]
    found: Json = {side: latency.as_json() for side, latency in latencies.items()}
    for side in ("ours", "ours_in_memory"):
        found[f"{side}_to_peer_p50"] = ratio(latencies[side].p50, peers.p50)
        found[f"{side}_to_peer_min"] = ratio(min(latencies[side].micros), min(peers.micros))
    return found


def _crowd(crowd: dict[str, list[Sample]]) -> Json:
    rates = {side: [sample.per_second for sample in samples] for side, samples in crowd.items()}
    found: Json = {
        side: {"rounds": len(rate), "median_per_s": round(statistics.median(rate)), "best_per_s": round(max(rate))}
        for side, rate in rates.items()
    }
    for side in ("ours", "ours_one_worker", "ours_in_memory"):
        found[f"{side}_to_peer_median"] = ratio(statistics.median(rates[side]), statistics.median(rates["peer"]))
        found[f"{side}_to_peer_best"] = ratio(max(rates[side]), max(rates["peer"]))
    return found


def sync_micros(folder: Path) -> list[int]:
    """Time fdatasync of a rewritten piece of a file, as a commit does it."""
    path = folder / f"lineup-bench-sync-{os.getpid()}"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.pwrite(fd, bytes(SYNC_BYTES), 0)
        os.fsync(fd)
        return [_sync_once(fd) for _ in range(SYNCS)]
    finally:
        os.close(fd)
        path.unlink()


def _sync_once(fd: int) -> int:
    os.pwrite(fd, os.urandom(16) * (SYNC_BYTES // 16), 0)
    began = time.perf_counter_ns()
    os.fdatasync(fd)
    return (time.perf_counter_ns() - began) // 1000


# --------------------------------------------------------------------------------- starts and memory


def starts() -> Json:
    """From exec to the first welcome of an empty kernel, against a start of the peer's server with its first call."""
    ours: list[int] = []
    peers: list[int] = []
    with peer() as client:
        for _ in range(STARTS):
            with kernel([]) as running:
                ours.append(running.start_micros)
            peers += client.measure("launch", 1).micros
    return {"kernel_to_ready": Latency(ours).as_json(), "peer_start_to_first_result": Latency(peers).as_json()}


def launches(agent: LineProcess) -> Json:
    """From the envelope to the result of an App's first call, its worker being taken from the spares."""
    return Latency(agent.measure("launch", len(SCOPES), tools=len(SCOPES)).micros).as_json()


def memory(running: Running, client: LineProcess) -> Json:
    """Private memory (USS) of idle workers and of the peer's server."""
    pids = [worker["pid"] for worker in running.admin.ask(KernelStatus())["workers"]]
    workers = [_uss_bytes(pid) for pid in pids]
    server = _uss_bytes(client.hello["pid"])
    median = statistics.median(workers)
    kernel_bytes = _uss_bytes(running.process.pid)
    return {"workers": len(workers), "worker_uss_bytes": median, "peer_server_uss_bytes": server, "kernel_uss_bytes": kernel_bytes}


def _uss_bytes(pid: int) -> int:
    return int(psutil.Process(pid).memory_full_info().uss)


@contextmanager
def contest() -> Iterator[tuple[Contest, Running, Json]]:
    """Start all three sides; the launches are measured on the way, they happen once."""
    with (
        kernel(SCOPES, disk=DISK) as running,
        kernel(SCOPES, disk=MEMORY) as second,
        running.agent(tools()) as on_disk,
        second.agent(tools()) as in_memory,
        peer() as client,
    ):
        launched: Json = {"on_disk": launches(on_disk), "in_memory": launches(in_memory)}
        for side in (on_disk, in_memory, client):
            side.measure("sequential", SEQUENTIAL_CALLS)
        yield Contest(on_disk, in_memory, client), running, launched
