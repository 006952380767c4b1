"""Which message types a channel may send, fixed at spawn (SPEC 2.4, 3). The absence of a type is the refusal."""

from __future__ import annotations

from kernel.core.manifest import Kind
from lineup_sdk.protocol import messages as m

_EVERY_APP = frozenset(
    message.TYPE
    for message in (
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

GRANTS: dict[Kind, frozenset[str]] = {
    Kind.BUNDLED: _EVERY_APP,
    Kind.INSTALLED: _EVERY_APP,
    Kind.SYSTEM: _EVERY_APP,
}


def grants_of(kind: Kind) -> frozenset[str]:
    """The types a worker of this kind may send; none for a kind that has no worker."""
    return GRANTS.get(kind, frozenset())
