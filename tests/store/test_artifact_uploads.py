"""What one worker may have on its way at one time, and what a chunk of nothing does."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from kernel.artifact_store import ArtifactStore
from kernel.artifact_uploads import MAX_UPLOADS, Uploads
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.limits import MAX_ARTIFACT_BYTES
from lineup_sdk.protocol.messages import Chunk
from lineup_sdk.protocol.surface_messages import ArtifactPut

pytestmark = [pytest.mark.clause("9.4"), pytest.mark.clause("16")]


def put(data: bytes, size: int | None = None) -> ArtifactPut:
    return ArtifactPut(sha256=sha256(data).hexdigest(), size=len(data) if size is None else size, media_type="text/plain")


def chunk(request_id: int, data: bytes) -> Chunk:
    return Chunk(of=f"artifact.put:{request_id}", last=True, data=data)


async def test_one_upload_too_many_is_refused_and_there_is_room_again_when_one_ends(tmp_path: Path) -> None:
    uploads = Uploads(ArtifactStore(tmp_path / "artifacts"))
    for request_id in range(1, MAX_UPLOADS + 1):
        assert uploads.begin(put(b"%d" % request_id), request_id) is None
    refused = uploads.begin(put(b"over"), 99)
    assert refused is not None
    assert (refused.request_id, refused.received.trouble) == (99, Code.LIMIT_EXCEEDED)
    assert refused.received.expected == f"at most {MAX_UPLOADS} at a time"
    assert uploads.take(chunk(99, b"over")) is None  # its parts were on their way
    whole = uploads.take(chunk(1, b"1"))
    assert whole is not None
    assert (await whole.command()).trouble is None
    assert uploads.begin(put(b"over"), 100) is None
    uploads.close()
    assert [path for path in (tmp_path / "artifacts" / "partial").iterdir() if path.is_file()] == []


def test_an_upload_over_the_size_of_an_artifact_is_refused_before_its_first_byte(tmp_path: Path) -> None:
    uploads = Uploads(ArtifactStore(tmp_path / "artifacts"))
    refused = uploads.begin(put(b"", MAX_ARTIFACT_BYTES + 1), 1)
    assert refused is not None
    assert (refused.received.trouble, refused.received.expected) == (Code.LIMIT_EXCEEDED, f"at most {MAX_ARTIFACT_BYTES} bytes")
    assert uploads.begin(put(b"x" * 8, MAX_ARTIFACT_BYTES), 2) is None
    uploads.close()
