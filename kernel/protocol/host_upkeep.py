"""Messages of upkeep on a host channel: parked messages, the audit as it grows, and why something is as it is (SPEC 5.4, 17)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lineup_sdk.protocol.messages import JsonObject, Message


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxParked(Message):
    """Value: {rows: [{number, app_scope, instance_id, topic, delivery_count, crash_count, size, created_at}], oldest first, more}."""

    TYPE: ClassVar[str] = "inbox.parked"
    EXPECTS_REPLY: ClassVar[bool] = True
    after: int = 0
    limit: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxRetry(Message):
    """Send a parked message again, to the App's instance of now. Value: {instance_id}.

    Refused: call_not_found (no parked row of that number), app_instance_not_found, limit_exceeded.
    """

    TYPE: ClassVar[str] = "inbox.retry"
    EXPECTS_REPLY: ClassVar[bool] = True
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxDrop(Message):
    """Give a parked message up for good. Receipt. Refused: call_not_found."""

    TYPE: ClassVar[str] = "inbox.drop"
    EXPECTS_REPLY: ClassVar[bool] = True
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTail(Message):
    """Value: {rows: audit rows after a seq, oldest first, or the newest when after is absent}."""

    TYPE: ClassVar[str] = "audit.tail"
    EXPECTS_REPLY: ClassVar[bool] = True
    after: int | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Explain(Message):
    """Say why a call, instance or interaction is as it is. what = its id, or a local number.

    Value: {what, kind, state, summary, sentences: [{text, seqs: [audit seq]}], audit: [row]}: all that the sentences say is in the others
    too. Refused: call_not_found (nothing has that id).
    """

    TYPE: ClassVar[str] = "explain"
    EXPECTS_REPLY: ClassVar[bool] = True
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupMake(Message):
    """Write a backup into a folder that is not there yet, on the kernel's machine. Receipt; `backup.made` follows when it is whole.

    Refused: limit_exceeded (no absolute path).
    """

    TYPE: ClassVar[str] = "backup.make"
    EXPECTS_REPLY: ClassVar[bool] = True
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupMade(Message):
    """To the view that asked: the backup is whole and synced, or why there is none. facts = {format, epoch, made_at, head}.

    code: limit_exceeded (something is there already, or nothing can be put there: detail names /path), store_full (the disk of either
    end), store_corrupt (what was to be copied), unknown (the disk fails).
    """

    TYPE: ClassVar[str] = "backup.made"
    accepted: bool
    code: str | None = None
    detail: JsonObject | None = None
    facts: JsonObject | None = None


TO_HOST_UPKEEP = (BackupMade,)
FROM_HOST_UPKEEP = (BackupMake, AuditTail, Explain, InboxDrop, InboxParked, InboxRetry)
