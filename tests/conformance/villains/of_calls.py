"""Villains that break section 6 of the specification: their calls."""

from __future__ import annotations

from typing import Any

import trio
from asking import Refused
from good_worker import GoodWorker, die

from lineup_sdk.protocol.messages import (
    LifecycleRequestClose,
    ToolComplete,
    ToolFail,
    ToolProgress,
)


class CompletesNothing(GoodWorker):
    """Fails every call."""

    clause = "6.2"
    fails = frozenset({79})

    async def do_echo(self, called: Any) -> dict[str, Any]:
        return await self.do_fail(called)


class ReportsBeforeItAccepts(GoodWorker):
    """Reports progress of a call that it has not accepted."""

    clause = "6.2"
    fails = frozenset({98})

    async def accept(self, called: Any) -> None:
        if called.tool_id.endswith(".report"):
            await self.report(called, 1)
        await super().accept(called)


class AcceptsTwice(GoodWorker):
    """Accepts its calls twice."""

    clause = "6.2"
    fails = frozenset({86, 99})

    async def accept(self, called: Any) -> None:
        await super().accept(called)
        await super().accept(called)


class EndsTwice(GoodWorker):
    """Fails what it has completed."""

    clause = "6.2"
    fails = frozenset({100, 107, 108})

    async def end(self, ending: Any) -> None:
        await super().end(ending)
        self.post(ToolFail(call_id=ending.call_id, reason="again"))


class SpeaksOfOtherCalls(GoodWorker):
    """Ends a call that was never its own."""

    clause = "6.5"
    fails = frozenset({101})

    async def do_fail(self, called: Any) -> dict[str, Any]:
        self.post(ToolComplete(call_id="call_of_a_neighbour", result={}))
        return await super().do_fail(called)


class GivesAnotherResult(GoodWorker):
    """Gives a result outside its schema."""

    clause = "6.5"
    fails = frozenset({102})

    async def do_report(self, called: Any) -> dict[str, Any]:
        return {**await super().do_report(called), "more": 1}


class GivesTooMuch(GoodWorker):
    """Gives a result of over 48 KiB."""

    clause = "2.1"
    fails = frozenset({103})

    async def do_ask_life(self, called: Any) -> dict[str, Any]:
        return {"text": "語" * 17_000}


class ReportsAfterTheEnd(GoodWorker):
    """Reports progress of a call that has ended."""

    clause = "6.5"
    fails = frozenset({100, 104})

    async def end(self, ending: Any) -> None:
        await super().end(ending)
        if isinstance(ending, ToolComplete) and ending.result.get("text") == "reported":
            self.post(ToolProgress(call_id=ending.call_id, percent=100))


class ReportsWithoutEnd(GoodWorker):
    """Reports ten times in a moment."""

    clause = "6.5"
    fails = frozenset({97})

    async def do_report(self, called: Any) -> dict[str, Any]:
        for percent in range(10):
            await self.report(called, percent)
        return {"text": "reported"}


class FailsWithItsReport(GoodWorker):
    """Gives the call up when a report is refused."""

    clause = "6.5"
    fails = frozenset({122})

    async def report(self, called: Any, percent: float) -> None:
        try:
            await self.ask(ToolProgress(call_id=called.call_id, percent=percent))
        except Refused:
            await self.do_fail(called)


class TakesWholeNumbersOnly(GoodWorker):
    """Dies at 5.0 where its schema says integer."""

    clause = "4.3"
    fails = frozenset({82})

    async def do_echo(self, called: Any) -> dict[str, Any]:
        if type(called.input.get("count", 1)) is not int:
            die()
        return await super().do_echo(called)


class TakesAsciiOnly(GoodWorker):
    """Dies at a text beyond ASCII."""

    clause = "4.3"
    fails = frozenset({83})

    async def do_echo(self, called: Any) -> dict[str, Any]:
        if not called.input["text"].isascii():
            die()
        return await super().do_echo(called)


class KnowsOneMood(GoodWorker):
    """Dies at a value of its enum."""

    clause = "4.3"
    fails = frozenset({84})

    async def do_echo(self, called: Any) -> dict[str, Any]:
        if called.input.get("mood") == "calm":
            die()
        return await super().do_echo(called)


class NeedsSomeText(GoodWorker):
    """Dies at the empty text that its schema admits."""

    clause = "4.3"
    fails = frozenset({80})

    async def do_remember(self, called: Any) -> dict[str, Any]:
        if not called.input["text"]:
            die()
        return await super().do_remember(called)


class TakesLittle(GoodWorker):
    """Dies at a longer text that its schema admits."""

    clause = "4.3"
    fails = frozenset({81})

    async def do_remember(self, called: Any) -> dict[str, Any]:
        if len(called.input["text"]) > 100 and called.input["text"].isascii():
            die()
        return await super().do_remember(called)


class LeavesUnknownTools(GoodWorker):
    """Leaves a call of a tool that it does not have."""

    clause = "6.5"
    fails = frozenset({85})

    async def finish(self, called: Any) -> Any:
        if called.tool_id.endswith("nobody-has-this"):
            await trio.sleep_forever()
        return await super().finish(called)


class DoesItTwice(GoodWorker):
    """Begins a call again when it is delivered again in one life."""

    clause = "6.4"
    fails = frozenset({86})

    def on_tool_called(self, called: Any) -> None:
        self.scopes.setdefault(called.call_id, trio.CancelScope())
        self.nursery.start_soon(self.work, called)

    async def work(self, called: Any) -> None:
        self.scopes[called.call_id] = trio.CancelScope()
        try:
            await super().work(called)
        except KeyError:
            return


class DoesOneAtATime(GoodWorker):
    """Begins a call only when the one before has ended."""

    clause = "6.5"
    fails = frozenset({87})

    def __init__(self) -> None:
        super().__init__()
        self.turn = trio.Lock()

    async def finish(self, called: Any) -> Any:
        async with self.turn:
            return await super().finish(called)


class DropsWhatIsMuch(GoodWorker):
    """Loses calls when there are more than 32."""

    clause = "16"
    fails = frozenset({88})

    def on_tool_called(self, called: Any) -> None:
        if len(self.scopes) < 32:
            super().on_tool_called(called)


class FearsLongClocks(GoodWorker):
    """Leaves a call that has more than an hour."""

    clause = "6.6"
    fails = frozenset({89})

    async def do_echo(self, called: Any) -> dict[str, Any]:
        if (called.time_left_ms or 0) > 3_600_000:
            await trio.sleep_forever()
        return await super().do_echo(called)


class FearsTheClock(GoodWorker):
    """Leaves a call that has a clock."""

    clause = "6.6"
    fails = frozenset({90})

    async def do_echo(self, called: Any) -> dict[str, Any]:
        if called.time_left_ms == 60_000:
            await trio.sleep_forever()
        return await super().do_echo(called)


class DoesNothingAgain(GoodWorker):
    """Passes over a call that an earlier life had begun."""

    clause = "6.8"
    fails = frozenset({92})

    def on_tool_called(self, called: Any) -> None:
        if not called.attempts:
            super().on_tool_called(called)


class ForgetsOpenCalls(GoodWorker):
    """Passes over the first call of a life that had one before."""

    clause = "6.8"
    fails = frozenset({92, 93, 143, 144})

    async def open_surface(self) -> None:
        await super().open_surface()
        self.is_first = self.version > 1

    def on_tool_called(self, called: Any) -> None:
        if not self.is_first:
            super().on_tool_called(called)
        self.is_first = False


class ClosesAfterACall(GoodWorker):
    """Asks to be closed whenever a call has ended."""

    clause = "6.10"
    fails = frozenset({94})

    async def end(self, ending: Any) -> None:
        await super().end(ending)
        try:
            await self.ask(LifecycleRequestClose())
        except Refused:
            return


class NeverLetsGo(GoodWorker):
    """Never ends the call whose end has come."""

    clause = "6.2"
    fails = frozenset({95})

    async def do_wait(self, called: Any) -> dict[str, Any]:
        await trio.sleep_forever()
        return {}


class FailsWithASentence(GoodWorker):
    """Gives a sentence where a token is due."""

    clause = "6.5"
    fails = frozenset({189})

    def failure(self, called: Any) -> Any:
        return ToolFail(call_id=called.call_id, reason="No luck today!")
