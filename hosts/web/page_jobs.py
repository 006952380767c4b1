"""What a page's requests do: each becomes one or two questions to the kernel, and the answer in the page's words (SPEC 9).

Rules:
1. A job is refused with a code and a detail, as the kernel refuses; `lost` is the socket's word.
2. The page knows a mount by a name made here; the mount epoch of the kernel goes with every patch and event of it.
3. Over a network in plain HTTP nothing is mounted and no installed App is opened: neither isolation nor its code could be trusted there.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from hosts.link import Refused
from hosts.providers import CannotDo
from hosts.view import View
from hosts.web.asks import Ask, Op
from hosts.web.headers import artifact_headers
from hosts.web.page_providers import SAVED_AS_BYTES
from hosts.web.shared import Shared
from hosts.web.surface_pages import DocumentRefused, document, parts
from hosts.web.tickets import Content
from kernel.protocol.host_sessions import AppOpen, AppStartEmpty, SessionsContinue, SessionsShow
from kernel.protocol.host_surfaces import (
    SurfaceEvent,
    SurfaceMount,
    SurfacePatch,
    SurfacePatched,
    SurfaceSource,
    SurfaceUnmount,
    SurfaceUnmounted,
)
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.framing import decode_item
from lineup_sdk.protocol.messages import JsonObject, Message

Job = Callable[[], Awaitable[JsonObject]]

IMAGE_TYPES = frozenset({"image/avif", "image/gif", "image/jpeg", "image/png", "image/svg+xml", "image/webp"})
MAX_EARLY = 64
MAX_MOUNTS = 16
INSECURE = "not over plain HTTP from another address: open the page on the machine where LineUp runs"


def receipt(code: str, detail: JsonObject | None) -> JsonObject:
    """A refusal in the form of the wire."""
    return {"receipt": {"accepted": False, "code": str(code), **({"detail": detail} if detail else {})}}


@dataclass(slots=True)
class Mount:
    """A surface that this page shows."""

    name: str
    surface_id: str
    epoch: int


@dataclass(slots=True)
class Mounts:
    """The mounts of one page."""

    tell: Callable[[JsonObject], None]
    open: dict[str, Mount] = field(default_factory=dict)
    early: list[SurfacePatched] = field(default_factory=list)  # the kernel's patches of mounts whose reply is still on its way

    def named(self, name: str) -> Mount:
        """Return a mount. Raises: Refused(stale_mount)."""
        mount = self.open.get(name)
        if mount is None:
            raise Refused(Code.STALE_MOUNT)
        return mount

    def patched(self, event: SurfacePatched) -> None:
        """Pass a change on; one that comes before the page knows its mount waits for `flush`."""
        self.early.append(event)
        del self.early[:-MAX_EARLY]
        self.flush()

    def flush(self) -> None:
        """Pass on what waited for a mount that the page knows by now."""
        for event in self.early[:]:
            for mount in self._of(event.surface_id, event.mount_epoch):
                self.early.remove(event)
                self.tell({"op": "surface.patched", "mount": mount.name, "version": event.version, "patch": event.patch})

    def ended(self, event: SurfaceUnmounted) -> None:
        """The kernel ended a mount."""
        for mount in self._of(event.surface_id, event.mount_epoch):
            self._end(mount, event.reason)

    def end_all(self, reason: str) -> None:
        """The link is gone, and every mount with it."""
        for mount in list(self.open.values()):
            self._end(mount, reason)
        self.early.clear()

    def _end(self, mount: Mount, reason: str) -> None:
        del self.open[mount.name]
        self.tell({"op": "surface.unmounted", "mount": mount.name, "reason": reason})

    def _of(self, surface_id: str, epoch: int) -> list[Mount]:
        return [mount for mount in self.open.values() if (mount.surface_id, mount.epoch) == (surface_id, epoch)]


class Jobs:
    """Makes the job of a request. See the head of the file."""

    def __init__(self, shared: Shared, mounts: Mounts, origin: str, language: str) -> None:
        self._shared = shared
        self._mounts = mounts
        self._origin = origin
        self._language = language

    def of(self, message: Ask | Op, view: View) -> Job:
        """Return what to await; it raises Refused and LinkLost."""
        if isinstance(message, Ask):
            asked = message.message
            return lambda: self._ask(view, asked)
        table: Mapping[str, Callable[[View, JsonObject], Awaitable[JsonObject]]] = {
            "artifact": self._artifact,
            "surface.event": self._event,
            "surface.mount": self._mount,
            "surface.patch": self._patch,
            "surface.unmount": self._unmount,
        }
        run = table[message.name]
        return lambda: run(view, message.fields)

    async def _ask(self, view: View, message: Message) -> JsonObject:
        if not self._shared.is_loopback and isinstance(message, AppOpen | AppStartEmpty | SessionsContinue):
            await self._require_not_installed(view, message)
        return _said(self._shared.text.of_value(await view.request(message)))

    async def _require_not_installed(self, view: View, message: AppOpen | AppStartEmpty | SessionsContinue) -> None:
        if isinstance(message, SessionsContinue):
            shown = await view.request(SessionsShow(app_session_id=message.app_session_id, limit=1))
            scope = shown["session"]["app_scope"]
        else:
            scope = message.app_scope
        if any(app["app_scope"] == scope and app["kind"] == "installed" for app in view.mirror.apps):
            raise Refused(Code.CAPABILITY_DENIED, {"hint": INSECURE})

    # --- surfaces

    async def _mount(self, view: View, fields: JsonObject) -> JsonObject:
        surface_id = str(fields["surface_id"])
        if not self._shared.is_loopback:
            raise Refused(Code.SURFACE_UNAVAILABLE, {"hint": INSECURE})
        if len(self._mounts.open) >= MAX_MOUNTS:
            raise Refused(Code.LIMIT_EXCEEDED, {"expected": f"at most {MAX_MOUNTS} mounts of one page"})
        source, code = await view.fetch(SurfaceSource(surface_id=surface_id))
        value, state = await view.fetch(SurfaceMount(surface_id=surface_id))
        mount = Mount(secrets.token_hex(16), surface_id, int(value["mount_epoch"]))
        summary = view.mirror.surfaces.get(surface_id, {})
        path = self._document(source, code, mount, str(summary.get("title", "")))
        self._mounts.open[mount.name] = mount
        facts = {"mount_epoch": mount.epoch, "version": value["version"], "state": decode_item(state)}
        labels = {"title": summary.get("title", ""), "app_scope": summary.get("app_scope", "")}
        return {"value": {"mount": mount.name, "path": path, **facts, **labels}}

    def _document(self, source: JsonObject, code: bytes, mount: Mount, title: str) -> str:
        try:
            script, style = parts(source, code)
            content = document(script=script, style=style, mount=mount.name, title=title, lang=self._language, origin=self._origin)
        except DocumentRefused as refused:
            raise Refused(refused.code, {"hint": refused.hint}) from refused
        return self._shared.tickets.issue("/s/", content) + "/"

    async def _patch(self, view: View, fields: JsonObject) -> JsonObject:
        mount = self._mounts.named(fields["mount"])
        patch = SurfacePatch(
            surface_id=mount.surface_id, mount_epoch=mount.epoch, base_version=fields["base_version"], patch=fields["patch"]
        )
        return _said(await view.request(patch))

    async def _event(self, view: View, fields: JsonObject) -> JsonObject:
        mount = self._mounts.named(fields["mount"])
        event = SurfaceEvent(surface_id=mount.surface_id, mount_epoch=mount.epoch, name=fields["name"], body=fields["body"])
        return _said(await view.request(event))

    async def _unmount(self, view: View, fields: JsonObject) -> JsonObject:
        mount = self._mounts.named(fields["mount"])
        del self._mounts.open[mount.name]
        return _said(await view.request(SurfaceUnmount(surface_id=mount.surface_id, mount_epoch=mount.epoch)))

    # --- artifacts

    async def _artifact(self, view: View, fields: JsonObject) -> JsonObject:
        try:
            facts, data = await view.read_artifact(str(fields["artifact_id"]))
        except CannotDo as trouble:
            raise Refused(Code.ARTIFACT_NOT_FOUND) from trouble
        media_type, save_as = str(facts["media_type"]), fields.get("save_as")
        said: JsonObject = {"media_type": media_type, "size": len(data)}
        if save_as is not None:
            content = Content(body=data, headers=artifact_headers(SAVED_AS_BYTES, save_as))
        elif media_type in IMAGE_TYPES:
            content = Content(body=data, headers=artifact_headers(media_type, None), destinations=frozenset({"image"}))
        else:
            return {"value": said}  # nothing to show; it can be saved
        return {"value": {"path": self._shared.tickets.issue("/a/", content), **said}}


def _said(answer: JsonObject) -> JsonObject:
    """What the kernel answered, as value or receipt: only a receipt says `accepted`."""
    return {"receipt": answer} if answer.get("accepted") is True and "at" in answer else {"value": answer}
