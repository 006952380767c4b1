"""The SurfaceView and ArtifactView of a DictView: reads over its tables; a state is built anew from snapshot and patches at every read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernel.core import merge_patch
from kernel.core.merge_patch import Tree
from kernel.core.records import decode_body
from kernel.core.surface_records import AppendedPatch, Artifact, Surface, SurfaceSnapshot

KEYS: Mapping[type, str] = {AppendedPatch: "version", Artifact: "number", Surface: "number", SurfaceSnapshot: "surface_number"}
Tables = Mapping[type, dict[Any, Any]]


def patch_key(patch: AppendedPatch) -> tuple[int, int]:
    """What no two patches share."""
    return patch.surface_number, patch.version


class DictSurfaces:
    """See the head of the file."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def _all(self) -> list[Surface]:
        return sorted(self._tables[Surface].values(), key=lambda one: one.number)

    def by_id(self, surface_id: str) -> Surface | None:
        return next((one for one in self._all() if one.surface_id == surface_id), None)

    def of_session(self, app_session_id: str) -> Surface | None:
        return next((one for one in self._all() if one.app_session_id == app_session_id), None)

    def by_number(self, number: int) -> Surface | None:
        return self._tables[Surface].get(number)

    def open_ones(self) -> Sequence[Surface]:
        return [one for one in self._all() if one.closed_at is None]

    def state(self, number: int) -> Tree:
        snapshot = self._tables[SurfaceSnapshot][number]
        tree = merge_patch.decode(snapshot.state_cbor)
        for patch in self.patches(number):
            if patch.version > snapshot.version:
                merge_patch.apply(tree, decode_body(patch.patch_cbor))
        return tree

    def patches(self, number: int) -> Sequence[AppendedPatch]:
        found = (one for one in self._tables[AppendedPatch].values() if one.surface_number == number)
        return sorted(found, key=lambda one: one.version)

    def drop_patches(self, snapshot: SurfaceSnapshot) -> None:
        """What the trigger of the schema does with a snapshot."""
        patches = self._tables[AppendedPatch]
        for patch in self.patches(snapshot.surface_number):
            if patch.version <= snapshot.version:
                del patches[patch_key(patch)]


class DictArtifacts:
    """See the head of the file."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def _all(self) -> list[Artifact]:
        return sorted(self._tables[Artifact].values(), key=lambda one: one.number)

    def by_id(self, artifact_id: str) -> Artifact | None:
        return next((one for one in self._all() if one.artifact_id == artifact_id), None)

    def by_number(self, number: int) -> Artifact | None:
        return self._tables[Artifact].get(number)

    def _kept(self, app_session_id: str) -> list[Artifact]:
        return [one for one in self._all() if one.app_session_id == app_session_id and not one.is_lost]

    def of_content(self, app_session_id: str, sha256: str) -> Artifact | None:
        return next((one for one in self._kept(app_session_id) if one.sha256 == sha256), None)

    def size_of(self, app_session_id: str) -> tuple[int, int]:
        kept = self._kept(app_session_id)
        return len(kept), sum(one.size for one in kept)
