"""Messages of standard interactions on a worker channel, both directions (SPEC 7); messages.py has the others and the registries.

`ui.*` are an extension, off by default: granted to a channel only when the Manifest requests `standard-interaction` and the person
allows it. Rules:
1. The owner is whoever speaks; no message can name one.
2. The result of an own interaction is an inbox message on INTERACTION_RESULT, with body {interaction_id, kind, outcome, answer?, code?};
   `ui.changed` is a hint and may be missed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lineup_sdk.protocol.message import JsonObject, Message

INTERACTION_RESULT = "interaction.result"  # the topic of results

# =============================================================================================
# worker -> kernel
# =============================================================================================


@dataclass(frozen=True, slots=True, kw_only=True)
class UiRequest(Message):
    """Ask the person. request = {kind: notice | choice | confirm | input, ...} as the tools interaction.* take it. Value: {interaction_id}.

    parent_call_id: an own open call whose clock stands still meanwhile. presentation: default | inline | modal, a wish. expires_at:
    RFC 3339. Refused: capability_denied, tool_input_invalid, call_not_found, call_already_final, limit_exceeded.
    """

    TYPE: ClassVar[str] = "ui.request"
    EXPECTS_REPLY: ClassVar[bool] = True
    request: JsonObject
    parent_call_id: str | None = None
    presentation: str | None = None
    expires_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UiGet(Message):
    """Read one own interaction. Value: {interaction_id, kind, status, result: object or null}. Refused: interaction_not_found."""

    TYPE: ClassVar[str] = "ui.get"
    EXPECTS_REPLY: ClassVar[bool] = True
    interaction_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UiSubscribe(Message):
    """Ask to be told of changes of own interactions. Receipt. Refused: capability_denied."""

    TYPE: ClassVar[str] = "ui.subscribe"
    EXPECTS_REPLY: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class UiCancel(Message):
    """Take an own question back. Receipt. Refused: interaction_not_found, interaction_already_final."""

    TYPE: ClassVar[str] = "ui.cancel"
    EXPECTS_REPLY: ClassVar[bool] = True
    interaction_id: str
    reason: str | None = None


UI_MESSAGES: tuple[type[Message], ...] = (UiCancel, UiGet, UiRequest, UiSubscribe)

# =============================================================================================
# kernel -> worker
# =============================================================================================


@dataclass(frozen=True, slots=True, kw_only=True)
class UiChanged(Message):
    """An own interaction stands elsewhere now: presented, or one of its outcomes. Not durable."""

    TYPE: ClassVar[str] = "ui.changed"
    interaction_id: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InteractionPresented(Message):
    """chat alone: a card of the Agent stands in the timeline. kind: notice | choice | confirm | input; place: inline | modal.

    Nothing waits for the system App; it may choose where the card stands.
    """

    TYPE: ClassVar[str] = "interaction.presented"
    interaction_id: str
    kind: str
    title: str
    place: str
