"""What deciders may ask of App sessions: a part of kernel.core.decision.View."""

from __future__ import annotations

from typing import Protocol

from kernel.core.records import AppSession


class SessionView(Protocol):
    """App sessions as they stand at the start of the turn."""

    def by_id(self, app_session_id: str) -> AppSession | None: ...  # open or closed
