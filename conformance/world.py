"""What one case has in its hands: a target, what is known of it, and lives of its worker that share one desk.

Use: `session = await world.start()`; `session = await world.revive(session)`. Everything is ended when the case is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import cbor2
import trio
from jsonschema import Draft202012Validator

from conformance.case import NotApplicable, require
from conformance.plays import Play, Plays, Step, tools_to_try
from conformance.scripted_kernel import Session, open_again
from conformance.targets import Target
from conformance.trace import framed
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.interaction_messages import UI_MESSAGES
from lineup_sdk.protocol.limits import CHUNK_BYTES, WIRE_VERSION
from lineup_sdk.protocol.messages import FROM_WORKER, Chunk, JsonObject, LifecycleStopping, Message, Welcome, to_frame
from lineup_sdk.protocol.system_messages import ConversationSendText, LifecycleRequestMode, TimelinePlace, TimelineSubscribe
from lineup_sdk.testing.records import Changes, FakeCall, FakeMessage, Outcome
from lineup_sdk.testing.rules import Desk

STANDARD_INTERACTION = "standard-interaction"
SYSTEM_TYPES = frozenset(m.TYPE for m in (ConversationSendText, LifecycleRequestMode, TimelinePlace, TimelineSubscribe))
UI_TYPES = frozenset(m.TYPE for m in UI_MESSAGES)
START_SECONDS = 5.0  # what the kernel gives a worker, for its hello and from welcome to started (SPEC 16)
_REAP_SECONDS = 10.0  # for killed processes to be gone, also when the run is being cut off
_STOP_MS = 2_000  # what the kernel itself gives a process that shall end


def is_valid(schema: JsonObject, value: Any) -> bool:
    """Whether a value fits a schema of a Manifest."""
    return bool(Draft202012Validator(schema).is_valid(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tour:
    """Every occasion that was found, shown once: the traces of its lives, and what was saved in them."""

    lives: tuple[Session, ...]
    saved_states: tuple[JsonObject, ...]
    trouble: str = ""  # what cut it short


class TourNeeded(Exception):
    """A case asks for what only the tour shows, and it was not taken yet."""


@dataclass(slots=True, eq=False)
class World:
    """See the head of the file."""

    target: Target
    plays: Plays
    nursery: trio.Nursery
    patience: float
    tour: Tour | None = None
    _sessions: list[Session] = field(default_factory=list)
    _last_number: int = 0

    # --- lives

    def desk(self, saved_state: JsonObject | None = None) -> Desk:
        """What the kernel keeps for the worker, before its first life."""
        app = self.target.app
        schemas = {tool["id"]: tool["output_schema"] for tool in app.tools}
        desk = Desk(changes=Changes(), saved_state=saved_state, is_valid=is_valid, output_schemas=schemas)
        if app.manifest:
            desk.requested_capabilities = frozenset(app.manifest.get("requested_capabilities", ()))
            desk.questions.is_allowed = STANDARD_INTERACTION in desk.requested_capabilities
        return desk

    def granted(self) -> frozenset[str]:
        """The types the worker may send (SPEC 2.4)."""
        manifest = self.target.app.manifest
        granted = frozenset(FROM_WORKER)
        if manifest and manifest.get("kind") != "system":
            granted -= SYSTEM_TYPES
        if manifest and STANDARD_INTERACTION not in manifest.get("requested_capabilities", ()):
            granted -= UI_TYPES
        return granted

    async def open(self, desk: Desk | None = None) -> Session:
        """A process of the worker; nothing was said to it yet."""
        session = Session(await self.target.spawn(), desk or self.desk(), self.granted(), self.patience)
        self._sessions.append(session)
        self.nursery.start_soon(session.wire.run)
        return session

    async def greet(self, desk: Desk | None = None) -> Session:
        """A process that has said hello."""
        session = await self.open(desk)
        await session.until(lambda: session.trace, "hello", max(self.patience, START_SECONDS))
        return session

    async def start(self, desk: Desk | None = None, *, before: Callable[[Session], object] | None = None) -> Session:
        """A worker that has started. before: what the script prepares between hello and welcome."""
        session = await self.greet(desk)
        if before is not None:
            before(session)
        session.wire.write(self.welcome())
        await session.until(lambda: session.desk.is_started, "lifecycle.started", max(self.patience, START_SECONDS))
        return session

    def context(self) -> JsonObject:
        """The context a welcome carries."""
        manifest = self.target.app.manifest
        context = {
            "app_scope": manifest.get("app_scope", "worker-under-test"),
            "app_version": manifest.get("version", "0.0.0"),
            "conversation_id": "conv_1",
            "instance_id": "inst_1",
            "state": "starting",
        }
        return context | ({"mode": "im"} if self.target.app.is_system else {})

    def welcome(self, **changes: Any) -> bytes:
        """The frames of a welcome with its source. changes: members that are not as they should be; `context` is merged."""
        app = self.target.app
        context = {**self.context(), **changes.pop("context", {})}
        context = {name: value for name, value in context.items() if value is not None}
        source = app.source() if self.target.is_sealed else None
        welcome = Welcome(wire=WIRE_VERSION, epoch="epoch_1", context=context, source=source)
        frames = [{**to_frame(welcome), **changes}]
        for name, data in app.files.items() if self.target.is_sealed else ():
            frames += [to_frame(chunk) for chunk in _chunks(name, data)]
        return b"".join(map(_encoded, frames))

    async def end(self, session: Session, *, how: str = "crash") -> None:
        """End a life: `crash` as kill -9 does, else in order for that reason. Open calls wait for the next one."""
        if how == "crash":
            session.process.kill()
        else:
            session.send(LifecycleStopping(reason=how, deadline_ms=_STOP_MS))
        await session.until_ended("the worker to end")
        for call in session.desk.open_calls():
            open_again(call, is_crash=how == "crash")

    async def revive(self, session: Session, *, how: str = "crash", before: Callable[[Session], object] | None = None) -> Session:
        """End a life and start the next on the same desk."""
        await self.end(session, how=how)
        desk = session.desk
        desk.is_started = desk.is_subscribed_to_inbox = desk.is_subscribed_to_tools = False
        desk.is_subscribed_to_timeline = desk.questions.is_subscribed = desk.surface.is_told = False
        desk.artifacts.forget_arriving()
        return await self.start(desk, before=before)

    async def close(self) -> None:
        """End every process of the case."""
        for session in self._sessions:
            session.process.kill()
        with trio.move_on_after(_REAP_SECONDS, shield=True):
            for session in self._sessions:
                await session.process.ended.wait()
        for session in self._sessions:
            session.wire.close()

    def deadline_ms(self) -> int:
        """What a worker is given to stop: the kernel's own 2 s, less for a run without patience."""
        return int(min(_STOP_MS, self.patience * 500))

    def deadline_seconds(self) -> float:
        """How long its end is waited for: its time, and what a loaded machine may take."""
        return self.deadline_ms() / 1000 + min(3.0, self.patience)

    # --- acts

    def new_call(self, session: Session, tool_id: str, tool_input: JsonObject, *, time_left_ms: int | None = None) -> FakeCall:
        """Make a call; it is delivered as soon as the worker listens."""
        self._last_number += 1
        call = FakeCall(
            call_id=f"call_{self._last_number}",
            tool_id=tool_id,
            input=tool_input,
            time_left_ms=time_left_ms,
            changes=session.desk.changes,
        )
        session.desk.calls[call.call_id] = call
        session.deliver_waiting()
        return call

    async def start_for(self, play: Play) -> Session:
        """A worker that has started and is where the play begins: its call can be made."""
        session = await self.start()
        await self._do_before(session, play)
        return session

    async def open_call(self) -> tuple[Session, FakeCall]:
        """A worker that works on a call which stays open, and has nothing more to say. Raises: Broken, NotApplicable."""
        play = self.role("stays_open")
        session = await self.start()
        call = await self.play(session, play)
        await session.until(lambda: call.status == "running", "tool.accept")
        await session.settle()
        require(call.outcome is None, "the call did not stay open")
        return session, call

    async def play(self, session: Session, play: Play) -> FakeCall:
        """Do what comes before, then make the call."""
        await self._do_before(session, play)
        return self.new_call(session, play.tool_id, play.input)

    async def _do_before(self, session: Session, play: Play) -> None:
        for step in play.before:
            await self.act(session, step)

    async def act(self, session: Session, step: Step) -> FakeCall | FakeMessage:
        """One step, and wait until the worker has nothing more to say to it."""
        done: FakeCall | FakeMessage
        if step.kind == "tool":
            call = done = self.new_call(session, step.name, step.body)
            await session.until(lambda: call.status != "waiting_for_app", f"a call of {step.name} to be accepted")
        elif step.kind == "topic":
            done = self.new_message(session, step.name, step.body)
        else:
            done = self.new_message(session, "surface.event", {"name": step.name, "body": step.body})
        await session.settle()
        return done

    def new_message(self, session: Session, topic: str, body: JsonObject) -> FakeMessage:
        """Put a message into the inbox; it is delivered as soon as the worker listens."""
        self._last_number += 1
        message = FakeMessage(message_id=f"msg_{self._last_number:06}", topic=topic, body=body, changes=session.desk.changes)
        session.desk.messages[message.message_id] = message
        session.deliver_waiting()
        return message

    async def ended(self, session: Session, call: FakeCall) -> Outcome:
        """Wait for the outcome of a call. Raises: Broken."""
        await session.until(lambda: call.outcome is not None, f"an ending of the call of {call.tool_id}")
        assert call.outcome is not None
        return call.outcome

    # --- occasions

    def role(self, role: str) -> Play:
        """How this App shows something. Raises: NotApplicable."""
        found = self.plays.roles.get(role)
        if found is None and self.tour is None:
            raise TourNeeded
        if found is None:
            raise NotApplicable(f"no tool was found for `{role}`: conformance.json can name one")
        return found

    def tools(self) -> list[JsonObject]:
        """The tools a case may call. Raises: NotApplicable."""
        found = tools_to_try(self.target.app, self.plays)
        if not found:
            raise NotApplicable("the App has no tools")
        return found

    def steps(self, what: str) -> Sequence[Step]:
        """The messages or events conformance.json names. Raises: NotApplicable."""
        found: Sequence[Step] = getattr(self.plays, what)
        if not found:
            raise NotApplicable(f"conformance.json names no `{what}`")
        return found

    def seen(self) -> Tour:
        """The tour. Raises: TourNeeded; Broken when the worker did not even start."""
        if self.tour is None:
            raise TourNeeded
        require(self.tour.lives, f"the tour did not begin: {self.tour.trouble}")
        return self.tour

    def require_seen(self, *message_types: str) -> Sequence[Message]:
        """All messages of these types that the worker sent in the tour. Raises: NotApplicable when there are none."""
        found = [message for life in self.seen().lives for message in life.heard(*message_types)]
        if not found:
            cut = f"; the tour was cut short: {self.seen().trouble}" if self.seen().trouble else ""
            raise NotApplicable(f"the worker never sent {' or '.join(message_types)}{cut}")
        return found


def end_elsewhere(call: FakeCall, status: str = "expired") -> None:
    """Give a call its outcome without the worker, which is not told."""
    call.end(Outcome(status=status, code=Code(status)))


@cache
def _parts(data: bytes) -> tuple[tuple[bytes, bool], ...]:
    starts = range(0, max(len(data), 1), CHUNK_BYTES)
    return tuple((data[start : start + CHUNK_BYTES], start + CHUNK_BYTES >= len(data)) for start in starts)


def _chunks(name: str, data: bytes) -> list[Chunk]:
    return [Chunk(of=name, data=part, last=last) for part, last in _parts(data)]


def _encoded(frame: JsonObject) -> bytes:
    return framed(cbor2.dumps(frame))
