"""What deciders may ask of standard interactions and policies: a part of kernel.core.decision.View."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kernel.core.records import Interaction


class InteractionView(Protocol):
    """Reads. "Open" is machines.INTERACTION_OPEN; lists go by number."""

    def interaction(self, interaction_id: str) -> Interaction | None: ...  # in any state
    def interaction_of_call(self, call_number: int) -> Interaction | None: ...  # the call that it is; in any state
    def open_interactions(self) -> Sequence[Interaction]: ...  # bounded by MAX_OPEN_INTERACTIONS
    def is_allowed(self, policy: str) -> bool: ...  # by the person, by name; False for a policy never set
