"""What Apps may say on their channels, and what is said on the channel of a life that is gone."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from kernel.core.events import ArtifactReceived
from kernel.core.surface_records import Artifact
from lineup_sdk.protocol import capability_messages as c
from lineup_sdk.protocol import interaction_messages as i
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol import surface_messages as s
from lineup_sdk.protocol import system_messages as y
from tests.model.agent_rules import QUESTIONS, TOOLS
from tests.model.base import APPS, PLACES, Model
from tests.store.stored import rows_of

_QUESTIONS = st.sampled_from(sorted(QUESTIONS))


class WorkerRules(Model):
    """See the head of the file."""

    @rule(app=APPS, subscribes=st.sampled_from([True, True, True, False]))
    def one_comes_up(self, app: str, subscribes: bool) -> None:
        self.come_up(app, subscribes)

    @rule(takes_all=st.booleans())
    def all_come_up(self, takes_all: bool) -> None:
        for app in ("board", "notes", "asker", "chat"):
            self.come_up(app)
            instance = self.instance(app)
            for call in self.view.open_calls(instance.instance_id) if instance is not None and takes_all else []:
                self.tell_of(call, m.ToolAccept(call_id=call.call_id))

    @rule(tool_id=TOOLS, percent=st.sampled_from([None, 10.0]), ending=st.sampled_from(["complete", "fail", "cancel", None, None]))
    def work_on_a_new_call(self, tool_id: str, percent: float | None, ending: str | None) -> None:
        """The whole way of a call, or the first half of it."""
        self.invoke(tool_id, 1, is_stale=False, wait=None)  # type: ignore[attr-defined]
        call = self.call(0)
        if call is None:
            return
        self.come_up(call.app_scope)
        name = call.call_id
        said: list[object] = [m.ToolAccept(call_id=name)]
        said += [m.ToolProgress(call_id=name, percent=percent)] if percent is not None else []
        said += [self.endings(name)[ending]] if ending is not None else []
        self.tell_of(self.view.call(call.number), *said)

    @staticmethod
    def endings(name: str) -> dict[str, object]:
        """What a worker can say to end a call."""
        complete = m.ToolComplete(call_id=name, result={"ok": True})
        return {"complete": complete, "fail": m.ToolFail(call_id=name, reason="no"), "cancel": m.ToolCancel(call_id=name)}

    @rule(place=PLACES, what=st.sampled_from(["accept", "progress", "seen", "get", "fail", "cancel", "complete", "bad", "too far"]))
    def say_of_a_call(self, place: int, what: str) -> None:
        name = self.call_id(place)
        said: dict[str, object] = self.endings(name) | {
            "accept": m.ToolAccept(call_id=name),
            "bad": m.ToolComplete(call_id=name, result={"ok": 1}),
            "get": m.ToolsGet(call_id=name),
            "progress": m.ToolProgress(call_id=name, percent=50.0),
            "seen": m.ToolCancelSeen(call_id=name),
            "too far": m.ToolProgress(call_id=name, percent=101.0),
        }
        self.tell_of(self.call(place), said[what])

    @rule(ending=st.sampled_from(["complete", "complete", "fail", "cancel"]), count=st.integers(1, 3))
    def finish_open_calls(self, ending: str, count: int) -> None:
        for call in self.view.calls(state="open", limit=count):
            self.come_up(call.app_scope)
            self.tell_of(call, m.ToolAccept(call_id=call.call_id), self.endings(call.call_id)[ending])

    @rule(place=PLACES, order=st.permutations(["complete", "fail", "cancel"]))
    def end_it_in_every_way_at_once(self, place: int, order: list[str]) -> None:
        name = self.call_id(place)
        ways = self.endings(name)
        self.tell_of(self.call(place), m.ToolAccept(call_id=name), *(ways[way] for way in order))

    @rule(app=APPS, place=PLACES, number=st.integers(1, 40))
    def reach_for_anything(self, app: str, place: int, number: int) -> None:
        """Calls, messages, questions and artifacts of whoever it is."""
        name = self.call_id(place)
        asked = self.question(place)
        artifact: Artifact | None = self.at(place, rows_of(self.kernel.store, Artifact))
        self.tell(
            app,
            m.ToolsGet(call_id=name),
            m.ToolCancelSeen(call_id=name),
            m.InboxAcknowledge(message_id=f"x{number}"),
            m.InboxList(),
            i.UiGet(interaction_id=asked.interaction_id if asked is not None else "nothing"),
            s.ArtifactGet(artifact_id=artifact.artifact_id if artifact is not None else "nothing", offset=0),
        )

    @rule(place=st.integers(0, 20), pick=PLACES, what=st.sampled_from(["complete", "fail", "inbox", "state", "close", "surface"]))
    def say_late(self, place: int, pick: int, what: str) -> None:
        """The words of any life there ever was, most of them gone."""
        origin = self.at(place, self.lives)
        if origin is None or origin == self.kernel.worker(origin.instance_id):
            return
        said: dict[str, object] = {
            "complete": m.ToolComplete(call_id=self.call_id(pick), result={"ok": True}),
            "fail": m.ToolFail(call_id=self.call_id(pick), reason="no"),
            "inbox": m.InboxAcknowledge(message_id=f"x{pick}"),
            "state": m.StateSave(state={"late": True}),
            "close": m.LifecycleRequestClose(),
            "surface": s.SurfaceOpen(),
        }
        self.kernel.say(origin, said[what])

    @rule(app=st.sampled_from(["board", "asker", "notes"]), count=st.integers(1, 4))
    def acknowledge_messages(self, app: str, count: int) -> None:
        instance = self.instance(app)
        rows = self.view.inbox_rows(instance.instance_id, 0, count) if instance is not None else []
        for row in rows:
            self.tell(app, m.InboxAcknowledge(message_id=row.message_id))

    @rule(app=APPS, command=st.sampled_from([m.LifecycleRequestForeground(), m.LifecycleRequestBackground(), m.LifecycleRequestClose()]))
    def ask(self, app: str, command: Any) -> None:
        self.tell(app, command)

    @rule(app=APPS, n=st.integers(0, 3))
    def save_and_load(self, app: str, n: int) -> None:
        self.tell(app, m.StateSave(state={"n": n}), m.StateLoad())

    # ------------------------------------------------------------------ surfaces and artifacts

    @rule(app=st.sampled_from(["board", "notes", "chat"]), act=st.sampled_from(["open", "open", "read", "close"]))
    def work_on_the_surface(self, app: str, act: str) -> None:
        self.tell(app, {"open": s.SurfaceOpen(), "read": s.SurfaceRead(), "close": s.SurfaceClose()}[act])

    @rule(app=st.sampled_from(["board", "notes"]), key=st.sampled_from("ab"), value=st.sampled_from([None, 1, {"c": None, "d": [1]}]))
    def update_the_surface(self, app: str, key: str, value: Any) -> None:
        instance = self.instance(app)
        surface = self.view.surfaces.of_session(instance.app_session_id) if instance is not None else None
        base = surface.version if surface is not None else 0
        self.tell(app, s.SurfaceUpdate(base_version=base, patch={key: value}), s.SurfaceUpdate(base_version=base, patch={key: 2}))

    @rule(app=st.sampled_from(["board", "notes"]), content=st.sampled_from([b"a", b"b"]))
    def keep_bytes(self, app: str, content: bytes) -> None:
        self.tell(app, ArtifactReceived(sha256=sha256(content).hexdigest(), size=len(content), media_type="image/svg+xml"))

    # ------------------------------------------------------------------ questions, capabilities, the conversation

    @rule(kind=_QUESTIONS, place=PLACES, has_parent=st.booleans(), wait=st.sampled_from([None, 900]))
    def ask_the_person(self, kind: str, place: int, has_parent: bool, wait: int | None) -> None:
        request = QUESTIONS[kind] | {"kind": kind.partition(".")[2]}
        expires_at = self.later(wait)  # type: ignore[attr-defined]
        parent = self.call_id(place) if has_parent else None
        self.tell("asker", i.UiRequest(request=request, parent_call_id=parent, expires_at=expires_at))

    @rule(place=PLACES)
    def take_a_question_back(self, place: int) -> None:
        asked = self.question(place)
        self.tell("asker", i.UiCancel(interaction_id=asked.interaction_id if asked is not None else "nothing"))

    @rule(
        app=st.sampled_from(["notes", "notes", "notes", "board"]),
        is_text=st.booleans(),
        place=PLACES,
        has_parent=st.booleans(),
        decision=st.sampled_from(["once", "while_open", "always", "deny", "never", None]),
        is_done=st.sampled_from([True, False, None]),
    )
    def use_a_capability(self, app: str, is_text: bool, place: int, has_parent: bool, decision: str | None, is_done: bool | None) -> None:
        """The whole way of a request, or the first half of it."""
        name = "clipboard.write" if is_text else "notification.show"
        arguments = {"text": "t"} if is_text else {"title": "t"}
        parent = self.call_id(place) if has_parent else None
        if is_text:
            self.move_an_app(app, "raise")  # type: ignore[attr-defined]
        self.tell(app, c.CapabilityRequest(capability=name, reason="why", arguments=arguments, parent_call_id=parent))
        if decision is not None:
            self.consent(0, decision, 0, is_shown=True)  # type: ignore[attr-defined]
        if is_done is not None:
            self.host_is_done(0, 0, is_done)  # type: ignore[attr-defined]

    @rule(number=st.integers(1, 60), folded=st.booleans())
    def speak_in_the_conversation(self, number: int, folded: bool) -> None:
        self.tell("chat", y.ConversationSendText(text="hello"), y.TimelinePlace(number=number, folded=folded))
