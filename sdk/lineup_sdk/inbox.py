"""The inbox of a MiniApp: durable messages on the topics its Manifest subscribes to (SPEC 5).

Rules:
1. Handlers run one message at a time, in the order of delivery; a handler that waits for ever stops the inbox, nothing else.
2. A message is acknowledged after its handler returned, or when the handler does it itself. One whose handler raised stays
   unacknowledged: the traceback goes to stderr, and the kernel delivers it again in the next life of the process.
3. A message on a topic without a handler is left alone; `list` and `acknowledge` reach it.
4. What is queued here is bounded by the kernel's own bound for an inbox (SPEC 16).
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import trio

from lineup_sdk.channel import ChannelClosed
from lineup_sdk.protocol.messages import InboxAcknowledge, InboxDelivered, InboxList, JsonObject
from lineup_sdk.requests import Requests


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxMessage:
    """One message. `delivery_count` is 1 the first time and grows with every delivery again."""

    message_id: str
    topic: str
    body: JsonObject
    delivery_count: int
    inbox: Inbox = field(repr=False, compare=False)

    async def acknowledge(self) -> bool:
        """Take the message over for good; True once, False after."""
        return await self.inbox.acknowledge(self.message_id)


MessageHandler = Callable[[InboxMessage], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxPage:
    """Some rows, oldest first; `has_more` says that `list(after=<last message_id>)` brings others."""

    messages: tuple[InboxMessage, ...]
    has_more: bool


class Inbox:
    """Reads and acknowledges the own rows."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def list(self, after: str | None = None) -> InboxPage:
        """Return the unacknowledged messages after one (or from the oldest). Source: SPEC 5.2."""
        value = await self._requests.request(InboxList(after=after))
        messages = tuple(InboxMessage(**row, inbox=self) for row in value["messages"])
        return InboxPage(messages=messages, has_more=value["more"])

    async def acknowledge(self, message_id: str) -> bool:
        """Take a message over for good: True once, False after and for one that is not there. Source: SPEC 5.2."""
        value = await self._requests.request(InboxAcknowledge(message_id=message_id))
        acknowledged: bool = value["acknowledged"]
        return acknowledged


class InboxRunner:
    """Runs the author's message handlers in order. One a life of the process."""

    def __init__(self, inbox: Inbox, handlers: Mapping[str, MessageHandler]) -> None:
        self._inbox = inbox
        self._handlers = handlers
        self._sender, self._receiver = trio.open_memory_channel[InboxDelivered](2**20)
        self._held: set[str] = set()  # delivered to this life: a second delivery of the same message is not run twice

    def take(self, delivered: InboxDelivered) -> None:
        """Queue a delivery; never waits."""
        if delivered.topic in self._handlers and delivered.message_id not in self._held:
            self._held.add(delivered.message_id)
            self._sender.send_nowait(delivered)

    async def run(self) -> None:
        """Handle what was taken, for as long as the process lives."""
        with self._sender, self._receiver:
            async for delivered in self._receiver:
                await self._handle(delivered)

    async def _handle(self, delivered: InboxDelivered) -> None:
        message = InboxMessage(
            message_id=delivered.message_id,
            topic=delivered.topic,
            body=delivered.body,
            delivery_count=delivered.delivery_count,
            inbox=self._inbox,
        )
        try:
            await self._handlers[delivered.topic](message)
            await message.acknowledge()
        except ChannelClosed:
            raise
        except Exception:  # the border to the author's code: one bad message must not end the others (rule 2)
            traceback.print_exc(file=sys.stderr)
            return
        self._held.discard(delivered.message_id)
