"""What an Agent may do, well or badly."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from kernel.core.decision import Origin, Speaker
from kernel.core.records import Source, digest_of_parts
from kernel.protocol import agent as a
from kernel.protocol.host import OutboxAcknowledge
from kernel.protocol.host_sessions import OutboxRefuse
from lineup_sdk.protocol.codes import Code
from tests.model.base import PLACES, Model

TOOLS = st.sampled_from(
    [
        *("board.open", "board.show", "board.draw", "board.peek", "board.once", "board.present", "notes.open", "notes.add"),
        *("asker.work", "runtime.status", "board.none"),
    ]
)
QUESTIONS: dict[str, dict[str, Any]] = {
    "interaction.notice": {"title": "T", "message": "M"},
    "interaction.confirm": {"title": "T", "prompt": "P"},
    "interaction.choice": {"title": "T", "prompt": "P", "mode": "multi-choice", "actions": [{"id": x, "label": x} for x in "abc"]},
    "interaction.input": {"title": "T", "prompt": "P", "fields": [{"id": "f", "label": "F", "type": "number", "required": True}]},
}
_LOST = Origin(speaker=Speaker.AGENT, source=Source.AGENT, channel=2_000_000_000)  # one whose connection is gone: its words still count
_DEMO = Origin(speaker=Speaker.AGENT, source=Source.DEMO, channel=2_000_000_001)


def input_for(tool_id: str, x: int) -> dict[str, Any]:
    """An input that fits, for x below 2; x makes it another."""
    return {"board.draw": {"x": x}, "notes.add": {"text": str(x)}, "board.open": {"title": str(x)}}.get(tool_id, {})


class AgentRules(Model):
    """See the head of the file."""

    def envelope(self, type_: str, message_id: str | None = None, content: str = "", **more: Any) -> a.Envelope:
        message_id = message_id or self.new_id()
        facts: dict[str, Any] = {"app_scope": None, "instance_id": None, "created_at": "2030-01-02T03:04:05Z"} | more
        conversation_id = facts.pop("conversation_id", self.view.conversation_id)
        digest = digest_of_parts(message_id, type_, conversation_id, content)
        return a.Envelope(type=type_, message_id=message_id, conversation_id=conversation_id, digest=digest, **facts)

    def agent(self) -> Origin:
        return self.kernel.agent() or _LOST

    def later(self, milliseconds: int | None) -> str | None:
        return None if milliseconds is None else (self.kernel.clock.now + timedelta(milliseconds=milliseconds)).isoformat()

    @rule(source=st.sampled_from([Source.AGENT, Source.AGENT, Source.DEMO, None]))
    def open_the_door(self, source: Source | None) -> None:
        self.kernel.leave()
        if source is not None:
            self.kernel.attach(source)

    @rule(
        tool_id=TOOLS, x=st.integers(0, 1), is_stale=st.sampled_from([False, False, False, True]), wait=st.sampled_from([None, None, 900])
    )
    def invoke(self, tool_id: str, x: int, is_stale: bool, wait: int | None) -> None:
        revision = "e1.0" if is_stale else self.view.inventory.revision
        command = a.ToolInvoke(
            envelope=self.envelope(a.TOOL_CALL),
            call_id=self.new_id(),
            tool_id=tool_id,
            inventory_revision=revision,
            input=input_for(tool_id, x),
            expires_at=self.later(wait),
        )
        self.kernel.say(self.agent(), command)

    @rule(
        tool_id=st.sampled_from(sorted(QUESTIONS)),
        wait=st.sampled_from([None, None, 900, 40_000]),
        presentation=st.sampled_from([None, "inline", "modal"]),
    )
    def ask(self, tool_id: str, wait: int | None, presentation: str | None) -> None:
        given = QUESTIONS[tool_id] | ({"presentation": presentation} if presentation else {})
        command = a.ToolInvoke(
            envelope=self.envelope(a.TOOL_CALL),
            call_id=self.new_id(),
            tool_id=tool_id,
            inventory_revision=self.view.inventory.revision,
            input=given,
            expires_at=self.later(wait),
        )
        self.kernel.say(self.agent(), command)

    @rule(place=PLACES, x=st.integers(0, 1))
    def invoke_again(self, place: int, x: int) -> None:
        call = self.call(place)
        if call is not None:
            given = QUESTIONS.get(call.tool_id, input_for(call.tool_id, x))
            revision = self.view.inventory.revision
            command = a.ToolInvoke(envelope=None, call_id=call.call_id, tool_id=call.tool_id, inventory_revision=revision, input=given)
            self.kernel.say(self.agent(), command)

    @rule(place=PLACES, way=st.sampled_from(["cancel", "cancel", "dismiss", "dismiss by call"]))
    def take_back(self, place: int, way: str) -> None:
        if way == "cancel":
            self.kernel.say(self.agent(), a.ToolCancelAsked(envelope=self.envelope(a.TOOL_CANCEL), call_id=self.call_id(place)))
            return
        asked = self.question(place)
        if asked is not None and asked.call_number is not None:
            call_id = self.view.call(asked.call_number).call_id if way == "dismiss by call" else None
            name = None if call_id else asked.interaction_id
            outer = self.envelope(a.INTERACTION_DISMISS)
            self.kernel.say(self.agent(), a.InteractionDismissAsked(envelope=outer, interaction_id=name, call_id=call_id))

    @rule(
        app=st.sampled_from(["board", "board", "asker", "nobody"]),
        count=st.integers(1, 3),
        topic=st.sampled_from(["note", "note", "note", "none"]),
    )
    def send_to_an_app(self, app: str, count: int, topic: str) -> None:
        for _ in range(count):
            outer = self.envelope(a.APP_MESSAGE, app_scope=app)
            self.kernel.say(self.agent(), a.AppMessageReceived(envelope=outer, topic=f"{app}.{topic}", body={"n": self.made}))

    @rule(what=st.sampled_from(["text", "version", "type", "conversation", "again", "other"]), number=st.integers(1, 60))
    def send_something_else(self, what: str, number: int) -> None:
        outer = self.envelope("lineup.v9.tool.call")
        inert = {"version": Code.UNSUPPORTED_VERSION, "type": Code.UNSUPPORTED_TYPE}
        command: object
        if what in inert:
            command = a.InertMessage(envelope=outer, payload={"call_id": "x1", "tool_id": "board.open"}, code=inert[what])
        elif what in {"again", "other"}:  # an id that may be used, with these bytes or with others
            content = what if what == "other" else ""
            outer = self.envelope(a.APP_MESSAGE, f"x{number}", content, app_scope="board")
            command = a.AppMessageReceived(envelope=outer, topic="board.note", body={})
        else:
            more = {"conversation_id": "another"} if what == "conversation" else {}
            command = a.TextReceived(envelope=self.envelope(a.MESSAGE_TEXT, **more), text="hello")
        self.kernel.say(self.agent(), command)

    @rule(count=st.integers(1, 8))
    def acknowledge_some(self, count: int) -> None:
        self.acknowledge(count)

    @rule(way=st.sampled_from(["later", "later", "refuse", "foreign"]), place=st.integers(0, 30))
    def acknowledge_oddly(self, way: str, place: int) -> None:
        """Words that wait for the commit of something else and may be lost with it, a refusal for good, a row of another's."""
        door, origin = self.kernel.door, self.kernel.agent()
        if way == "foreign":
            rows = [*self.view.outbox_pending(Source.AGENT, 0, 9), *self.view.outbox_pending(Source.PERSON, 0, 9)]
            row = self.at(place, rows)
            self.kernel.say(_DEMO, OutboxAcknowledge(message_id=row.message_id if row is not None else "nothing"))
        elif door is not None and origin is not None and door.rows:
            message_id = next(iter(door.rows))
            del door.rows[message_id]
            if way == "later":
                self.kernel.say_later(origin, OutboxAcknowledge(message_id=message_id))
            else:
                self.kernel.say(origin, OutboxRefuse(message_id=message_id, code="not_wanted"))
