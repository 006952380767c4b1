"""How a mount and a surface end, whoever ends them (SPEC 8.4, 9.1, 9.2): used by what closes sessions, loses views and starts kernels.

Rules:
1. A surface ends with its App session; its state stays. A crash or failure of the instance ends neither.
2. A mount ends with its view, with a takeover, with the surface, and with the kernel: no epoch is believed by a later start.
"""

from __future__ import annotations

from dataclasses import replace

from kernel.core import merge_patch
from kernel.core.decision import Draft
from kernel.core.surface_effects import SendToView
from kernel.core.surface_records import Surface, SurfaceSnapshot
from kernel.protocol.host_surfaces import SurfaceUnmounted


def close_of_session(draft: Draft, app_session_id: str) -> None:
    """Close the surface of an App session that is over, if it has an open one."""
    surface = draft.view.surfaces.of_session(app_session_id)
    if surface is not None and surface.closed_at is None:
        close(draft, surface)


def close(draft: Draft, surface: Surface) -> None:
    """Close one surface; the view that shows it is told."""
    tell_unmounted(draft, surface, "closed")
    draft.put(replace(surface, closed_at=draft.stamp.now, mounted_view_id=None))
    draft.audit("surface.closed", number=surface.number)


def copy_to_session(draft: Draft, surface: Surface, app_session_id: str) -> None:
    """Give another App session a copy of a surface's state, closed until its App opens it. Source: SPEC 8.4, «continue»."""
    copied = replace(
        surface,
        number=draft.new_number(),
        surface_id=draft.new_id("srf"),
        app_session_id=app_session_id,
        opened_at=draft.stamp.now,
        updated_at=draft.stamp.now,
        snapshot_version=surface.version,
        patch_bytes=0,
        mount_epoch=0,
        mounted_view_id=None,
        closed_at=draft.stamp.now,
    )
    state_cbor = merge_patch.encode(draft.view.surfaces.state(surface.number))
    draft.put(copied)
    draft.put(SurfaceSnapshot(surface_number=copied.number, version=copied.version, state_cbor=state_cbor))


def unmount_all(draft: Draft, view_id: str | None = None) -> None:
    """End the mounts of one view that is gone, or of all at a start: there is nobody to tell."""
    for surface in draft.view.surfaces.open_ones():
        if surface.mounted_view_id is not None and view_id in (None, surface.mounted_view_id):
            draft.put(replace(surface, mounted_view_id=None))
            draft.audit("surface.unmounted", number=surface.number)


def tell_unmounted(draft: Draft, surface: Surface, reason: str) -> None:
    """Tell the view of the present mount, if there is one, that it has ended."""
    if surface.mounted_view_id is not None:
        message = SurfaceUnmounted(surface_id=surface.surface_id, mount_epoch=surface.mount_epoch, reason=reason)
        draft.effect(SendToView(view_id=surface.mounted_view_id, message=message))
