"""What deciders may ask of bodies that are old: a part of kernel.core.decision.View."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from kernel.core.capability_records import CapabilityRequest
from kernel.core.records import Interaction, ToolCall
from kernel.core.surface_records import Artifact


class RetentionView(Protocol):
    """What ended before an instant and is not waited for any more, oldest first, at most `limit` of it.

    An old session was closed before that instant, and so was every one that goes on with it, however often.
    """

    def ended_calls(self, before: datetime, limit: int) -> Sequence[ToolCall]: ...  # none whose rows still wait
    def done_inbox_rows(self, before: datetime, limit: int) -> Sequence[int]: ...
    def messages(self, before: datetime, limit: int) -> Sequence[int]: ...  # no card of a question that is still there
    def done_outbox_rows(self, before: datetime, limit: int) -> Sequence[int]: ...  # not the final row of a call that is still there
    def ended_interactions(self, before: datetime, limit: int) -> Sequence[Interaction]: ...  # that are no call
    def ended_capability_requests(self, before: datetime, limit: int) -> Sequence[CapabilityRequest]: ...
    def artifacts(self, before: datetime, limit: int) -> Sequence[Artifact]: ...  # of old sessions; not a lost one
    def surfaces(self, before: datetime, limit: int) -> Sequence[int]: ...  # of old sessions
    def states(self, before: datetime, limit: int) -> Sequence[str]: ...  # of old sessions, by app_session_id
