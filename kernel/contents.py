"""Content that hosts read in chunks: bytes of artifacts, code of surfaces (SPEC 2.1, 9). Reads, as in queries.py: no turn, no audit row.

A reader returns what is said first and the bytes that follow under the name `of`; it raises Rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kernel.artifact_store import ArtifactStore
from kernel.core import artifacts
from kernel.core.decision import Detail, Rejected
from kernel.protocol.host_surfaces import ArtifactRead, SurfaceSource
from kernel.registry import SurfaceCode
from kernel.store_view import StoreView
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.limits import WINDOW_BYTES
from lineup_sdk.protocol.messages import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What is read from: the store's view, the kept bytes, and the verified code of surfaces by app_scope."""

    view: StoreView
    artifacts: ArtifactStore
    surfaces: Mapping[str, SurfaceCode]


def _artifact(contents: Contents, query: ArtifactRead, of: str) -> tuple[JsonObject, bytes]:
    artifact = contents.view.artifacts.by_id(query.artifact_id)
    data = None
    if artifact is not None and not artifact.is_lost:
        data = contents.artifacts.read(artifact.sha256, artifact.size, query.offset, WINDOW_BYTES)
    if artifact is None or data is None:
        raise Rejected(Code.ARTIFACT_NOT_FOUND)
    return artifacts.summary(artifact, of), data


def _surface_code(contents: Contents, query: SurfaceSource, of: str) -> tuple[JsonObject, bytes]:
    surface = contents.view.surfaces.by_id(query.surface_id)
    if surface is None or surface.closed_at is not None:
        raise Rejected(Code.SURFACE_UNAVAILABLE, Detail(pointer="/surface_id", expected="an open surface"))
    code = contents.surfaces.get(surface.app_scope)
    if code is None:
        raise Rejected(Code.SURFACE_UNAVAILABLE, Detail(hint="the App has no code for a frame; show its text"))
    size = len(code.script) + len(code.style)
    facts: JsonObject = {"version": code.version, "script": len(code.script), "style": len(code.style), "size": size, "of": of}
    return facts, code.script + code.style


READERS: Mapping[type, Callable[[Contents, Any, str], tuple[JsonObject, bytes]]] = {
    ArtifactRead: _artifact,
    SurfaceSource: _surface_code,
}
