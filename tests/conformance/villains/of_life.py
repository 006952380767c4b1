"""Villains that break sections 5 and 8 of the specification: their messages, and how they live and end."""

from __future__ import annotations

from typing import Any

import trio
from asking import Refused
from good_worker import GoodWorker, die

from lineup_sdk.protocol.messages import InboxAcknowledge


class TakesNothingOver(GoodWorker):
    """Acknowledges nothing."""

    clause = "5.2"
    fails = frozenset({123, 168, 169, 170, 173, 174})

    async def acknowledge(self, delivered: Any) -> None:
        """Let it come again."""


class TakesSomeOver(GoodWorker):
    """Acknowledges the first eight messages of its life."""

    clause = "5.2"
    fails = frozenset({124})

    taken = 0

    async def acknowledge(self, delivered: Any) -> None:
        self.taken += 1
        if self.taken <= 8:
            await super().acknowledge(delivered)


class TakesNothingTwice(GoodWorker):
    """Passes over a message that comes again."""

    clause = "5.3"
    fails = frozenset({125})

    async def acknowledge(self, delivered: Any) -> None:
        if delivered.delivery_count == 1:
            await super().acknowledge(delivered)


class DiesAtASecondDelivery(GoodWorker):
    """Dies at a message that it holds already."""

    clause = "5.3"
    fails = frozenset({126})

    def on_inbox_delivered(self, delivered: Any) -> None:
        if delivered.message_id in self.gates:
            die()
        self.gate(delivered.message_id).set()
        super().on_inbox_delivered(delivered)


class DiesAtFalse(GoodWorker):
    """Dies when its acknowledgement was not the first."""

    clause = "5.2"
    fails = frozenset({126, 127})

    async def acknowledge(self, delivered: Any) -> None:
        try:
            value = await self.ask(InboxAcknowledge(message_id=delivered.message_id))
        except Refused:
            return
        if not value["acknowledged"]:
            die()


class StopsTakingOver(GoodWorker):
    """Takes no more messages after one acknowledgement was refused."""

    clause = "12"
    fails = frozenset({128})

    is_hurt = False

    async def acknowledge(self, delivered: Any) -> None:
        if self.is_hurt:
            return
        try:
            await self.ask(InboxAcknowledge(message_id=delivered.message_id))
        except Refused:
            self.is_hurt = True


class TakesOverTooEarly(GoodWorker):
    """Acknowledges a message, then does what it says."""

    clause = "5.1"
    fails = frozenset({129})

    async def take_over(self, delivered: Any) -> None:
        await self.acknowledge(delivered)
        await self.handle(delivered)


class MessagesWaitForCalls(GoodWorker):
    """Reads no message while a call is open."""

    clause = "5.2"
    fails = frozenset({95, 130})

    async def take_over(self, delivered: Any) -> None:
        while self.scopes:
            await trio.lowlevel.checkpoint()
        await super().take_over(delivered)


class DiesAtAnAct(GoodWorker):
    """Dies at an act that it has no handler for."""

    clause = "5.4"
    fails = frozenset({131})

    async def act(self, event: dict[str, Any]) -> None:
        if event["name"] == "nobody-wants-this":
            die()


class TakesOthersOver(GoodWorker):
    """Acknowledges what it was never given."""

    clause = "5.2"
    fails = frozenset({132})

    async def acknowledge(self, delivered: Any) -> None:
        await super().acknowledge(delivered)
        await self.ask(InboxAcknowledge(message_id="msg_of_a_neighbour"))


# --- states and ends


class DiesBehind(GoodWorker):
    """Dies in the background."""

    clause = "8.1"
    fails = frozenset({133})

    def on_context_changed(self, changed: Any) -> None:
        super().on_context_changed(changed)
        if changed.state == "background":
            die()


class NeverStops(GoodWorker):
    """Does not end when it is told to."""

    clause = "8.1"
    fails = frozenset({134, 135, 136, 137, 138, 139, 140, 141})

    async def stop(self, stopping: Any) -> None:
        """Not yet."""


class StopsWhenAnswered(GoodWorker):
    """Ends only when all that it asked is answered."""

    clause = "8.1"
    fails = frozenset({138, 141})

    async def stop(self, stopping: Any) -> None:
        while self.owed:
            await trio.lowlevel.checkpoint()
        await super().stop(stopping)


class NeedsTime(GoodWorker):
    """Does not end when it is given no time."""

    clause = "8.1"
    fails = frozenset({139})

    async def stop(self, stopping: Any) -> None:
        if stopping.deadline_ms:
            await super().stop(stopping)


class DiesWhenToldTwice(GoodWorker):
    """Dies when it is told twice to stop."""

    clause = "8.1"
    fails = frozenset({140})

    def on_lifecycle_stopping(self, stopping: Any) -> None:
        if self.is_stopping:
            die()
        super().on_lifecycle_stopping(stopping)


class DiesWhenRefused(GoodWorker):
    """Dies at any refusal but those about calls."""

    clause = "8.2"
    fails = frozenset({128, 142, 147, 152, 157, 160, 166, 167, 172})

    async def wait(self, ticket: Any) -> dict[str, Any]:
        try:
            return await super().wait(ticket)
        except Refused:
            if not ticket.message.TYPE.startswith("tool."):
                die()
            raise
