"""Messages of surfaces and artifacts on a worker channel, both directions (SPEC 9); messages.py has the others and the registries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lineup_sdk.protocol.message import JsonObject, Message

# =============================================================================================
# worker -> kernel
# =============================================================================================


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceOpen(Message):
    """Open the surface of the own App session, or take it up as it is. Value: {version}, 0 for a new one: an empty object."""

    TYPE: ClassVar[str] = "surface.open"
    EXPECTS_REPLY: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceUpdate(Message):
    """Change the own surface by a merge patch (RFC 7396) of at most 48 KiB on base_version. Value: {version}.

    Refused: surface_unavailable (not open), version_conflict (detail.version = the current one), limit_exceeded (patch, state).
    """

    TYPE: ClassVar[str] = "surface.update"
    EXPECTS_REPLY: ClassVar[bool] = True
    base_version: int
    patch: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceRead(Message):
    """Read the own surface. Value: {version, size, of}; the state follows as CBOR in chunks of that name. Refused: surface_unavailable."""

    TYPE: ClassVar[str] = "surface.read"
    EXPECTS_REPLY: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceClose(Message):
    """Close the own surface; its state stays for the next surface.open. Receipt. Refused: surface_unavailable."""

    TYPE: ClassVar[str] = "surface.close"
    EXPECTS_REPLY: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactPut(Message):
    """Announce bytes to keep: size, SHA-256 (hex) and media type. They follow in chunks named `artifact.put:<id of this request>`.

    Answered when they are durable: Value: {artifact_id}, the same for the same bytes. Refused: limit_exceeded (artifact, artifacts of the
    App session), size_mismatch, digest_mismatch, store_full, unknown; chunks that still come for a refused one are dropped.
    """

    TYPE: ClassVar[str] = "artifact.put"
    EXPECTS_REPLY: ClassVar[bool] = True
    sha256: str
    size: int
    media_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactGet(Message):
    """Read an own artifact from an offset. Value: {media_type, of, sha256, size}; up to 1 MiB follows in chunks of that name.

    A window that ends before it should means that the bytes are lost. Refused: artifact_not_found.
    """

    TYPE: ClassVar[str] = "artifact.get"
    EXPECTS_REPLY: ClassVar[bool] = True
    artifact_id: str
    offset: int


# =============================================================================================
# kernel -> worker
# =============================================================================================


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceChanged(Message):
    """The person changed the own surface; version is the newest. Said once until the App reads or updates; not kept for a later life."""

    TYPE: ClassVar[str] = "surface.changed"
    version: int
