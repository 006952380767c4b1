"""What deciders may ask of bodies that are old: a part of kernel.core.decision.View."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from kernel.core.records import ToolCall


class RetentionView(Protocol):
    """What ended before an instant and is not waited for any more, oldest first, at most `limit` of it."""

    def ended_calls(self, before: datetime, limit: int) -> Sequence[ToolCall]: ...  # none whose rows still wait
    def done_inbox_rows(self, before: datetime, limit: int) -> Sequence[int]: ...
    def messages(self, before: datetime, limit: int) -> Sequence[int]: ...
    def done_outbox_rows(self, before: datetime, limit: int) -> Sequence[int]: ...  # not the final row of a call that is still there
