"""What the kernel stores of surfaces and artifacts (SPEC 9), and what a View shows of them. The rules stand in surfaces and artifacts.

Rules:
1. A state is a snapshot and the patches since; it is never in the Surface row itself, so that a patch writes two small rows.
2. An Artifact row is written after its bytes are durable; is_lost says that a start did not find them any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from kernel.core.merge_patch import Tree


class Container(StrEnum):
    """How a host shows a surface (SPEC 9.2)."""

    TRUSTED = "trusted"  # system apps
    ISOLATED = "isolated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """An App's UI: a JSON state with a version, one an App session (SPEC 9.1). state_bytes and state_members weigh that state."""

    number: int
    surface_id: str
    app_session_id: str
    app_scope: str
    conversation_id: str
    container: Container
    opened_at: datetime
    # --- the state
    updated_at: datetime
    version: int = 0
    state_bytes: int = 1
    state_members: int = 0
    snapshot_version: int = 0  # patches above it are kept one by one
    patch_bytes: int = 0  # of those patches
    # --- who shows it: only this view, and only under this epoch, may change it
    mount_epoch: int = 0
    mounted_view_id: str | None = None
    # --- end
    closed_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendedPatch:
    """One change of a surface; version is the one it led to."""

    surface_number: int
    version: int
    patch_cbor: bytes
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceSnapshot:
    """The whole state at a version; patches up to it are dropped with it."""

    surface_number: int
    version: int
    state_cbor: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """Bytes an App made, kept by their content (SPEC 9.4). sha256 in hex, size in bytes."""

    number: int
    artifact_id: str
    app_session_id: str
    app_scope: str
    conversation_id: str
    sha256: str
    size: int
    media_type: str
    created_at: datetime
    is_lost: bool = False


class SurfaceView(Protocol):
    """Surfaces as they stand at the start of the turn."""

    def by_id(self, surface_id: str) -> Surface | None: ...  # open or closed
    def of_session(self, app_session_id: str) -> Surface | None: ...  # open or closed
    def by_number(self, number: int) -> Surface | None: ...  # open or closed
    def open_ones(self) -> Sequence[Surface]: ...  # by number
    def state(self, number: int) -> Tree: ...  # whole; not to be changed


class ArtifactView(Protocol):
    """Artifacts as they stand at the start of the turn."""

    def by_id(self, artifact_id: str) -> Artifact | None: ...  # lost ones too
    def by_number(self, number: int) -> Artifact | None: ...
    def of_content(self, app_session_id: str, sha256: str) -> Artifact | None: ...  # of that App session; not a lost one
    def size_of(self, app_session_id: str) -> tuple[int, int]: ...  # how many, and their bytes
