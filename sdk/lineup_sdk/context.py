"""What a MiniApp may know about itself: MiniAppContext, read-only, made from the kernel's welcome (SPEC 3).

Rules:
1. It holds nothing about the person, the Agent, tokens or addresses; a context with any other key is refused.
2. Only `read_context` and `with_state` make one; an author cannot.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass

from lineup_sdk.protocol.framing import ProtocolViolation
from lineup_sdk.protocol.messages import JsonObject

STATES = frozenset({"background", "foreground", "starting", "suspended"})
_REQUIRED = frozenset({"app_scope", "app_version", "conversation_id", "instance_id", "state"})
_OPTIONAL = frozenset({"mode"})
_MAKER = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class MiniAppContext:
    """Who this instance is. `state` is starting, foreground, background or suspended; `mode` is set for the system app alone."""

    app_scope: str
    instance_id: str
    conversation_id: str
    app_version: str
    state: str
    mode: str | None = None
    maker: InitVar[object] = None

    def __post_init__(self, maker: object) -> None:
        if maker is not _MAKER:
            raise TypeError("a MiniAppContext comes from the kernel; it has no public constructor")


def read_context(untrusted_context: JsonObject) -> MiniAppContext:
    """Make a context of what the welcome carried. Raises: ProtocolViolation("context")."""
    keys = untrusted_context.keys()
    if not _REQUIRED <= keys <= _REQUIRED | _OPTIONAL or any(type(value) is not str for value in untrusted_context.values()):
        raise ProtocolViolation("context")
    _require_state(untrusted_context["state"])
    return MiniAppContext(**untrusted_context, maker=_MAKER)


def with_state(context: MiniAppContext, state: str) -> MiniAppContext:
    """Return the same context in another state. Raises: ProtocolViolation("context")."""
    _require_state(state)
    return MiniAppContext(
        app_scope=context.app_scope,
        instance_id=context.instance_id,
        conversation_id=context.conversation_id,
        app_version=context.app_version,
        state=state,
        mode=context.mode,
        maker=_MAKER,
    )


def _require_state(state: str) -> None:
    if state not in STATES:
        raise ProtocolViolation("context")
