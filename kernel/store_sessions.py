"""App sessions as rows: what deciders and hosts may read of them (kernel.core.session_view). Rules: those of kernel/store_view.py."""

from __future__ import annotations

from collections.abc import Sequence

from kernel.core.machines import InstanceState
from kernel.core.manifest import SYSTEM_SCOPE
from kernel.core.records import AppSession, Instance
from kernel.database import Database
from kernel.store_rows import read_app_session, read_instance

_FOREVER = 2**63 - 1  # above every number


class SessionRows:
    """Reads of one open store."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def by_id(self, app_session_id: str) -> AppSession | None:
        """A session, open or closed."""
        row = self._db.run_one("SELECT * FROM app_session WHERE app_session_id = ?", (app_session_id,))
        return None if row is None else read_app_session(row)

    # --- for drawing and listing

    def newest(self, *, before: int | None = None, limit: int = 50) -> Sequence[AppSession]:
        """Sessions of Apps with a number below `before`, newest first; chat has no session of its own to show."""
        top = _FOREVER if before is None else before
        rows = self._db.run(
            "SELECT * FROM app_session WHERE number < ? AND app_scope <> ? ORDER BY number DESC LIMIT ?", (top, SYSTEM_SCOPE, limit)
        )
        return [read_app_session(row) for row in rows]

    def newest_instance(self, app_session_id: str) -> Instance | None:
        """The last instance that lived in a session, ended or not."""
        row = self._db.run_one("SELECT * FROM instance WHERE app_session_id = ? ORDER BY number DESC LIMIT 1", (app_session_id,))
        return None if row is None else read_instance(row)

    def has_failed(self, session: AppSession) -> bool:
        """True when an open session has no instance because the last one failed."""
        newest = self.newest_instance(session.app_session_id)
        return session.closed_at is None and newest is not None and newest.state is InstanceState.FAILED

    def message_count(self, app_session_id: str) -> int:
        """How many entries of the timeline belong to a session."""
        row = self._db.run_one("SELECT count(*) FROM timeline_message WHERE app_session_id = ?", (app_session_id,))
        return 0 if row is None else int(row[0])
