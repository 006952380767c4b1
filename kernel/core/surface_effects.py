"""What surfaces and artifacts set off after a commit: a part of kernel.core.decision.Effect; and content in parts."""

from __future__ import annotations

from dataclasses import dataclass

from lineup_sdk.protocol.limits import CHUNK_BYTES
from lineup_sdk.protocol.messages import Chunk, Message


@dataclass(frozen=True, slots=True, kw_only=True)
class SendToView:
    """Put a message on the channel of that view, if it is still attached."""

    view_id: str
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class TellSurfaceChanged:
    """Say the newest version to the worker of that life, unless it was told since it last looked (SPEC 9.1: coalesced)."""

    instance_id: str
    life: int
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SendArtifact:
    """Put a window of kept bytes on the channel of that life, in chunks named `of`."""

    instance_id: str
    life: int
    of: str
    sha256: str
    size: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DropBytes:
    """Remove these bytes, each unless an artifact still has them."""

    sha256s: tuple[str, ...]


SurfaceEffect = DropBytes | SendArtifact | SendToView | TellSurfaceChanged


def chunks_of(of: str, data: bytes) -> list[Chunk]:
    """Content in parts (SPEC 2.1); an empty one is one empty part."""
    starts = range(0, max(len(data), 1), CHUNK_BYTES)
    return [Chunk(of=of, data=data[start : start + CHUNK_BYTES], last=start + CHUNK_BYTES >= len(data)) for start in starts]
