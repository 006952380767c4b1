"""Messages of standard interactions on a host channel (SPEC 7); host.py has the others and the registries.

InteractionSummary (absent = null left out; times are RFC 3339 UTC):
  {number, interaction_id, kind: notice | choice | confirm | input, source: agent_tool | miniapp_tool | runtime_policy,
   owner_app_scope, owner_instance_id?, call_id?, app_session_id?, request, shown_digest (hex), place: default | inline | modal, status,
   result? {outcome, answer?}, answered_by? (view_id), error_code?, draft?, expires_at?, created_at, updated_at}
Rules:
1. A view draws `request` as text or Markdown, never as code, and answers under the digest of exactly what it drew.
2. Many views may show one; the first valid answer closes it everywhere.
3. A draft is what a view has not sent yet: the kernel keeps it in memory, shows it to every view, and never writes it anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lineup_sdk.protocol.messages import JsonObject, Message


@dataclass(frozen=True, slots=True, kw_only=True)
class InteractionAnswer(Message):
    """The person answers. answer = {action_ids: [...]} | {approved} | {fields: {id: value}} | {declined: true} (choice, input). Receipt.

    shown_digest = that of the summary it answers, hex. Refused: interaction_not_found, interaction_already_final, answer_invalid (with
    the pointer of the field).
    """

    TYPE: ClassVar[str] = "interaction.answer"
    EXPECTS_REPLY: ClassVar[bool] = True
    interaction_id: str
    answer: JsonObject
    shown_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InteractionMove(Message):
    """Show it elsewhere: inline | modal | default (the kernel chooses). Value: {place}, what it became. Refused: as interaction.answer."""

    TYPE: ClassVar[str] = "interaction.move"
    EXPECTS_REPLY: ClassVar[bool] = True
    interaction_id: str
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InteractionsList(Message):
    """Value: {interactions: [InteractionSummary ...newest first], more}. state: open | ended | one status."""

    TYPE: ClassVar[str] = "interactions.list"
    EXPECTS_REPLY: ClassVar[bool] = True
    state: str | None = None
    before: int | None = None  # local number
    limit: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftSave(Message):
    """Keep what is typed and not sent, at most 48 KiB as CBOR; {} forgets it. Value: {saved: true}.

    Refused: interaction_not_found, interaction_already_final, limit_exceeded.
    """

    TYPE: ClassVar[str] = "draft.save"
    EXPECTS_REPLY: ClassVar[bool] = True
    interaction_id: str
    draft: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySet(Message):
    """Allow an App what its Manifest requests, or no longer. name: `standard-interaction:<app_scope>`. Receipt.

    Allowed counts from the App's next process on; revoked counts at once. Refused: capability_denied (no Manifest requests it).
    """

    TYPE: ClassVar[str] = "policy.set"
    EXPECTS_REPLY: ClassVar[bool] = True
    name: str
    allowed: bool
