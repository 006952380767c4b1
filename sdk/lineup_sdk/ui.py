"""Questions of an App of its own to the person: the extension `ui` (SPEC 7.4), off by default and no part of MiniApp.

    ui = Ui(app)
    result = await ui.ask({"kind": "confirm", "title": "Clear?", "prompt": "Clear the board."}, parent_call_id=call.call_id)
    if result.get("answer", {}).get("approved"): ...

Every request is refused capability_denied unless the Manifest requests `standard-interaction` and the person allows it. Rules:
1. Make one Ui an App, beside it; it takes the topic `interaction.result`.
2. A question outlives the process. `ask` waits for a question of this life; what was asked before a crash comes to `on_result`.
3. A result is acknowledged when it was handed over. One nobody waits for and no `on_result` takes is done with.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import trio

from lineup_sdk.app import MiniApp
from lineup_sdk.inbox import InboxMessage
from lineup_sdk.protocol.interaction_messages import INTERACTION_RESULT, UiCancel, UiGet, UiRequest, UiSubscribe
from lineup_sdk.protocol.messages import JsonObject
from lineup_sdk.session import UiHandler

ResultHandler = Callable[[JsonObject], Awaitable[None]]


@dataclass(slots=True, eq=False)
class _Wait:
    """Somebody who waits for the result of one question."""

    settled: trio.Event = field(default_factory=trio.Event)
    result: JsonObject = field(default_factory=dict)


class Ui:
    """See the head of the file."""

    def __init__(self, app: MiniApp) -> None:
        self._app = app
        self._requests = app.requests_of_extensions
        self._waits: dict[str, _Wait] = {}
        self._result_handler: ResultHandler | None = None
        app.on_message(INTERACTION_RESULT)(self._take)

    async def request(
        self, request: JsonObject, *, parent_call_id: str | None = None, presentation: str | None = None, expires_at: str | None = None
    ) -> str:
        """Ask, and return the interaction_id at once. request: {kind, title, ...} as the tools interaction.* take it.

        parent_call_id: the own open call this belongs to; its clock stands still meanwhile. presentation: default | inline | modal, a
        wish. expires_at: RFC 3339; without it the question waits for ever.
        Raises: Refused(capability_denied, tool_input_invalid, call_not_found, call_already_final, limit_exceeded).
        """
        value = await self._requests.request(
            UiRequest(request=request, parent_call_id=parent_call_id, presentation=presentation, expires_at=expires_at)
        )
        interaction_id: str = value["interaction_id"]
        return interaction_id

    async def ask(
        self, request: JsonObject, *, parent_call_id: str | None = None, presentation: str | None = None, expires_at: str | None = None
    ) -> JsonObject:
        """Ask and wait: {interaction_id, kind, outcome, answer?, code?}. Arguments and refusals as request."""
        interaction_id = await self.request(request, parent_call_id=parent_call_id, presentation=presentation, expires_at=expires_at)
        wait = self._waits[interaction_id] = _Wait()  # before anything else is awaited: see _take
        try:
            await wait.settled.wait()
        finally:
            self._waits.pop(interaction_id, None)
        return wait.result

    async def get(self, interaction_id: str) -> JsonObject:
        """Return {interaction_id, kind, status, result}. Raises: Refused(interaction_not_found), also for another App's."""
        return await self._requests.request(UiGet(interaction_id=interaction_id))

    async def cancel(self, interaction_id: str, reason: str | None = None) -> None:
        """Take a question back. Raises: Refused(interaction_not_found, interaction_already_final)."""
        await self._requests.request(UiCancel(interaction_id=interaction_id, reason=reason))

    async def subscribe(self, handler: UiHandler) -> None:
        """Run it with (interaction_id, status) when an own question stands elsewhere. A hint: the newest status of each counts.

        Raises: ValueError for a second handler, Refused(capability_denied).
        """
        self._app.on_ui_changed(handler)
        await self._requests.request(UiSubscribe())

    def on_result(self, handler: ResultHandler) -> ResultHandler:
        """Run it with results nobody waits for, such as of questions from before a crash. Raises: ValueError for a second one."""
        if self._result_handler is not None:
            raise ValueError("this event has a handler already")
        self._result_handler = handler
        return handler

    async def _take(self, message: InboxMessage) -> None:
        # The reply that names a question and its result may come in one read; whoever asked is then awake too, and one step of the
        # loop lets it note its wait.
        await trio.lowlevel.checkpoint()
        wait = self._waits.pop(message.body["interaction_id"], None)
        if wait is not None:
            wait.result = message.body
            wait.settled.set()
        elif self._result_handler is not None:
            await self._result_handler(message.body)
