"""Artifacts that workers are sending: from the announcement to the turn that records them (SPEC 9.4). The worker port's own part.

Rules:
1. An `artifact.put` becomes a command when its last chunk is there and durable, or when it cannot be taken; its one reply is of that turn.
2. Chunks of nothing that is open here are dropped: they were on their way when their upload was refused.
3. A worker has at most MAX_UPLOADS open; what they may hold on disk follows from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import trio

from kernel.artifact_store import ArtifactStore, Trouble, Upload
from kernel.core.events import ArtifactReceived
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.limits import MAX_ARTIFACT_BYTES
from lineup_sdk.protocol.messages import Chunk
from lineup_sdk.protocol.surface_messages import ArtifactPut

MAX_UPLOADS = 4  # of one worker at a time

_POINTERS = {Code.SIZE_MISMATCH: ("/size", "as many bytes as were announced"), Code.DIGEST_MISMATCH: ("/sha256", "the announced digest")}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open:
    request_id: int | None
    received: ArtifactReceived
    upload: Upload


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """An upload that has all its bytes, or has failed: what the turn is about, and on which request."""

    request_id: int | None
    received: ArtifactReceived
    upload: Upload | None = None  # None: nothing to make durable

    async def command(self) -> ArtifactReceived:
        """Make the bytes durable, away from the event loop, and return the command; it says so when that failed."""
        if self.upload is None:
            return self.received
        try:
            await trio.to_thread.run_sync(self.upload.finish)
        except Trouble as trouble:
            return _with_trouble(self.received, trouble.code)
        return self.received


@dataclass(slots=True)
class Uploads:
    """Those of one worker."""

    store: ArtifactStore
    _open: dict[str, _Open] = field(default_factory=dict)

    def begin(self, message: ArtifactPut, request_id: int | None) -> Whole | None:
        """Take an announcement; a Whole is one that is refused at once."""
        received = ArtifactReceived(sha256=message.sha256, size=message.size, media_type=message.media_type)
        if message.size > MAX_ARTIFACT_BYTES or len(self._open) >= MAX_UPLOADS:
            expected = f"at most {MAX_ARTIFACT_BYTES} bytes" if len(self._open) < MAX_UPLOADS else f"at most {MAX_UPLOADS} at a time"
            refused = replace(received, trouble=Code.LIMIT_EXCEEDED, pointer="/size", expected=expected)
            return Whole(request_id=request_id, received=refused)
        try:
            upload = self.store.begin(message.size, message.sha256)
        except Trouble as trouble:
            return Whole(request_id=request_id, received=_with_trouble(received, trouble.code))
        self._open[f"{ArtifactPut.TYPE}:{request_id}"] = _Open(request_id=request_id, received=received, upload=upload)
        return None

    def take(self, chunk: Chunk) -> Whole | None:
        """Take a part; a Whole is an upload that has its last one, or has failed."""
        found = self._open.get(chunk.of)
        if found is None:
            return None
        try:
            found.upload.add(chunk.data)
        except Trouble as trouble:
            del self._open[chunk.of]
            found.upload.settle()
            return Whole(request_id=found.request_id, received=_with_trouble(found.received, trouble.code))
        if not chunk.last:
            return None
        del self._open[chunk.of]
        return Whole(request_id=found.request_id, received=found.received, upload=found.upload)

    def close(self) -> None:
        """The worker is gone: what it had begun is given up."""
        opened, self._open = self._open, {}
        for one in opened.values():
            one.upload.discard()
            one.upload.settle()


def _with_trouble(received: ArtifactReceived, code: Code) -> ArtifactReceived:
    pointer, expected = _POINTERS.get(code, ("", None))
    return replace(received, trouble=code, pointer=pointer, expected=expected)
