"""What upkeep sets off after a commit: a part of kernel.core.decision.Effect."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeBackup:
    """Write a backup into this folder and say BackupEnded to the asking view."""

    path: str
    view_id: str
