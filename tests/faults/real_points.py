"""Real kernels with real sealed workers, dead at a crash point: started, worked with until they die there, started again, asked.

    python -m tests.faults.real_points FIRST COUNT      the runs of these numbers; prints one JSON object
    python -m tests.faults.real_points point NAME SIDE WAY [SKIP]

Rules:
1. The n-th run is a point, a side, a way (kill -9, power cut) and how often the point is passed before; after all of them come the same
   with another seed. A point that is not passed at all is told; the second or fourth passing need not be there.
2. Whatever the kernel said before its death has to be true after it: an envelope that is sent again is answered as the first was, its
   call completes once, its message is there. All rows keep every promise, before the next start and at its end.
3. Nothing of a tree outlives its kernel.
4. Several runs go on side by side: most of the time of each is waiting. Their kernels are forked by warm parents.
"""

from __future__ import annotations

import itertools
import json
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import trio

from kernel.protocol.host import FocusRaise, KernelStop
from kernel.protocol.host_capabilities import ConsentAnswer, ConsentsList, ProviderResult
from kernel.protocol.host_interactions import InteractionAnswer
from kernel.protocol.host_surfaces import SurfaceMount, SurfacePatch
from lineup_sdk.channel import ChannelClosed
from lineup_sdk.protocol.messages import JsonObject
from tests import invariants
from tests.faults.crash_points import POINTS
from tests.faults.settling import settled_zombies
from tests.invariants_of_questions import check_bytes_of_inv_51
from tests.processes import peers
from tests.processes.call_states import finals_of
from tests.processes.kernel_under_test import KernelUnderTest, opened_copy
from tests.processes.orphans import children, wait_orphans
from tests.processes.peers import Agent, ChannelEnded, Person, new_name
from tests.processes.warm_parent import WarmParent, sub_reaper
from tests.processes.written_app import FIXTURE, write_app

APPS = Path(__file__).resolve().parents[1] / "processes" / "apps"
SIDES = ("before", "after")
WAYS = ("kill", "power")
SKIPS = (0, 1, 3)
RUNS = tuple(itertools.product(POINTS, SIDES, WAYS, SKIPS))
COPY = {"capability": "clipboard.write", "reason": "To paste it", "arguments": {"text": "a"}}
EXPIRES_SECONDS = 0.2
SIDE_BY_SIDE = 4
Report = Callable[[int, bool, list[str]], None]  # the number of a run, whether its point was passed, and what broke
_GONE = (ChannelEnded, ChannelClosed, OSError)
peers.SECONDS = 90.0  # a machine that runs campaigns is a slow one


@dataclass
class Told:
    """What was said before the death, to be held against what is there after it."""

    sent: list[JsonObject] = field(default_factory=list)  # envelopes, in order
    accepted: set[str] = field(default_factory=set)  # message ids whose receipt said so
    agents: list[Agent] = field(default_factory=list)


async def _send(agent: Agent, told: Told, kind: str, payload: JsonObject, **more: Any) -> JsonObject:
    envelope = agent.envelope(kind, payload, **more)
    told.sent.append(envelope)
    receipt = await agent.resend(envelope)
    if receipt["accepted"]:
        told.accepted.add(envelope["message_id"])
    return envelope


async def _invoke(agent: Agent, told: Told, tool_id: str, given: JsonObject, **more: Any) -> str:
    call_id = new_name("call")
    called = {"call_id": call_id, "tool_id": tool_id, "inventory_revision": agent.revision, "input": given, **more}
    await _send(agent, told, "tool.call", called)
    return call_id


async def work(kernel: KernelUnderTest, person: Person, agent: Agent, told: Told) -> None:
    """Everything the points are about, once and again; ends when the kernel does."""
    for turn in range(3):
        await _calls(agent, told, turn)
        await _questions(person, agent, told)
        await _surfaces(person, agent, told)
        await _capability(person, agent, told)
    await person.ask(KernelStop())
    await kernel.wait_exited()


async def _calls(agent: Agent, told: Told, turn: int) -> None:
    await agent.result(await _invoke(agent, told, "fixture.report", {"percents": [50]}))
    await _send(agent, told, "app.message", {"topic": "fixture.note", "body": {"text": str(turn)}}, app_scope="fixture")
    await agent.result(await _invoke(agent, told, "fixture.echo", {"text": "again"}))


async def _questions(person: Person, agent: Agent, told: Told) -> None:
    await agent.result(await _invoke(agent, told, "interaction.notice", {"title": "T", "message": "M"}))
    call_id = await _invoke(agent, told, "interaction.confirm", {"title": "T", "prompt": "P"})
    asked = await person.interaction(lambda one: one["status"] == "presented" and one["kind"] == "confirm")
    await person.ask(
        InteractionAnswer(interaction_id=asked["interaction_id"], answer={"approved": True}, shown_digest=asked["shown_digest"])
    )
    await agent.result(call_id)
    call_id = await _invoke(
        agent, told, "interaction.input", {"title": "T", "prompt": "P", "fields": [{"id": "f", "label": "F", "type": "text"}]}
    )
    await _send(agent, told, "interaction.dismiss", {"call_id": call_id})
    await agent.result(call_id)
    soon = (datetime.now(UTC) + timedelta(seconds=EXPIRES_SECONDS)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    await agent.result(await _invoke(agent, told, "interaction.confirm", {"title": "T", "prompt": "P"}, expires_at=soon))


async def _surfaces(person: Person, agent: Agent, told: Told) -> None:
    for asked in ({"do": "open_surface"}, {"do": "put", "seed": 1, "size": 5000}, {"do": "update", "patch": {"a": 1}}):
        await agent.result(await _invoke(agent, told, "keeper.run", {"json": json.dumps(asked)}))
    instance = await person.instance("keeper", "background", "foreground")
    await person.ask(FocusRaise(instance_id=instance["instance_id"]))
    shown = next(change["value"] for frame in person.of_type("delta")[::-1] for change in frame["changes"] if change["kind"] == "surface")
    mounted = await person.ask(SurfaceMount(surface_id=shown["surface_id"]))
    epoch, version = mounted.get("mount_epoch"), mounted.get("version")
    if epoch is not None and version is not None:
        await person.ask(SurfacePatch(surface_id=shown["surface_id"], mount_epoch=epoch, base_version=version, patch={"b": 2}))


async def _capability(person: Person, agent: Agent, told: Told) -> None:
    await agent.result(await _invoke(agent, told, "scribe.results", {"json": "null"}))
    instance = await person.instance("scribe", "background", "foreground")
    await person.ask(FocusRaise(instance_id=instance["instance_id"]))
    known = len(person.of_type("capability.execute"))
    call_id = await _invoke(agent, told, "scribe.copy", {"json": json.dumps(COPY)})
    while not (waiting := (await person.ask(ConsentsList()))["consents"]):
        await trio.lowlevel.checkpoint()
    await person.ask(ConsentAnswer(request_id=waiting[0]["request_id"], decision="once", shown=waiting[0]["shown"]))
    frame = (await person.until(lambda: person.of_type("capability.execute")[known:]))[0]
    await person.ask(ProviderResult(request_id=frame["request_id"], status="done"))
    await agent.result(call_id)


async def after(kernel: KernelUnderTest, told: Told) -> tuple[list[str], int]:
    """What is not as it was said to be, and the zombies below the kernel that found it."""
    broken: list[str] = []
    async with trio.open_nursery() as nursery:
        person = await kernel.first_view(nursery)
        if person.is_closed:
            return [f"the next start is refused: {kernel.log.read_text()[-300:]}"], 0
        agent = await kernel.agent(nursery)
        told.agents.append(agent)
        for envelope in told.sent:
            receipt = await agent.resend(envelope)
            if envelope["message_id"] in told.accepted and not receipt["accepted"]:
                broken.append(f"an accepted {envelope['type']} is refused with {receipt.get('code')}")
        for envelope in told.sent:
            call_id = envelope["payload"].get("call_id")
            tool_id = envelope["payload"].get("tool_id", "")
            if tool_id.startswith(("fixture.", "keeper.")) and "result" not in await agent.result(call_id):
                broken.append(f"{tool_id} ended as {agent.results[call_id]}")
        finals: dict[str, set[str]] = {}
        for one in told.agents:
            for call_id, names in finals_of(one).items():
                finals.setdefault(call_id, set()).update(names)
        broken += [f"call {call_id} has {len(names)} results" for call_id, names in finals.items() if len(names) != 1]
        zombies = await settled_zombies(kernel.pid, person.still)
        nursery.cancel_scope.cancel()
    return broken, zombies


def _promises(home: Path) -> list[str]:
    if not (home / "kernel.db").exists():
        return []
    with opened_copy(home) as db:
        return invariants.check_all(db) + check_bytes_of_inv_51(db, home / "artifacts")


@dataclass
class Ground:
    """What runs side by side share: who forks their kernels, and which processes are to be there."""

    pointed: WarmParent = field(default_factory=lambda: WarmParent("tests.faults.point_kernel"))
    plain: WarmParent = field(default_factory=WarmParent)
    living: set[int] = field(default_factory=children)  # looked at again and again while an orphan is waited for
    counts: Counter[str] = field(default_factory=lambda: Counter(orphans=0, zombies=0))

    def start(self, home: Path, log: Path, parent: WarmParent, **more: Any) -> KernelUnderTest:
        """Start one more kernel."""
        kernel = KernelUnderTest.start(home, log, parent=parent, **more)
        self.living |= {kernel.pid, parent.pid}
        return kernel

    def close(self) -> None:
        """End those parents."""
        self.pointed.close()
        self.plain.close()

    async def bury(self, kernel: KernelUnderTest, zombies: int = 0) -> list[str]:
        """Nothing of a kernel that has ended is left, and there were so many zombies below it (rule 3)."""
        self.living.discard(kernel.pid)
        left = await wait_orphans(self.living)
        self.counts.update(orphans=len(left), zombies=zombies)
        return invariants.PROCESS_CHECKS["42"](left, zombies=zombies)


async def run(ground: Ground, folder: Path, point: str, side: str, way: str, skip: int, seed: int) -> tuple[bool, list[str]]:
    """One death and what comes after it. Returns whether the point was passed, and what broke."""
    home, log = folder / "home", folder / "kernel.log"
    apps = [FIXTURE, *(_written(folder, scope) for scope in ("keeper", "scribe"))]
    told = Told()
    program = ("-m", "tests.faults.point_kernel", point, side, way, str(skip), str(seed), str(home))
    kernel = ground.start(home, log, ground.pointed, apps=apps, program=program)
    try:
        broken = await _until_it_dies(kernel, told) + await ground.bury(kernel)
        has_passed = (folder / "passed").exists()
        broken += _promises(home) if way == "kill" else []  # a torn log is for the kernel to read
    finally:
        kernel.close()
    again = ground.start(home, log, ground.plain, apps=() if (home / "app-folders.json").exists() else apps)
    try:
        untrue, zombies = await after(again, told)
        with suppress(ProcessLookupError):
            await again.kill_all()
        broken += untrue + await ground.bury(again, zombies) + _promises(home)
    finally:
        again.close()
    return has_passed, broken


async def _until_it_dies(kernel: KernelUnderTest, told: Told) -> list[str]:
    async with trio.open_nursery() as nursery:
        person = await kernel.first_view(nursery)
        with suppress(*_GONE):
            if not person.is_closed:
                able = await kernel.join(nursery, label="able", providers=["clipboard.write"])
                agent = await kernel.agent(nursery)
                told.agents.append(agent)
                await work(kernel, able, agent, told)
        code = await kernel.wait_exited()
        nursery.cancel_scope.cancel()
    return [] if code in {0, -signal.SIGKILL} else [f"it ended with {code}: {kernel.log.read_text()[-300:]}"]


def _written(folder: Path, scope: str) -> Path:
    verbs = {"keeper": ("run",), "scribe": ("ask", "copy", "put", "results")}[scope]
    return write_app(folder, scope, (APPS / f"{scope}.py").read_bytes(), verbs, ("clipboard.write",) if scope == "scribe" else ())


async def _in_a_folder(ground: Ground, number: int, report: Report) -> None:
    """One run in a folder of its own."""
    point, side, way, skip = RUNS[number % len(RUNS)]
    has_passed = False
    with tempfile.TemporaryDirectory(prefix="lineup-point-") as name:
        try:
            has_passed, broken = await run(ground, Path(name), point, side, way, skip, number // len(RUNS))
            broken += [] if has_passed or skip else ["the point is not passed"]
        except Exception as error:
            broken = [f"{type(error).__name__}: {error}"[:1500] + causes_of(error)]
    report(number, has_passed, broken)


def causes_of(error: BaseException) -> str:
    """What lies within a group of errors, in one line."""
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return "".join(f" | {type(one).__name__}: {str(one)[:600]}{causes_of(one)}" for one in inner)


async def _side_by_side(ground: Ground, numbers: Sequence[int], report: Report) -> None:
    limiter = trio.CapacityLimiter(SIDE_BY_SIDE)

    async def one(number: int) -> None:
        async with limiter:
            await _in_a_folder(ground, number, report)

    async with trio.open_nursery() as nursery:
        for number in numbers:
            nursery.start_soon(one, number)


def main(numbers: Sequence[int]) -> dict[str, Any]:
    """The runs of these numbers."""
    passed = 0
    violations: dict[str, str] = {}

    def report(number: int, has_passed: bool, broken: list[str]) -> None:
        nonlocal passed
        passed += has_passed
        if broken:
            violations[f"{number}: {' '.join(map(str, RUNS[number % len(RUNS)]))}"] = "; ".join(broken)

    with sub_reaper(), closing(Ground()) as ground:
        trio.run(_side_by_side, ground, numbers, report)
        return {"done": len(numbers), "passed": passed, **ground.counts, "violations": violations}


def _numbers(arguments: Sequence[str]) -> Sequence[int]:
    if arguments[0] == "point":
        skip = int(arguments[4]) if arguments[4:] else 0
        return [RUNS.index((arguments[1], arguments[2], arguments[3], skip))]
    return range(int(arguments[0]), int(arguments[0]) + int(arguments[1]))


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(_numbers(sys.argv[1:]))) + "\n")
