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

    @rule(hours=st.sampled_from([-1, 1]))
    def wall_clock_jumps(self, hours: int) -> None:
        self.kernel.clock.jump(hours)

    @rule(app=APPS, death=DEATHS)
    def process_dies(self, app: str, death: Death) -> None:
        instance = self.instance(app)
        if instance is not None:
            self.kernel.die(instance.instance_id, death)

    @rule(app=APPS)
    def process_dies_again_and_again(self, app: str) -> None:
        for _ in range(3):
            self.come_up(app, True)
            self.process_dies(app, Death.CRASH)
            self.kernel.pass_time(2_000)

    @rule()
    def processes_are_reaped(self) -> None:
        self.kernel.reap()

    @rule()
    def memory_runs_short(self) -> None:
        self.kernel.say_itself(MemoryRanShort())

    @rule(points=st.integers(1, 14))
    def kernel_will_die(self, points: int) -> None:
        """At that point of what comes next: before a write, before or after a commit, between two effects."""
        self.kernel.die_at = points

    @rule(is_tidy=st.booleans())
    def kernel_starts_again(self, is_tidy: bool) -> None:
        if is_tidy:
            self.kernel.stop_and_start()
        else:
            self.kernel.restart()

    @rule(slept_ms=st.sampled_from([0, 36_000_000]))
    def machine_starts_again(self, slept_ms: int) -> None:
        self.kernel.store.abandon()
        self.kernel.clock.boot_anew(slept_ms)
        self.kernel.open()

    @rule()
    def back_up(self) -> None:
        self.kernel.back_up()

    @rule()
    def restore(self) -> None:
        self.kernel.restore()

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
