"""Anything, in any order: after each step every promise of tests/core/promises.py holds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kernel.core.events import AgentAttached, Death, MemoryRanShort, WorkerExited
from kernel.core.limits import IDLE_AFTER_MS
from kernel.core.machines import CALL_OPEN, InstanceState
from kernel.core.records import AppSession, Instance, OutboxRow, ToolCall
from kernel.protocol import host as h
from kernel.protocol.agent import APP_MESSAGE, AppMessageReceived, ToolCancelAsked, ToolInvoke
from kernel.protocol.host_sessions import AppOpen, AppStartEmpty, SessionsContinue
from lineup_sdk.protocol import messages as m
from tests.core.dict_view import DictView
from tests.core.promises import broken, broken_between
from tests.core.system_app import WITH_CHAT
from tests.core.world import AGENT, DEMO, KERNEL, PERSON, World, envelope

APPS = st.sampled_from(["board", "notes", "chat"])
CALLS = st.integers(0, 5)  # a call, counted from the newest
TOOLS = st.sampled_from(
    ["board.open", "board.show", "board.draw", "board.peek", "board.once", "board.present", "notes.open", "notes.add", "runtime.status"]
)
MAKING = st.sampled_from(["board.open", "board.peek", "board.once", "notes.open", "notes.add"])
SWITCHES = st.sampled_from(["board", "notes", "board.once", "chat"])
DEATHS = st.sampled_from([Death.CRASH, Death.CRASH, Death.CRASH, Death.KILLED, Death.ZYGOTE, Death.VIOLATION])
ASKERS = st.sampled_from([AGENT, AGENT, AGENT, DEMO, PERSON])
TIMES = st.sampled_from([0, 300, 2_000, 6_000, 30_000, 61_000, IDLE_AFTER_MS])


def input_for(tool_id: str, x: int = 0) -> dict[str, Any]:
    return {"x": x} if tool_id == "board.draw" else {}


class Anything(RuleBasedStateMachine):
    """One world, and whoever may say something to it."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(view=DictView(WITH_CHAT))
        self.world.boot()
        self.seen = self.world.view.copy()
        self.made = 0

    def new_id(self) -> str:
        self.made += 1
        return f"x{self.made}"

    # --- the Agent and the person

    @rule(tool_id=TOOLS, by=ASKERS, revision=st.sampled_from([None, None, None, "e1.0"]))
    def invoke(self, tool_id: str, by: Any, revision: str | None) -> None:
        more = {"inventory_revision": revision} if revision else {}
        self.world.invoke(self.new_id(), tool_id, input_for(tool_id), by=by, **more)

    @rule(tool_id=MAKING, by=ASKERS, percent=st.sampled_from([None, 10.0, 50.0]))
    def work_on_a_new_call(self, tool_id: str, by: Any, percent: float | None) -> None:
        call_id = self.new_id()
        self.world.invoke(call_id, tool_id, by=by)
        self.come_up(tool_id.partition(".")[0])
        self.of_call(0, m.ToolAccept(call_id=call_id))
        if percent is not None:
            self.of_call(0, m.ToolProgress(call_id=call_id, percent=percent))

    @rule(tool_id=TOOLS)
    def invoke_and_die_before_routing(self, tool_id: str) -> None:
        revision = self.world.view.inventory.revision
        given = input_for(tool_id)
        command = ToolInvoke(envelope=None, call_id=self.new_id(), tool_id=tool_id, inventory_revision=revision, input=given)
        self.world.only(AGENT, command)
        self.reboot()

    @rule(pick=CALLS, x=st.integers(0, 1), by=ASKERS)
    def invoke_again(self, pick: int, x: int, by: Any) -> None:
        call = self.call(pick)
        if call is not None:
            self.world.invoke(call.call_id, call.tool_id, input_for(call.tool_id, x), by=by)

    @rule(pick=CALLS, by=st.sampled_from([AGENT, PERSON]))
    def cancel(self, pick: int, by: Any) -> None:
        call = self.call(pick)
        call_id = call.call_id if call is not None else "nothing"
        self.world.say(by, ToolCancelAsked(envelope=None, call_id=call_id) if by is AGENT else h.CallCancel(call_id=call_id))

    @rule(by=st.sampled_from([AGENT, DEMO, PERSON]), place=st.integers(0, 40))
    def acknowledge(self, by: Any, place: int) -> None:
        rows = self.world.rows(OutboxRow)
        if rows:
            self.world.say(by, h.OutboxAcknowledge(message_id=rows[place % len(rows)].message_id))

    @rule(by=st.sampled_from([AGENT, DEMO]))
    def attach(self, by: Any) -> None:
        self.world.say(by, AgentAttached())

    @rule(count=st.integers(1, 3))
    def message(self, count: int) -> None:
        for _ in range(count):
            outer = envelope(self.new_id(), APP_MESSAGE, app_scope="board")
            self.world.say(AGENT, AppMessageReceived(envelope=outer, topic="board.note", body={}))

    @rule(name=SWITCHES)
    def switch_off_and_on(self, name: str) -> None:
        self.world.say(PERSON, h.AppDisable(name=name))
        self.nothing_is_broken()
        self.world.say(PERSON, h.AppEnable(name=name))

    @rule(name=SWITCHES, is_on=st.booleans())
    def switch(self, name: str, is_on: bool) -> None:
        self.world.say(PERSON, h.AppEnable(name=name) if is_on else h.AppDisable(name=name))

    @rule(app=APPS, says_yes=st.booleans())
    def close(self, app: str, says_yes: bool) -> None:
        for instance in self.instances(app):
            if says_yes:
                self.world.close(instance.instance_id)
            else:
                self.world.say(PERSON, h.AppClose(instance_id=instance.instance_id))

    @rule(app=APPS, is_chat=st.booleans())
    def raise_app(self, app: str, is_chat: bool) -> None:
        for instance in self.instances(app):
            self.world.say(PERSON, h.FocusRaise(instance_id="chat" if is_chat else instance.instance_id))

    @rule(app=APPS)
    def open_app(self, app: str) -> None:
        self.world.say(PERSON, AppOpen(app_scope=app))

    @rule(app=APPS, pick=st.integers(0, 5), is_empty=st.booleans())
    def go_on_with_a_session(self, app: str, pick: int, is_empty: bool) -> None:
        sessions = self.world.rows(AppSession)
        if is_empty:
            self.world.say(PERSON, AppStartEmpty(app_scope=app))
        elif sessions:
            self.world.say(PERSON, SessionsContinue(app_session_id=sessions[-1 - pick % len(sessions)].app_session_id))

    @rule()
    def memory_runs_short(self) -> None:
        self.world.say(KERNEL, MemoryRanShort())

    # --- the workers

    @rule(app=APPS)
    def come_up(self, app: str) -> None:
        for instance in self.instances(app):
            if instance.state is not InstanceState.SUSPENDED:
                self.world.start(instance.instance_id)

    @rule(pick=CALLS, kind=st.sampled_from([m.ToolAccept, m.ToolCancel, m.ToolCancelSeen, m.ToolsGet]))
    def say_of_a_call(self, pick: int, kind: Any) -> None:
        self.of_call(pick, kind(call_id=self.call_id(pick)))

    @rule(pick=CALLS, percent=st.sampled_from([None, 10.0, 90.0, 101.0]))
    def progress(self, pick: int, percent: float | None) -> None:
        self.of_call(pick, m.ToolProgress(call_id=self.call_id(pick), percent=percent))

    @rule(pick=CALLS, ok=st.sampled_from([True, True, "no"]))
    def complete(self, pick: int, ok: Any) -> None:
        self.of_call(pick, m.ToolAccept(call_id=self.call_id(pick)))
        self.of_call(pick, m.ToolComplete(call_id=self.call_id(pick), result={"ok": ok}))

    @rule(pick=CALLS)
    def fail(self, pick: int) -> None:
        self.of_call(pick, m.ToolFail(call_id=self.call_id(pick), reason="no"))

    @rule(app=APPS, command=st.sampled_from([m.LifecycleRequestForeground(), m.LifecycleRequestBackground(), m.LifecycleRequestClose()]))
    def ask(self, app: str, command: Any) -> None:
        for instance in self.instances(app):
            self.world.tell(instance.instance_id, command)

    @rule(app=APPS)
    def acknowledge_messages(self, app: str) -> None:
        for instance in self.instances(app):
            for row in self.world.view.inbox_rows(instance.instance_id, 0, 3):
                self.world.tell(instance.instance_id, m.InboxAcknowledge(message_id=row.message_id))

    @rule(app=APPS, death=DEATHS, age=st.sampled_from([0, 0, 0, 1]), is_up_again=st.booleans())
    def die(self, app: str, death: Death, age: int, is_up_again: bool) -> None:
        for instance in self.instances(app):
            life = instance.life - age
            self.world.say(KERNEL, WorkerExited(instance_id=instance.instance_id, life=life, death=death))
        if is_up_again:
            self.come_up(app)

    @rule(app=APPS)
    def crash_in_a_loop(self, app: str) -> None:
        for _ in range(3):
            self.die(app, Death.CRASH, 0, True)

    # --- the machine

    @rule(milliseconds=TIMES)
    def time_passes(self, milliseconds: int) -> None:
        self.world.pass_time(milliseconds)

    @rule()
    def reboot(self) -> None:
        self.world.boot()

    # --- what holds

    @invariant()
    def nothing_is_broken(self) -> None:
        now = self.world.view
        assert broken(now) == []
        assert broken_between(self.seen, now) == []
        self.seen = now.copy()

    def instances(self, app: str) -> list[Instance]:
        return [one for one in self.world.rows(Instance) if one.app_scope == app][-1:]

    def call(self, pick: int) -> ToolCall | None:
        calls = self.world.rows(ToolCall)
        return calls[-1 - pick % len(calls)] if calls else None

    def call_id(self, pick: int) -> str:
        call = self.call(pick)
        return call.call_id if call is not None else "nothing"

    def of_call(self, pick: int, message: Any) -> None:
        call = self.call(pick)
        if call is not None and call.instance_id is not None:
            self.world.tell(call.instance_id, message)

    def teardown(self) -> None:
        """Time ends every call that has a clock, wherever it stood (L2)."""
        self.world.pass_time(24 * 3_600_000)
        left = [call for call in self.world.rows(ToolCall) if call.status in CALL_OPEN and call.deadline is not None]
        assert left == []
        self.nothing_is_broken()


ModelTest = Anything.TestCase
ModelTest.settings = settings(
    max_examples=10, stateful_step_count=30, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
for _invariant in ("10", "16", "18", "20", "37", "38"):
    ModelTest = pytest.mark.invariant(_invariant)(ModelTest)
