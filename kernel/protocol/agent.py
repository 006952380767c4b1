"""`lineup.v1` envelopes between an Agent and the kernel (SPEC 11.1), as commands. Pure.

An envelope is `{type, message_id, conversation_id, app_scope?, instance_id?, created_at, payload}`. Rules:
1. An unknown type or version is not an error: it becomes InertMessage, stored as text, never executed.
2. A text without envelope is read as `message.text` and nothing more; that is the door's job (it has to make a message_id).
3. What an envelope says of itself (created_at) is kept, never used to decide.
"""

from __future__ import annotations

from dataclasses import dataclass

from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject

PREFIX = "lineup.v1."

MESSAGE_TEXT = PREFIX + "message.text"
TOOL_CALL = PREFIX + "tool.call"
TOOL_CANCEL = PREFIX + "tool.cancel"
TOOL_PROGRESS = PREFIX + "tool.progress"
TOOL_RESULT = PREFIX + "tool.result"
INTERACTION_DISMISS = PREFIX + "interaction.dismiss"
INTERACTION_CARD = PREFIX + "interaction"  # of timeline entries; no envelope
INTERACTION_ANSWER = PREFIX + "interaction.answer"
APP_MESSAGE = PREFIX + "app.message"
TASK_UPDATE = PREFIX + "task.update"
CLIENT_INVENTORY = PREFIX + "client.inventory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """The outer part, the same for all types. digest = SHA-256 of the whole envelope in deterministic CBOR."""

    type: str
    message_id: str
    conversation_id: str
    app_scope: str | None
    instance_id: str | None
    created_at: str
    digest: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TextReceived:
    """message.text {text}: Markdown from the Agent."""

    envelope: Envelope
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInvoke:
    """tool.call {call_id, tool_id, inventory_revision, input, expires_at?}; also what the person's `call.invoke` becomes."""

    envelope: Envelope | None
    call_id: str
    tool_id: str
    inventory_revision: str | None
    input: JsonObject
    expires_at: str | None = None
    app_scope: str | None = None
    instance_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCancelAsked:
    """tool.cancel {call_id}; also what the person's `call.cancel` becomes."""

    envelope: Envelope | None
    call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InteractionDismissAsked:
    """interaction.dismiss {interaction_id | call_id}: the Agent takes its question back. Exactly one of the two is not None."""

    envelope: Envelope
    interaction_id: str | None
    call_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AppMessageReceived:
    """app.message {topic, body} to the live instance of app_scope."""

    envelope: Envelope
    topic: str
    body: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskUpdated:
    """task.update {task_id, title, state, progress?, summary?}: a task card in the timeline."""

    envelope: Envelope
    task: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class InertMessage:
    """An envelope of a type or version this kernel does not know: kept, shown, never executed."""

    envelope: Envelope
    payload: JsonObject
    code: Code  # unsupported_type | unsupported_version


AgentCommand = TextReceived | ToolInvoke | ToolCancelAsked | InteractionDismissAsked | AppMessageReceived | TaskUpdated | InertMessage
