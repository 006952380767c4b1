"""Messages of the system App on a worker channel, both directions (SPEC 3, 9.3, 11.5); messages.py has the others and the registries.

Only a channel of kind system is granted them: any other gets capability_denied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lineup_sdk.protocol.message import JsonObject, Message

# =============================================================================================
# worker -> kernel
# =============================================================================================


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationSendText(Message):
    """The person's text for the Agent, Markdown, 1..16,384 code points. Value: {message_id}.

    key, chosen by the App: the same key and text again is the same message, so that an act that is delivered twice sends once.
    Refused: limit_exceeded, call_id_conflict (the key was used for another text).
    """

    TYPE: ClassVar[str] = "conversation.send_text"
    EXPECTS_REPLY: ClassVar[bool] = True
    text: str
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleRequestMode(Message):
    """Ask for a mode of the conversation: im | audio | video. Receipt. Refused: mode_unavailable (audio, video)."""

    TYPE: ClassVar[str] = "lifecycle.request_mode"
    EXPECTS_REPLY: ClassVar[bool] = True
    mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelinePlace(Message):
    """Fold an entry of the timeline into one line, or unfold it. Value: {placed}, false when there is no such entry."""

    TYPE: ClassVar[str] = "timeline.place"
    EXPECTS_REPLY: ClassVar[bool] = True
    number: int
    folded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineSubscribe(Message):
    """Ask for the newest window of the timeline and whatever changes in it, for this life. Receipt."""

    TYPE: ClassVar[str] = "timeline.subscribe"
    EXPECTS_REPLY: ClassVar[bool] = True


# =============================================================================================
# kernel -> worker
# =============================================================================================


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineChanged(Message):
    """Entries as they are now, newest state only, a few times a second at most; not kept for a later life.

    changes = [{kind, value}]. kind message: {number, message_id, direction: in | out, author, type, text, state, folded, created_at, code?,
    task? {task_id, title, state, progress?}}.
    kind call, once it ended: {number, call_id, tool_id, title, status, error_code?, updated_at}.
    """

    TYPE: ClassVar[str] = "timeline.changed"
    changes: list[JsonObject]
