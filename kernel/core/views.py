"""Which views are there (SPEC 2.8): told to the core as commands, held for this run of the kernel only."""

from __future__ import annotations

from kernel.core import capabilities, surface_life
from kernel.core.capability_records import AttachedView, AttachedViews
from kernel.core.decision import Decision, Draft, Origin, Stamp, View
from kernel.core.events import ViewAttached, ViewLeft


def attached(view: View, origin: Origin, stamp: Stamp, command: ViewAttached) -> Decision:
    """A view came."""
    draft = Draft(view, origin, stamp)
    came = AttachedView(view_id=origin.view_id, providers=command.providers)
    draft.put(AttachedViews(views=(*_others(view, origin), came)))
    draft.audit("view.attached")
    return draft.decision()


def left(view: View, origin: Origin, stamp: Stamp, command: ViewLeft) -> Decision:
    """A view went, and its mounts with it; what it was asked to do has an unknown end."""
    draft = Draft(view, origin, stamp)
    draft.put(AttachedViews(views=_others(view, origin)))
    draft.audit("view.left")
    surface_life.unmount_all(draft, origin.view_id)
    capabilities.lose_view(draft, origin.view_id)
    return draft.decision()


def _others(view: View, origin: Origin) -> tuple[AttachedView, ...]:
    return tuple(one for one in view.capabilities.views() if one.view_id != origin.view_id)
