"""No `except` handler lets a word of anybody's out: each is entered with an exception that holds the marker (SPEC 17, INV-56).

A handler that is new is in the list at once; while no run comes to it and nothing explains it, these tests are red.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio

from hosts.cli import run_command
from kernel import backup
from tests.faults import handler_plans as plans
from tests.faults import noting
from tests.faults.canary_acts import canary_apps
from tests.faults.canary_judge import telling_details, telling_files, telling_lines
from tests.faults.forced_kernel import ForcedKernel
from tests.faults.marked import MARK
from tests.processes.kernel_under_test import ROOT, KernelUnderTest
from tests.store.world import World

pytestmark = [pytest.mark.clause("17"), pytest.mark.invariant("56")]
ALL = noting.handlers()
SERVED = {run: plans.served(ALL, run) for run in plans.SERVED}
ALONE = ALL - set(plans.EXPLAINED) - set().union(*SERVED.values())
ENVELOPE = b'{"type":"lineup.v1.message.text","message_id":"m1","conversation_id":"c","created_at":"t","payload":{}}'
NDJSON = b'%s\n%s\n\xff%s\n{"a":1,"a":2}\n' % (ENVELOPE, MARK.encode(), MARK.encode())
HOSTS = {name for name in ALONE if name.startswith("hosts.") and not plans.scene_lines(name)}


def test_what_is_explained_is_there_and_belongs_to_no_run() -> None:
    assert set(plans.EXPLAINED) <= ALL
    assert all(plans.EXPLAINED.values())


def test_every_other_handler_belongs_to_a_run(tmp_path: Path) -> None:
    """So one that is new is forced, or makes this red."""
    lines = {
        name: plans.kernel_lines(name, tmp_path) or plans.scene_lines(name) or plans.host_lines(name, tmp_path, tmp_path) for name in ALONE
    }
    assert [name for name, found in lines.items() if not found] == []


@pytest.mark.parametrize("run", plans.SERVED)
async def test_a_kernel_at_work_says_nothing_of_what_broke_in_it(run: str, reaping: None, tmp_path: Path) -> None:
    (tmp_path / "apps").mkdir()
    kernel = ForcedKernel(tmp_path, canary_apps(tmp_path / "apps"), f"home-{MARK}")
    assert await kernel.force(SERVED[run], plans.SERVED[run][1]) == set()
    assert telling_details(kernel.frames) == []
    assert telling_files(kernel.home, kernel.log) == []


def _run_each(plan: list[tuple[str, list[plans.Line]]], folder: Path, streams: Sequence[str] = ("stdout", "stderr")) -> set[str]:
    """Force each of these; the handlers that were not entered. What was said on these streams is judged."""
    parts = [folder / f"part-{number}" for number in range(2)]  # side by side
    runs = []
    for number, part in enumerate(parts):
        part.mkdir()
        (part / "plan.json").write_text(json.dumps(plan[number::2]))
        command = [sys.executable, "-m", "tests.faults.forced_each", str(part), str(number)]
        runs.append(subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL))
    assert [run.wait(timeout=300) for run in runs] == [0, 0]
    assert [line for part in parts for name in streams for line in telling_lines((part / name).read_text())] == []
    return {name for name, _ in plan} - {name for part in parts for name in (part / "notes").read_text().splitlines()}


def test_the_commands_of_the_kernel_say_nothing_of_what_broke_in_them(reaping: None, tmp_path: Path) -> None:
    trio.run(_back_up, tmp_path)
    plan = [(name, lines) for name in sorted(ALONE) if (lines := plans.kernel_lines(name, tmp_path))]
    assert _run_each(plan, tmp_path) == set()
    for home in tmp_path.glob(f"{MARK}-*"):
        assert telling_files(home) == []


async def _back_up(folder: Path) -> None:
    """A backup, for the command that restores it."""
    (folder / "artifacts").mkdir()
    (folder / "source").mkdir(mode=0o700)
    world = World(folder / "source")
    world.count(3)
    await backup.make(world.store, folder / "artifacts", folder / f"backup-{MARK}")
    world.store.close()


def test_apps_guest_and_providers_say_nothing_of_what_broke_in_them(tmp_path: Path) -> None:
    plan = [(name, lines) for name in sorted(ALONE) if (lines := plans.scene_lines(name))]
    assert _run_each(plan, tmp_path) == set()


def test_hosts_say_nothing_of_what_broke_in_them(reaping: None, tmp_path: Path) -> None:
    (tmp_path / "stdin").write_bytes(NDJSON)
    kernel = KernelUnderTest.start(tmp_path / f"home-{MARK}", tmp_path / "kernel.log")
    plan = [(name, plans.host_lines(name, tmp_path, kernel.home)) for name in sorted(HOSTS)]
    try:
        kernel.wait_ready()
        assert _run_each(plan, tmp_path, ["stderr"]) == set()  # on stdout a host says content to whom it belongs
    finally:
        kernel.close()
        for home in tmp_path.glob(f"{MARK}-*"):
            run_command(["--home", str(home), "stop"])
