"""The whole table of system calls, asked from inside with six zeros each."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pyseccomp
import pytest
import trio

from kernel.spares import Spares
from lineup_sdk.channel import ChannelClosed
from tests.invariants_of_processes import check_inv_46
from tests.processes.sandbox.cage import Captive, capture, how, open_spares, open_zygote
from workers.launcher import syscalls

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "sandbox__syscalls.json"
LAST = 512
LANES = 4
# uretprobe and uprobe: the kernel calls them from its own trampolines and lets them past every filter, depending on its version; a
# process that calls them itself gets SIGILL or an error.
UNFILTERED = {335: {"SIGSYS", "killed 4"}, 336: {"SIGSYS", "killed 4", "ENXIO"}}


def _numbers(names) -> set[int]:
    return {pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name) for name in names}


async def _survey(captive: Captive, first: int, end: int, outcomes: dict[int, str]) -> int:
    """Let one process try calls from `first` on, up to `end`; returns the next number that was not tried."""
    captive.channel.send({"type": "attempt", "name": "survey", "from": first, "to": end})
    await captive.channel.drain()
    begun = first
    try:
        while (frame := await captive.next_frame())["type"] != "outcome":
            if frame["type"] == "begun":
                begun = frame["number"]
            else:
                outcomes[frame["number"]] = frame["outcome"]
    except ChannelClosed:
        outcomes[begun] = how(await captive.process.wait_exited())
        return begun + 1
    return end


async def _survey_all(spares: Spares, first: int, end: int, outcomes: dict[int, str]) -> None:
    """One process after the other: most calls end theirs."""
    while first < end:
        captive = await capture(spares)
        first = await _survey(captive, first, end, outcomes)
        captive.channel.close()


@pytest.mark.invariant("46")
async def test_the_outcome_of_every_system_call_equals_the_golden_map():
    outcomes: dict[int, str] = {}
    async with open_zygote() as zygote, open_spares(zygote, 2 * LANES) as spares:
        with trio.fail_after(300):
            async with trio.open_nursery() as nursery:
                for first in range(0, LAST, LAST // LANES):
                    nursery.start_soon(_survey_all, spares, first, first + LAST // LANES, outcomes)
    golden = {int(number): outcome for number, outcome in json.loads(GOLDEN.read_text()).items()}
    for number, possible in UNFILTERED.items():
        assert outcomes.pop(number) in possible
    assert check_inv_46(outcomes, golden) == []


@pytest.mark.invariant("46")
def test_the_golden_map_kills_everything_the_table_does_not_name():
    golden = {int(number): outcome for number, outcome in json.loads(GOLDEN.read_text()).items()}
    assert set(golden) | set(UNFILTERED) == set(range(LAST))
    survived = {number for number, outcome in golden.items() if outcome != "SIGSYS"}
    restricted = _numbers(name for name, _ in syscalls.RESTRICTED)
    softly = {number for _, names in syscalls.SOFT_DENIED for number in _numbers(names)}
    assert survived <= _numbers(syscalls.ALLOWED) | restricted | softly
    assert _numbers(syscalls.ALLOWED) | softly <= survived
    for code, names in syscalls.SOFT_DENIED:
        assert {golden[number] for number in _numbers(names)} == {errno.errorcode[code]}
