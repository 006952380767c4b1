"""What the person may do, in any view."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from kernel.core.capability_records import CapabilityRequest
from kernel.core.decision import Origin, Speaker
from kernel.core.events import CallerLeft, ViewAttached, ViewLeft
from kernel.core.grants import policy_of
from kernel.core.machines import CapabilityStatus
from kernel.core.records import AppSession, Interaction, Source
from kernel.core.surface_records import Surface
from kernel.protocol import host as h
from kernel.protocol import host_capabilities as hc
from kernel.protocol import host_interactions as hi
from kernel.protocol import host_sessions as hn
from kernel.protocol import host_surfaces as hs
from kernel.protocol import host_upkeep as u
from kernel.turns import Outcome
from tests.model.agent_rules import QUESTIONS, TOOLS, input_for
from tests.model.base import ADMIN, APPS, PLACES, Model
from tests.store.stored import rows_of

_GOOD: dict[str, list[dict[str, Any]]] = {
    "choice": [{"action_ids": ["b"]}, {"action_ids": ["c", "a"]}, {"declined": True}],
    "confirm": [{"approved": True}, {"approved": False}],
    "input": [{"fields": {"f": 1}}, {"fields": {"f": 0.5}}, {"declined": True}],
    "notice": [{}],
}
_BAD: list[dict[str, Any]] = [{}, {"approved": 1}, {"action_ids": ["z"]}, {"action_ids": ["a", "a"]}, {"fields": {}}, {"declined": False}]
SWITCHES = ("board", "notes", "asker", "board.once", "chat")
_VIEWS = st.sampled_from(["view-1-console", "view-2-headless"])
_DECISIONS = st.sampled_from(["once", "while_open", "always", "deny", "never", "once", "always"])
_CAPABILITIES = st.sampled_from(["clipboard.write", "notification.show"])


class PersonRules(Model):
    """See the head of the file."""

    # ------------------------------------------------------------------ views

    @rule(view_id=_VIEWS, can=st.sampled_from([True, True, False]))
    def come_or_go(self, view_id: str, can: bool) -> None:
        """A view attaches; one that is attached leaves."""
        origin = self.kernel.views.pop(view_id, None)
        if origin is not None:
            self.kernel.say(origin, ViewLeft())
        else:
            self.attach_a_view(view_id, can)

    def attach_a_view(self, view_id: str, can: bool) -> None:
        place = len(self.kernel.views) + 2
        origin = Origin(speaker=Speaker.VIEW, source=Source.PERSON, channel=-place, request_id=1, view_id=view_id)
        self.kernel.views[view_id] = origin
        providers = frozenset({"clipboard.write", "notification.show"}) if can else frozenset()
        self.kernel.say(origin, ViewAttached(providers=providers))

    # ------------------------------------------------------------------ questions

    @rule(place=PLACES, pick=st.integers(0, 2), trouble=st.sampled_from([None, None, None, "answer", "digest"]), views=st.integers(1, 2))
    def answer(self, place: int, pick: int, trouble: str | None, views: int) -> None:
        """One view answers, or two at the same moment."""
        asked = self.question(place)
        if asked is None:
            return
        given = self.at(pick, _BAD if trouble == "answer" else _GOOD[asked.kind.value]) or {}
        digest = "00" if trouble == "digest" else asked.shown_digest.hex()
        command = hi.InteractionAnswer(interaction_id=asked.interaction_id, answer=given, shown_digest=digest)
        self.kernel.say_all([(self.a_view(which), command) for which in range(views)])

    @rule(place=PLACES, where=st.sampled_from(["inline", "modal", "default"]))
    def move(self, place: int, where: str) -> None:
        asked = self.question(place)
        if asked is not None:
            self.kernel.say(ADMIN, hi.InteractionMove(interaction_id=asked.interaction_id, place=where))

    # ------------------------------------------------------------------ calls and text

    @rule(tool_id=TOOLS, x=st.integers(0, 1))
    def call_with_the_own_hand(self, tool_id: str, x: int) -> None:
        self.kernel.say(self.a_view(), h.CallInvoke(tool_id=tool_id, input=QUESTIONS.get(tool_id, input_for(tool_id, x))))

    @rule(place=PLACES, way=st.sampled_from(["cancel", "acknowledge", "acknowledge", "leave", "text"]))
    def look_after_the_conversation(self, place: int, way: str) -> None:
        row = self.at(place, self.view.outbox_pending(Source.PERSON, 0, 9))
        if way == "cancel":
            self.kernel.say(self.a_view(), h.CallCancel(call_id=self.call_id(place)))
        elif way == "text":
            self.kernel.say(self.a_view(), h.MessageSend(text="hello"))
        elif row is not None and way == "leave" and row.call_number is not None:
            self.kernel.say_itself(CallerLeft(call_number=row.call_number))
        elif row is not None:
            self.kernel.say(ADMIN, h.OutboxAcknowledge(message_id=row.message_id))

    # ------------------------------------------------------------------ Apps

    @rule(
        name=st.sampled_from(["board", "notes", "asker", "board.once", "chat", policy_of("asker")]),
        is_on=st.sampled_from([True, True, False]),
    )
    def switch(self, name: str, is_on: bool) -> None:
        if name == policy_of("asker"):
            self.kernel.say(ADMIN, hi.PolicySet(name=name, allowed=is_on))
        else:
            self.kernel.say(ADMIN, h.AppEnable(name=name) if is_on else h.AppDisable(name=name))

    @rule(app=APPS, act=st.sampled_from(["open", "open", "raise", "raise", "close", "close all", "empty"]))
    def move_an_app_by_rule(self, app: str, act: str) -> None:
        self.move_an_app(app, act)

    def move_an_app(self, app: str, act: str) -> list[Outcome]:
        """open, empty, raise, close (which asks if there is work), close all (and then a yes)."""
        instance = self.instance(app)
        if act == "open":
            return self.kernel.say(ADMIN, hn.AppOpen(app_scope=app))
        if act == "empty":
            return self.kernel.say(ADMIN, hn.AppStartEmpty(app_scope=app))
        if instance is None:
            return []
        if act == "raise":
            return self.kernel.say(ADMIN, h.FocusRaise(instance_id=instance.instance_id))
        said = self.kernel.say(ADMIN, h.AppClose(instance_id=instance.instance_id))
        asked = [self.view.interaction(one.value["asked"]) for one in said if one.value]
        return [*said, *(outcome for one in asked if act == "close all" and one is not None for outcome in self.say_yes(one))]

    def say_yes(self, asked: Interaction) -> list[Outcome]:
        shown = asked.shown_digest.hex()
        yes = hi.InteractionAnswer(interaction_id=asked.interaction_id, answer={"approved": True}, shown_digest=shown)
        return self.kernel.say(self.a_view(), yes)

    @rule(place=PLACES)
    def go_on_with_a_session(self, place: int) -> None:
        session = self.at(place, rows_of(self.kernel.store, AppSession))
        if session is not None:
            self.kernel.say(ADMIN, hn.SessionsContinue(app_session_id=session.app_session_id))

    @rule(place=PLACES, is_dropped=st.booleans())
    def look_after_parked_messages(self, place: int, is_dropped: bool) -> None:
        row = self.at(place, self.view.upkeep.parked_rows(after=0, limit=9))
        if row is not None:
            self.kernel.say(ADMIN, u.InboxDrop(number=row.number) if is_dropped else u.InboxRetry(number=row.number))

    # ------------------------------------------------------------------ capabilities

    def requests(self) -> list[CapabilityRequest]:
        found: list[CapabilityRequest] = rows_of(self.kernel.store, CapabilityRequest)
        return found[::-1][:6]

    @rule(place=PLACES, decision=_DECISIONS, which=st.integers(0, 2), is_shown=st.sampled_from([True, True, True, False]))
    def consent(self, place: int, decision: str, which: int, is_shown: bool) -> None:
        asked = self.at(place, [one for one in self.requests() if one.status is CapabilityStatus.ASKED] or self.requests())
        if asked is not None:
            shown = asked.shown_digest.hex() if is_shown else "00"
            self.kernel.say(self.a_view(which), hc.ConsentAnswer(request_id=asked.request_id, decision=decision, shown=shown))

    @rule(place=PLACES, which=st.integers(0, 2), is_done=st.booleans())
    def host_is_done(self, place: int, which: int, is_done: bool) -> None:
        asked = self.at(place, self.requests())
        if asked is not None:
            status = "done" if is_done else "failed"
            self.kernel.say(self.a_view(which), hc.ProviderResult(request_id=asked.request_id, status=status))

    @rule(capability=_CAPABILITIES, is_all=st.sampled_from([False, False, True]))
    def revoke(self, capability: str, is_all: bool) -> None:
        command = hc.PermissionsReset() if is_all else hc.PermissionsRevoke(app_scope="notes", capability=capability)
        self.kernel.say(ADMIN, command)

    # ------------------------------------------------------------------ surfaces

    @rule(
        place=PLACES,
        which=st.integers(0, 2),
        act=st.sampled_from(["mount", "mount", "patch", "patch", "event", "unmount"]),
        age=st.sampled_from([0, 0, 0, 1]),
        base=st.sampled_from([0, 0, 0, 1]),
    )
    def work_in_a_surface(self, place: int, which: int, act: str, age: int, base: int) -> None:
        surface: Surface | None = self.at(place, self.view.surfaces.open_ones())
        if surface is None:
            return
        name, epoch, version = surface.surface_id, surface.mount_epoch - age, surface.version - base
        commands: dict[str, object] = {
            "mount": hs.SurfaceMount(surface_id=name),
            "patch": hs.SurfacePatch(surface_id=name, mount_epoch=epoch, base_version=version, patch={"p": place, "q": {"r": None}}),
            "event": hs.SurfaceEvent(surface_id=name, mount_epoch=epoch, name="submit", body={}),
            "unmount": hs.SurfaceUnmount(surface_id=name, mount_epoch=epoch),
        }
        by = next((one for one in self.kernel.views.values() if one.view_id == surface.mounted_view_id), None)
        self.kernel.say(self.a_view(which) if act == "mount" or which == 1 or by is None else by, commands[act])
