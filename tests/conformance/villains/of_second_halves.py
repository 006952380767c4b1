"""Villains that keep the first half of what a case demands and break the second. Each names its clause and the cases it fails."""

from __future__ import annotations

from typing import Any

import trio
from asking import Refused
from good_worker import Failed, GoodWorker

from lineup_sdk.protocol.messages import Chunk, StateSave, ToolComplete, ToolFail


class GivesTheWrongAnswer(GoodWorker):
    """Ends a call with a result that fits, and is another than its author says."""

    clause = "6.2"
    fails = frozenset({79})

    async def do_echo(self, called: Any) -> dict[str, Any]:
        return {"text": "another"}


class DoesWhatItDoesNotHave(GoodWorker):
    """Gives a call of a tool that it does not have out as done."""

    clause = "6.5"
    fails = frozenset({85})

    def failure(self, called: Any) -> Any:
        return ToolComplete(call_id=called.call_id, result={})


class DoesACallTwiceAndAcceptsItOnce(GoodWorker):
    """Ends a call once more when it is delivered again in one life."""

    clause = "6.4"
    fails = frozenset({86})

    def on_tool_called(self, called: Any) -> None:
        if called.call_id in self.scopes:
            self.post(ToolComplete(call_id=called.call_id, result={"text": "again"}))
        super().on_tool_called(called)


class EndsTheOtherToo(GoodWorker):
    """Lets go of every call when one has ended."""

    clause = "6.5"
    fails = frozenset({87})

    async def do_echo(self, called: Any) -> dict[str, Any]:
        for gate in self.gates.values():
            gate.set()
        while len(self.scopes) > 1:
            await trio.lowlevel.checkpoint()
        return await super().do_echo(called)


class DoesNotWait(GoodWorker):
    """Ends at once what was to stay open."""

    clause = "6.2"
    fails = frozenset({95})

    async def do_wait(self, called: Any) -> dict[str, Any]:
        return {"text": called.input["key"]}


class FailsWhatItWaitedFor(GoodWorker):
    """Fails a call whose time has come."""

    clause = "6.2"
    fails = frozenset({95})

    async def do_wait(self, called: Any) -> dict[str, Any]:
        await super().do_wait(called)
        raise Failed


class ReportsNothing(GoodWorker):
    """Says nothing on its way."""

    clause = "6.5"
    fails = frozenset({97})

    async def do_report(self, called: Any) -> dict[str, Any]:
        return {"text": "reported"}


class FailsWhenThereIsNoRoom(GoodWorker):
    """Gives a result up as failed that found no room."""

    clause = "12"
    fails = frozenset({111})

    async def end(self, ending: Any) -> None:
        try:
            await self.ask(ending)
        except Refused:
            await super().end(ToolFail(call_id=ending.call_id, reason="no_room"))


class TakesOverWhileItSaves(GoodWorker):
    """Asks for what it changed to be saved, and takes the message over before it knows that it is."""

    clause = "5.1"
    fails = frozenset({129})

    async def note(self, delivered: Any) -> None:
        self.post(StateSave(state={**await self.load(), "note": delivered.body["text"]}))


class AnswersBackwards(GoodWorker):
    """Answers the newest of the pings that came together first."""

    clause = "16"
    fails = frozenset({24})

    async def read(self) -> None:
        while True:
            messages = [self.parse(body) for body in await self.channel.receive_bodies()]
            for message in sorted(messages, key=lambda one: -one.n if one.TYPE == "ping" else -(2**53)):
                self.take(message)


class AnswersUnasked(GoodWorker):
    """Says once in its life that it lives, and nobody asked."""

    clause = "16"
    fails = frozenset({27})

    async def after_start(self) -> None:
        super().pong(123)


class TakesThePersonsPartAway(GoodWorker):
    """Makes its change again on the newer version, and what the person did is gone."""

    clause = "9.1"
    fails = frozenset({152})

    def update(self, patch: dict[str, Any]) -> Any:
        return super().update({**patch, "person": None})


class SendsPartsOfNothing(GoodWorker):
    """Sends a part that belongs to nothing it announced."""

    clause = "9.4"
    fails = frozenset({159})

    async def do_keep(self, called: Any) -> dict[str, Any]:
        self.send(Chunk(of="artifact.put:4000000", data=b"x", last=False))
        return await super().do_keep(called)
