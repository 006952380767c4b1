"""Villains that say what nobody may say, and those that begin wrongly (SPEC 2, 8.1)."""

from __future__ import annotations

from typing import Any

import cbor2
from good_worker import GoodWorker, die

from lineup_sdk.protocol.messages import LifecycleStarted, LogWrite, StateLoad, ToolAccept, to_frame


class SpeaksLate(GoodWorker):
    """Where a villain of this family misbehaves: during the call of `fail`, which the tour makes."""

    def speak(self) -> None:
        raise NotImplementedError

    async def do_fail(self, called: Any) -> dict[str, Any]:
        self.speak()
        return await super().do_fail(called)


class WritesNaN(SpeaksLate):
    """Sends a number that is none."""

    clause = "2.1"
    fails = frozenset({180})

    def speak(self) -> None:
        self.send_frame({"type": "state.save", "id": 900, "state": {"x": float("nan")}})


class WritesTooMuch(SpeaksLate):
    """Sends a frame of more than 64 KiB."""

    clause = "2.1"
    fails = frozenset({181})

    def speak(self) -> None:
        body = cbor2.dumps({"type": "log.write", "stream": "log", "text": "x" * 70_000})
        self.write(len(body).to_bytes(4, "big") + body)


class InventsAType(SpeaksLate):
    """Sends a type that does not exist."""

    clause = "2.2"
    fails = frozenset({182})

    def speak(self) -> None:
        self.send_frame({"type": "tool.explode", "id": 900})


class AddsAField(SpeaksLate):
    """Sends a field that does not belong there."""

    clause = "2.2"
    fails = frozenset({183})

    def speak(self) -> None:
        self.send_frame({**to_frame(StateLoad(), 900), "please": True})


class CountsFromZero(SpeaksLate):
    """Sends a request with the id 0."""

    clause = "2.5"
    fails = frozenset({184})

    def speak(self) -> None:
        self.send_frame({"type": "state.load", "id": 0})


class SaysWhoItIs(SpeaksLate):
    """Sends its own instance with a request."""

    clause = "2.3"
    fails = frozenset({185})

    def speak(self) -> None:
        self.send_frame({"type": "log.write", "stream": "log", "text": "me", "instance_id": "inst_1"})


class UsesAnIdTwice(GoodWorker):
    """Says that it has started under the id of its last request."""

    clause = "2.5"
    fails = frozenset({186})

    def post(self, message: Any) -> Any:
        if message.TYPE == "lifecycle.started":
            self.last_id -= 1
        return super().post(message)

    def on_reply(self, reply: Any) -> None:
        if reply.id in self.owed:
            super().on_reply(reply)


class LogsWithoutEnd(SpeaksLate):
    """Writes a log line of 9 KiB."""

    clause = "2.10"
    fails = frozenset({187})

    def speak(self) -> None:
        self.send(LogWrite(stream="log", text="x" * 9_000))


class LogsOntoAList(SpeaksLate):
    """Writes a log line of a stream that is no text."""

    clause = "2.10"
    fails = frozenset({183, 187})

    def speak(self) -> None:
        self.send_frame({"type": "log.write", "stream": ["log"], "text": "x"})


class NamesNothing(SpeaksLate):
    """Asks for a call without a name."""

    clause = "16"
    fails = frozenset({188})

    def speak(self) -> None:
        self.post(ToolAccept(call_id=""))


# --- how it begins


class NeverStarts(GoodWorker):
    """Never says that it has started."""

    clause = "8.1"
    fails = frozenset({6})

    async def start(self) -> None:
        await self.open_surface()


class StartsTwice(GoodWorker):
    """Says twice that it has started."""

    clause = "8.1"
    fails = frozenset({7})

    async def after_start(self) -> None:
        await self.ask(LifecycleStarted())


class StartsBeforeItListens(GoodWorker):
    """Says that it has started, then asks for its calls."""

    clause = "6.5"
    fails = frozenset({8})

    async def start(self) -> None:
        await self.ask(LifecycleStarted())
        await super().start()

    async def ask(self, message: Any) -> dict[str, Any]:
        return await super().ask(message)


class AsksForNoMessages(GoodWorker):
    """Never asks for its inbox."""

    clause = "5.2"
    fails = frozenset({9, 123})

    def send_frame(self, frame: dict[str, Any]) -> None:
        super().send_frame({**frame, "type": "state.load"} if frame["type"] == "inbox.subscribe" else frame)

    def on_reply(self, reply: Any) -> None:
        ticket = self.owed.get(reply.id)
        is_other = ticket is not None and ticket.message.TYPE == "inbox.subscribe"
        super().on_reply(type(reply)(id=reply.id, receipt={"accepted": True, "at": ""}) if is_other else reply)


class EndsByItself(GoodWorker):
    """Dies at a call that cannot be done."""

    clause = "8.3"
    fails = frozenset({30, 80, 81, 96})

    async def do_fail(self, called: Any) -> dict[str, Any]:
        die()
        return {}


class LivesOnce(GoodWorker):
    """Dies when it finds that it lived before."""

    clause = "8.3"
    fails = frozenset({31})

    async def open_surface(self) -> None:
        await super().open_surface()
        if self.version > 1:
            die()
