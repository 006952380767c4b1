"""Which message types a channel may send, fixed at spawn (SPEC 2.4, 3). The absence of a type is the refusal."""

from __future__ import annotations

from collections.abc import Callable

from kernel.core.manifest import Kind, Manifest
from lineup_sdk.protocol import capability_messages as c
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol import surface_messages as sm
from lineup_sdk.protocol import system_messages as y
from lineup_sdk.protocol.interaction_messages import UI_MESSAGES

_EVERY_APP = frozenset(
    message.TYPE
    for message in (
        sm.ArtifactGet,
        sm.ArtifactPut,
        m.Chunk,
        c.CapabilityRequest,
        m.InboxAcknowledge,
        m.InboxList,
        m.InboxSubscribe,
        m.LifecycleRequestBackground,
        m.LifecycleRequestClose,
        m.LifecycleRequestForeground,
        m.LifecycleStarted,
        m.LogWrite,
        m.Pong,
        m.StateLoad,
        m.StateSave,
        sm.SurfaceClose,
        sm.SurfaceOpen,
        sm.SurfaceRead,
        sm.SurfaceUpdate,
        m.ToolAccept,
        m.ToolCancel,
        m.ToolCancelSeen,
        m.ToolComplete,
        m.ToolFail,
        m.ToolProgress,
        m.ToolsGet,
        m.ToolsSubscribe,
    )
)

_SYSTEM_APP = frozenset(message.TYPE for message in (y.ConversationSendText, y.LifecycleRequestMode, y.TimelinePlace, y.TimelineSubscribe))

GRANTS: dict[Kind, frozenset[str]] = {
    Kind.BUNDLED: _EVERY_APP,
    Kind.INSTALLED: _EVERY_APP,
    Kind.SYSTEM: _EVERY_APP | _SYSTEM_APP,
}


def grants_of(kind: Kind) -> frozenset[str]:
    """The types a worker of this kind may send; none for a kind that has no worker."""
    return GRANTS.get(kind, frozenset())


# --------------------------------------------------------------------------------- extensions, off by default (SPEC 7.4)

STANDARD_INTERACTION = "standard-interaction"  # in requested_capabilities of the Manifest
EXTENSIONS: dict[str, frozenset[str]] = {STANDARD_INTERACTION: frozenset(message.TYPE for message in UI_MESSAGES)}


def policy_of(app_scope: str) -> str:
    """The name of the person's policy that lets an App ask questions of its own."""
    return f"{STANDARD_INTERACTION}:{app_scope}"


def grants_for(manifest: Manifest, is_allowed: Callable[[str], bool]) -> frozenset[str]:
    """The types a worker of this App may send: those of its kind, and what its Manifest requests and the person allows."""
    granted = grants_of(manifest.kind)
    if STANDARD_INTERACTION in manifest.requested_capabilities and is_allowed(policy_of(manifest.app_scope)):
        granted |= EXTENSIONS[STANDARD_INTERACTION]
    return granted
