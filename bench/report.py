"""One run as a table for people and as JSON to keep, with what it was run on."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import apsw
import psutil

from bench.kernel_process import DISK, ROOT

Json = dict[str, Any]
Row = tuple[str, object, str]  # what, found, aimed at
PACKAGES = ("apsw", "cbor2", "jsonschema-rs", "lineup-runtime", "pydantic", "trio")


def machine() -> Json:
    """Versions, kernel, processors, disk and date of a run."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES} | {"sqlite": apsw.sqlite_lib_version()},
        "kernel": platform.release(),
        "cpus": os.cpu_count(),
        "load_average": os.getloadavg(),
        "disk": _file_system(Path(DISK)),
    }


def _file_system(path: Path) -> str:
    mounts = [part for part in psutil.disk_partitions(all=True) if path.is_relative_to(part.mountpoint)]
    return str(max(mounts, key=lambda part: len(part.mountpoint)).fstype) if mounts else "unknown"


def keep(run: Json) -> Path:
    """Write a run under docs/bench and return its path."""
    folder = ROOT / "docs" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    name = run["machine"]["date"].replace(":", "").replace("+0000", "Z")
    path = folder / f"{name}.json"
    path.write_text(json.dumps(run, indent=2) + "\n")
    return path


def table(run: Json) -> str:
    """The run in lines; the last column is what is aimed at."""
    rows = [*(_kernel_rows(run) if "calls" in run else ()), *(_web_rows(run["web"]) if "web" in run else ())]
    return "\n".join(f"{name:<52} {found!s:>20}   {aim}" for name, found, aim in rows)


def _kernel_rows(run: Json) -> list[Row]:
    one, crowd = run["calls"]["one_call"], run["calls"]["crowd_of_32"]
    sequential, crowded, memory, starts = run["counts"]["sequential"], run["counts"]["crowd_of_32"], run["memory"], run["starts"]
    return [
        ("durable call, p50, to the peer's", one["ours_to_peer_p50"], "<= 0.7"),
        ("durable call, minimum, to the peer's", one["ours_to_peer_min"], ""),
        ("the same without a disk, p50, to the peer's", one["ours_in_memory_to_peer_p50"], "<= 0.5"),
        ("the same without a disk, minimum, to the peer's", one["ours_in_memory_to_peer_min"], ""),
        ("durable call, p50 (us)", f"{one['ours']['p50_us']:.0f} : {one['peer']['p50_us']:.0f}", ""),
        ("durable call, minimum (us)", f"{one['ours']['min_us']} : {one['peer']['min_us']}", ""),
        ("fdatasync, p50 and minimum (us)", f"{run['calls']['fdatasync']['p50_us']:.0f}, {run['calls']['fdatasync']['min_us']}", ""),
        ("32 at once, 8 workers, calls/s, to the peer's", crowd["ours_to_peer_median"], ">= 3"),
        ("32 at once, 1 worker, calls/s, to the peer's", crowd["ours_one_worker_to_peer_median"], ""),
        ("32 at once, without a disk, calls/s, to the peer's", crowd["ours_in_memory_to_peer_median"], ">= 5"),
        ("32 at once, calls/s", f"{crowd['ours']['median_per_s']} : {crowd['peer']['median_per_s']}", ""),
        ("launch to first result, p50 (ms)", f"{run['launch']['on_disk']['p50_us'] / 1000:.1f}", ""),
        ("launch to first result, without a disk, p50 (ms)", f"{run['launch']['in_memory']['p50_us'] / 1000:.1f}", "<= 3"),
        ("the peer's server, start to first result, p50 (ms)", f"{starts['peer_start_to_first_result']['p50_us'] / 1000:.0f}", ""),
        ("kernel, start to ready, p50 (ms)", f"{starts['kernel_to_ready']['p50_us'] / 1000:.0f}", "<= 800"),
        ("idle worker, USS (MiB)", f"{memory['worker_uss_bytes'] / 2**20:.1f} : {memory['peer_server_uss_bytes'] / 2**20:.1f}", "<= 4"),
        ("a call: statements, commits", f"{sequential['statements']}, {sequential['commits']}", ""),
        ("a call: frames in, out", f"{sequential['frames_in']}, {sequential['frames_out']}", ""),
        ("a call: fdatasync", _fdatasyncs(sequential["system_calls"]), ""),
        ("a call of 32: statements, commits", f"{crowded['statements']}, {crowded['commits']}", ""),
    ]


def _web_rows(web: Json) -> list[Row]:
    if "start" not in web:
        return [("the page", web["browser"], "")]
    board = web["board"]
    return [
        ("`lineup run` to first paint, p50 (ms)", web["start"]["run_to_first_paint"]["p50_ms"], ""),
        ("navigation to first paint, p50 (ms)", web["start"]["navigation_to_first_paint"]["p50_ms"], ""),
        ("key to frame, 10,000 messages stored, p95 (ms)", web["key_to_frame"]["p95_ms"], ""),
        ("longest task there (ms), 0 = none of 50", web["longest_task_ms"], ""),
        ("pen to frame, 5,000 strokes, p95 (ms)", board["pen_to_frame"]["p95_ms"], ""),
        ("end of a stroke to frame, 5,000 strokes, p95 (ms)", board["end_of_stroke_to_frame"]["p95_ms"], ""),
        ("longest task there (ms), 0 = none of 50", board["longest_task_ms"], ""),
    ]


def _fdatasyncs(system_calls: Json | str) -> str:
    return system_calls if isinstance(system_calls, str) else str(system_calls.get("fdatasync", 0))
