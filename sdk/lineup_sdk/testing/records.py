"""What FakeKernel keeps about a call or a message, and how a test waits for it to change.

Rules:
1. A wait ends when what it waits for is true, when the app ended (AppEnded), or after WAIT_SECONDS (trio.TooSlowError).
2. A call has one outcome; nothing changes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import trio

from lineup_sdk.protocol.messages import JsonObject, ToolCalled

WAIT_SECONDS = 30.0


class Changes:
    """Wakes whoever waits for something to become true. `trouble` is raised instead of waiting for ever."""

    def __init__(self) -> None:
        self._changed = trio.Event()
        self.trouble: Exception | None = None

    def notify(self) -> None:
        """Something changed."""
        self._changed.set()
        self._changed = trio.Event()

    async def wait_until(self, is_true: Callable[[], bool]) -> None:
        """Wait (rule 1)."""
        with trio.fail_after(WAIT_SECONDS):
            while not is_true():
                if self.trouble is not None:
                    raise self.trouble
                await self._changed.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a call ended. `status` is submitted, failed, cancelled or expired."""

    status: str
    result: JsonObject | None = None
    code: str | None = None
    reason: str | None = None
    message: str | None = None


class CallNotCompleted(AssertionError):
    """A test asked for the result of a call that ended without one."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(f"the call ended as {outcome.status} (code {outcome.code}, reason {outcome.reason})")
        self.outcome = outcome


@dataclass(slots=True, eq=False, kw_only=True)
class FakeCall:
    """One call. `status` is waiting_for_app, running or the outcome's."""

    call_id: str
    tool_id: str
    input: JsonObject
    time_left_ms: int | None
    changes: Changes = field(repr=False)
    attempts: int = 0
    status: str = "waiting_for_app"
    is_delivered: bool = False
    is_cancel_requested: bool = False
    is_cancel_seen: bool = False
    outcome: Outcome | None = None
    refusals: list[str] = field(default_factory=list)  # codes of refused requests about this call
    progress: list[JsonObject] = field(default_factory=list)
    progress_times: list[float] = field(default_factory=list)

    def called(self) -> ToolCalled:
        """The delivery of this call, as of now."""
        return ToolCalled(
            call_id=self.call_id,
            tool_id=self.tool_id,
            input=self.input,
            attempts=self.attempts,
            time_left_ms=self.time_left_ms,
        )

    def end(self, outcome: Outcome) -> None:
        """Write the one outcome."""
        self.status = outcome.status
        self.outcome = outcome
        self.changes.notify()

    async def wait_running(self) -> None:
        """Wait until the app accepted the call."""
        await self.changes.wait_until(lambda: self.status != "waiting_for_app")

    async def wait_progress(self, count: int = 1) -> JsonObject:
        """Wait until so many progress reports came; return the newest."""
        await self.changes.wait_until(lambda: len(self.progress) >= count)
        return self.progress[-1]

    async def wait_cancel_seen(self) -> None:
        """Wait until the app acknowledged the cancel request."""
        await self.changes.wait_until(lambda: self.is_cancel_seen)

    async def wait_outcome(self) -> Outcome:
        """Wait until the call ended."""
        await self.changes.wait_until(lambda: self.outcome is not None)
        if self.outcome is None:
            raise RuntimeError("an ended call has an outcome")
        return self.outcome

    async def result(self) -> JsonObject:
        """Wait until the call ended and return its result. Raises: CallNotCompleted."""
        outcome = await self.wait_outcome()
        if outcome.result is None:
            raise CallNotCompleted(outcome)
        return outcome.result


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeCapabilityRequest:
    """What the app asked the host to do; `FakeKernel.answer_capability` says how it ended."""

    request_id: str
    capability: str
    reason: str
    arguments: JsonObject
    parent_call_id: str | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class FakeMessage:
    """One inbox row."""

    message_id: str
    topic: str
    body: JsonObject
    changes: Changes = field(repr=False)
    delivery_count: int = 0
    is_acknowledged: bool = False

    async def wait_acknowledged(self) -> None:
        """Wait until the app took the message over."""
        await self.changes.wait_until(lambda: self.is_acknowledged)
