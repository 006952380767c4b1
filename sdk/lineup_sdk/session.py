"""One life of a MiniApp on one channel: reads, starts, dispatches, stops.

Rules:
1. The reader never waits for a handler: every delivery is taken at once, and a ping is answered before anything else is read.
2. The order of a start: the author's start handler, then tools.subscribe, inbox.subscribe (when there are message handlers),
   lifecycle.started: the last three in one write.
3. A frame the wire does not know ends the life with ProtocolViolation; end of stream ends it quietly; so does `lifecycle.stopping`
   after the stop handler had its time. What else ends it is an exception of the author's start or stop handler, raised as it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import trio

from lineup_sdk.call_runner import CallRunner, Tool
from lineup_sdk.calls import Tools
from lineup_sdk.capabilities import Capabilities
from lineup_sdk.channel import Channel, ChannelClosed
from lineup_sdk.context import MiniAppContext, with_state
from lineup_sdk.inbox import Inbox, InboxRunner, MessageHandler
from lineup_sdk.protocol.capability_messages import CAPABILITY_RESULT
from lineup_sdk.protocol.framing import ProtocolViolation
from lineup_sdk.protocol.interaction_messages import InteractionPresented, UiChanged
from lineup_sdk.protocol.messages import (
    TO_WORKER,
    Chunk,
    ContextChanged,
    InboxDelivered,
    InboxSubscribe,
    JsonObject,
    LifecycleStarted,
    LifecycleStopping,
    Message,
    Ping,
    Pong,
    Reply,
    ToolCalled,
    ToolCancelRequested,
    ToolEnded,
    ToolsSubscribe,
)
from lineup_sdk.protocol.parsing import parse_frame
from lineup_sdk.protocol.surface_messages import SurfaceChanged
from lineup_sdk.protocol.system_messages import TimelineChanged, TimelineSubscribe
from lineup_sdk.requests import Requests
from lineup_sdk.surface import ChangedHandler
from lineup_sdk.system import TimelineHandler, TimelineRunner

StartHandler = Callable[[], Awaitable[None]]
StoppingHandler = Callable[[LifecycleStopping], Awaitable[None]]
UiHandler = Callable[[str, str], Awaitable[None]]  # interaction_id, status
ContextHandler = Callable[[MiniAppContext], Awaitable[None]]


@dataclass(slots=True)
class Handlers:
    """What the author registered."""

    tools: dict[str, Tool] = field(default_factory=dict)
    messages: dict[str, MessageHandler] = field(default_factory=dict)
    start: StartHandler | None = None
    stopping: StoppingHandler | None = None
    context_changed: ContextHandler | None = None
    surface_changed: ChangedHandler | None = None
    ui_changed: UiHandler | None = None
    timeline: TimelineHandler | None = None


class Session:
    """See the head of the file."""

    def __init__(
        self,
        channel: Channel,
        requests: Requests,
        handlers: Handlers,
        context: MiniAppContext,
        tools: Tools,
        inbox: Inbox,
        capabilities: Capabilities,
    ) -> None:
        self.context = context
        self._channel = channel
        self._requests = requests
        self._handlers = handlers
        self._tools = tools
        self._inbox = inbox
        self._capabilities = capabilities
        self._failure: Exception | None = None
        self._context_changed = trio.Event()
        self._surface_changed = trio.Event()
        self._surface_version = 0
        self._ui_changed = trio.Event()
        self._ui_statuses: dict[str, str] = {}  # the newest of each question that the author was not told
        self._is_stopping = False

    async def run(self) -> None:
        """Live until rule 3 ends it. Raises: ProtocolViolation, ChannelOverflow, Refused, what the author's handlers raised."""
        self._requests.open(self._channel)
        self._capabilities.begin(is_subscribed=bool(self._handlers.messages))
        async with trio.open_nursery() as nursery:
            self._calls = CallRunner(self._requests, self._tools, self._handlers.tools, nursery)
            self._timeline = TimelineRunner(self._handlers.timeline)
            self._messages = InboxRunner(self._inbox, self._handlers.messages)
            self._nursery = nursery
            parts = (self._channel.run_flusher, self._messages.run, self._timeline.run)
            for part in (*parts, self._start, self._watch_context, self._watch_surface, self._watch_ui):
                nursery.start_soon(self._guard, part)
            nursery.start_soon(self._guard, self._read)
        if self._failure is not None:
            raise self._failure

    async def _guard(self, part: Callable[..., Awaitable[None]], *arguments: object) -> None:
        """Run one part; its first error ends the life and is raised by `run` itself, not in a group."""
        try:
            await part(*arguments)
        except ChannelClosed:
            self._nursery.cancel_scope.cancel()
        except Exception as error:
            self._failure = self._failure or error
            self._nursery.cancel_scope.cancel()

    async def _start(self) -> None:
        if self._handlers.start is not None:
            await self._handlers.start()
        subscribe_inbox = [InboxSubscribe()] if self._handlers.messages else []
        subscribe_timeline = [TimelineSubscribe()] if self._handlers.timeline else []
        asked = (ToolsSubscribe(), *subscribe_inbox, *subscribe_timeline, LifecycleStarted())
        tickets = [await self._requests.post(m) for m in asked]
        for ticket in tickets:
            await ticket.wait()

    async def _read(self) -> None:
        try:
            while True:
                for frame in await self._channel.receive():
                    self._take(frame)
        finally:
            # No reply can come any more: whoever waits for one, even shielded from cancellation, must not hold up the end.
            self._requests.close()

    def _take(self, frame: JsonObject) -> None:
        message, _ = parse_frame(frame, TO_WORKER)
        self._dispatch(message)

    def _dispatch(self, message: Message) -> None:
        match message:
            case Ping():
                self._requests.send(Pong(n=message.n))
                self._channel.flush()
            case Reply():
                self._requests.take_reply(message)
            case ToolCalled():
                self._calls.take(message)
            case ToolCancelRequested():
                self._calls.take_cancel(message)
            case ToolEnded():
                self._calls.take_ended(message)
            case InboxDelivered():
                self._take_message(message)
            case LifecycleStopping():
                self._take_stopping(message)
            case _:
                self._dispatch_news(message)

    def _dispatch_news(self, message: Message) -> None:
        match message:
            case InteractionPresented():
                self._timeline.take_card(message)
            case TimelineChanged():
                self._timeline.take(message)
            case Chunk():
                self._requests.take_chunk(message)
            case SurfaceChanged():
                self._surface_version = message.version
                self._surface_changed.set()
            case UiChanged():
                self._ui_statuses[message.interaction_id] = message.status
                self._ui_changed.set()
            case ContextChanged():
                self.context = with_state(self.context, message.state)
                self._context_changed.set()
            case _:  # welcome belongs before the app runs
                raise ProtocolViolation("out_of_place")

    def _take_message(self, delivered: InboxDelivered) -> None:
        self._capabilities.take(delivered)
        if delivered.topic == CAPABILITY_RESULT and CAPABILITY_RESULT not in self._handlers.messages:
            self._nursery.start_soon(self._guard, self._acknowledge, delivered.message_id)
        else:
            self._messages.take(delivered)

    async def _acknowledge(self, message_id: str) -> None:
        await self._inbox.acknowledge(message_id)

    async def _watch_context(self) -> None:
        """Tell the author of the newest context; changes that come while the handler runs are told once, together."""
        handler = self._handlers.context_changed
        while handler is not None:
            await self._context_changed.wait()
            self._context_changed = trio.Event()
            await handler(self.context)

    async def _watch_surface(self) -> None:
        """Tell the author of the newest version; as with the context."""
        handler = self._handlers.surface_changed
        while handler is not None:
            await self._surface_changed.wait()
            self._surface_changed = trio.Event()
            await handler(self._surface_version)

    async def _watch_ui(self) -> None:
        """Tell the author of the newest status of each question; as with the context."""
        while True:
            await self._ui_changed.wait()
            self._ui_changed = trio.Event()
            statuses, self._ui_statuses = self._ui_statuses, {}
            for interaction_id, status in statuses.items():
                if self._handlers.ui_changed is not None:
                    await self._handlers.ui_changed(interaction_id, status)

    def _take_stopping(self, stopping: LifecycleStopping) -> None:
        if not self._is_stopping:
            self._is_stopping = True
            self._nursery.start_soon(self._guard, self._stop, stopping)

    async def _stop(self, stopping: LifecycleStopping) -> None:
        with trio.move_on_after(stopping.deadline_ms / 1000):
            if self._handlers.stopping is not None:
                await self._handlers.stopping(stopping)
            await self._channel.drain()
        self._nursery.cancel_scope.cancel()
