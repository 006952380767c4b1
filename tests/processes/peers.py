"""The other end of a kernel's host channels, for tests: a person's view or admin, and an Agent.

Rules:
1. Everything that came is kept in order (`frames`); a wait looks at what came and then for what comes, never at a clock.
2. A wait is bounded by SECONDS; the end of the channel ends every wait with ChannelEnded.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import trio

from kernel.protocol.host import AppClose, HostHello, KernelStatus
from kernel.protocol.host_interactions import DraftSave, InteractionAnswer
from lineup_sdk.channel import Channel, ChannelClosed
from lineup_sdk.protocol.limits import WIRE_VERSION
from lineup_sdk.protocol.messages import JsonObject, Message, to_frame

SECONDS = 20.0
NOW = "2026-11-30T12:00:00Z"
OPEN = ("received", "routing", "waiting_for_app", "running")

_Found = TypeVar("_Found")
_NAMES = itertools.count(1)


def new_name(kind: str) -> str:
    """An id no other of this run has."""
    return f"{kind}_test_{next(_NAMES)}"


class ChannelEnded(AssertionError):
    """The kernel closed the channel while a test waited for more."""


class Peer:
    """One end of a channel, read to its end."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.frames: list[JsonObject] = []
        self.is_closed = False
        self._changed = trio.Event()
        self._reading = trio.CancelScope()

    async def run(self) -> None:
        """Read until the channel ends."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.channel.run_flusher)
                with self._reading:
                    await self._read()
                await trio.sleep_forever()
        except* ChannelClosed:
            pass
        finally:
            self.channel.close()
            self.is_closed = True
            self._note()

    async def _read(self) -> None:
        while True:
            for frame in await self.channel.receive():
                self.frames.append(frame)
                self.take(frame)
            self._note()

    def stop_reading(self) -> None:
        """From now on leave everything where it is."""
        self._reading.cancel()

    def take(self, frame: JsonObject) -> None:
        """Understand one frame."""

    def _note(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def until(self, find: Callable[[], _Found | None]) -> _Found:
        """Wait until there is something to find."""
        with trio.move_on_after(SECONDS):
            while True:
                found = find()
                if found:
                    return found
                if self.is_closed:
                    raise ChannelEnded(self._last_frames())
                await self._changed.wait()
        raise AssertionError(f"nothing of it came in {SECONDS:.0f} s; the last frames: {self._last_frames()}")

    def _last_frames(self) -> str:
        return "\n".join(str(frame)[:600] for frame in self.frames[-6:])

    async def wait_closed(self) -> None:
        """Wait until the kernel ended the channel."""
        await self.until(lambda: self.is_closed)

    def of_type(self, kind: str) -> list[JsonObject]:
        """Every frame of one type that came."""
        return [frame for frame in self.frames if frame["type"] == kind]

    @property
    def goodbye(self) -> str | None:
        """The code of the goodbye, when one came."""
        said = self.of_type("goodbye")
        return str(said[0]["code"]) if said else None

    def put(self, message: Message, number: int | None = None) -> None:
        """Send one message."""
        self.channel.send(to_frame(message, number))
        self.channel.flush()

    def close(self) -> None:
        """Leave."""
        self.channel.close()


async def greet(peer: Peer, hello: dict[str, Any]) -> None:
    """Say hello and wait for the welcome, or for the goodbye and the end."""
    peer.put(HostHello(wire=WIRE_VERSION, **hello))
    await peer.until(lambda: peer.of_type("welcome") or peer.is_closed)
    if hello["role"] == "view" and not peer.is_closed:
        await peer.until(lambda: peer.of_type("snapshot"))


def _texts_of(value: Any) -> Iterator[str]:
    """Every text in a frame that is no word of the wire, an id or shorter than a word."""
    if isinstance(value, str) and len(value) > 8:
        yield value
    elif isinstance(value, dict):
        for name, member in value.items():
            if name not in ("interaction_id", "type"):
                yield from _texts_of(member)
    elif isinstance(value, list):
        for member in value:
            yield from _texts_of(member)


class Person(Peer):
    """A view or admin: asks, and keeps what snapshot and deltas say."""

    def __init__(self, channel: Channel) -> None:
        super().__init__(channel)
        self.calls: dict[str, JsonObject] = {}
        self.instances: dict[str, JsonObject] = {}
        self.statuses: dict[str, list[str]] = {}
        self.interactions: dict[str, JsonObject] = {}
        self.results: dict[str, JsonObject] = {}
        self.focus: list[str] = []
        self.drafts: set[str] = set()  # texts that were typed and not sent, as far as this peer knows
        self.sent: set[str] = set()
        self.acknowledges = True
        self._replies: dict[int, JsonObject] = {}
        self._last_id = 0

    def take(self, frame: JsonObject) -> None:
        """Replies, state, and the results of own calls."""
        match frame["type"]:
            case "reply":
                self._replies[frame["id"]] = frame
            case "snapshot":
                self.focus = frame["state"]["focus"]
                for call in frame["state"]["calls"]:
                    self._see("call", call)
                for instance in frame["state"]["instances"]:
                    self._see("instance", instance)
                for interaction in frame["state"]["interactions"]:
                    self._see("interaction", interaction)
            case "delta":
                for change in frame["changes"]:
                    self._see(change["kind"], change["value"])
            case "envelope":
                self._take_envelope(frame["envelope"])

    def _see(self, kind: str, value: Any) -> None:
        if kind == "call":
            self.calls[value["call_id"]] = value
            seen = self.statuses.setdefault(value["call_id"], [])
            if not seen or seen[-1] != value["status"]:
                seen.append(value["status"])
        elif kind == "instance":
            self.instances[value["instance_id"]] = value
        elif kind == "interaction":
            self.interactions[value["interaction_id"]] = value
        elif kind == "focus":
            self.focus = value

    def _take_envelope(self, envelope: JsonObject) -> None:
        if envelope["type"].endswith("tool.result"):
            self.results[envelope["payload"]["call_id"]] = envelope["payload"]
        if self.acknowledges:
            self.channel.send({"type": "outbox.acknowledge", "message_id": envelope["message_id"]})

    async def ask(self, message: Message) -> JsonObject:
        """One request; returns its value, or its receipt."""
        self._last_id += 1
        number = self._last_id
        (self.drafts if isinstance(message, DraftSave) else self.sent).update(_texts_of(to_frame(message)))
        self.put(message, number)
        reply = await self.until(lambda: self._replies.get(number))
        said: JsonObject = reply["value"] if "value" in reply else reply["receipt"]
        return said

    async def still(self) -> JsonObject:
        """Ask how it stands, which changes nothing: the reply comes after everything that was said before."""
        return await self.ask(KernelStatus())

    async def close_app(self, instance_id: str, *, approved: bool = True) -> JsonObject | None:
        """Close an App; when the kernel asks first, answer that. Returns the question, if there was one."""
        said = await self.ask(AppClose(instance_id=instance_id))
        if "asked" not in said:
            return None
        shown = await self.interaction(lambda one: one["interaction_id"] == said["asked"] and one["status"] == "presented")
        answer = InteractionAnswer(interaction_id=said["asked"], answer={"approved": approved}, shown_digest=shown["shown_digest"])
        assert (await self.ask(answer))["accepted"]
        return shown

    async def status(self, call_id: str, *wanted: str) -> JsonObject:
        """Wait until the call stands in one of these statuses; returns its summary."""

        def find() -> JsonObject | None:
            call = self.calls.get(call_id)
            return call if call is not None and call["status"] in wanted else None

        return await self.until(find)

    async def interaction(self, is_it: Callable[[JsonObject], bool]) -> JsonObject:
        """Wait for an interaction of which this is true."""
        return await self.until(lambda: next((one for one in self.interactions.values() if is_it(one)), None))

    async def result(self, call_id: str) -> JsonObject:
        """Wait for the result of an own call."""
        return await self.until(lambda: self.results.get(call_id))

    async def instance(self, scope: str, *wanted: str) -> JsonObject:
        """Wait until an instance of the App is in one of these states; returns the newest."""

        def find() -> JsonObject | None:
            found = [one for one in self.instances.values() if one["app_scope"] == scope and one["state"] in wanted]
            return found[-1] if found else None

        return await self.until(find)


class Agent(Peer):
    """The Agent at the door: sends envelopes, keeps receipts and results."""

    def __init__(self, channel: Channel, *, acknowledges: bool = True) -> None:
        super().__init__(channel)
        self.acknowledges = acknowledges
        self.envelopes: list[JsonObject] = []
        self.results: dict[str, JsonObject] = {}
        self.revision = ""

    def take(self, frame: JsonObject) -> None:
        """Envelopes are kept, and acknowledged when this Agent does that."""
        if frame["type"] == "welcome":
            self.conversation_id = frame["conversation_id"]
            self.revision = frame["revision"]
        if frame["type"] != "envelope":
            return
        envelope = frame["envelope"]
        self.envelopes.append(envelope)
        if envelope["type"].endswith("client.inventory"):
            self.revision = envelope["payload"]["inventory_revision"]
        if envelope["type"].endswith("tool.result"):
            self.results[envelope["payload"]["call_id"]] = envelope["payload"]
        if self.acknowledges:
            self.acknowledge(envelope["message_id"])

    def acknowledge(self, message_id: str) -> None:
        """Say that a row has arrived."""
        self.channel.send({"type": "outbox.acknowledge", "message_id": message_id})

    def envelope(self, kind: str, payload: JsonObject, **more: Any) -> JsonObject:
        """An envelope of this conversation with a new id, unless more says otherwise."""
        return {
            "type": f"lineup.v1.{kind}",
            "message_id": new_name("m"),
            "conversation_id": self.conversation_id,
            "created_at": NOW,
            "payload": payload,
        } | more

    def submit(self, envelope: JsonObject) -> None:
        """Send an envelope as it is."""
        self.channel.send({"type": "envelope.submit", "envelope": envelope})
        self.channel.flush()

    async def send(self, kind: str, payload: JsonObject, **more: Any) -> JsonObject:
        """Send an envelope and wait for its receipt."""
        envelope = self.envelope(kind, payload, **more)
        return await self.resend(envelope)

    async def resend(self, envelope: JsonObject) -> JsonObject:
        """Send an envelope and wait for one receipt more of its id."""
        before = len(self.receipts(envelope["message_id"]))
        self.submit(envelope)
        return (await self.until(lambda: self.receipts(envelope["message_id"])[before:]))[0]

    def receipts(self, message_id: str) -> list[JsonObject]:
        """The receipts of one envelope."""
        return [frame for frame in self.of_type("receipt") if frame.get("message_id") == message_id]

    async def invoke(self, tool_id: str, given: JsonObject, **more: Any) -> str:
        """Call a tool under the newest revision this Agent heard of; returns the call_id once the receipt came."""
        call_id = more.pop("call_id", None) or new_name("call")
        payload = {"call_id": call_id, "tool_id": tool_id, "inventory_revision": self.revision, "input": given} | more
        await self.send("tool.call", payload)
        return call_id

    async def result(self, call_id: str) -> JsonObject:
        """Wait for the result of a call."""
        return await self.until(lambda: self.results.get(call_id))

    async def go(self, scope: str, key: str = "") -> None:
        """Release what waits for this key in an App."""
        await self.send("app.message", {"topic": f"{scope}.go", "body": {"key": key}}, app_scope=scope)
