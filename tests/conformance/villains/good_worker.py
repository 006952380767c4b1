"""A worker that keeps every rule, written on the wire alone: no MiniApp, so that a villain can break one rule at a time.

A villain is this worker with one method replaced. It runs in a real sealed process; its siblings are imported by their stem.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any

import cbor2
import trio
from asking import Asking, Refused

from lineup_sdk.channel import Channel, ChannelClosed
from lineup_sdk.protocol.capability_messages import CAPABILITY_RESULT, CapabilityRequest
from lineup_sdk.protocol.framing import ProtocolViolation, decode_item
from lineup_sdk.protocol.interaction_messages import INTERACTION_RESULT, UiRequest
from lineup_sdk.protocol.limits import UPLOAD_CHUNK_BYTES
from lineup_sdk.protocol.messages import (
    TO_WORKER,
    Chunk,
    InboxAcknowledge,
    InboxSubscribe,
    LifecycleRequestBackground,
    LifecycleStarted,
    LogWrite,
    Pong,
    StateLoad,
    StateSave,
    ToolAccept,
    ToolCancel,
    ToolComplete,
    ToolFail,
    ToolProgress,
    ToolsSubscribe,
)
from lineup_sdk.protocol.parsing import parse_frame
from lineup_sdk.protocol.surface_messages import ArtifactGet, ArtifactPut, SurfaceOpen, SurfaceRead, SurfaceUpdate
from lineup_sdk.protocol.system_messages import ConversationSendText, LifecycleRequestMode, TimelineSubscribe

STATES = {"background", "foreground", "starting", "suspended"}
CONTEXT = {"app_scope", "app_version", "conversation_id", "instance_id", "state"}
BYTES = b"drawing " * 10_000
MENDED_BY_FAILURE = {"limit_exceeded", "tool_output_invalid"}


class Failed(Exception):
    """A call cannot be done."""


class GoodWorker(Asking):
    """See the head of the file."""

    clause = ""
    fails: frozenset[int] = frozenset()

    def __init__(self) -> None:
        super().__init__()
        self.scopes: dict[str, trio.CancelScope] = {}
        self.over: set[str] = set()
        self.gates: dict[str, trio.Event] = {}
        self.answers: dict[str, trio.Event] = {}
        self.version = 0
        self.is_stopping = False

    # --- a life

    async def serve(self, channel: Channel, welcome: Any) -> None:
        self.channel = channel
        self.require_welcome(welcome)
        self.is_system = "mode" in welcome.context
        try:
            async with trio.open_nursery() as self.nursery:
                self.nursery.start_soon(channel.run_flusher)
                self.nursery.start_soon(self.start)
                self.nursery.start_soon(self.read)
        except* ChannelClosed:
            pass

    def require_welcome(self, welcome: Any) -> None:
        names = set(welcome.context)
        if welcome.wire != 1 or not names >= CONTEXT or names - CONTEXT - {"mode"} or welcome.context["state"] not in STATES:
            raise ProtocolViolation("welcome")

    async def start(self) -> None:
        await self.open_surface()
        posted = [self.post(ToolsSubscribe()), self.post(InboxSubscribe())]
        posted += [self.post(TimelineSubscribe())] if self.is_system else []
        posted.append(self.post(LifecycleStarted()))
        for ticket in posted:
            await self.wait(ticket)
        await self.after_start()

    async def open_surface(self) -> None:
        self.version = (await self.ask(SurfaceOpen()))["version"]
        await self.show({"starts": "one more"})

    async def after_start(self) -> None:
        self.send(LogWrite(stream="log", text="started\n"))

    async def read(self) -> None:
        while True:
            for body in await self.channel.receive_bodies():
                self.take(self.parse(body))

    def parse(self, body: bytes) -> Any:
        return parse_frame(decode_item(body), TO_WORKER)[0]

    def take(self, message: Any) -> None:
        getattr(self, "on_" + message.TYPE.replace(".", "_"))(message)

    # --- signs of life, states, the end

    def on_welcome(self, _: Any) -> None:
        raise ProtocolViolation("welcome")

    def on_ping(self, ping: Any) -> None:
        self.pong(ping.n)

    def pong(self, n: int) -> None:
        self.send(Pong(n=n))

    def on_context_changed(self, changed: Any) -> None:
        if changed.state not in STATES:
            raise ProtocolViolation("context")

    def on_lifecycle_stopping(self, stopping: Any) -> None:
        if not self.is_stopping:
            self.is_stopping = True
            self.nursery.start_soon(self.stop, stopping)

    async def stop(self, stopping: Any) -> None:
        with trio.move_on_after(stopping.deadline_ms / 1000):
            await self.channel.drain()
        self.nursery.cancel_scope.cancel()

    # --- calls

    def on_tool_called(self, called: Any) -> None:
        if called.call_id not in self.scopes:
            self.scopes[called.call_id] = trio.CancelScope()
            self.nursery.start_soon(self.work, called)

    def on_tool_cancel_requested(self, requested: Any) -> None:
        if requested.call_id in self.scopes:
            self.scopes[requested.call_id].cancel()

    def on_tool_ended(self, ended: Any) -> None:
        if ended.call_id in self.scopes:
            self.over.add(ended.call_id)
            self.scopes[ended.call_id].cancel()

    async def work(self, called: Any) -> None:
        call_id, scope = called.call_id, self.scopes[called.call_id]
        try:
            await self.accept(called)
            ending: Any = ToolCancel(call_id=call_id)
            with scope:
                ending = await self.finish(called)
            if call_id not in self.over:
                await self.end(ending)
        except Refused:
            return
        finally:
            del self.scopes[call_id]

    async def accept(self, called: Any) -> None:
        await self.ask(ToolAccept(call_id=called.call_id))

    async def finish(self, called: Any) -> Any:
        try:
            return ToolComplete(call_id=called.call_id, result=await self.do(called))
        except Failed:
            return self.failure(called)

    def failure(self, called: Any) -> Any:
        return ToolFail(call_id=called.call_id, reason="no_luck", message="Not today.")

    async def end(self, ending: Any) -> None:
        while True:
            try:
                await self.ask(ending)
            except Refused as refused:
                if refused.code == "store_full":
                    await trio.sleep(0.05)
                elif isinstance(ending, ToolComplete) and refused.code in MENDED_BY_FAILURE:
                    ending = ToolFail(call_id=ending.call_id, reason="not_taken")
                else:
                    return
            else:
                return

    async def do(self, called: Any) -> dict[str, Any]:
        verb = getattr(self, "do_" + called.tool_id.partition(".")[2], None)
        if verb is None:
            raise Failed
        result: dict[str, Any] = await verb(called)
        return result

    async def do_echo(self, called: Any) -> dict[str, Any]:
        return {"text": called.input["text"]}

    async def do_wait(self, called: Any) -> dict[str, Any]:
        await self.gate(called.input["key"]).wait()
        return {"text": called.input["key"]}

    def gate(self, key: str) -> trio.Event:
        return self.gates.setdefault(key, trio.Event())

    async def do_report(self, called: Any) -> dict[str, Any]:
        for percent in (10, 50, 90):
            await self.report(called, percent)
        return {"text": "reported"}

    async def report(self, called: Any, percent: float) -> None:
        try:
            await self.ask(ToolProgress(call_id=called.call_id, percent=percent, message="on its way"))
        except Refused:
            return

    async def do_fail(self, called: Any) -> dict[str, Any]:
        raise Failed

    async def do_remember(self, called: Any) -> dict[str, Any]:
        state = await self.load()
        await self.save({**state, "value": called.input["text"]})
        await self.show({"value": called.input["text"]})
        return {"text": state.get("value", "")}

    async def do_keep(self, called: Any) -> dict[str, Any]:
        try:
            artifact_id = await self.put(BYTES)
        except Refused:
            raise Failed from None
        kept = await self.fetch(ArtifactGet(artifact_id=artifact_id, offset=0))
        return {"text": str(len(kept))}

    async def do_ask_host(self, called: Any) -> dict[str, Any]:
        return {"text": await self.ask_host(called)}

    async def ask_host(self, called: Any) -> str:
        request = self.host_request(called)
        try:
            value = await self.ask(request)
        except Refused as refused:
            return refused.code
        return str(value["status"])

    def host_request(self, called: Any) -> Any:
        return CapabilityRequest(
            capability="notification.show", reason="It is done", arguments={"title": "Done"}, parent_call_id=called.call_id
        )

    async def do_ask_person(self, called: Any) -> dict[str, Any]:
        request = {"kind": "confirm", "title": "Sure?", "prompt": "Go on."}
        try:
            value = await self.ask(UiRequest(request=request, parent_call_id=called.call_id))
        except Refused as refused:
            return {"text": refused.code}
        await self.answer(value["interaction_id"]).wait()
        return {"text": "answered"}

    def answer(self, interaction_id: str) -> trio.Event:
        return self.answers.setdefault(interaction_id, trio.Event())

    async def do_ask_life(self, called: Any) -> dict[str, Any]:
        try:
            await self.ask(LifecycleRequestBackground())
        except Refused as refused:
            return {"text": refused.code}
        return {"text": "asked"}

    # --- state, surface, artifacts

    async def load(self) -> dict[str, Any]:
        return (await self.ask(StateLoad()))["state"] or {}

    async def save(self, state: dict[str, Any]) -> None:
        try:
            await self.ask(StateSave(state=state))
        except Refused:
            return

    async def show(self, patch: dict[str, Any]) -> None:
        """Change the surface, from what it is now."""
        for _ in range(5):
            cbor2.loads(await self.fetch(SurfaceRead()))
            try:
                self.version = (await self.ask(self.update(patch)))["version"]
            except Refused as refused:
                if refused.code != "version_conflict":
                    return
                self.version = (await self.ask(SurfaceOpen()))["version"]
            else:
                return

    def update(self, patch: dict[str, Any]) -> Any:
        return SurfaceUpdate(base_version=self.version, patch=patch)

    def on_surface_changed(self, changed: Any) -> None:
        self.version = changed.version

    async def put(self, data: bytes) -> str:
        ticket = self.post(ArtifactPut(sha256=hashlib.sha256(data).hexdigest(), size=len(data), media_type="text/plain"))
        for start in range(0, len(data), self.part_bytes):
            last = start + self.part_bytes >= len(data)
            of = f"artifact.put:{ticket.request_id}"  # type: ignore[attr-defined]
            self.send(Chunk(of=of, data=data[start : start + self.part_bytes], last=last))
        return str((await self.wait(ticket))["artifact_id"])

    part_bytes = UPLOAD_CHUNK_BYTES

    # --- messages

    def on_inbox_delivered(self, delivered: Any) -> None:
        self.nursery.start_soon(self.take_over, delivered)

    async def take_over(self, delivered: Any) -> None:
        await self.handle(delivered)
        await self.acknowledge(delivered)

    async def acknowledge(self, delivered: Any) -> None:
        try:
            await self.ask(InboxAcknowledge(message_id=delivered.message_id))
        except Refused:
            return

    async def handle(self, delivered: Any) -> None:
        if delivered.topic == "plain.go":
            self.gate(delivered.body["key"]).set()
        elif delivered.topic == "plain.note":
            await self.note(delivered)
        elif delivered.topic == INTERACTION_RESULT:
            self.answer(delivered.body["interaction_id"]).set()
        elif delivered.topic == CAPABILITY_RESULT:
            await self.host_answered(delivered)
        else:
            await self.act(delivered.body)

    async def note(self, delivered: Any) -> None:
        await self.save({**await self.load(), "note": delivered.body["text"]})

    async def host_answered(self, delivered: Any) -> None:
        """Nothing is done about it."""

    async def act(self, event: dict[str, Any]) -> None:
        if event["name"] == "send" and self.is_system:
            await self.ask(ConversationSendText(text=event["body"]["text"], key=event["body"]["key"]))
        elif event["name"] == "mode" and self.is_system:
            try:
                await self.ask(LifecycleRequestMode(mode=event["body"]["mode"]))
            except Refused:
                return

    # --- what is only heard of

    def on_timeline_changed(self, changed: Any) -> None:
        """Nothing is shown of it."""

    def on_interaction_presented(self, presented: Any) -> None:
        """Nothing is shown of it."""

    def on_ui_changed(self, changed: Any) -> None:
        """The answer comes as a message."""


def die() -> None:
    """End the process as a crash does."""
    os._exit(9)


app = GoodWorker()
