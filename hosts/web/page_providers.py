"""What a page can do for Apps when the kernel asks it to: notify, save an artifact, write the clipboard (SPEC 10).

Rules:
1. The page acts once for each `execute` and says how it ended with `provided`; hosts.providers keeps time, and asks never twice.
2. When the time is over or the person took it back, the page is told `stop`; what it says afterwards counts no more.
3. An artifact is handed over as a one-time path, after its bytes were checked against what the kernel granted.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

import trio

from hosts.providers import CannotDo, Provider, Providers, Task
from hosts.web.headers import artifact_headers
from hosts.web.tickets import Content, Tickets
from lineup_sdk.protocol.messages import JsonObject

SAVED_AS_BYTES = "application/octet-stream"
_TOKEN = re.compile(r"[a-z0-9_]{1,64}")


class PageProviders:
    """The three providers of one page, and what it has said so far."""

    def __init__(self, tell: Callable[[JsonObject], None], tickets: Tickets) -> None:
        self._tell = tell
        self._tickets = tickets
        self._said: dict[str, tuple[trio.Event, list[str | None]]] = {}

    def all(self) -> Providers:
        """Return them for a view."""
        save: Provider = self._save
        return Providers({"artifact.save": save, "clipboard.write": self._act, "notification.show": self._act})

    def provided(self, request_id: str, code: str | None) -> None:
        """The page says how it ended: None = done."""
        entry = self._said.get(request_id)
        if entry is not None and not entry[1]:
            entry[1].append(code if code is None or _TOKEN.fullmatch(code) else "failed")
            entry[0].set()

    async def _act(self, task: Task, path: str | None = None) -> None:
        request_id = task.execute.request_id
        arrived, said = self._said[request_id] = (trio.Event(), [])
        where = {} if path is None else {"path": path}
        asked = {"request_id": request_id, "capability": task.execute.capability, "arguments": task.execute.arguments}
        labels = {"title": task.execute.title, "app_scope": task.execute.app_scope}
        self._tell({"op": "execute", **asked, **labels, **where})
        try:
            await arrived.wait()
        except trio.Cancelled:
            self._tell({"op": "stop", "request_id": request_id})
            raise
        finally:
            del self._said[request_id]
        if said[0] is not None:
            raise CannotDo(said[0])

    async def _save(self, task: Task) -> None:
        arguments = task.execute.arguments
        data = await task.read_artifact(str(arguments["artifact_id"]))
        if len(data) != arguments["size"] or hashlib.sha256(data).hexdigest() != arguments["sha256"]:
            raise CannotDo("bytes_lost")
        content = Content(body=data, headers=artifact_headers(SAVED_AS_BYTES, str(arguments["name"])))
        await self._act(task, self._tickets.issue("/a/", content))
