"""The surface and the artifacts FakeKernel keeps for its one App session: the kernel's rules in small (SPEC 9).

Rules:
1. They outlive a life of the app, as the saved state does.
2. A refusal changes nothing.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import cbor2

from lineup_sdk.errors import Refused
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.limits import CHUNK_BYTES, MAX_ARTIFACT_BYTES, MAX_PATCH_BYTES, MAX_SURFACE_BYTES, WINDOW_BYTES
from lineup_sdk.protocol.messages import Chunk, JsonObject
from lineup_sdk.protocol.surface_messages import ArtifactGet, ArtifactPut


def merged(target: Any, patch: Any) -> Any:
    """What a JSON Merge Patch makes of a value (RFC 7396)."""
    if type(patch) is not dict:
        return patch
    result = dict(target) if type(target) is dict else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


@dataclass(slots=True)
class FakeSurface:
    """The surface as the kernel would have it."""

    state: JsonObject = field(default_factory=dict)
    version: int = 0
    is_open: bool = False
    is_told: bool = False  # the app heard of a change and has not looked since

    def require_open(self) -> None:
        """Refuse what needs an open surface."""
        if not self.is_open:
            raise Refused(Code.SURFACE_UNAVAILABLE)

    def update(self, base_version: int, patch: JsonObject) -> int:
        """The one check of a change, by the app or by the person. Raises: Refused."""
        self.require_open()
        if base_version != self.version:
            raise Refused(Code.VERSION_CONFLICT, {"version": self.version})
        state = merged(self.state, patch)
        for value, limit, pointer in ((patch, MAX_PATCH_BYTES, "/patch"), (state, MAX_SURFACE_BYTES, "")):
            if len(cbor2.dumps(value, canonical=True)) > limit:
                raise Refused(Code.LIMIT_EXCEEDED, {"pointer": pointer, "expected": f"at most {limit} bytes as CBOR"})
        self.state = deepcopy(state)
        self.version += 1
        return self.version


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeArtifact:
    """Bytes the app put."""

    media_type: str
    data: bytes


@dataclass(slots=True)
class FakeArtifacts:
    """What the app put, by artifact_id, and what is on its way."""

    kept: dict[str, FakeArtifact] = field(default_factory=dict)
    refused_with: str | None = None  # every announcement, while a test says so
    _arriving: dict[str, tuple[ArtifactPut, bytearray]] = field(default_factory=dict)

    def begin(self, message: ArtifactPut, request_id: int) -> None:
        """Take an announcement. Raises: Refused(limit_exceeded)."""
        if self.refused_with is not None:
            raise Refused(self.refused_with)
        if message.size > MAX_ARTIFACT_BYTES:
            raise Refused(Code.LIMIT_EXCEEDED, {"pointer": "/size", "expected": f"at most {MAX_ARTIFACT_BYTES} bytes"})
        self._arriving[f"{ArtifactPut.TYPE}:{request_id}"] = (message, bytearray())

    def take(self, chunk: Chunk) -> tuple[ArtifactPut, bytes] | None:
        """Take a part; the announcement and all bytes once the last is here. Parts of nothing are dropped."""
        found = self._arriving.get(chunk.of)
        if found is None:
            return None
        found[1].extend(chunk.data)
        if not chunk.last:
            return None
        del self._arriving[chunk.of]
        return found[0], bytes(found[1])

    def keep(self, message: ArtifactPut, data: bytes) -> JsonObject:
        """Record bytes that are all here. Raises: Refused(size_mismatch, digest_mismatch)."""
        if len(data) != message.size:
            raise Refused(Code.SIZE_MISMATCH, {"pointer": "/size"})
        if sha256(data).hexdigest() != message.sha256:
            raise Refused(Code.DIGEST_MISMATCH, {"pointer": "/sha256"})
        known = next((name for name, one in self.kept.items() if one.data == data), None)
        artifact_id = known or f"art_fake_{len(self.kept) + 1}"
        self.kept.setdefault(artifact_id, FakeArtifact(media_type=message.media_type, data=data))
        return {"artifact_id": artifact_id}

    def forget_arriving(self) -> None:
        """The app is gone: what it had begun is given up."""
        self._arriving.clear()

    def require(self, artifact_id: str) -> FakeArtifact:
        """One of them. Raises: Refused(artifact_not_found)."""
        if artifact_id not in self.kept:
            raise Refused(Code.ARTIFACT_NOT_FOUND)
        return self.kept[artifact_id]

    def window(self, message: ArtifactGet) -> bytes:
        """The bytes one request brings."""
        return self.require(message.artifact_id).data[message.offset : message.offset + WINDOW_BYTES]


def chunks_of(of: str, data: bytes) -> list[Chunk]:
    """Content in parts."""
    starts = range(0, max(len(data), 1), CHUNK_BYTES)
    return [Chunk(of=of, data=data[start : start + CHUNK_BYTES], last=start + CHUNK_BYTES >= len(data)) for start in starts]
