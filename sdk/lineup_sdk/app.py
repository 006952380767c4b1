"""MiniApp: the object an author registers handlers on, and the doors to the kernel.

Use, in the file the Manifest names as entry.main:

    app = MiniApp()

    @app.tool("greeter.greet")
    async def greet(call: ToolCall) -> JsonObject:
        return {"text": "Hello, " + call.input["name"]}

Rules:
1. Decorators register on this object; nothing is global. The process looks for the name `app` in the entry file.
2. The doors work only while the app is served, from its handlers or tasks they started.
3. `serve` is called by the process (or by lineup_sdk.testing), once at a time; the process has spoken hello and welcome before.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TypeVar

from lineup_sdk.artifacts import Artifact, Artifacts
from lineup_sdk.call_runner import Tool
from lineup_sdk.calls import ToolCall, ToolHandler, Tools
from lineup_sdk.capabilities import Capabilities, CapabilityResult
from lineup_sdk.channel import Channel
from lineup_sdk.context import MiniAppContext, read_context
from lineup_sdk.doors import Lifecycle, Log, SavedState
from lineup_sdk.inbox import Inbox, InboxMessage, InboxPage, MessageHandler
from lineup_sdk.protocol.framing import ProtocolViolation
from lineup_sdk.protocol.interaction_messages import INTERACTION_RESULT
from lineup_sdk.protocol.limits import WIRE_VERSION
from lineup_sdk.protocol.messages import JsonObject, LifecycleStopping, Welcome
from lineup_sdk.requests import Requests, Unsendable
from lineup_sdk.session import ContextHandler, Handlers, Session, StartHandler, StoppingHandler, UiHandler
from lineup_sdk.surface import EVENT_TOPIC, Surface, SurfaceEvent, SurfaceState
from lineup_sdk.system import Conversation, Timeline, TimelineChange, TimelineHandler

__all__ = [
    "Artifact",
    "CapabilityResult",
    "Inbox",
    "InboxMessage",
    "InboxPage",
    "JsonObject",
    "LifecycleStopping",
    "MiniApp",
    "MiniAppContext",
    "SurfaceEvent",
    "SurfaceState",
    "TimelineChange",
    "ToolCall",
    "Unsendable",
]


_Handler = TypeVar("_Handler", bound=Callable[..., object])


class MiniApp:
    """See the head of the file."""

    def __init__(self) -> None:
        requests = Requests()
        self._requests = requests
        self._handlers = Handlers()
        self._session: Session | None = None
        self.capabilities = Capabilities(requests)
        self.artifacts = Artifacts(requests)
        self.inbox = Inbox(requests)
        self.lifecycle = Lifecycle(requests)
        self.log = Log(requests)
        self.conversation = Conversation(requests)
        self.timeline = Timeline(requests)
        self.state = SavedState(requests)
        self.surface = Surface(requests)
        self.tools = Tools(requests)

    @property
    def context(self) -> MiniAppContext:
        """Who this instance is, as of now. Raises: RuntimeError before the app is served."""
        if self._session is None:
            raise RuntimeError("this MiniApp is not being served yet: it has no context")
        return self._session.context

    @property
    def tool_ids(self) -> frozenset[str]:
        """The tools that have a handler."""
        return frozenset(self._handlers.tools)

    @property
    def topics(self) -> frozenset[str]:
        """The topics that have a handler."""
        return frozenset(self._handlers.messages) - {EVENT_TOPIC, INTERACTION_RESULT}

    def tool(self, tool_id: str, *, handles_cancel: bool = False) -> Callable[[ToolHandler], ToolHandler]:
        """Register the handler of one tool. It returns the result (a dict), raises ToolFailed, or ends the call itself.

        handles_cancel: the handler is told of a cancel request (`call.wait_cancel_requested`) instead of being cancelled.
        Raises: ValueError for a second handler, TypeError for one that is not async. Source: SPEC 6.5, 6.7.
        """

        def register(handler: ToolHandler) -> ToolHandler:
            _require_new(tool_id, self._handlers.tools)
            self._handlers.tools[tool_id] = Tool(handler=_require_async(handler), handles_cancel=handles_cancel)
            return handler

        return register

    def on_message(self, topic: str) -> Callable[[MessageHandler], MessageHandler]:
        """Register the handler of a topic; the message is acknowledged when it returns. Raises: as tool. Source: SPEC 5."""

        def register(handler: MessageHandler) -> MessageHandler:
            _require_new(topic, self._handlers.messages)
            self._handlers.messages[topic] = _require_async(handler)
            return handler

        return register

    def on_start(self, handler: StartHandler) -> StartHandler:
        """Run it before any call or message is delivered: the place to load the saved state."""
        _require_none(self._handlers.start)
        self._handlers.start = _require_async(handler)
        return handler

    def on_stopping(self, handler: StoppingHandler) -> StoppingHandler:
        """Run it when the process is about to end; it has `deadline_ms`. reason: close | suspend | shutdown."""
        _require_none(self._handlers.stopping)
        self._handlers.stopping = _require_async(handler)
        return handler

    def on_context_changed(self, handler: ContextHandler) -> ContextHandler:
        """Run it with the newest context after its state changed."""
        _require_none(self._handlers.context_changed)
        self._handlers.context_changed = _require_async(handler)
        return handler

    def on_timeline(self, handler: TimelineHandler) -> TimelineHandler:
        """Run it with what changed in the timeline, the newest window first. For the system App. Source: SPEC 9.3."""
        _require_none(self._handlers.timeline)
        self._handlers.timeline = _require_async(handler)
        return handler

    def on_ui_changed(self, handler: UiHandler) -> UiHandler:
        """For lineup_sdk.ui: run it with (interaction_id, status) of own questions."""
        _require_none(self._handlers.ui_changed)
        self._handlers.ui_changed = _require_async(handler)
        return handler

    @property
    def requests_of_extensions(self) -> Requests:
        """For extensions of this package that ask the kernel."""
        return self._requests

    async def serve(self, channel: Channel, welcome: Welcome) -> None:
        """Live on a channel until it closes or `lifecycle.stopping` was handled.

        Raises: ProtocolViolation when the kernel breaks the wire; what the start or stop handler raised. Source: SPEC 2.6, 3.
        """
        if welcome.wire != WIRE_VERSION:
            raise ProtocolViolation("wire_version")
        context = read_context(welcome.context)
        if self.surface.has_event_handlers:
            self._handlers.messages[EVENT_TOPIC] = self.surface.take_event
        self._handlers.surface_changed = self.surface.changed_handler
        session = Session(channel, self._requests, self._handlers, context, self.tools, self.inbox, self.capabilities)
        self._session = session
        await session.run()


def _require_async(handler: _Handler) -> _Handler:
    if not _is_async(handler):
        raise TypeError("a handler must be an `async def` function")
    return handler


def _is_async(handler: object) -> bool:
    return inspect.iscoroutinefunction(handler)  # apart, so that the type checker does not narrow the caller's handler


def _require_new(name: str, registered: dict[str, Tool] | dict[str, MessageHandler]) -> None:
    if name in registered:
        raise ValueError(f"{name} has a handler already")


def _require_none(handler: object) -> None:
    if handler is not None:
        raise ValueError("this event has a handler already")
