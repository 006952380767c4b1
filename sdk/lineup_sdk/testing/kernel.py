"""FakeKernel: what a test holds while it drives one MiniApp.

Rules:
1. The wire is real: a socketpair, Channel, every frame decoded and parsed as the kernel does (life.py); requests are refused as the
   kernel refuses them (rules.py).
2. A life is one `serve`. `crash` ends it as kill -9 does; `revive` starts the next with the kept saved state, the open calls
   (attempts + 1 if a crash took them) and the unacknowledged messages.
3. What the app printed goes where the test's output goes; what it logged stands in `log`.
4. An app that ended by itself with an error fails the test when the block ends, unless `wait_app_ended` was asked.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

import trio

from lineup_sdk.app import MiniApp
from lineup_sdk.protocol.capability_messages import CAPABILITY_RESULT
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.interaction_messages import UiChanged
from lineup_sdk.protocol.messages import (
    ContextChanged,
    JsonObject,
    LifecycleStopping,
    Message,
    Ping,
    ToolCancelRequested,
    ToolEnded,
    to_frame,
)
from lineup_sdk.protocol.surface_messages import SurfaceChanged
from lineup_sdk.protocol.system_messages import TimelineChanged
from lineup_sdk.testing.life import Life
from lineup_sdk.testing.questions import FakeQuestion
from lineup_sdk.testing.records import WAIT_SECONDS, Changes, FakeCall, FakeCapabilityRequest, FakeMessage, Outcome
from lineup_sdk.testing.rules import Desk, IsValid
from lineup_sdk.testing.surfaces import FakeArtifact, FakeSurface

_CONTEXT = {
    "app_scope": "app-under-test",
    "instance_id": "inst_fake_1",
    "conversation_id": "conv_fake_1",
    "app_version": "0.0.0",
    "state": "starting",
}


class ManifestMismatch(AssertionError):
    """The app's handlers and its Manifest do not agree, or the test asks for what the Manifest does not declare."""


class FakeKernel:
    """See the head of the file and of the package.

    app: a MiniApp, or a callable that makes one for each life (`app_file(path)`); `revive` needs the callable.
    manifest: the Manifest as JSON; its app_scope and version go into the context, its tools and topics are checked.
    context: members of the context that differ. saved_state: what an earlier life saved.
    is_valid(schema, value): judges inputs and results by the Manifest's schemas, e.g. with jsonschema.
    """

    def __init__(
        self,
        app: MiniApp | Callable[[], MiniApp],
        *,
        manifest: JsonObject | None = None,
        context: JsonObject | None = None,
        saved_state: JsonObject | None = None,
        is_valid: IsValid | None = None,
    ) -> None:
        self._source = app
        self._manifest = manifest
        self._tools = {} if manifest is None else {t["id"]: t for t in manifest["tools"]}
        output_schemas = {tool_id: t["output_schema"] for tool_id, t in self._tools.items()}
        self._desk = Desk(changes=Changes(), saved_state=saved_state, is_valid=is_valid, output_schemas=output_schemas)
        self._desk.requested_capabilities = None if manifest is None else frozenset(manifest.get("requested_capabilities", ()))
        named = {} if manifest is None else {"app_scope": manifest["app_scope"], "app_version": manifest["version"]}
        self._context: JsonObject = {**_CONTEXT, **named, **(context or {})}
        self._life: Life | None = None
        self._nursery_manager = trio.open_nursery()
        self._last_number = 0

    # --- the block

    async def __aenter__(self) -> Self:
        self._nursery = await self._nursery_manager.__aenter__()
        try:
            await self._begin(self._source if isinstance(self._source, MiniApp) else self._source())
        except BaseException:
            await self._leave()
            raise
        return self

    async def __aexit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        failure = None if self._life is None else self._life.failure
        await self._leave()
        if error is None and failure is not None:
            raise failure

    async def _leave(self) -> None:
        """End the life and its tasks. The block's own error is not given to the nursery: it stays what it is, out of any group."""
        if self._life is not None:
            self._life.kill()
            with trio.CancelScope(shield=True):
                await self._life.wait_ended()
        self._nursery.cancel_scope.cancel()
        await self._nursery_manager.__aexit__(None, None, None)

    # --- what a test reads

    @property
    def app(self) -> MiniApp:
        """The MiniApp of this life."""
        return self._require_life().app

    @property
    def saved_state(self) -> JsonObject | None:
        """What the app saved last."""
        return self._desk.saved_state

    @property
    def log(self) -> list[tuple[str, str]]:
        """(stream, text) of every log.write, oldest first."""
        return self._desk.log

    @property
    def lifecycle_requests(self) -> list[Message]:
        """The accepted lifecycle requests, oldest first."""
        return self._desk.lifecycle_requests

    @property
    def refusals(self) -> list[tuple[str, str]]:
        """(message type, code) of every refused request, oldest first."""
        return self._desk.refusals

    @property
    def capability_requests(self) -> list[FakeCapabilityRequest]:
        """What the app asked the host to do, oldest first."""
        return self._desk.capability_requests

    @property
    def open_calls(self) -> list[FakeCall]:
        """Calls without an outcome, oldest first."""
        return self._desk.open_calls()

    async def wait_until(self, is_true: Callable[[], bool]) -> None:
        """Wait until something became true; looked at after every message of the app. Raises: AppEnded, trio.TooSlowError."""
        await self._desk.changes.wait_until(is_true)

    @property
    def sent_texts(self) -> list[str]:
        """What the system App sent for the person, oldest first."""
        return self._desk.sent_texts

    @property
    def folded(self) -> dict[int, bool]:
        """By number, how the system App placed entries of the timeline."""
        return self._desk.folded

    # --- calls and messages

    async def call(self, tool_id: str, tool_input: JsonObject, *, call_id: str | None = None, time_left_ms: int | None = None) -> FakeCall:
        """Make a call; it is delivered at once if the app listens. Raises: ManifestMismatch, ValueError for a used call_id."""
        self._require_declared(tool_id, tool_input)
        call = FakeCall(
            call_id=call_id or f"call_fake_{self._next_number()}",
            tool_id=tool_id,
            input=tool_input,
            time_left_ms=time_left_ms,
            changes=self._desk.changes,
        )
        if call.call_id in self._desk.calls:
            raise ValueError("that call_id was used before")
        self._desk.calls[call.call_id] = call
        self._deliver()
        return call

    async def deliver(self, topic: str, body: JsonObject) -> FakeMessage:
        """Put a message into the inbox; it is delivered at once if the app listens. Raises: ManifestMismatch."""
        if self._manifest is not None and {"topic": topic} not in self._manifest["subscriptions"]:
            raise ManifestMismatch(f"the Manifest does not subscribe to {topic}")
        return self._store_message(topic, body)

    async def answer_capability(self, request: FakeCapabilityRequest, status: str = "done", **more: str) -> FakeMessage:
        """Say how a request ended. status: done | failed | denied | cancelled | revoked | unknown; more: code, reason. Source: SPEC 10."""
        body = {"request_id": request.request_id, "capability": request.capability, "status": status, **more}
        return self._store_message(CAPABILITY_RESULT, body)

    def _store_message(self, topic: str, body: JsonObject) -> FakeMessage:
        return self._store(topic, body)

    def _store(self, topic: str, body: JsonObject) -> FakeMessage:
        message_id = f"msg_fake_{self._next_number():06}"
        message = FakeMessage(message_id=message_id, topic=topic, body=body, changes=self._desk.changes)
        self._desk.messages[message_id] = message
        self._deliver()
        return message

    async def tell_timeline(self, *changes: JsonObject) -> None:
        """Tell the system App of changed entries, {kind, value}. Source: SPEC 9.3."""
        self.send(TimelineChanged(changes=list(changes)))

    async def cancel(self, call: FakeCall, *, grace_ms: int = 2000) -> None:
        """Ask to cancel a call, as the Agent or the person does. Source: SPEC 6.7."""
        call.is_cancel_requested = True
        self.send(ToolCancelRequested(call_id=call.call_id, grace_ms=grace_ms))

    async def end(self, call: FakeCall, status: str = "expired") -> None:
        """Give a call its outcome without the app: expired, cancelled or failed (the app was disabled)."""
        call.end(Outcome(status=status, code=Code.APP_DISABLED if status == "failed" else Code(status)))
        self.send(ToolEnded(call_id=call.call_id, status=status))

    # --- questions of the app (lineup_sdk.ui)

    def allow_questions(self, is_allowed: bool = True) -> None:
        """Let the app ask the person, as the person's policy does. Source: SPEC 7.4."""
        self._desk.questions.is_allowed = is_allowed

    @property
    def questions(self) -> list[FakeQuestion]:
        """What the app asked, oldest first."""
        return list(self._desk.questions.kept.values())

    async def answer(self, question: FakeQuestion, answer: JsonObject | None = None, *, outcome: str = "answered") -> FakeMessage:
        """End a question, as the person or time does. outcome: answered | accepted | cancelled | expired | failed."""
        if question.result is not None:
            raise ValueError("that question has its outcome")
        message = self._desk.end_question(question, {"outcome": outcome, **({} if answer is None else {"answer": answer})})
        if self._desk.questions.is_subscribed and self._life is not None:
            self.send(UiChanged(interaction_id=question.interaction_id, status=question.status))
        self._deliver()
        return message

    # --- the surface and the artifacts

    @property
    def surface(self) -> FakeSurface:
        """The app's surface: state, version, is_open."""
        return self._desk.surface

    @property
    def artifacts(self) -> dict[str, FakeArtifact]:
        """What the app put, by artifact_id."""
        return self._desk.artifacts.kept

    def refuse_artifacts(self, code: str | None) -> None:
        """Refuse every artifact.put with this code, such as limit_exceeded, or take them again (None)."""
        self._desk.artifacts.refused_with = code

    async def patch_surface(self, patch: JsonObject) -> int:
        """Change the surface as the person does; the app is told once until it looks. Raises: Refused. Source: SPEC 9.1."""
        surface = self._desk.surface
        version = surface.update(surface.version, patch)
        if not surface.is_told and self._life is not None:
            surface.is_told = True
            self.send(SurfaceChanged(version=version))
        return version

    async def surface_event(self, name: str, body: JsonObject) -> FakeMessage:
        """Act in the surface as the person does, such as submit. Raises: Refused(surface_unavailable)."""
        self._desk.surface.require_open()
        return self._store("surface.event", {"name": name, "body": body})

    # --- the instance

    async def set_state(self, state: str) -> None:
        """Change the instance's visible state."""
        self._context["state"] = state
        self.send(ContextChanged(state=state))

    async def ping(self) -> None:
        """Ask for a sign of life and wait for it, as the watchdog does."""
        life, n = self._require_life(), self._next_number()
        self.send(Ping(n=n))
        await self.wait_until(lambda: n in life.pongs)

    async def stop(self, reason: str = "close", deadline_ms: int = 5000) -> None:
        """End the app in order and wait for it. reason: close | suspend | shutdown."""
        life = self._require_life()
        life.expect_end()
        self.send(LifecycleStopping(reason=reason, deadline_ms=deadline_ms))
        await self._end_life(life)
        for call in self.open_calls:
            call.status = "waiting_for_app"

    async def crash(self) -> None:
        """End the process at once, as kill -9 does. A call that may not run twice ends as interrupted (SPEC 6.8)."""
        life = self._require_life()
        life.kill()
        await self._end_life(life)
        for call in self.open_calls:
            hints = self._tools.get(call.tool_id, {}).get("hints", {})
            if self._manifest is not None and call.progress and not hints.get("idempotent", False):
                call.end(Outcome(status="failed", code=Code.INTERRUPTED))
            else:
                call.attempts += call.is_delivered
                call.status = "waiting_for_app"

    async def revive(self) -> None:
        """Start the next life. Raises: RuntimeError when the app was given as an object: its variables would survive."""
        if isinstance(self._source, MiniApp):
            raise RuntimeError("give FakeKernel app_file(path) or another callable: an object keeps its variables over a crash")
        await self._begin(self._source())

    async def wait_app_ended(self) -> Exception | None:
        """Wait until the app ended by itself; return why, or None when it ended quietly."""
        life = self._require_life()
        await self._end_life(life)
        return life.failure

    def refuse_foreground(self) -> None:
        """From now on lifecycle.request_foreground is refused lifecycle_denied."""
        self._desk.grants_foreground = False

    def set_store_full(self, is_full: bool) -> None:
        """Refuse every request with store_full, or take them again."""
        self._desk.is_store_full = is_full

    def send(self, message: Message) -> None:
        """Send any message of the wire to the app. Raises: AppEnded."""
        self.send_frame(to_frame(message))

    def send_frame(self, frame: JsonObject) -> None:
        """Send any map, also one the wire does not know. Raises: AppEnded."""
        self._require_life().send(frame)

    # --- inside

    async def _begin(self, app: MiniApp) -> None:
        self._require_agreement(app)
        desk = self._desk
        desk.surface.is_told = False
        desk.questions.is_subscribed = False
        desk.artifacts.forget_arriving()
        desk.is_started = desk.is_subscribed_to_inbox = desk.is_subscribed_to_tools = False
        desk.changes.trouble = None
        self._context["state"] = "starting"
        self._life = Life(app, desk, self._context)
        self._life.start(self._nursery)
        await self.wait_until(lambda: desk.is_started)

    async def _end_life(self, life: Life) -> None:
        with trio.fail_after(WAIT_SECONDS):
            await life.wait_ended()
        self._life = None

    def _deliver(self) -> None:
        if self._life is not None:
            self._life.deliver_waiting()

    def _require_life(self) -> Life:
        if self._life is None:
            raise RuntimeError("the app is not running: use `revive`")
        return self._life

    def _require_agreement(self, app: MiniApp) -> None:
        if self._manifest is None:
            return
        if app.tool_ids != self._tools.keys():
            raise ManifestMismatch(f"handlers {sorted(app.tool_ids)}, Manifest {sorted(self._tools)}")
        topics = {s["topic"] for s in self._manifest["subscriptions"]}
        topics.add(CAPABILITY_RESULT)  # the kernel's own: nothing to subscribe to
        if not app.topics <= topics:
            raise ManifestMismatch(f"the Manifest does not subscribe to {sorted(app.topics - topics)}")

    def _require_declared(self, tool_id: str, tool_input: JsonObject) -> None:
        if self._manifest is None:
            return
        if tool_id not in self._tools:
            raise ManifestMismatch(f"the Manifest declares no tool {tool_id}")
        is_valid = self._desk.is_valid
        if is_valid is not None and not is_valid(self._tools[tool_id]["input_schema"], tool_input):
            raise ManifestMismatch(f"the input does not fit the input_schema of {tool_id}: the kernel would refuse it")

    def _next_number(self) -> int:
        self._last_number += 1
        return self._last_number
