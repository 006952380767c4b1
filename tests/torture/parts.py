"""The parts of the long runs: what each does, how much, and the program of one chunk (`python -m tests.torture`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.faults.crash_points import IN_THE_MODEL
from tests.faults.real_points import RUNS

Program = Callable[[int, int], tuple[str, ...]]  # (first seed, seeds) -> arguments of the interpreter


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One row of the table. figure: how much of the unit makes the part done; seeds_a_chunk: how far the seed goes on with a chunk;
    takes_one_core: its program does one thing at a time."""

    name: str
    what: str
    figure: int
    unit: str
    seeds_a_chunk: int
    program: Program
    bound_seconds: float = 3600.0
    takes_one_core: bool = True


def _of(*words: str) -> Program:
    """A program that takes the first seed and how many."""
    return lambda first, seeds: ("-m", *words, str(first), str(seeds))


def _errors(first: int, seeds: int) -> tuple[str, ...]:
    del seeds
    return ("-m", "tests.faults.simulation", "error", ("io", "full")[first % 2], str(first // 2))


def _more_errors(first: int, seeds: int) -> tuple[str, ...]:
    del seeds
    return ("-m", "tests.faults.simulation", "error", ("read", "io-on", "full-on")[first % 3], str(first // 3))


_ALL = (
    Part(
        name="broken_kernels",
        what="one deliberately broken kernel for each promise, patched in memory: the suite goes red under its number",
        figure=49,
        unit="broken kernels",
        seeds_a_chunk=1,
        program=lambda first, seeds: ("-m", "tests.faults.broken_kernels"),
        takes_one_core=False,
    ),
    Part(
        name="power_cuts",
        what="the whole kernel in simulation, from one seed, on a disk that loses power; every promise looked at after every cut",
        figure=100_000,
        unit="power cuts",
        seeds_a_chunk=100,
        program=_of("tests.faults.simulation", "power"),
    ),
    Part(
        name="crash_points",
        what="the same, dead at a named place: every point of tests/faults/crash_points.py that the model passes,"
        " before and after, by power cut and by kill -9, in three workloads",
        figure=len(IN_THE_MODEL) * 2 * 2 * 3 * 20,
        unit="deaths at a point",
        seeds_a_chunk=1,
        program=_of("tests.faults.point_sweep"),
    ),
    Part(
        name="storage_errors",
        what="the same, with one operation of the disk failing: operation N for every N, as an I/O error and as a full disk",
        figure=10_000,
        unit="failed operations",
        seeds_a_chunk=1,
        program=_errors,
    ),
    Part(
        name="more_storage_errors",
        what="the same, operation N failing and every one after it, until three starts were refused; and reading N of SQLite failing once",
        figure=10_000,
        unit="failed operations",
        seeds_a_chunk=1,
        program=_more_errors,
    ),
    Part(
        name="real_crash_points",
        what="real kernels with real sealed workers, dead at every named place, before and after, at its first, second and fourth passing"
        " (counts.passed had as many), by kill -9 and as a power cut leaves their home; then started again and asked",
        figure=len(RUNS),
        unit="runs",
        seeds_a_chunk=24,
        program=_of("tests.faults.real_points"),
        takes_one_core=False,
    ),
    Part(
        name="kernel_kills",
        what="kill -9 of a real kernel at a moment that the seed chooses, in its start or at work, again and again on one home, four homes"
        " side by side; nothing of its tree stays, nothing that was accepted is lost",
        figure=10_000,
        unit="kernels killed",
        seeds_a_chunk=100,
        program=_of("tests.faults.kill_loops", "kernels"),
        takes_one_core=False,
    ),
    Part(
        name="worker_kills",
        what="kill -9 of real sealed workers while they have calls, many Apps side by side, now and then of the zygote, and of a host's"
        " channel; zombies and descriptors of the kernel are counted",
        figure=10_000,
        unit="workers killed",
        seeds_a_chunk=500,
        program=_of("tests.faults.kill_loops", "workers"),
        takes_one_core=False,
    ),
    Part(
        name="host_kills",
        what="kill -9 of real web hosts, in their start or at work, with a page attached and a surface mounted, the demo Agent below some;"
        " the kernel and whoever else looks on take no notice",
        figure=1_000,
        unit="hosts killed",
        seeds_a_chunk=100,
        program=_of("tests.faults.kill_loops", "hosts"),
        takes_one_core=False,
    ),
    Part(
        name="model_steps",
        what="steps of the model: anything, by anyone, in any order, with the kernel dying anywhere",
        figure=1_000_000,
        unit="steps",
        seeds_a_chunk=400,
        program=_of("tests.torture.model_steps"),
    ),
    Part(
        name="fuzzed_frames",
        what="inputs that are nearly right, in structure and in bytes, at every border where bytes become values (tests/fuzz/targets.py)",
        figure=10_000_000,
        unit="inputs",
        seeds_a_chunk=100_000,
        program=_of("tests.fuzz.mutate"),
    ),
    Part(
        name="fuzzed_turns",
        what="nearly right messages of workers, hosts and Agents, decided by the kernel of the model; promises after each home",
        figure=1_000_000,
        unit="messages decided",
        seeds_a_chunk=40_000,
        program=_of("tests.fuzz.turns"),
    ),
    Part(
        name="fuzzed_bridge",
        what="hostile frames, nearly right, at the page's end of the bridge, run as it is in the page: nothing thrown, nothing passed on"
        " that the host would refuse",
        figure=300_000,
        unit="mounts",
        seeds_a_chunk=10_000,
        program=_of("tests.fuzz.bridge"),
    ),
    Part(
        name="fuzzed_lines",
        what="command lines of lineup that are nearly right, for every verb: a code of the list, one line, no traceback, nothing repeated",
        figure=200_000,
        unit="command lines",
        seeds_a_chunk=10_000,
        program=_of("tests.fuzz.command_lines"),
    ),
)
PARTS = {part.name: part for part in _ALL}
