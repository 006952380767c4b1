"""The hostile app against the whole seal, and against the seal with named steps taken out.

The outcome maps are tests/golden/sandbox__*.json. With everything on, an attack gets the errno or the death the table of system calls
says; with a step off, the same attack succeeds, which proves that the probe bites and that this step was what stopped it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import psutil
import pytest
import trio

from tests.invariants_of_processes import check_inv_46
from tests.processes.sandbox.cage import HOSTILE, Captive, capture, files_of, open_spares, open_zygote

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
OUTCOMES: dict[str, str] = json.loads((GOLDEN / "sandbox__outcomes.json").read_text())
WITHOUT: list[dict[str, object]] = json.loads((GOLDEN / "sandbox__without_a_step.json").read_text())


async def _try_all(names: list[str], source, ended_alike: bool = False) -> dict[str, str]:
    outcomes: dict[str, str] = {}
    captive: Captive | None = None
    for name in names:
        captive = captive or await capture(source)
        with trio.fail_after(30):
            outcomes[name] = await captive.ask(name)
        if captive.process.exit is not None or ended_alike:
            await captive.end()
            captive = None
    if captive:
        await captive.end()
    return outcomes


@pytest.mark.invariant("46")
async def test_every_attack_of_the_hostile_app_ends_as_the_golden_map_says():
    async with open_zygote() as zygote, open_spares(zygote, 2) as spares:
        assert check_inv_46(await _try_all(list(OUTCOMES), spares), OUTCOMES) == []


@pytest.mark.invariant("46")
@pytest.mark.parametrize("story", WITHOUT, ids=lambda story: "+".join(story["without"]))
async def test_without_the_step_that_stops_it_an_attack_succeeds(story):
    async with open_zygote(story["without"]) as zygote, open_spares(zygote, 2) as spares:
        outcomes = await _try_all(list(story["outcomes"]), spares, ended_alike=True)
    assert check_inv_46({name: _kind(text) for name, text in outcomes.items()}, story["outcomes"]) == []
    # A seal that lost this step, and says that it has it, is told under the number of the promise.
    assert check_inv_46(outcomes, {name: OUTCOMES[name] for name in outcomes})


def _kind(outcome: str) -> str:
    """`succeeds` for a call that returned; numbers of descriptors and addresses say nothing."""
    is_success = outcome.startswith("ret ") or outcome in {"returned", "forked"} or outcome.endswith(",64")  # 64: Landlock's ruleset
    return "succeeds" if is_success else outcome


@pytest.mark.invariant("46")
async def test_code_that_runs_at_import_is_already_sealed():
    async with open_zygote() as zygote:
        captive = await capture(zygote)
        at_import = await captive.ask("at_import")
        assert set(at_import) >= {"open a file", "socket INET", "fork", "memfd_create"}
        for name, outcome in at_import.items():
            assert outcome == OUTCOMES[name]
        await captive.end()


@pytest.mark.invariant("44")
async def test_nothing_of_the_kernels_memory_or_environment_is_found_inside(monkeypatch):
    head, tail = "canary-7f3a", "-of-the-kernel"
    monkeypatch.setenv("LINEUP_CANARY", head + tail)
    held_in_memory = [head + tail + str(number) for number in range(100)]
    async with open_zygote() as zygote:
        captive = await capture(zygote)
        with trio.fail_after(60):
            assert await captive.ask("search", head=head, tail=tail) == "0 in many pages"
            # The same search does find what is really there: the one environment variable the zygote was started with.
            found = await captive.ask("search", head="LC_ALL=", tail="C.UTF-8")
        assert found.endswith(" in many pages")
        assert not found.startswith("0 ")
        await captive.end()
    assert len(held_in_memory) == 100


@pytest.mark.invariant("47")
async def test_a_worker_that_fills_its_memory_ends_alone():
    async with open_zygote() as zygote:
        neighbour, captive = await capture(zygote), await capture(zygote)
        with trio.fail_after(60):
            assert await captive.ask("endless memory") == "exited 76"
            assert await neighbour.ask("own user") == "65534,65534"
        await captive.end()
        await neighbour.end()


@pytest.mark.invariant("47")
async def test_a_worker_that_spins_is_ended_by_the_ceiling_on_cpu_time():
    async with open_zygote(["cpu=1"]) as zygote:
        neighbour, captive = await capture(zygote), await capture(zygote)
        with trio.fail_after(60):
            assert await captive.ask("spin") == "killed 9"
            assert await neighbour.ask("own user") == "65534,65534"
        await captive.end()
        await neighbour.end()


@pytest.mark.invariant("47")
async def test_a_worker_that_floods_its_channel_blocks_and_is_killed_alone():
    async with open_zygote() as zygote:
        neighbour, captive = await capture(zygote), await capture(zygote)
        captive.channel.send({"type": "attempt", "name": "flood"})
        await captive.channel.drain()
        with trio.fail_after(60):
            while psutil.Process(captive.process.pid).status() != psutil.STATUS_SLEEPING:
                await trio.lowlevel.checkpoint()
            assert await neighbour.ask("own user") == "65534,65534"
            captive.process.kill()
            assert (await captive.process.wait_exited()).kind == "killed"
            assert await neighbour.ask("own user") == "65534,65534"
        await captive.end()
        await neighbour.end()


async def test_every_attack_of_the_app_has_an_expected_outcome():
    import re

    names = set(re.findall(r'^    "([^"]+)": ', files_of(HOSTILE)["attacks.py"].decode(), re.MULTILINE))
    assert names - set(OUTCOMES) == {"endless memory", "flood", "spin"}  # these have tests of their own
    assert set(OUTCOMES) <= names
    assert os.environ.get("LINEUP_CANARY") is None
