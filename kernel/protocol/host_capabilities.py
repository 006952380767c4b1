"""Messages of capabilities and permissions on a host channel, both directions (SPEC 10); host.py has the others and the registries.

Summaries (absent = null left out; times are RFC 3339 UTC):
  ConsentSummary     {number, request_id, capability, title, app_scope, app_title, instance_id, reason, arguments?, scopes: [scope],
                      shown, status, code?, created_at, parent_call_id?}
                     title is of the capability, app_title of the App, both the kernel's; arguments only while status is `asked`.
                     shown (hex) names exactly this question.
                     status: asked | granted | done | failed | denied | cancelled | revoked | unknown
  PermissionSummary  {number, app_scope, app_title, capability, title, scope: while_open | always | never, instance_id?, granted_at, counts}
                     counts: false when the App is another now than the one it was given to

Rules:
1. A question is drawn by the host outside of every App's area, with app_title and app_scope; it is never a standard interaction.
2. `capability.execute` comes after the grant is durable and once only; whoever gets it acts once and answers provider.result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lineup_sdk.protocol.message import JsonObject, Message

# =============================================================================================
# host -> kernel
# =============================================================================================


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentAnswer(Message):
    """The person's answer to a consent question. decision: once | while_open | always | deny (this time) | never.

    shown names the question that was seen. Receipt. Refused: capability_denied (no such question, or it is over), answer_invalid.
    """

    TYPE: ClassVar[str] = "consent.answer"
    EXPECTS_REPLY: ClassVar[bool] = True
    request_id: str
    decision: str
    shown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderResult(Message):
    """view: how a capability.execute ended. status: done | failed; reason is a short token. Receipt.

    Refused: capability_denied (not, or not any more, this view's to say).
    """

    TYPE: ClassVar[str] = "provider.result"
    EXPECTS_REPLY: ClassVar[bool] = True
    request_id: str
    status: str
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentsList(Message):
    """Value: {consents: [ConsentSummary]}: the questions that wait for the person."""

    TYPE: ClassVar[str] = "consents.list"
    EXPECTS_REPLY: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionsList(Message):
    """Value: {permissions: [PermissionSummary]}: the standing answers."""

    TYPE: ClassVar[str] = "permissions.list"
    EXPECTS_REPLY: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionsRevoke(Message):
    """Take one standing answer back, at once. Value: {revoked: 1}. Refused: capability_denied (there is none)."""

    TYPE: ClassVar[str] = "permissions.revoke"
    EXPECTS_REPLY: ClassVar[bool] = True
    app_scope: str
    capability: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionsReset(Message):
    """Take all standing answers back, of one App or of every one. Value: {revoked: how many}."""

    TYPE: ClassVar[str] = "permissions.reset"
    EXPECTS_REPLY: ClassVar[bool] = True
    app_scope: str | None = None


FROM_HOST_CAPABILITIES = (ConsentAnswer, ConsentsList, PermissionsList, PermissionsReset, PermissionsRevoke, ProviderResult)


# =============================================================================================
# kernel -> host
# =============================================================================================


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityExecute(Message):
    """view that is a provider: do this once, now, within deadline_ms, and answer provider.result."""

    TYPE: ClassVar[str] = "capability.execute"
    request_id: str
    capability: str
    arguments: JsonObject
    app_scope: str
    title: str
    deadline_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityStop(Message):
    """view that is a provider: the person took the permission back; stop if that is still possible. Not answered."""

    TYPE: ClassVar[str] = "capability.stop"
    request_id: str


TO_HOST_CAPABILITIES = (CapabilityExecute, CapabilityStop)
