"""Anything, in any order, with questions to the person among it: after each step every promise of tests/core/promises.py holds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from kernel.core.machines import INSTANCE_FINAL
from kernel.core.records import Interaction
from kernel.protocol import host as h
from kernel.protocol.agent import INTERACTION_DISMISS, InteractionDismissAsked, ToolInvoke
from kernel.protocol.host_interactions import InteractionAnswer, InteractionMove, PolicySet
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol.interaction_messages import UiCancel, UiGet, UiRequest, UiSubscribe
from tests.core.test_interactions import ANSWERS, NOTICE
from tests.core.test_model import Anything
from tests.core.world import AGENT, DEMO, KERNEL, PERSON, envelope

KINDS = st.sampled_from(["choice", "confirm", "input", "notice"])
PICKS = st.integers(0, 5)  # an interaction, counted from the newest
EXPIRES = st.sampled_from([None, None, "2030-01-02T03:05:05Z", "2030-01-02T04:04:05Z", "2000-01-01T00:00:00Z"])
PRESENTATIONS = st.sampled_from(["default", "inline", "modal"])
POLICY = "standard-interaction:asker"


def request_of(kind: str) -> dict[str, Any]:
    return NOTICE if kind == "notice" else ANSWERS[kind][0]


class Questions(Anything):
    """What anybody may do, and what may be done with questions."""

    @rule(kind=KINDS, by=st.sampled_from([AGENT, AGENT, DEMO, PERSON]), expires_at=EXPIRES)
    def ask(self, kind: str, by: Any, expires_at: str | None) -> None:
        self.world.invoke(self.new_id(), f"interaction.{kind}", request_of(kind), by=by, expires_at=expires_at)

    @rule(kind=KINDS, steps=st.integers(1, 2))
    def ask_and_die(self, kind: str, steps: int) -> None:
        revision = self.world.view.inventory.revision
        command: Any = ToolInvoke(
            envelope=None, call_id=self.new_id(), tool_id=f"interaction.{kind}", inventory_revision=revision, input=request_of(kind)
        )
        done = self.world.only(AGENT, command)
        if steps == 2:
            for decision in done.decisions:
                for effect in decision.effects:
                    if hasattr(effect, "command"):
                        self.world.only(KERNEL, effect.command)
        self.reboot()

    @rule(pick=PICKS, is_good=st.booleans(), declines=st.booleans())
    def answer(self, pick: int, is_good: bool, declines: bool) -> None:
        interaction = self.interaction(pick)
        if interaction is not None:
            given: dict[str, Any] = {"declined": True} if declines else ANSWERS.get(interaction.kind.value, ({}, {}))[1]
            said = given if is_good else {"nonsense": 1}
            digest = interaction.shown_digest.hex()
            self.world.say(PERSON, InteractionAnswer(interaction_id=interaction.interaction_id, answer=said, shown_digest=digest))

    @rule(pick=PICKS, by=st.sampled_from([AGENT, DEMO]))
    def dismiss(self, pick: int, by: Any) -> None:
        interaction = self.interaction(pick)
        if interaction is not None:
            outer = envelope(self.new_id(), INTERACTION_DISMISS)
            self.world.say(by, InteractionDismissAsked(envelope=outer, interaction_id=interaction.interaction_id, call_id=None))

    @rule(pick=PICKS, place=PRESENTATIONS)
    def move(self, pick: int, place: str) -> None:
        interaction = self.interaction(pick)
        if interaction is not None:
            self.world.say(PERSON, InteractionMove(interaction_id=interaction.interaction_id, place=place))

    @rule(kind=KINDS)
    def tool_off_and_on(self, kind: str) -> None:
        self.world.say(PERSON, h.AppDisable(name=f"interaction.{kind}"))
        self.nothing_is_broken()
        self.world.say(PERSON, h.AppEnable(name=f"interaction.{kind}"))

    # --- an App with questions of its own

    @rule(is_allowed=st.sampled_from([True, True, False]))
    def policy(self, is_allowed: bool) -> None:
        self.world.say(PERSON, PolicySet(name=POLICY, allowed=is_allowed))

    @rule(kind=KINDS, expires_at=EXPIRES, is_child=st.booleans(), presentation=PRESENTATIONS)
    def app_asks(self, kind: str, expires_at: str | None, is_child: bool, presentation: str) -> None:
        instance_id = self.asker()
        calls = self.world.view.open_calls(instance_id)
        parent = calls[-1].call_id if is_child and calls else None
        asked = {"kind": kind} | request_of(kind)
        self.world.tell(instance_id, UiRequest(request=asked, parent_call_id=parent, presentation=presentation, expires_at=expires_at))

    @rule(pick=PICKS, what=st.sampled_from([UiCancel, UiGet]))
    def app_meddles(self, pick: int, what: Any) -> None:
        interaction = self.interaction(pick)
        if interaction is not None:
            self.world.tell(self.asker(), what(interaction_id=interaction.interaction_id))

    @rule(death=st.sampled_from([False, True]))
    def app_takes_results_or_dies(self, death: bool) -> None:
        instance_id = self.asker()
        self.world.tell(instance_id, UiSubscribe())
        for row in self.world.view.inbox_rows(instance_id, 0, 5):
            self.world.tell(instance_id, m.InboxAcknowledge(message_id=row.message_id))
        if death:
            self.world.die(instance_id)

    def asker(self) -> str:
        """A running asker with a call it works on."""
        found = self.world.view.current_instance("asker")
        if found is None or found.state in INSTANCE_FINAL:
            self.world.invoke(self.new_id(), "asker.work")
            found = self.world.view.current_instance("asker")
            assert found is not None
        self.come_up("asker")
        for call in self.world.view.open_calls(found.instance_id):
            self.world.tell(found.instance_id, m.ToolAccept(call_id=call.call_id))
        return found.instance_id

    def teardown(self) -> None:
        """Whatever expires gives its call the clock back first."""
        self.world.pass_time(24 * 3_600_000)
        super().teardown()

    def interaction(self, pick: int) -> Interaction | None:
        """An interaction, counted from the newest."""
        found: list[Interaction] = self.world.rows(Interaction)
        return found[-1 - pick % len(found)] if found else None


QuestionsTest = Questions.TestCase
QuestionsTest.settings = settings(
    max_examples=12, stateful_step_count=30, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
for _invariant in ("22", "23", "24", "26"):
    QuestionsTest = pytest.mark.invariant(_invariant)(QuestionsTest)
