"""Artifacts of a MiniApp: bytes the kernel keeps by their content, for this App session (SPEC 9.4).

Rules:
1. What `put` returned is durable; the same bytes again are the same artifact.
2. Bytes travel in chunks, and no faster than the kernel takes them; what arrives is proven by its SHA-256 before it is returned.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from lineup_sdk.channel import ChannelClosed
from lineup_sdk.errors import Refused
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.limits import MAX_ARTIFACT_BYTES, UPLOAD_CHUNK_BYTES
from lineup_sdk.protocol.messages import Chunk, JsonObject
from lineup_sdk.protocol.surface_messages import ArtifactGet, ArtifactPut
from lineup_sdk.requests import Requests, Ticket

_AHEAD_BYTES = 256 * 1024  # queued before the kernel has taken what came before


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """Bytes and what they are."""

    media_type: str
    data: bytes


class Artifacts:
    """See the head of the file."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def put(self, data: bytes, media_type: str) -> str:
        """Keep bytes; returns their artifact_id. media_type: such as image/svg+xml.

        Raises: Refused(limit_exceeded over 16 MiB or with too many in this App session, store_full).
        """
        if len(data) > MAX_ARTIFACT_BYTES:
            raise Refused(Code.LIMIT_EXCEEDED, {"pointer": "/size", "expected": f"at most {MAX_ARTIFACT_BYTES} bytes"})
        announced = ArtifactPut(sha256=sha256(data).hexdigest(), size=len(data), media_type=media_type)
        ticket = await self._requests.post(announced)
        await self._send(ticket, data)
        value = await ticket.wait()
        artifact_id: str = value["artifact_id"]
        return artifact_id

    async def _send(self, ticket: Ticket, data: bytes) -> None:
        of = f"{ArtifactPut.TYPE}:{ticket.request_id}"
        is_whole = False
        try:
            for start in range(0, max(len(data), 1), UPLOAD_CHUNK_BYTES):
                if ticket.is_settled:  # it was refused before it was whole
                    break
                end = start + UPLOAD_CHUNK_BYTES
                self._requests.send(Chunk(of=of, data=data[start:end], last=end >= len(data)))
                await self._requests.wait_queued_below(_AHEAD_BYTES)
            is_whole = True
        finally:
            if not is_whole:
                self._give_up(of)

    def _give_up(self, of: str) -> None:
        """Let the kernel forget an upload that will not become whole."""
        try:
            self._requests.send(Chunk(of=of, data=b"", last=True))
        except ChannelClosed:
            return

    async def get(self, artifact_id: str) -> Artifact:
        """Return an own artifact. Raises: Refused(artifact_not_found), also for one whose bytes are lost."""
        data = bytearray()
        while True:
            value, window = await self._requests.fetch(ArtifactGet(artifact_id=artifact_id, offset=len(data)))
            data += window
            if len(data) >= value["size"] or not window:
                return _proven(bytes(data), value)


def _proven(data: bytes, value: JsonObject) -> Artifact:
    if sha256(data).hexdigest() != value["sha256"]:
        raise Refused(Code.ARTIFACT_NOT_FOUND, {"hint": "its bytes are lost"})
    return Artifact(media_type=value["media_type"], data=data)
