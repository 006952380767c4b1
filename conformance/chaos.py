"""`python -m conformance.chaos APP [--seed N] [--seconds S]`: an app under kill, delay, duplicate and reorder, then a look at what broke.

Rules:
1. Every choice comes from the seed and the number of its act, so the same seed and number of steps is the same row of acts. How fast the
   process answers is not chosen: it decides what an act finds (which calls are open), never which acts follow.
2. Trouble is the kernel's and the machine's, never the person's: the worker has to come out of it with every promise kept:
   one outcome a call, no message lost, the saved state back, the wire whole, no death of its own.
3. When trouble is over, every call that is still open is cancelled and everything has to end. Then `remembers` of conformance.json is
   played, once as it stands, and once with a crash behind each of its deliveries, so that it comes again (an idempotent call, a message).
"""

from __future__ import annotations

import argparse
import json
import random
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf

import trio

from conformance import inputs
from conformance.__main__ import PATIENCE_SECONDS, positive, refused
from conformance.case import Broken
from conformance.plays import Play, Step, first_input, is_as_said, read_plays, tools_to_try
from conformance.probe import GRACE_MS, answer_questions
from conformance.scripted_kernel import Session, delivery_of
from conformance.targets import App, TargetInvalid, misfits, open_target, read_app
from conformance.trace import ENDINGS, Answered
from conformance.world import World
from lineup_sdk.protocol.messages import ContextChanged, JsonObject, ToolCancelRequested
from lineup_sdk.protocol.surface_messages import SurfaceChanged
from lineup_sdk.testing.records import FakeCall, FakeMessage, Outcome

_HELD_BACK = ("inbox.acknowledge", "state.save", "surface.update", "tool.accept", "tool.complete", "tool.fail")
_MAX_ATTEMPTS = 3  # crashes of its worker: at this one the kernel ends the call itself (SPEC 6.8)
_MAX_OPEN_CALLS = 64
_WEIGHTS = {
    "call": 10,
    "message": 6,
    "finish": 3,
    "cancel": 3,
    "duplicate": 4,
    "hold back": 3,
    "let go": 4,
    "reorder": 4,
    "change the surface": 2,
    "move": 2,
    "quiet": 2,
    "kill": 2,
    "suspend": 1,
}


@dataclass(slots=True)
class Report:
    """What was done and what broke."""

    seed: int
    acts: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    last_acts: list[str] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    messages: int = 0

    @property
    def steps(self) -> int:
        """How many acts there were."""
        return sum(self.acts.values())


class Chaos:
    """One run."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._duplicated: set[str] = set()
        self._lives: list[Session] = []
        self.report = Report(seed=seed)
        self._random = self._of_this_act()

    def _of_this_act(self) -> random.Random:
        """Choices of one act: how many it takes, which depends on the worker, is nothing to the next (rule 1)."""
        return random.Random(f"{self.report.seed}/{self.report.steps}")

    async def run(self, seconds: float, steps: int | None) -> Report:
        """Make trouble for so long, or so many steps; then let everything end and judge."""
        try:
            self._session = await self._world.start()
            self._lives.append(self._session)
            with trio.move_on_after(seconds if steps is None else inf) as time:
                while steps is None or self.report.steps < steps:
                    await self._act()
                    if trio.current_time() >= time.deadline:
                        break
            await self._let_everything_end()
            self._count()
            await self._remember()
            await self._world.end(self._session, how="close")
        except Broken as broken:
            self.report.broken.append(str(broken))
        self._judge()
        return self.report

    # --- trouble

    async def _act(self) -> None:
        self._random = self._of_this_act()
        name = self._random.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
        self.report.acts[name] += 1
        self.report.last_acts = [*self.report.last_acts[-19:], name]
        with trio.CancelScope(shield=True):  # time runs out between acts only
            await _ACTS[name](self)
        if self._session.is_ended:
            raise Broken(f"{await self._session.end_seen()} after: {name}")

    def _open_calls(self) -> list[FakeCall]:
        return self._session.desk.open_calls()

    def _waiting(self) -> list[FakeMessage]:
        return [m for m in self._session.desk.messages.values() if not m.is_acknowledged]

    async def call(self) -> None:
        tools = tools_to_try(self._world.target.app, self._world.plays)
        if not tools or len(self._open_calls()) >= _MAX_OPEN_CALLS:
            return
        named = [play for play in self._world.plays.roles.values() if not play.before]
        if named and self._random.random() < 0.5:
            play = self._random.choice(named)
            self._world.new_call(self._session, play.tool_id, play.input)
            return
        tool = self._random.choice(tools)
        self._world.new_call(self._session, tool["id"], self._input_of(tool))

    def _input_of(self, tool: JsonObject) -> JsonObject:
        make = self._random.choice((inputs.smallest, inputs.fullest, inputs.strange, None))
        made: JsonObject = first_input(self._world.target.app, tool) if make is None else make(tool["input_schema"])
        return made

    async def message(self) -> None:
        steps = (*self._world.plays.messages, *self._world.plays.events)
        if steps:
            self._put(self._random.choice(steps))

    def _put(self, step: Step) -> FakeCall | FakeMessage:
        if step.kind == "tool":
            return self._world.new_call(self._session, step.name, step.body)
        if step.kind == "topic":
            return self._world.new_message(self._session, step.name, step.body)
        return self._world.new_message(self._session, "surface.event", {"name": step.name, "body": step.body})

    async def finish(self) -> None:
        for step in self._world.plays.ends_open:
            self._put(step)

    async def cancel(self) -> None:
        running = [call for call in self._open_calls() if call.status == "running"]
        if running:
            call = self._random.choice(running)
            self._session.send(ToolCancelRequested(call_id=call.call_id, grace_ms=GRACE_MS))

    async def duplicate(self) -> None:
        delivered = [call for call in self._open_calls() if call.is_delivered and self._session.desk.is_subscribed_to_tools]
        waiting = [m for m in self._waiting() if m.delivery_count] if self._session.desk.is_subscribed_to_inbox else []
        chosen = self._random.choice([*delivered, *waiting, None])
        if isinstance(chosen, FakeCall):
            self._duplicated.add(chosen.call_id)
            self._session.send(chosen.called())
        elif chosen is not None:
            self._session.send(delivery_of(chosen))

    async def hold_back(self) -> None:
        self._session.hold(*self._random.sample(_HELD_BACK, self._random.randint(1, 3)))

    async def let_go(self) -> None:
        self._session.let_go(self._shuffled)

    def _shuffled(self, message: object) -> float:
        return 0.0 if getattr(message, "TYPE", "") == "tool.accept" else self._random.random()  # accept stands before its own ending

    async def reorder(self) -> None:
        """Let some calls and messages come together, in another order than they were made."""
        with self._session.holding_deliveries(self._random.shuffle):
            for _ in range(self._random.randint(2, 5)):
                await self._random.choice((self.call, self.message))()

    async def change_the_surface(self) -> None:
        surface = self._session.desk.surface
        if surface.is_open:
            version = surface.update(surface.version, {"person": self._random.randint(0, 9)})
            self._session.send(SurfaceChanged(version=version))

    async def move(self) -> None:
        self._session.send(ContextChanged(state=self._random.choice(("background", "foreground"))))

    async def quiet(self) -> None:
        await self._session.settle()
        await answer_questions(self._world, self._session)

    async def kill(self) -> None:
        self._end_what_died_too_often(is_crash=True)
        await self._next_life("crash")

    async def suspend(self) -> None:
        self._session.let_go()
        await self._next_life("suspend")

    async def _next_life(self, how: str) -> None:
        self._session = await self._world.revive(self._session, how=how)
        self._lives.append(self._session)

    def _end_what_died_too_often(self, *, is_crash: bool) -> None:
        for call in self._open_calls():
            if call.progress and not self._is_idempotent(call.tool_id):
                call.end(Outcome(status="failed", code="interrupted"))
            elif call.attempts + (is_crash and call.is_delivered) >= _MAX_ATTEMPTS:
                call.end(Outcome(status="failed", code="app_crashed"))

    def _is_idempotent(self, tool_id: str) -> bool:
        hints = {tool["id"]: tool.get("hints", {}) for tool in self._world.target.app.tools}
        return bool(hints.get(tool_id, {}).get("idempotent", False))

    # --- the end

    async def _let_everything_end(self) -> None:
        self._session.let_go()
        await self.quiet()
        for call in self._open_calls():
            self._session.send(ToolCancelRequested(call_id=call.call_id, grace_ms=GRACE_MS))
        await self._until_none(self._open_calls, "open calls to end")
        await self._until_none(self._waiting, "messages to be acknowledged")

    async def _until_none(self, left: Callable[[], Sequence[FakeCall | FakeMessage]], what: str) -> None:
        count = len(left())
        try:
            await self._session.until(lambda: not left(), f"{count} {what}")
        except Broken as broken:
            names = Counter(one.tool_id if isinstance(one, FakeCall) else one.topic for one in left())
            raise Broken(f"{broken}; left: {', '.join(f'{n} of {name}' for name, n in sorted(names.items()))}") from broken

    async def _remember(self) -> None:
        if self._world.plays.remembers is None:
            return
        first, then = self._world.plays.remembers
        await self._done(first)
        await self._require_remembered(then, "the saved state did not come back after a crash")
        for step in (*first.before, Step(kind="tool", name=first.tool_id, body=first.input)):
            await self._come_twice(step)
        await self._require_remembered(then, "what came again after a crash was done twice")

    async def _come_twice(self, step: Step) -> None:
        """Let a step come, and crash before the worker hears that it is done with it. A call the kernel may not repeat comes once."""
        if step.kind != "tool" or self._is_idempotent(step.name):
            self._session.hold("inbox.acknowledge", "tool.complete", "tool.fail")
            self._put(step)
            await self._session.settle()
            await self._next_life("crash")
            await self._session.settle()
        else:
            await self._world.act(self._session, step)

    async def _require_remembered(self, then: Play, otherwise: str) -> None:
        await self._next_life("crash")
        outcome = await self._done(then)
        if not is_as_said(outcome.result, then.result):
            came = outcome.result if outcome.status == "submitted" else outcome.reason or outcome.code
            raise Broken(f"{otherwise}: {then.tool_id} was to give {then.result}, and gave {came}")

    async def _done(self, play: Play) -> Outcome:
        call = await self._world.play(self._session, play)
        await self._session.until(lambda: call.outcome, f"a call of {call.tool_id} to end")
        assert call.outcome is not None
        return call.outcome

    def _count(self) -> None:
        desk = self._session.desk
        self.report.calls = Counter(call.status for call in desk.calls.values())
        self.report.messages = len(desk.messages)

    def _judge(self) -> None:
        report = self.report
        for life in self._lives:
            if life.broken:
                report.broken.append(f"the wire was broken: {life.broken}")
            for entry in life.trace:
                if isinstance(entry, Answered) and self._is_second_ending(entry):
                    report.broken.append(f"a call was ended twice: {life.desk.calls[getattr(entry.to, 'call_id', '')].tool_id}")
        if self._lives and not report.calls:  # it did not come to the end
            self._count()

    def _is_second_ending(self, answered: Answered) -> bool:
        is_second = answered.to.TYPE in ENDINGS and answered.code == "call_already_final"
        return is_second and getattr(answered.to, "call_id", "") not in self._duplicated | self._ended_by_us()

    def _ended_by_us(self) -> set[str]:
        desk = self._lives[-1].desk
        return {c.call_id for c in desk.calls.values() if c.outcome is not None and c.outcome.code in {"app_crashed", "interrupted"}}


_ACTS = {
    "call": Chaos.call,
    "message": Chaos.message,
    "finish": Chaos.finish,
    "cancel": Chaos.cancel,
    "duplicate": Chaos.duplicate,
    "hold back": Chaos.hold_back,
    "let go": Chaos.let_go,
    "reorder": Chaos.reorder,
    "change the surface": Chaos.change_the_surface,
    "move": Chaos.move,
    "quiet": Chaos.quiet,
    "kill": Chaos.kill,
    "suspend": Chaos.suspend,
}


async def make_trouble(app: App, seed: int, seconds: float, steps: int | None, patience: float = PATIENCE_SECONDS) -> Report:
    """Run chaos on an app. Raises: TargetInvalid, SealIncomplete."""
    if errors := misfits(app.manifest):
        raise TargetInvalid(f"the Manifest does not fit manifest.schema.json at {errors[:3]}")
    async with open_target(app) as target, trio.open_nursery() as nursery:
        world = World(target=target, plays=read_plays(app), nursery=nursery, patience=patience)
        try:
            return await Chaos(world, seed).run(seconds, steps)
        finally:
            await world.close()


def as_text(named: str, report: Report) -> str:
    """The report for people."""
    acts = ", ".join(f"{count} {name}" for name, count in report.acts.most_common())
    calls = ", ".join(f"{count} {status}" for status, count in sorted(report.calls.items()))
    lines = [f"{report.steps} acts from seed {report.seed}: {acts}", f"calls: {calls or 'none'}; messages: {report.messages}"]
    if report.broken:
        lines += [f"BROKEN  {what}" for what in dict.fromkeys(report.broken)]
        lines += [f"the last acts: {', '.join(report.last_acts)}"]
        lines += [f"again: python -m conformance.chaos {shlex.quote(named)} --seed {report.seed} --steps {report.steps}"]
    else:
        lines.append("every promise was kept")
    return "\n".join(lines) + "\n"


def as_json(named: str, report: Report) -> str:
    """The report for programs."""
    facts = {"app": named, "seed": report.seed, "steps": report.steps, "acts": report.acts, "calls": report.calls}
    return json.dumps({**facts, "messages": report.messages, "broken": report.broken, "last_acts": report.last_acts}, indent=1) + "\n"


def parser_of() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m conformance.chaos", description="Put an app under trouble, by seed.")
    parser.add_argument("app", metavar="APP", help="an app folder, or the name of a built-in app")
    parser.add_argument("--seed", type=int, help="the same seed is the same trouble; else one is drawn")
    parser.add_argument("--seconds", type=positive(float), default=10.0, help="for so long")
    parser.add_argument("--steps", type=positive(int), help="so many acts, instead of --seconds")
    parser.add_argument("--format", choices=("json", "table"), default="table")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 when every promise was kept, 1 when one was not, 2 usage, 3 when this machine cannot seal a process."""
    options = parser_of().parse_args(arguments)
    seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    try:
        report = trio.run(make_trouble, read_app(options.app), seed, options.seconds, options.steps)
    except Exception as error:  # the border of the program: what it may run into is said in one line, a fault of the suite is raised
        return refused(error, "chaos")
    sys.stdout.write((as_json if options.format == "json" else as_text)(options.app, report))
    return 1 if report.broken else 0


if __name__ == "__main__":
    sys.exit(main())
