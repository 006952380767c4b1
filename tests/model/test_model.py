"""Anything, by anyone, in any order, with the kernel dying anywhere: every promise of tests/invariants.py holds after each step.

`make test` runs MIN_STEPS steps; LINEUP_MODEL_RUNS=2000 runs that many homes of STEPS_A_RUN steps each, anew every time.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from kernel.core.events import Death, MemoryRanShort
from tests.model.agent_rules import AgentRules
from tests.model.base import APPS
from tests.model.person_rules import PersonRules
from tests.model.worker_rules import WorkerRules

STEPS_A_RUN = 60
MIN_STEPS = 20_000
RUNS = int(os.environ.get("LINEUP_MODEL_RUNS", "0"))
DEATHS = st.sampled_from([Death.CRASH, Death.CRASH, Death.CRASH, Death.ZYGOTE, Death.VIOLATION])
TIMES = st.sampled_from([0, 300, 1_100, 2_500, 6_000, 31_000, 61_000, 700_000])


class Anything(AgentRules, PersonRules, WorkerRules):
    """One home, and whoever may do something to it; the machine's own doings stand here."""

    @rule(milliseconds=TIMES)
    def time_passes(self, milliseconds: int) -> None:
        self.kernel.pass_time(milliseconds)

    @rule(app=APPS, death=DEATHS)
    def process_dies(self, app: str, death: Death) -> None:
        instance = self.instance(app)
        if instance is not None:
            self.kernel.die(instance.instance_id, death)

    @rule(app=APPS)
    def process_dies_again_and_again(self, app: str) -> None:
        for _ in range(3):
            self.come_up(app)
            self.process_dies(app, Death.CRASH)
            self.kernel.pass_time(2_000)

    @rule(what=st.sampled_from(["reap", "reap", "memory", "clock back", "clock on"]))
    def machine_does(self, what: str) -> None:
        if what == "reap":
            self.kernel.reap()
        elif what == "memory":
            self.kernel.say_itself(MemoryRanShort())
        else:
            self.kernel.clock.jump(1 if what == "clock on" else -1)

    @rule(points=st.integers(1, 14))
    def kernel_will_die(self, points: int) -> None:
        """At that point of what comes next: before a write, before or after a commit, between two effects."""
        self.kernel.die_at = points

    @rule(how=st.sampled_from(["killed", "killed", "tidy", "machine", "slept", "back up", "restore"]))
    def kernel_starts_again(self, how: str) -> None:
        match how:
            case "killed":
                self.kernel.restart()
            case "tidy":
                self.kernel.stop_and_start()
            case "back up":
                self.kernel.back_up()
            case "restore":
                self.kernel.restore()
            case _:
                self.kernel.store.abandon()
                self.kernel.clock.boot_anew(36_000_000 if how == "slept" else 0)
                self.kernel.open()

    @invariant()
    def every_promise_holds(self) -> None:
        self.check()


ModelTest = Anything.TestCase
ModelTest.settings = settings(
    max_examples=RUNS or -(-MIN_STEPS // STEPS_A_RUN),
    stateful_step_count=STEPS_A_RUN,
    derandomize=not RUNS,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
for _clause in ("5.1", "5.3", "6.2", "6.4", "7.3", "8.1", "8.2", "9.1", "10", "12"):
    ModelTest = pytest.mark.clause(_clause)(ModelTest)
