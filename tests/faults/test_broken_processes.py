"""Kernels that break what only real processes and real files can show are told under its number: leaking_kernel.py, run for real."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import psutil
import pytest
import trio

from hosts.web.surface_pages import bootstrap, document
from kernel import registry
from kernel.core.manifest import EntryFile, ManifestInvalid
from kernel.registry import SourceFile, load_registry
from tests.faults import kill_loops, leaking_kernel, settling
from tests.faults.broken_kernels import patched
from tests.invariants import PROCESS_CHECKS
from tests.processes import orphans
from tests.processes.conftest import Starter
from tests.processes.kept_promises import reach_of_workers

ROOT = Path(__file__).parents[2]
LEAKING = ("-m", "tests.faults.leaking_kernel")
SOME_WORKERS = 24
SOME_KERNELS = 2
SOME_HOSTS = 8
MIB = 1024 * 1024
REPLIES = 4000  # of 30 KB each, that nobody reads
BOUND_BYTES = 64 * MIB  # the one of test_floods.py


@pytest.mark.invariant("42")
@pytest.mark.parametrize(
    ("leaks", "kind", "count", "told"),
    [
        ("descriptor", "workers", SOME_WORKERS, "leaked_descriptors"),
        ("zombie", "workers", SOME_WORKERS, "zombies"),
        ("orphan", "kernels", SOME_KERNELS, "orphans"),
        ("view", "hosts", SOME_HOSTS, "leaked_descriptors"),
    ],
)
def test_what_a_kernel_leaves_behind_is_counted_and_told(
    leaks: str, kind: str, count: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The counters of the loops have teeth: a kernel that leaves just this goes red by just this."""
    monkeypatch.setenv(leaking_kernel.LEAKS, leaks)
    monkeypatch.setattr(settling, "SECONDS", 1.0)  # it comes to no rest that would be worth a wait
    if told == "orphans":
        monkeypatch.setattr(orphans, "SECONDS", 1.0)  # the others leave none, however slow the machine
    found = kill_loops.main(kind, 1, count, "tests.faults.leaking_kernel")
    assert {name for name in kill_loops.COUNTED if found[name]} == {told}
    assert all("INV-42" in line for line in found["violations"].values())
    assert found["violations"]


@pytest.mark.invariant("44")
async def test_a_kernel_that_tells_its_workers_where_the_home_is_is_told(
    start: Starter, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(leaking_kernel.LEAKS, "environment")
    kernel = start(program=LEAKING)
    await kernel.first_view(nursery)
    told = PROCESS_CHECKS["44"](reach_of_workers(kernel), [kernel.pairing.encode(), os.fsencode(kernel.home)])
    assert told == ["INV-44: secret 1 is within a worker's reach"]
    await kernel.kill_all()


@pytest.mark.invariant("47")
async def test_a_kernel_that_keeps_everything_for_a_worker_that_does_not_read_is_told(
    start: Starter, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(leaking_kernel.LEAKS, "memory")
    kernel = start(program=LEAKING)
    await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    process = psutil.Process(kernel.pid)
    resident = process.memory_info().rss
    await agent.invoke("deaf.deaf", {"json": str(REPLIES)})
    most = 0
    with trio.fail_after(120):
        while not (told := PROCESS_CHECKS["47"]([], "", (), 0, most, BOUND_BYTES)):
            await trio.sleep(0.02)
            most = max(most, process.memory_info().rss - resident)
    assert told == [f"INV-47: the kernel grew by {most} bytes"]


@pytest.mark.invariant("48")
def test_a_kernel_that_does_not_look_at_the_code_it_loads_is_told(tmp_path: Path) -> None:
    def read(folder: int, file: EntryFile, pointer: str, role: str) -> SourceFile:
        parent, _, name = file.name.rpartition("/")
        where = os.open(parent or ".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
        try:
            return SourceFile(file.name, registry._read_file(where, name, file.size, pointer, role))
        finally:
            os.close(where)

    workers = tmp_path / "workers"
    shutil.copytree(ROOT / "workers", workers)
    entry = json.loads((ROOT / "manifests" / "whiteboard.json").read_text("utf-8"))["entry"]
    changed = entry["surface"]["scripts"][-1]
    script = workers / "whiteboard" / changed
    script.write_bytes(script.read_bytes()[:-1] + b" ")
    with pytest.raises(ManifestInvalid, match="another digest"):
        load_registry(ROOT / "manifests", workers, [])
    with patched([(registry, "_read_source", read)]):
        code = load_registry(ROOT / "manifests", workers, []).surfaces["whiteboard"]
    shown = document(script=code.script, style=code.style, mount="m", title="Whiteboard", lang="en", origin="null").body.decode()
    told = PROCESS_CHECKS["48"](shown, bootstrap(), entry)
    assert told == [f"INV-48: {changed} is not what the Manifest names"]
