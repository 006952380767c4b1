"""What the kernel stores of capabilities and of the person's answers about them (SPEC 10), and what a View shows of it.

Rules:
1. A CapabilityRequest that is `granted` is the grant: good for one use by one view, durable before that view is asked.
2. Its arguments are kept only while it is open: they may be text of the person.
3. A Permission is a standing answer; it counts only for the App, the contract version and the bundle it was given to (`anchor`).
4. AttachedViews is of this run of the kernel: held in memory, never stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from kernel.core.machines import CapabilityStatus, PermissionState
from lineup_sdk.protocol.codes import Code


class ConsentScope(StrEnum):
    """How far an answer of the person goes."""

    ONCE = "once"
    WHILE_OPEN = "while_open"  # until the instance ends; across crashes of its process
    ALWAYS = "always"
    NEVER = "never"  # refused from now on, without a question


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityRequest:
    """One request of an App for one action of a host."""

    number: int
    request_id: str
    capability: str
    contract_version: int
    app_scope: str
    instance_id: str
    conversation_id: str
    anchor: str  # what the App was when it asked: its bundle digest
    reason: str
    parent_call_number: int | None
    shown_digest: bytes  # of what the person is shown: what an answer has to name
    created_at: datetime
    # --- where it stands
    status: CapabilityStatus
    updated_at: datetime
    arguments_cbor: bytes | None  # None once it has ended
    scope: ConsentScope | None = None
    consent_view_id: str | None = None  # who answered
    provider_view_id: str | None = None  # who was asked to act
    deadline_ms: int | None = None  # boottime of this run; a grant does not outlive the kernel
    # --- how it ended
    error_code: Code | None = None
    reason_of_end: str | None = None  # a token of the host


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """A standing answer about one App and one capability. At most one is active; instance_id only for while_open."""

    number: int
    app_scope: str
    capability: str
    contract_version: int
    anchor: str
    scope: ConsentScope
    instance_id: str | None
    view_id: str
    granted_at: datetime
    state: PermissionState = PermissionState.ACTIVE
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """What an App asked for when it was last switched on, or first seen: an update that asks for more stays off until accepted."""

    app_scope: str
    capabilities: tuple[str, ...]
    accepted_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedView:
    """One view that is there now, and the capabilities it can carry out."""

    view_id: str
    providers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedViews:
    """All views that are there now, in the order they came."""

    views: tuple[AttachedView, ...]


class CapabilityView(Protocol):
    """Capabilities as they stand at the start of the turn. Lists go by number."""

    def request(self, request_id: str) -> CapabilityRequest | None: ...  # in any state
    def open_requests(self) -> Sequence[CapabilityRequest]: ...  # asked or granted; bounded by MAX_OPEN_CAPABILITY_REQUESTS
    def permission(self, app_scope: str, capability: str) -> Permission | None: ...  # the active one, whatever it is bound to
    def permissions(self) -> Sequence[Permission]: ...  # the active ones
    def acceptance(self, app_scope: str) -> Acceptance | None: ...
    def views(self) -> Sequence[AttachedView]: ...  # attached now, oldest first
