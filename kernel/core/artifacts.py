"""Artifacts: bytes an App made, kept by their content (SPEC 9.4). The core knows their metadata; kernel/artifact_store.py has the bytes.

Rules:
1. The metadata is written after the bytes are durable and proven; a start that does not find them marks the artifact lost (INV-51).
2. The same bytes of one App session are one artifact, whatever they are put as.
3. An App reads those of its own App session; any other id answers exactly as an unknown one.
"""

from __future__ import annotations

from dataclasses import replace

from kernel.core import instances
from kernel.core.decision import Decision, Detail, Draft, Origin, Rejected, Stamp, View
from kernel.core.events import ArtifactReceived, ArtifactsLost
from kernel.core.limits import MAX_ARTIFACT_BYTES_OF_SESSION, MAX_ARTIFACTS_OF_SESSION
from kernel.core.surface_effects import SendArtifact
from kernel.core.surface_records import Artifact
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.surface_messages import ArtifactGet


def keep(view: View, origin: Origin, stamp: Stamp, command: ArtifactReceived) -> Decision:
    """Record bytes that are durable now, or refuse what the port could not take.

    Raises: Rejected(limit_exceeded, size_mismatch, digest_mismatch, store_full, unknown).
    """
    draft = Draft(view, origin, stamp)
    instance = instances.require_own(draft)
    if command.trouble is not None:
        raise Rejected(command.trouble, Detail(pointer=command.pointer, expected=command.expected))
    known = view.artifacts.of_content(instance.app_session_id, command.sha256)
    if known is not None:
        return draft.decision({"artifact_id": known.artifact_id})
    count, held_bytes = view.artifacts.size_of(instance.app_session_id)
    if count >= MAX_ARTIFACTS_OF_SESSION or held_bytes + command.size > MAX_ARTIFACT_BYTES_OF_SESSION:
        expected = f"at most {MAX_ARTIFACTS_OF_SESSION} artifacts and {MAX_ARTIFACT_BYTES_OF_SESSION} bytes in an App session"
        raise Rejected(Code.LIMIT_EXCEEDED, Detail(pointer="/size", expected=expected))
    artifact = Artifact(
        number=draft.new_number(),
        artifact_id=draft.new_id("art"),
        app_session_id=instance.app_session_id,
        app_scope=instance.app_scope,
        conversation_id=instance.conversation_id,
        sha256=command.sha256,
        size=command.size,
        media_type=command.media_type,
        created_at=stamp.now,
    )
    draft.put(artifact)
    draft.audit("artifact.kept", number=artifact.number, instance_id=instance.instance_id)
    return draft.decision({"artifact_id": artifact.artifact_id})


def get(view: View, origin: Origin, stamp: Stamp, command: ArtifactGet) -> Decision:
    """Read a window of an own artifact: the value, then its bytes in chunks. Raises: Rejected(artifact_not_found)."""
    draft = Draft(view, origin, stamp)
    instance = instances.require_own(draft)
    artifact = view.artifacts.by_id(command.artifact_id)
    if artifact is None or artifact.is_lost or artifact.app_session_id != instance.app_session_id:
        raise Rejected(Code.ARTIFACT_NOT_FOUND)
    of = f"{ArtifactGet.TYPE}:{origin.request_id}"
    window = SendArtifact(
        instance_id=origin.instance_id,
        life=origin.life,
        of=of,
        sha256=artifact.sha256,
        size=artifact.size,
        offset=command.offset,
    )
    draft.effect(window)
    return draft.decision(summary(artifact, of))


def summary(artifact: Artifact, of: str) -> dict[str, str | int]:
    """What is said of an artifact before its bytes."""
    return {"media_type": artifact.media_type, "of": of, "sha256": artifact.sha256, "size": artifact.size}


def lost(view: View, origin: Origin, stamp: Stamp, command: ArtifactsLost) -> Decision:
    """A start did not find these bytes as they have to be; nobody is promised them any more."""
    draft = Draft(view, origin, stamp)
    for number in command.numbers:
        artifact = view.artifacts.by_number(number)
        if artifact is not None and not artifact.is_lost:
            draft.put(replace(artifact, is_lost=True))
            draft.audit("artifact.lost", number=number)
    return draft.decision()
