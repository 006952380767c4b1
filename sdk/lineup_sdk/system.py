"""The doors of the system App: the conversation and its timeline (SPEC 3, 9.3, 11.5). To any other App each answers capability_denied.

Rules:
1. The kernel owns the timeline; the App is told what stands in it and projects that. What it was told is gone with its process.
2. A handler gets changes in the order in which they came; those that come while it runs are given to it together.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import trio

from lineup_sdk.protocol.interaction_messages import InteractionPresented
from lineup_sdk.protocol.messages import JsonObject
from lineup_sdk.protocol.system_messages import ConversationSendText, TimelineChanged, TimelinePlace, TimelineSubscribe
from lineup_sdk.requests import Requests


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineChange:
    """One entry as it is now. kind: message | call, value as in lineup_sdk.protocol.system_messages.TimelineChanged; or card, a question of
    the Agent that was presented: {interaction_id, kind, title, place}.
    """

    kind: str
    value: JsonObject


TimelineHandler = Callable[[Sequence[TimelineChange]], Awaitable[None]]


class Conversation:
    """The talk between person and Agent. Source: SPEC 11.5."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def send_text(self, text: str, *, key: str | None = None) -> str:
        """Send what the person wrote; return its message_id once it is durable. The same key and text again is the same message.

        Raises: Refused(limit_exceeded, call_id_conflict, capability_denied).
        """
        value = await self._requests.request(ConversationSendText(text=text, key=key))
        return str(value["message_id"])


class Timeline:
    """The entries of the conversation. Source: SPEC 9.3."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def place(self, number: int, *, folded: bool) -> bool:
        """Show an entry as one line, or whole again; False when there is no such entry. Raises: Refused(capability_denied)."""
        value = await self._requests.request(TimelinePlace(number=number, folded=folded))
        return bool(value["placed"])

    async def subscribe(self) -> None:
        """Ask for the newest window and for what changes; done by the process when there is a handler."""
        await self._requests.request(TimelineSubscribe())


class TimelineRunner:
    """Gives changes to the author's handler, one batch at a time. One a life of the process."""

    def __init__(self, handler: TimelineHandler | None) -> None:
        self._handler = handler
        self._waiting: list[TimelineChange] = []
        self._has_waiting = trio.Event()

    def take(self, changed: TimelineChanged) -> None:
        """Queue what came; never waits."""
        self._waiting += [TimelineChange(kind=change["kind"], value=change["value"]) for change in changed.changes]
        self._has_waiting.set()

    def take_card(self, presented: InteractionPresented) -> None:
        """Queue a card that was presented; never waits."""
        facts = {name: getattr(presented, name) for name in ("interaction_id", "kind", "title", "place")}
        self._waiting.append(TimelineChange(kind="card", value=facts))
        self._has_waiting.set()

    async def run(self) -> None:
        """Hand over what was taken, for as long as the process lives."""
        while self._handler is not None:
            await self._has_waiting.wait()
            self._has_waiting = trio.Event()
            waiting, self._waiting = self._waiting, []
            await self._handler(waiting)
