"""The surface of a MiniApp: its UI as one JSON object that the kernel keeps, changed by merge patches (SPEC 9.1).

Use:
    await app.surface.open()
    state = await app.surface.read()
    await app.surface.update({"title": "Plan"}, base_version=state.version)

    @app.surface.on_event("submit")
    async def submit(event: SurfaceEvent) -> None: ...

Rules:
1. The person changes the same object. An update names the version it was made on; on a newer one it is refused version_conflict,
   and `change` is the way to read and try again.
2. `on_changed` is told once, and again only after the App read or updated: a hint, not a list of changes, and not kept for a later life.
3. An event is a message of the inbox: kept until its handler returned, delivered again after a crash.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import cbor2

from lineup_sdk.errors import Refused
from lineup_sdk.inbox import InboxMessage
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject
from lineup_sdk.protocol.surface_messages import SurfaceClose, SurfaceOpen, SurfaceRead, SurfaceUpdate
from lineup_sdk.requests import Requests

EVENT_TOPIC = "surface.event"
_MAX_TRIES = 50  # of one change, while the person changes the same surface


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceState:
    """The surface as it was at a version."""

    version: int
    state: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceEvent:
    """A deliberate act of the person in the surface."""

    name: str
    body: JsonObject
    delivery_count: int


ChangedHandler = Callable[[int], Awaitable[None]]
EventHandler = Callable[[SurfaceEvent], Awaitable[None]]


class Surface:
    """See the head of the file."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._events: dict[str, EventHandler] = {}
        self.changed_handler: ChangedHandler | None = None

    async def open(self) -> int:
        """Open the surface, or take up the one an earlier life left; returns its version, 0 for a new one."""
        value = await self._requests.request(SurfaceOpen())
        version: int = value["version"]
        return version

    async def read(self) -> SurfaceState:
        """Return the whole state. Raises: Refused(surface_unavailable) when it is not open."""
        value, content = await self._requests.fetch(SurfaceRead())
        return SurfaceState(version=value["version"], state=cbor2.loads(content))

    async def update(self, patch: JsonObject, *, base_version: int) -> int:
        """Change the state by a merge patch (RFC 7396: null removes a member); returns the new version.

        Raises: Refused(version_conflict with detail.version, limit_exceeded over 48 KiB of patch or 4 MiB of state, surface_unavailable).
        """
        value = await self._requests.request(SurfaceUpdate(base_version=base_version, patch=patch))
        version: int = value["version"]
        return version

    async def change(self, make_patch: Callable[[JsonObject], JsonObject | None]) -> int:
        """Read, make a patch of the state, and update, again if somebody was faster; None changes nothing. Returns the version.

        Raises: Refused, as update; version_conflict only after many tries.
        """
        for tries_left in reversed(range(_MAX_TRIES)):
            now = await self.read()
            patch = make_patch(now.state)
            if patch is None:
                return now.version
            try:
                return await self.update(patch, base_version=now.version)
            except Refused as refused:
                if refused.code != Code.VERSION_CONFLICT or not tries_left:
                    raise
        raise AssertionError("the last try returns or raises")

    async def close(self) -> None:
        """Close the surface; its state stays for the next `open` in this App session. Raises: Refused(surface_unavailable)."""
        await self._requests.request(SurfaceClose())

    def on_changed(self, handler: ChangedHandler) -> ChangedHandler:
        """Run it with the newest version after the person changed the surface (rule 2). Raises: ValueError for a second one."""
        if self.changed_handler is not None:
            raise ValueError("this event has a handler already")
        self.changed_handler = handler
        return handler

    def on_event(self, name: str) -> Callable[[EventHandler], EventHandler]:
        """Register the handler of one act by its name. Raises: ValueError for a second handler."""

        def register(handler: EventHandler) -> EventHandler:
            if name in self._events:
                raise ValueError(f"{name} has a handler already")
            self._events[name] = handler
            return handler

        return register

    @property
    def has_event_handlers(self) -> bool:
        """True when the App wants acts of the person."""
        return bool(self._events)

    async def take_event(self, message: InboxMessage) -> None:
        """Give a message of EVENT_TOPIC to its handler; an act nobody wants is done with."""
        handler = self._events.get(message.body["name"])
        if handler is not None:
            event = SurfaceEvent(name=message.body["name"], body=message.body["body"], delivery_count=message.delivery_count)
            await handler(event)
