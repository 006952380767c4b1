"""Runs the handlers of delivered tool calls: accept, handler, one ending.

Rules:
1. A delivered call is accepted at once and its handler starts in the same step: accept and a fast result leave in one write.
   If the accept is refused, the handler is cancelled. The ending of the only call that runs is written at once; those of a crowd share
   the write of the flusher.
2. Handlers begin in the order in which their calls came: what one does before it first waits is done before the next begins. A call that
   runs in this process is not started twice.
3. One ending a call: what the handler returns (complete), ToolFailed (fail), anything else it raises (fail `handler_error`, the
   traceback to stderr only), a cancel request (its scope is cancelled, then cancel). The kernel has the last word: a refused
   second ending is not an error here.
4. `tool.ended` cancels the handler and nothing is sent.
5. A handler registered with handles_cancel=True is told instead of stopped: it ends the call itself within the grace, or asks for
   more by `cancel_seen`.
"""

from __future__ import annotations

import sys
import traceback
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import trio

from lineup_sdk.calls import CallLife, ToolCall, ToolHandler, Tools
from lineup_sdk.channel import ChannelClosed
from lineup_sdk.errors import Refused, ToolFailed
from lineup_sdk.protocol.bounds import TOKEN, shortened
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import (
    ToolAccept,
    ToolCalled,
    ToolCancel,
    ToolCancelRequested,
    ToolComplete,
    ToolEnded,
    ToolFail,
)
from lineup_sdk.requests import Requests, Unsendable

_STORE_RETRY_SECONDS = 5.0  # as often as the kernel itself looks for room again (SPEC 12)

Ending = ToolComplete | ToolFail | ToolCancel


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A registered handler."""

    handler: ToolHandler
    handles_cancel: bool


class Arrival(NamedTuple):
    """A call that has no task yet."""

    called: ToolCalled
    tool: Tool | None
    life: CallLife


class CallRunner:
    """Starts, stops and ends the handlers of delivered calls. One a life of the process."""

    def __init__(self, requests: Requests, tools: Tools, registered: Mapping[str, Tool], nursery: trio.Nursery) -> None:
        self._requests = requests
        self._tools = tools
        self._registered = registered
        self._nursery = nursery
        self._running: dict[str, tuple[CallLife, bool]] = {}
        self._arrived: deque[Arrival] = deque()  # each has a task that was started for it

    def take(self, called: ToolCalled) -> None:
        """Begin work on a delivered call; never waits."""
        if called.call_id in self._running:
            return
        tool = self._registered.get(called.tool_id)
        life = CallLife()
        self._running[called.call_id] = (life, tool is not None and tool.handles_cancel)
        self._arrived.append(Arrival(called, tool, life))
        self._nursery.start_soon(self._run)

    def take_cancel(self, requested: ToolCancelRequested) -> None:
        """Tell or stop the handler; a call that is not here has ended already."""
        life, handles_cancel = self._running.get(requested.call_id, (None, False))
        if life is None:
            return
        life.cancel_requested.set()
        if not handles_cancel:
            life.scope.cancel()

    def take_ended(self, ended: ToolEnded) -> None:
        """Stop the handler of a call that got its outcome elsewhere."""
        life, _ = self._running.get(ended.call_id, (None, False))
        if life is not None:
            life.end(ended.status)

    async def _run(self) -> None:
        called, tool, life = self._arrived.popleft()  # tasks of one step start in any order: each takes the oldest call
        try:
            await self._requests.post(ToolAccept(call_id=called.call_id), on_refused=partial(self._accept_refused, called, life))
            ending = await self._work(called, tool, life)
            if ending is not None:
                await self._end(ending)
        except ChannelClosed:
            return  # the session ends for the same reason and says so
        finally:
            del self._running[called.call_id]

    def _accept_refused(self, called: ToolCalled, life: CallLife, code: str) -> None:
        life.end()
        if code == Code.STORE_FULL:  # it was not decided: try again, or the call would wait for the next life of the process
            self._nursery.start_soon(self._take_later, called)

    async def _take_later(self, called: ToolCalled) -> None:
        await trio.sleep(_STORE_RETRY_SECONDS)
        self.take(called)

    async def _work(self, called: ToolCalled, tool: Tool | None, life: CallLife) -> Ending | None:
        """Run the handler; return the ending it asks for, or None when the call has one."""
        call_id = called.call_id
        if tool is None:
            return ToolFail(call_id=call_id, reason="no_handler")
        result: object = None
        try:
            with life.scope:
                result = await tool.handler(ToolCall(called, self._tools, life))
        except ChannelClosed:
            raise
        except Exception as error:  # the border to the author's code (rule 3); a broken handler must not end the other calls
            return None if life.is_ended else _failure(call_id, error)
        if life.is_ended:
            return None
        if life.scope.cancelled_caught:
            return ToolCancel(call_id=call_id)
        if type(result) is not dict:
            kind = type(result).__name__
            _complain(f"the handler of {called.tool_id} returned {kind}: it must return a dict or end the call itself")
            return ToolFail(call_id=call_id, reason="handler_error")
        return ToolComplete(call_id=call_id, result=result)

    async def _end(self, ending: Ending) -> None:
        """Send the ending until the kernel decided. A result it cannot take becomes a failure: the handler is gone."""
        while True:
            try:
                ticket = await self._requests.post(ending)
                if len(self._running) == 1:
                    self._requests.flush()
                await ticket.wait()
            except Unsendable as error:
                _complain(f"{error} (in the result of a tool)")
                ending = ToolFail(call_id=ending.call_id, reason="handler_error")
            except Refused as refused:
                if refused.code == Code.STORE_FULL:  # nothing may be lost: the kernel takes it once there is room again
                    await trio.sleep(_STORE_RETRY_SECONDS)
                elif isinstance(ending, ToolComplete) and refused.code in _UNTAKEN:
                    _complain(f"the result was refused: {refused.code} at {refused.detail.get('pointer', '')!r}")
                    ending = ToolFail(call_id=ending.call_id, reason=_UNTAKEN[refused.code])
                else:
                    return
            else:
                return


# Why a kernel does not take a result -> the reason the call then fails with.
_UNTAKEN = {Code.LIMIT_EXCEEDED.value: "output_too_large", Code.TOOL_OUTPUT_INVALID.value: "output_invalid"}


def _failure(call_id: str, error: Exception) -> ToolFail:
    leaf = _only_leaf(error)
    if isinstance(leaf, ToolFailed) and type(leaf.reason) is str and TOKEN.holds(leaf.reason):
        return ToolFail(call_id=call_id, reason=leaf.reason, message=shortened(leaf.message))
    traceback.print_exception(error, file=sys.stderr)
    return ToolFail(call_id=call_id, reason="handler_error")


def _only_leaf(error: BaseException) -> BaseException:
    """What was raised, out of the groups a nursery in the handler wraps around it."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _complain(text: str) -> None:
    print(text, file=sys.stderr)
