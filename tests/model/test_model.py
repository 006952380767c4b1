"""Anything, by anyone, in any order, with the kernel dying anywhere: every promise of tests/invariants.py holds after each step.

`make test` runs MIN_STEPS steps; LINEUP_MODEL_RUNS=2000 runs that many homes of STEPS_A_RUN steps each, anew every time.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule, run_state_machine_as_test

from kernel.core.events import Death, MemoryRanShort, SweepBodies
from kernel.core.grants import policy_of
from kernel.core.records import Source
from lineup_sdk.protocol.surface_messages import SurfaceOpen
from tests.model.agent_rules import AgentRules
from tests.model.base import APPS
from tests.model.person_rules import PersonRules
from tests.model.worker_rules import WorkerRules

STEPS_A_RUN = 60
MIN_STEPS = 20_000
RUNS = int(os.environ.get("LINEUP_MODEL_RUNS", "0"))
DEATHS = st.sampled_from([Death.CRASH, Death.CRASH, Death.CRASH, Death.ZYGOTE, Death.VIOLATION])
SETTINGS = settings(
    max_examples=RUNS or MIN_STEPS // 50,
    stateful_step_count=STEPS_A_RUN,
    derandomize=not RUNS,
    deadline=None,
    database=None,
    print_blob=True,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
TIMES = st.sampled_from([0, 300, 1_100, 2_500, 6_000, 31_000, 61_000, 700_000])


class Anything(AgentRules, PersonRules, WorkerRules):
    """One home, and whoever may do something to it; the machine's own doings stand here."""

    steps: ClassVar[int] = 0  # of all runs

    @initialize(is_used=st.sampled_from([True, True, True, False]))
    def begin(self, is_used: bool) -> None:
        """A home that is in use, or a new one."""
        if is_used:
            self.kernel.attach(Source.AGENT)
            self.attach_a_view("view-1-console", can=True)
            self.switch(policy_of("asker"), is_on=True)
            for app in ("asker", "notes", "board"):
                self.move_an_app(app, "open")
                self.tell(app, SurfaceOpen())

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

    @rule(is_full=st.booleans())
    def disk_fills_or_frees(self, is_full: bool) -> None:
        if is_full:
            self.kernel.disk_is_full = True
        else:
            self.kernel.free_the_disk()

    @rule(age_ms=st.sampled_from([0, 3_000, 700_000]))
    def time_of_bodies_is_over(self, age_ms: int) -> None:
        self.kernel.say_itself(SweepBodies(before=self.kernel.clock.now - timedelta(milliseconds=age_ms)))

    @rule(how=st.sampled_from(["back up", "restore"]))
    def person_uses_the_backup_tool(self, how: str) -> None:
        if how == "back up":
            self.kernel.back_up_with_the_tool()
        else:
            self.kernel.restore_with_the_tool()

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
        type(self).steps += 1
        self.check()


@pytest.mark.clause("5.1")
@pytest.mark.clause("5.3")
@pytest.mark.clause("6.2")
@pytest.mark.clause("6.4")
@pytest.mark.clause("7.3")
@pytest.mark.clause("8.1")
@pytest.mark.clause("8.2")
@pytest.mark.clause("9.1")
@pytest.mark.clause("10")
@pytest.mark.clause("12")
def test_every_promise_holds_after_every_step() -> None:
    Anything.steps = 0
    run_state_machine_as_test(Anything, settings=SETTINGS)
    assert Anything.steps >= MIN_STEPS
