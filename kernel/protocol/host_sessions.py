"""Messages about Apps and App sessions, and the loopback door's refusal of a row, on a host channel (SPEC 3, 8.4, 11.3); host.py has the
others and the registries.

  SessionSummary   {number, app_session_id, app_scope, title, state: open | closed, opened_at, closed_at?, continues?, instance_id?,
                    newest_instance_id?, error?, failed, messages}
                   instance_id = of the instance that lives in it; newest_instance_id = of the last one, gone or not, with its error;
                   failed = none lives in it because the last one failed: offer app.start_empty beside app.open. messages = how many
                   were said while it was in front.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lineup_sdk.protocol.messages import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class AppOpen(Message):
    """The person opens an App: its instance, or a new one in the open session, comes to the front.

    Value: {instance_id}, absent for a chat that is only being made. Refused: app_instance_not_found (no such App), app_disabled,
    lifecycle_denied (it is closing), limit_exceeded.
    """

    TYPE: ClassVar[str] = "app.open"
    EXPECTS_REPLY: ClassVar[bool] = True
    app_scope: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AppStartEmpty(Message):
    """Open an App in a new session that remembers nothing; the open one becomes history. Value: {instance_id, app_session_id}.

    Refused: as app.open; lifecycle_denied while the App has an instance.
    """

    TYPE: ClassVar[str] = "app.start_empty"
    EXPECTS_REPLY: ClassVar[bool] = True
    app_scope: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeRequest(Message):
    """The person asks for a mode of the conversation: im | audio | video. Receipt. Refused: mode_unavailable (audio, video)."""

    TYPE: ClassVar[str] = "mode.request"
    EXPECTS_REPLY: ClassVar[bool] = True
    mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxRefuse(Message):
    """agent, or admin for its own call: the row with this message_id can never be taken; code is the receiver's own token. Not answered."""

    TYPE: ClassVar[str] = "outbox.refuse"
    message_id: str
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsContinue(Message):
    """Go on with a closed App session: a new one linked to it, with a copy of what it remembered, opens in front.

    Value: {instance_id, app_session_id}; of an open session it is app.open. Refused: as app.open; lifecycle_denied while another session of
    the App is open.
    """

    TYPE: ClassVar[str] = "sessions.continue"
    EXPECTS_REPLY: ClassVar[bool] = True
    app_session_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsList(Message):
    """Value: {sessions: [SessionSummary, newest first], more}. before = a local number."""

    TYPE: ClassVar[str] = "sessions.list"
    EXPECTS_REPLY: ClassVar[bool] = True
    before: int | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsShow(Message):
    """Value: {session, messages: [MessageSummary, oldest first], more}: what was said while it was in front, the window before a number.

    Refused: app_instance_not_found.
    """

    TYPE: ClassVar[str] = "sessions.show"
    EXPECTS_REPLY: ClassVar[bool] = True
    app_session_id: str
    before: int | None = None
    limit: int = 50
