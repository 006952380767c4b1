"""How a kernel is broken in memory: other decisions about some commands, and other records in a decision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kernel.core import commands
from kernel.core.decision import Decision

Patch = tuple[Any, str, Any]  # where, which name, what it is instead
REAL = commands.decide  # before anything is patched


def changed(names: str | Sequence[str], change: Callable[..., Decision]) -> list[Patch]:
    """The decisions about these commands are others: change(decision, view, origin, stamp, command)."""
    wanted = {names} if isinstance(names, str) else set(names)

    def decide(view: Any, origin: Any, stamp: Any, command: Any) -> Decision:
        decision = REAL(view, origin, stamp, command)
        return change(decision, view, origin, stamp, command) if commands.name_of(command) in wanted else decision

    return [(commands, "decide", decide)]


def instead(names: str | Sequence[str], other: Callable[..., Any]) -> list[Patch]:
    """These commands are decided as if another had been said, or by another: other(view, origin, command) -> (origin, command)."""
    wanted = {names} if isinstance(names, str) else set(names)

    def decide(view: Any, origin: Any, stamp: Any, command: Any) -> Decision:
        if commands.name_of(command) in wanted:
            origin, command = other(view, origin, command)
        return REAL(view, origin, stamp, command)

    return [(commands, "decide", decide)]


def without(decision: Decision, *kinds: type) -> Decision:
    """The decision without what it puts of these kinds."""
    return decision._replace(puts=tuple(one for one in decision.puts if not isinstance(one, kinds)))


def with_(decision: Decision, kind: type, change: Callable[[Any], Any]) -> Decision:
    """The decision with each record of the kind changed."""
    return decision._replace(puts=tuple(change(one) if isinstance(one, kind) else one for one in decision.puts))


def and_(decision: Decision, *puts: Any) -> Decision:
    """The decision and these records."""
    return decision._replace(puts=(*decision.puts, *puts))
