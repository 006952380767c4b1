"""What a plain call costs in statements, commits and frames: counted, not timed, and never more than it was (docs/bench)."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.processes.kernel_under_test import KernelUnderTest
from tests.processes.peers import Agent

CALLS = 50
# Of a call alone. Whether its acceptance, its result and its acknowledgement share commits is a matter of time: three at the worst; so
# statements are counted without the three of each commit (BEGIN, the clock row, COMMIT). A change that lowers one lowers its bound; one
# that raises a bound says why in the changelog.
BOUNDS = {"statements": 14, "commits": 3, "frames_in": 4, "frames_out": 5}
_OF_A_COMMIT = 3


@pytest.fixture
def counted(reaping: None, apps: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KernelUnderTest]:
    os.mkfifo(tmp_path / "counts")
    monkeypatch.setenv("LINEUP_BENCH_COUNTS", str(tmp_path / "counts"))
    kernel = KernelUnderTest.start(tmp_path / "home", tmp_path / "kernel.log", apps=apps, program=("-m", "bench.counted_kernel"))
    kernel.wait_ready()  # and no view: what views are told is not of the call
    yield kernel
    kernel.close()


async def counts_of(kernel: KernelUnderTest, fifo: Path) -> dict[str, int]:
    """What it has counted so far."""
    kernel.kill(signal.SIGUSR1)
    with trio.fail_after(30):
        told: dict[str, int] = json.loads(await trio.to_thread.run_sync(fifo.read_text, abandon_on_cancel=True))
    return told | {"statements": told["statements"] - _OF_A_COMMIT * told["commits"]}


async def call(agent: Agent, times: int) -> None:
    for _ in range(times):
        result = await agent.result(await agent.invoke("fixture.report", {"percents": []}))
        assert result["status"] == "completed"


async def test_a_plain_call_takes_no_more_statements_commits_and_frames_than_it_did(
    counted: KernelUnderTest, tmp_path: Path, nursery: trio.Nursery
) -> None:
    agent = await counted.agent(nursery)
    await call(agent, 5)
    before = await counts_of(counted, tmp_path / "counts")
    await call(agent, CALLS)
    after = await counts_of(counted, tmp_path / "counts")
    taken = {name: (after[name] - before[name]) // CALLS for name in BOUNDS}  # a few frames of the watchdog come to no whole one
    assert {name: (count, "at most", BOUNDS[name]) for name, count in taken.items() if count > BOUNDS[name]} == {}
