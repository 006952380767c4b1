"""Villains that break section 6 of the specification where the kernel refuses, ends or cancels a call."""

from __future__ import annotations

import os
from typing import Any

import trio
from asking import Refused
from good_worker import GoodWorker, die

from lineup_sdk.protocol.messages import (
    ToolAccept,
    ToolCancel,
    ToolCancelSeen,
    ToolComplete,
)


class GoesOnUnaccepted(GoodWorker):
    """Does a call although its accept was refused."""

    clause = "6.2"
    fails = frozenset({105, 106})

    async def accept(self, called: Any) -> None:
        try:
            await super().accept(called)
        except Refused:
            await trio.lowlevel.checkpoint()


class TriesAgain(GoodWorker):
    """Sends an ending again that was refused for good."""

    clause = "6.2"
    fails = frozenset({107, 108})

    async def end(self, ending: Any) -> None:
        try:
            await self.ask(ending)
        except Refused as refused:
            if refused.code in {"app_disabled", "call_already_final"}:
                self.post(ending)
            else:
                await super().end(ending)


class GivesUp(GoodWorker):
    """Leaves a call whose result was not taken."""

    clause = "6.5"
    fails = frozenset({109, 110})

    async def end(self, ending: Any) -> None:
        try:
            await self.ask(ending)
        except Refused as refused:
            if refused.code == "store_full":
                await super().end(ending)


class LosesAResult(GoodWorker):
    """Forgets a result for which there was no room."""

    clause = "12"
    fails = frozenset({111})

    async def end(self, ending: Any) -> None:
        try:
            await self.ask(ending)
        except Refused as refused:
            if refused.code != "store_full":
                await super().end(ending)


class AnswersTheEnd(GoodWorker):
    """Reports a call as cancelled that has ended elsewhere."""

    clause = "6.5"
    fails = frozenset({113, 114, 115})

    def on_tool_ended(self, ended: Any) -> None:
        super().on_tool_ended(ended)
        self.post(ToolCancel(call_id=ended.call_id))


class KnowsAllCalls(GoodWorker):
    """Dies at word of a call that it does not have."""

    clause = "6.7"
    fails = frozenset({115, 116, 121})

    def on_tool_ended(self, ended: Any) -> None:
        if ended.call_id not in self.scopes:
            die()
        super().on_tool_ended(ended)

    def on_tool_cancel_requested(self, requested: Any) -> None:
        if requested.call_id not in self.scopes:
            die()
        super().on_tool_cancel_requested(requested)


class IgnoresACancel(GoodWorker):
    """Goes on whatever is asked."""

    clause = "6.7"
    fails = frozenset({117, 118, 119, 120})

    def on_tool_cancel_requested(self, requested: Any) -> None:
        """Not today."""


class PromisesToStop(GoodWorker):
    """Says that it has seen a cancel, and goes on."""

    clause = "6.7"
    fails = frozenset({118, 119, 120})

    def on_tool_cancel_requested(self, requested: Any) -> None:
        if requested.call_id in self.scopes:
            self.post(ToolCancelSeen(call_id=requested.call_id))


class CancelsEachTime(GoodWorker):
    """Sends an ending for every cancel, also for one that comes late."""

    clause = "6.7"
    fails = frozenset({120, 121})

    def on_tool_cancel_requested(self, requested: Any) -> None:
        super().on_tool_cancel_requested(requested)
        if requested.call_id != "call_of_nobody":
            self.post(ToolAccept(call_id=requested.call_id))
            self.post(ToolCancel(call_id=requested.call_id))
            self.over.add(requested.call_id)


class FinishesFalsely(GoodWorker):
    """Gives out its open calls as done when it is stopped."""

    clause = "6.8"
    fails = frozenset({137})

    async def stop(self, stopping: Any) -> None:
        for call_id in self.scopes:
            self.post(ToolComplete(call_id=call_id, result={"text": "done"}))
        await super().stop(stopping)


class EndsBadly(GoodWorker):
    """Ends with an exit code that tells of trouble."""

    clause = "8.1"
    fails = frozenset({134, 135, 136, 140})

    async def stop(self, stopping: Any) -> None:
        os._exit(3)
