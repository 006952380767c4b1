"""Messages of surfaces and artifacts on a host channel, both directions (SPEC 9); host.py has the others and the registries.

A view that shows a surface mounts it; what it says of that surface counts only under the mount_epoch it was given. Rules:
1. One live mount a surface: a later surface.mount takes it over, and the view before it is told `surface.unmounted`.
2. After the value of surface.mount the state follows in chunks; then `surface.patched` for every change that is not the mount's own.
3. Content that is too big for a frame comes in `chunk` frames named by `of`, the last of them with last = true.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lineup_sdk.protocol.messages import JsonObject, Message

# =============================================================================================
# host -> kernel
# =============================================================================================


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceMount(Message):
    """view: show a surface from now on. surface_version = the contract the view speaks; it must be the App's, 1 when it names none.

    Value: {mount_epoch, version, size, of}; the state follows as CBOR in chunks. Refused: surface_unavailable (no such open surface,
    another contract).
    """

    TYPE: ClassVar[str] = "surface.mount"
    EXPECTS_REPLY: ClassVar[bool] = True
    surface_id: str
    surface_version: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceUnmount(Message):
    """view: show it no longer. Receipt. Refused: surface_unavailable, stale_mount."""

    TYPE: ClassVar[str] = "surface.unmount"
    EXPECTS_REPLY: ClassVar[bool] = True
    surface_id: str
    mount_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfacePatch(Message):
    """view: the mount changes the state by a merge patch (RFC 7396) of at most 48 KiB on base_version. Value: {version}.

    Refused: surface_unavailable, stale_mount, version_conflict (detail.version = the current one), limit_exceeded.
    """

    TYPE: ClassVar[str] = "surface.patch"
    EXPECTS_REPLY: ClassVar[bool] = True
    surface_id: str
    mount_epoch: int
    base_version: int
    patch: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceEvent(Message):
    """view: a deliberate act in the surface, such as submit: a message in the App's inbox, topic `surface.event`. Receipt.

    Refused: surface_unavailable, stale_mount, app_instance_not_found, limit_exceeded.
    """

    TYPE: ClassVar[str] = "surface.event"
    EXPECTS_REPLY: ClassVar[bool] = True
    surface_id: str
    mount_epoch: int
    name: str
    body: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactRead(Message):
    """Read any artifact from an offset. Value: {media_type, of, sha256, size}; up to 1 MiB follows in chunks of that name.

    A window that ends before it should means that the bytes are lost. Refused: artifact_not_found.
    """

    TYPE: ClassVar[str] = "artifact.get"
    EXPECTS_REPLY: ClassVar[bool] = True
    artifact_id: str
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceSource(Message):
    """Read the code that an isolated frame runs to show this surface: verified bytes of the active App, and nothing else (SPEC 9.2).

    Value: {version, script, style, size, of}: the contract it is written for, the bytes of script and style (0 = none) and both together;
    script, then style follow in chunks. Refused: surface_unavailable (no such open surface, or the App has no code for it).
    """

    TYPE: ClassVar[str] = "surface.source"
    EXPECTS_REPLY: ClassVar[bool] = True
    surface_id: str


# =============================================================================================
# kernel -> host
# =============================================================================================


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfacePatched(Message):
    """To the mount: the App changed the surface; apply patch to what version - 1 was."""

    TYPE: ClassVar[str] = "surface.patched"
    surface_id: str
    mount_epoch: int
    version: int
    patch: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceUnmounted(Message):
    """To the mount: it has ended. reason: taken_over | closed."""

    TYPE: ClassVar[str] = "surface.unmounted"
    surface_id: str
    mount_epoch: int
    reason: str
