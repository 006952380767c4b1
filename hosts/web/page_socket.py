"""One page: its socket, its own view of the kernel, and what passes between the two (SPEC 2.6, 2.8).

Order of a life, with the reason for each step:
1. the first message is `auth`, within AUTH_SECONDS: before it nothing is told and nothing is done;
2. `welcome`, then a view of the kernel of this page's own, so that drafts, mounts and "who answered" belong to it;
3. requests go to the kernel in the order they came, and each is answered once; they wait while there is no kernel;
4. the end: the page left, was too slow or too much, or the host closes (`bye`, 1001). The view goes with it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio
from starlette.websockets import WebSocket

from hosts.link import Event, KernelUnreachable, LinkLost, Refused
from hosts.strict_json import write_json
from hosts.view import View
from hosts.web.asks import MAX_MESSAGE_BYTES, Ask, AskRefused, Op, id_at_the_end, read_message
from hosts.web.pace import Outbox, Pace, TooSlow
from hosts.web.page_jobs import Jobs, Mounts, receipt
from hosts.web.page_providers import PageProviders
from hosts.web.shared import MAX_PAGES, Shared
from kernel.protocol.host import Delta, Snapshot
from kernel.protocol.host_surfaces import SurfacePatched, SurfaceUnmounted
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject

AUTH_SECONDS = 5.0
CLOSE_SECONDS = 1.0
MAX_OPEN_ASKS = 256
REATTACH_PAUSE_SECONDS = 0.1

AUTH_FAILED = 4401
TOO_MANY_STRIKES = 4429
GOING_AWAY = 1001
TOO_BIG = 1009
TRY_AGAIN = 1013


async def serve_page(socket: WebSocket, origin: str, shared: Shared) -> None:
    """Serve one socket from its handshake to its end."""
    await socket.accept()
    admitted = await _admit(socket, shared)
    if admitted is None:
        await socket.close(AUTH_FAILED)
    elif shared.closing.is_set():
        await socket.close(GOING_AWAY)
    elif shared.pages >= MAX_PAGES:
        await socket.close(TRY_AGAIN)
    else:
        with shared.page():
            await PageSession(socket, origin, shared, str(admitted.get("lang", shared.language)), str(admitted.get("tab", ""))).run()


async def _admit(socket: WebSocket, shared: Shared) -> JsonObject | None:
    """The fields of a good first message; None for any other, and when it does not come in time."""
    with trio.move_on_after(AUTH_SECONDS):
        first = await socket.receive()
        try:
            message = read_message(first.get("text") or "")
        except AskRefused:
            return None
        is_good = isinstance(message, Op) and message.name == "auth" and shared.tokens.admit(message.fields["token"])
        return message.fields if isinstance(message, Op) and is_good else None
    return None


class PageSession:
    """See the head of the file."""

    def __init__(self, socket: WebSocket, origin: str, shared: Shared, language: str, tab: str) -> None:
        self._tab = tab
        self._socket = socket
        self._shared = shared
        self._outbox = Outbox()
        self._pace = Pace(trio.current_time())
        self._providers = PageProviders(self._tell, shared.tickets)
        self._mounts = Mounts(self._tell)
        self._jobs = Jobs(shared, self._mounts, origin, language)
        self._scope = trio.CancelScope()
        self._code = GOING_AWAY
        # the way to the kernel
        self._view: View | None = None
        self._trouble: tuple[str, str] | None = None  # code and hint: this page alone was not let in
        self._told: JsonObject = {}
        self._moved = trio.Event()
        self._to_kernel, self._for_kernel = trio.open_memory_channel[tuple[int, Ask | Op]](MAX_OPEN_ASKS)
        self._open_asks = 0

    async def run(self) -> None:
        """Run until one side ends it."""
        shared = self._shared
        who = {"version": shared.version, "lang_default": shared.language, "demo": shared.is_demo, "token": shared.tokens.lasting}
        who["exposed"] = not shared.is_loopback  # over a network, by plain HTTP: the page says that this is not for production
        self._tell({"op": "welcome", **who, "line": shared.half_lines.of(self._tab)})
        with self._scope:
            async with trio.open_nursery() as nursery:
                for task in (self._write, self._watch_keeper, self._keep_view, self._say_goodbye, self._read):
                    nursery.start_soon(task)
                nursery.start_soon(self._dispatch, nursery)
        with trio.move_on_after(CLOSE_SECONDS):
            await self._socket.close(self._code)

    def _end(self, code: int) -> None:
        self._code = code
        self._scope.cancel()

    # --- host -> page

    def _tell(self, message: JsonObject) -> None:
        self._outbox.put(write_json(message))

    async def _write(self) -> None:
        try:
            while True:
                await self._socket.send_text(await self._outbox.next())
        except TooSlow:
            self._end(TRY_AGAIN)

    async def _say_goodbye(self) -> None:
        await self._shared.closing.wait()
        self._tell({"op": "bye", "code": "unavailable"})
        with trio.move_on_after(CLOSE_SECONDS):
            await self._outbox.wait_done()
        self._end(GOING_AWAY)

    def _tell_phase(self) -> None:
        said = self._phase()
        if said != self._told:
            self._told = said
            self._tell({"op": "phase", **said})
        self._moved.set()
        self._moved = trio.Event()

    def _phase(self) -> JsonObject:
        keeper = self._shared.keeper
        restarts = {"restarts": keeper.restarts}
        if self._view is not None and self._view.phase == "up":
            return {"phase": "up", **restarts}
        code, hint = self._trouble or (keeper.code, keeper.hint)
        words = {name: value for name, value in (("code", code), ("hint", hint)) if value}
        return {"phase": "failed" if self._trouble else keeper.phase if keeper.phase != "up" else "connecting", **words, **restarts}

    # --- kernel -> page

    def heard(self, event: Event) -> None:
        """Of the view: pass it on, in order."""
        match event:
            case Snapshot(state=state):
                self._tell_phase()
                view_id = self._view.view_id if self._view is not None else ""
                self._tell({"op": "snapshot", "view_id": view_id, "state": self._shared.text.of_state(state)})
            case Delta(changes=changes):
                self._tell({"op": "delta", "changes": self._shared.text.of_changes(changes)})
            case SurfacePatched():
                self._mounts.patched(event)
            case SurfaceUnmounted():
                self._mounts.ended(event)
            case _:
                pass  # what the view itself answers

    def link_lost(self) -> None:
        """Of the view: what it showed is old, and its mounts are gone."""
        self._mounts.end_all("link_lost")
        self._tell_phase()

    async def _watch_keeper(self) -> None:
        while True:
            self._tell_phase()
            await self._shared.keeper.wait_change()

    async def _keep_view(self) -> None:
        keeper = self._shared.keeper
        while True:
            self._view = View(keeper, "web", self._providers.all(), watcher=self)
            try:
                await self._view.run()
            except* (KernelUnreachable, Refused) as group:
                self._trouble = _code_and_hint(group)
                self._tell_phase()
            if self._trouble is not None:
                await keeper.wait_change()
                self._trouble = None
            with trio.move_on_after(REATTACH_PAUSE_SECONDS):  # the keeper hears of the same end, a moment before or after
                await keeper.wait_change()

    # --- page -> kernel

    async def _read(self) -> None:
        while True:
            received = await self._socket.receive()
            if received["type"] == "websocket.disconnect":
                self._end(GOING_AWAY)
                return
            text = received.get("text")
            if text is not None and len(text.encode()) > MAX_MESSAGE_BYTES:
                self._end(TOO_BIG)
                return
            self._take(text)
            if self._pace.is_out:
                self._end(TOO_MANY_STRIKES)
                return

    def _take(self, untrusted_text: str | None) -> None:
        if not self._pace.take(trio.current_time()):
            self._refuse(id_at_the_end(untrusted_text or ""), Code.LIMIT_EXCEEDED, {"expected": "fewer messages a second"})
            return
        try:
            if untrusted_text is None:
                raise AskRefused({"pointer": "", "expected": "text"})
            self._act(read_message(untrusted_text))
        except AskRefused as refused:
            self._pace.strikes += 1
            self._refuse(refused.id, refused.code, refused.detail)

    def _act(self, message: Ask | Op) -> None:
        if isinstance(message, Ask):
            self._post(message.id, message)
            return
        fields = message.fields
        match message.name:
            case "auth":
                raise AskRefused({"pointer": "/op", "expected": "an operation; the page is let in already"})
            case "line":
                self._shared.half_lines.keep(self._tab, fields["text"])
            case "retry":
                self._shared.keeper.retry()
            case "provided":
                self._providers.provided(fields["request_id"], None if fields["ok"] else fields.get("code", "failed"))
            case _:
                self._post(fields["id"], message)

    def _post(self, ask_id: int, message: Ask | Op) -> None:
        if self._open_asks >= MAX_OPEN_ASKS:
            self._refuse(ask_id, Code.LIMIT_EXCEEDED, {"expected": f"at most {MAX_OPEN_ASKS} open requests"})
            return
        self._open_asks += 1
        self._to_kernel.send_nowait((ask_id, message))

    async def _dispatch(self, nursery: trio.Nursery) -> None:
        """Hand requests to the kernel one after the other: a task has queued its frame before the next one starts (step 3)."""
        async for ask_id, message in self._for_kernel:
            while self._view is None or self._view.phase != "up":
                await self._moved.wait()
            await nursery.start(self._answer, ask_id, self._jobs.of(message, self._view))

    async def _answer(self, ask_id: int, job: Callable[[], Awaitable[JsonObject]], task_status: trio.TaskStatus[None]) -> None:
        task_status.started()  # does not yield: the job runs up to its first wait, with its frame in the queue of the link
        try:
            said = await job()
        except LinkLost:
            said = {"lost": True}
        except Refused as refused:
            said = receipt(refused.code, refused.detail)
        self._open_asks -= 1
        self._tell({"op": "reply", "id": ask_id, **said})
        self._mounts.flush()

    def _refuse(self, ask_id: int | None, code: str, detail: JsonObject) -> None:
        self._tell({"op": "reply", "id": ask_id, **receipt(code, detail)})


def _code_and_hint(group: BaseExceptionGroup[KernelUnreachable | Refused]) -> tuple[str, str]:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    detail = getattr(error, "detail", {})
    return getattr(error, "code", Code.UNKNOWN), str(detail.get("hint") or detail.get("reason") or "")
