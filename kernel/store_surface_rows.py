"""Surfaces and artifacts as rows; the rules are those of kernel/store_rows.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kernel.core.surface_records import AppendedPatch, Artifact, Container, Surface, SurfaceSnapshot
from kernel.database import Row
from kernel.store_rows import Values, opt_time_value, read_opt_time, read_time, time_value

_PUT_SURFACE = """
INSERT INTO surface VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
ON CONFLICT (number) DO UPDATE SET
  updated_at = excluded.updated_at, version = excluded.version, state_bytes = excluded.state_bytes,
  state_members = excluded.state_members, snapshot_version = excluded.snapshot_version, patch_bytes = excluded.patch_bytes,
  mount_epoch = excluded.mount_epoch, mounted_view_id = excluded.mounted_view_id, closed_at = excluded.closed_at
"""
_PUT_PATCH = "INSERT INTO surface_patch VALUES (?,?,?,?)"
_PUT_SNAPSHOT = """
INSERT INTO surface_snapshot VALUES (?,?,?)
ON CONFLICT (surface_number) DO UPDATE SET version = excluded.version, state_cbor = excluded.state_cbor
"""
_PUT_ARTIFACT = """
INSERT INTO artifact VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT (number) DO UPDATE SET is_lost = excluded.is_lost
"""


def _surface_values(s: Surface) -> Values:
    identity = (s.number, s.surface_id, s.app_session_id, s.app_scope, s.conversation_id, s.container, time_value(s.opened_at))
    state = (time_value(s.updated_at), s.version, s.state_bytes, s.state_members, s.snapshot_version, s.patch_bytes)
    return (*identity, *state, s.mount_epoch, s.mounted_view_id, opt_time_value(s.closed_at))


def read_surface(row: Row) -> Surface:
    """A surface from its row."""
    return Surface(
        number=row[0],
        surface_id=row[1],
        app_session_id=row[2],
        app_scope=row[3],
        conversation_id=row[4],
        container=Container(row[5]),
        opened_at=read_time(row[6]),
        updated_at=read_time(row[7]),
        version=row[8],
        state_bytes=row[9],
        state_members=row[10],
        snapshot_version=row[11],
        patch_bytes=row[12],
        mount_epoch=row[13],
        mounted_view_id=row[14],
        closed_at=read_opt_time(row[15]),
    )


def _patch_values(p: AppendedPatch) -> Values:
    return (p.surface_number, p.version, p.patch_cbor, time_value(p.created_at))


def _snapshot_values(s: SurfaceSnapshot) -> Values:
    return (s.surface_number, s.version, s.state_cbor)


def _artifact_values(a: Artifact) -> Values:
    identity = (a.number, a.artifact_id, a.app_session_id, a.app_scope, a.conversation_id)
    return (*identity, a.sha256, a.size, a.media_type, time_value(a.created_at), a.is_lost)


def read_artifact(row: Row) -> Artifact:
    """An artifact from its row."""
    return Artifact(
        number=row[0],
        artifact_id=row[1],
        app_session_id=row[2],
        app_scope=row[3],
        conversation_id=row[4],
        sha256=row[5],
        size=row[6],
        media_type=row[7],
        created_at=read_time(row[8]),
        is_lost=bool(row[9]),
    )


PUTS: Mapping[type, tuple[str, Callable[[Any], Values]]] = {
    AppendedPatch: (_PUT_PATCH, _patch_values),
    Artifact: (_PUT_ARTIFACT, _artifact_values),
    Surface: (_PUT_SURFACE, _surface_values),
    SurfaceSnapshot: (_PUT_SNAPSHOT, _snapshot_values),
}
