"""Tool calls as a handler sees them (ToolCall), and the door to own calls by their id (Tools).

Rules:
1. Both only ask; the kernel decides, and a call has one ending (SPEC 6.5).
2. Once the kernel said that a call is over, nothing more is sent for it, whatever its handler does (call_runner.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import trio

from lineup_sdk.errors import Refused
from lineup_sdk.protocol.bounds import shortened
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.limits import PROGRESS_PER_SECOND
from lineup_sdk.protocol.messages import (
    JsonObject,
    ToolCalled,
    ToolCancel,
    ToolCancelSeen,
    ToolComplete,
    ToolFail,
    ToolProgress,
    ToolsGet,
)
from lineup_sdk.requests import Requests

_OVER = frozenset({Code.APP_DISABLED.value, Code.CALL_ALREADY_FINAL.value, Code.CALL_NOT_FOUND.value})
_PROGRESS_WINDOW_SECONDS = 1.05  # a little over the kernel's second: the two clocks start at different instants


class Tools:
    """Own calls by their id. A foreign call_id is answered exactly as an unknown one. Source: SPEC 6.5."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def get(self, call_id: str) -> JsonObject:
        """Return {call_id, tool_id, input, status, attempts}. Raises: Refused(call_not_found)."""
        return await self._requests.request(ToolsGet(call_id=call_id))

    async def report_progress(
        self, call_id: str, *, percent: float | None = None, message: str | None = None, data: JsonObject | None = None
    ) -> None:
        """Report progress; percent is 0..100. Raises: Refused(limit_exceeded) over 4 a second, and as complete."""
        await self._requests.request(ToolProgress(call_id=call_id, percent=percent, message=message, data=data))

    async def complete(self, call_id: str, result: JsonObject) -> None:
        """End a call with its result. Raises: Refused(call_not_found, call_already_final, tool_output_invalid, app_disabled)."""
        await self._requests.request(ToolComplete(call_id=call_id, result=result))

    async def fail(self, call_id: str, reason: str, message: str | None = None) -> None:
        """End a call as failed; a message over 1,000 characters is cut. Raises: as complete; Unsendable for a reason that is no token."""
        await self._requests.request(ToolFail(call_id=call_id, reason=reason, message=shortened(message)))

    async def cancel(self, call_id: str, reason: str | None = None) -> None:
        """End a call as cancelled. Raises: as complete."""
        await self._requests.request(ToolCancel(call_id=call_id, reason=reason))

    async def cancel_seen(self, call_id: str) -> None:
        """Acknowledge a cancel request and ask for up to 30 s more. Raises: as complete. Source: SPEC 6.7."""
        await self._requests.request(ToolCancelSeen(call_id=call_id))


@dataclass(slots=True, eq=False)
class CallLife:
    """What the runner and the handler's ToolCall both see of one running call."""

    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    cancel_requested: trio.Event = field(default_factory=trio.Event)
    is_ended: bool = False
    ended_as: str | None = None

    def end(self, status: str | None = None) -> None:
        """The call has its outcome, this one if the kernel said which: stop the handler, send nothing more."""
        self.is_ended, self.ended_as = True, status
        self.scope.cancel()


class ToolCall:
    """One delivered call, as its handler sees it. `attempts` > 0 says that an earlier process died while it worked on it;
    `time_left_ms` is what was left at delivery, or None for a call without a clock."""

    def __init__(self, called: ToolCalled, tools: Tools, life: CallLife) -> None:
        self.call_id = called.call_id
        self.tool_id = called.tool_id
        self.input = called.input
        self.attempts = called.attempts
        self.time_left_ms = called.time_left_ms
        self._tools = tools
        self._life = life
        self._progress_times: deque[float] = deque(maxlen=PROGRESS_PER_SECOND)

    @property
    def is_ended(self) -> bool:
        """True once the call has its outcome, from here or from elsewhere."""
        return self._life.is_ended

    @property
    def ended_as(self) -> str | None:
        """How the call ended elsewhere, while this handler ran: cancelled, expired or failed; None while it did not.

        Its handler is being stopped then: what it does about that stands in a `finally`, under a shield. Source: SPEC 6.7, 8.2.
        """
        return self._life.ended_as

    @property
    def is_cancel_requested(self) -> bool:
        """True once somebody asked to cancel it."""
        return self._life.cancel_requested.is_set()

    async def wait_cancel_requested(self) -> None:
        """Wait until somebody asks to cancel it (for a handler with handles_cancel=True)."""
        await self._life.cancel_requested.wait()

    async def cancel_seen(self) -> None:
        """Acknowledge the cancel request and ask for up to 30 s to end tidily. Raises: Refused. Source: SPEC 6.7."""
        await self._ask(self._tools.cancel_seen(self.call_id))

    async def progress(self, *, percent: float | None = None, message: str | None = None, data: JsonObject | None = None) -> bool:
        """Report progress; percent is 0..100, message at most 1,000 characters. Waits for its turn when it comes over 4 times a second.

        Returns False when the kernel had no room for it even later. Raises: Refused(tool_output_invalid, call_already_final), Unsendable.
        """
        for has_waited in (False, True):
            await self._wait_progress_turn()
            try:
                await self._ask(self._tools.report_progress(self.call_id, percent=percent, message=message, data=data))
            except Refused as refused:
                if refused.code != Code.LIMIT_EXCEEDED:
                    raise
                if not has_waited:  # an earlier life of the process may have used up this second
                    await trio.sleep(_PROGRESS_WINDOW_SECONDS)
            else:
                self._progress_times.append(trio.current_time())
                return True
        return False

    async def _wait_progress_turn(self) -> None:
        times = self._progress_times
        if len(times) == PROGRESS_PER_SECOND:
            await trio.sleep_until(times[0] + _PROGRESS_WINDOW_SECONDS)

    async def complete(self, result: JsonObject) -> None:
        """End the call now; what the handler returns later is dropped. A refused result leaves it open for another try.

        Raises: Refused(tool_output_invalid, call_already_final, app_disabled).
        """
        await self._ask(self._tools.complete(self.call_id, result))
        self._life.is_ended = True

    async def fail(self, reason: str, message: str | None = None) -> None:
        """End the call as failed now; a message over 1,000 characters is cut. Raises: Refused(call_already_final, app_disabled)."""
        await self._ask(self._tools.fail(self.call_id, reason, message))
        self._life.is_ended = True

    async def cancel(self, reason: str | None = None) -> None:
        """End the call as cancelled now. Raises: Refused(call_already_final, app_disabled)."""
        await self._ask(self._tools.cancel(self.call_id, reason))
        self._life.is_ended = True

    async def _ask(self, request: Awaitable[None]) -> None:
        try:
            await request
        except Refused as refused:
            if refused.code in _OVER:
                self._life.is_ended = True  # whatever the handler does now, nothing more is sent
            raise


ToolHandler = Callable[[ToolCall], Awaitable[JsonObject | None]]
