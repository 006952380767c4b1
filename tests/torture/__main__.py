"""The long runs: `python -m tests.torture [PART ...] [--seconds S]`, all parts without one. `make torture` is this.

Each part has a figure to reach and a report of its own, docs/proof/PART.json, written by the run itself after every chunk. A run that is
stopped goes on from its report; one that has reached its figure does nothing until the report is taken away.
Rules:
1. A chunk is a program of its own (parts.py) that prints one JSON object: how much it did, and what broke. Programs that keep one core
   busy run side by side, and are reported in the order of their seeds.
2. What broke is kept with its seed, and the exit code is 1 as long as a report holds any.
3. A chunk whose program ended otherwise (a crash, no answer in time, no JSON) is counted as nothing done, kept in the report under
   `failed_chunks`, and run again next time; its part stops there, the others go on, and the exit code is 2.
4. A report names the sources it was made from: by a digest, since they may change between two chunks.
5. A report is replaced whole: who is killed, or finds the disk full, leaves the one before.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any

import apsw

from tests.torture.parts import PARTS, Part

ROOT = Path(__file__).resolve().parents[2]
PROOF = ROOT / "docs" / "proof"
_SOURCES = ("kernel", "sdk", "workers", "hosts", "manifests", "tests")
_KINDS = frozenset({".js", ".json", ".mjs", ".py", ".sql", ".txt"})  # vectors, Manifests and the corpus of the fuzzers, too
_PACKAGES = ("apsw", "cbor2", "hypothesis", "jsonschema-rs", "pydantic", "trio")


def source_digest() -> str:
    """What the sources of the product and of these runs are now, in one word."""
    state = sha256()
    for folder in _SOURCES:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in _KINDS and "node_modules" not in path.parts:
                state.update(path.read_bytes())
    return state.hexdigest()[:16]


class Report:
    """What one part has done so far; kept in its file."""

    def __init__(self, part: Part) -> None:
        self.path = PROOF / f"{part.name}.json"
        fresh: dict[str, Any] = {
            "part": part.name,
            "what": part.what,
            "unit": part.unit,
            "figure": part.figure,
            "done": 0,
            "next_seed": 0,
            "seconds": 0.0,
            "counts": {},
            "violations": {},
            "failed_chunks": {},
            "began": _now(),
            "sources": [],
        }
        self.said: dict[str, Any] = json.loads(self.path.read_text("utf-8")) if self.path.exists() else fresh
        self.said["figure"] = part.figure
        self.has_failed = False  # a chunk of this run

    def add(self, part: Part, found: dict[str, Any], seconds: float) -> None:
        """One more chunk is done."""
        said = self.said
        said["done"] += found.pop("done")
        said["next_seed"] += part.seeds_a_chunk
        said["seconds"] = round(said["seconds"] + seconds, 1)
        said["violations"] |= found.pop("violations")
        for name, number in found.items():
            if isinstance(number, int):
                said["counts"][name] = said["counts"].get(name, 0) + number
        self._keep()

    def fail(self, failed: ChunkFailed) -> None:
        """A chunk said nothing."""
        self.has_failed = True
        self.said.setdefault("failed_chunks", {})[f"{failed.seed}, {_now()}"] = failed.why
        self._keep()

    @property
    def state(self) -> str:
        """How it stands, in a word."""
        if self.said["violations"]:
            return "VIOLATIONS"
        if self.has_failed:
            return "A CHUNK FAILED"
        return "done" if self.said["done"] >= self.said["figure"] else "not finished"

    def _keep(self) -> None:
        said = self.said
        said["sources"] = list(dict.fromkeys([*said["sources"], source_digest()]))
        said["versions"] = {
            "python": python_version(),
            "sqlite": apsw.sqlite_lib_version(),
            **{name: version(name) for name in _PACKAGES},
        }
        said["ended"] = _now()
        self.path.parent.mkdir(exist_ok=True)
        whole = self.path.with_suffix(".new")
        with whole.open("w", encoding="utf-8") as file:
            file.write(json.dumps(said, indent=1) + "\n")
            file.flush()
            os.fsync(file.fileno())
        whole.replace(self.path)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


class ChunkFailed(Exception):
    """The program of a chunk ended otherwise than with its JSON object."""

    def __init__(self, part: Part, seed: int, why: str) -> None:
        super().__init__(f"{part.name}, seed {seed}: {why}")
        self.seed = seed
        self.why = why[-2000:]


def run_chunk(part: Part, seed: int) -> dict[str, Any]:
    """Run the next chunk of a part. Raises: ChunkFailed."""
    command = [sys.executable, *part.program(seed, part.seeds_a_chunk)]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=part.bound_seconds, check=False)
    except subprocess.TimeoutExpired:
        raise ChunkFailed(part, seed, f"no answer in {part.bound_seconds:.0f} s") from None
    if done.returncode:
        raise ChunkFailed(part, seed, f"it ended with {done.returncode}: {done.stderr[-2000:]}")
    found = _last_line(done.stdout)
    if type(found.get("done")) is not int or type(found.get("violations")) is not dict:
        raise ChunkFailed(part, seed, f"it told nothing: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    return found


def _last_line(said: str) -> dict[str, Any]:
    with suppress(IndexError, ValueError):
        found = json.loads(said.splitlines()[-1])
        return found if isinstance(found, dict) else {}
    return {}


def run_part(part: Part, until: float) -> Report:
    """Go on with a part until its figure is reached, something fails, or the time is over."""
    report = Report(part)
    width = (os.cpu_count() or 1) if part.takes_one_core else 1
    with ThreadPoolExecutor(width) as pool:
        while report.said["done"] < part.figure and time.monotonic() < until and not (report.said["violations"] or report.has_failed):
            began = time.monotonic()
            first = report.said["next_seed"]
            seeds = range(first, first + width * part.seeds_a_chunk, part.seeds_a_chunk)
            try:
                for found in pool.map(partial(run_chunk, part), seeds):
                    report.add(part, found, time.monotonic() - began)
                    began = time.monotonic()
            except ChunkFailed as failed:  # what ran behind it is run again with it
                report.fail(failed)
                print(failed, file=sys.stderr, flush=True)
            said = report.said
            print(f"{part.name}: {said['done']} of {part.figure} {part.unit}, {len(said['violations'])} violations", flush=True)
    return report


def main(arguments: Sequence[str]) -> int:
    """Run the parts that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture")
    parser.add_argument("part", nargs="*", choices=[[], *PARTS])
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no chunk after so long")
    wanted = parser.parse_args(arguments)
    until = time.monotonic() + wanted.seconds
    try:
        reports = [run_part(PARTS[name], until) for name in wanted.part or PARTS]
    except OSError as error:  # the disk is full, most likely; what was told before is whole
        print(f"a report cannot be written, so its chunk does not count: {error}", file=sys.stderr)
        return 2
    for report in reports:
        said = report.said
        print(f"{said['part']}: {said['done']} of {said['figure']} {said['unit']} in {said['seconds']:.0f} s: {report.state}")
    if any(report.said["violations"] for report in reports):
        return 1
    return 2 if any(report.has_failed for report in reports) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
