"""From an untrusted `lineup.v1` envelope to a command (SPEC 11.1, 11.2). Pure.

Rules:
1. The outer part is checked first; without a readable one the envelope is refused and nothing of it is kept.
2. An unknown type or version is not refused here: it becomes an InertMessage.
3. A payload that does not fit its type is refused with its pointer.
4. Null is a value: an optional field that is not there is absent, never null. What is taken here is what envelope.schema.json admits.
"""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from typing import Annotated, Any, TypeVar

import cbor2
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from kernel.protocol import agent as a
from kernel.protocol.strict import STRICT, Ident, Invalid, LongText, Refusal, ShortText, validate
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.framing import ProtocolViolation, check_value, in_order
from lineup_sdk.protocol.limits import MAX_BODY_BYTES, MAX_BODY_DEPTH
from lineup_sdk.protocol.messages import JsonObject

_TYPE = re.compile(r"lineup\.v([0-9]{1,4})\.[a-z_.]{1,64}")
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)

_Field = TypeVar("_Field")


def _require_timestamp(text: str) -> str:
    if not TIMESTAMP.fullmatch(text):
        raise ValueError("timestamp")
    datetime.fromisoformat(text.upper())
    return text


def _refuse_null(untrusted: object) -> object:
    if untrusted is None:
        raise PydanticCustomError("no_null", "null")
    return untrusted


Timestamp = Annotated[str, StringConstraints(max_length=40), AfterValidator(_require_timestamp)]
Scope = Annotated[str, StringConstraints(min_length=1, max_length=64)]  # as a Manifest may have it
ToolId = Annotated[str, StringConstraints(min_length=1, max_length=129)]  # scope, dot, verb
Absent = Annotated[_Field | None, BeforeValidator(_refuse_null)]  # may be left out (rule 4)


class _Outer(BaseModel):
    model_config = STRICT
    type: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    message_id: Ident
    conversation_id: Ident
    app_scope: Absent[Scope] = None
    instance_id: Absent[Ident] = None
    created_at: Timestamp
    payload: dict[str, Any]


class _Text(BaseModel):
    model_config = STRICT
    text: LongText


class _ToolCall(BaseModel):
    model_config = STRICT
    call_id: Ident
    tool_id: ToolId
    inventory_revision: Absent[Ident] = None
    input: dict[str, Any]
    expires_at: Absent[Timestamp] = None


class _ToolCancel(BaseModel):
    model_config = STRICT
    call_id: Ident


class _Dismiss(BaseModel):
    model_config = STRICT
    interaction_id: Absent[Ident] = None
    call_id: Absent[Ident] = None


class _AppMessage(BaseModel):
    model_config = STRICT
    topic: Ident
    body: dict[str, Any]


class _Task(BaseModel):
    model_config = STRICT
    task_id: Ident
    title: Annotated[ShortText, StringConstraints(min_length=1)]
    state: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    progress: Absent[Annotated[float, Field(ge=0, le=100)]] = None  # percent
    summary: Absent[ShortText] = None


def parse_envelope(untrusted_envelope: JsonObject) -> a.AgentCommand:
    """Return the command an envelope stands for. Raises: Invalid."""
    try:
        check_value(untrusted_envelope, allow_bytes=False)
    except ProtocolViolation as violation:
        raise Invalid(Refusal(pointer="", expected=f"JSON values of the wire ({violation.reason})", got_type="object")) from None
    outer = validate(_Outer, untrusted_envelope)
    envelope = a.Envelope(
        type=outer.type,
        message_id=outer.message_id,
        conversation_id=outer.conversation_id,
        app_scope=outer.app_scope,
        instance_id=outer.instance_id,
        created_at=outer.created_at,
        digest=hashlib.sha256(cbor2.dumps(in_order(untrusted_envelope))).digest(),
    )
    build = _BUILDERS.get(outer.type)
    if build is None:
        return _inert(envelope, outer.payload)
    return build(envelope, outer.payload)


def readable_message_id(untrusted_envelope: JsonObject) -> str | None:
    """The message_id to name in a receipt, when there is one that may be repeated."""
    message_id = untrusted_envelope.get("message_id")
    return message_id if isinstance(message_id, str) and 0 < len(message_id) <= 128 else None


def _inert(envelope: a.Envelope, payload: JsonObject) -> a.InertMessage:
    match = _TYPE.fullmatch(envelope.type)
    is_other_version = match is not None and match[1] != "1"
    code = Code.UNSUPPORTED_VERSION if is_other_version else Code.UNSUPPORTED_TYPE
    _require_body(payload, "/payload", code)
    return a.InertMessage(envelope=envelope, payload=payload, code=code)


def _require_body(body: JsonObject, pointer: str, code: Code = Code.LIMIT_EXCEEDED) -> None:
    try:
        check_value(body, max_depth=MAX_BODY_DEPTH, allow_bytes=False)
    except ProtocolViolation:
        raise Invalid(Refusal(pointer=pointer, expected=f"depth {MAX_BODY_DEPTH}", got_type="object"), code) from None
    size = len(cbor2.dumps(body))
    if size > MAX_BODY_BYTES:
        expected = f"at most {MAX_BODY_BYTES} bytes as CBOR"
        raise Invalid(Refusal(pointer=pointer, expected=expected, got_type="object", got_size=size), code)


def _text(envelope: a.Envelope, payload: JsonObject) -> a.AgentCommand:
    checked = validate(_Text, payload, "/payload")
    return a.TextReceived(envelope=envelope, text=checked.text)


def _tool_call(envelope: a.Envelope, payload: JsonObject) -> a.AgentCommand:
    checked = validate(_ToolCall, payload, "/payload")
    return a.ToolInvoke(
        envelope=envelope,
        call_id=checked.call_id,
        tool_id=checked.tool_id,
        inventory_revision=checked.inventory_revision,
        input=checked.input,
        expires_at=checked.expires_at.upper() if checked.expires_at else None,
        app_scope=envelope.app_scope,
        instance_id=envelope.instance_id,
    )


def _tool_cancel(envelope: a.Envelope, payload: JsonObject) -> a.AgentCommand:
    checked = validate(_ToolCancel, payload, "/payload")
    return a.ToolCancelAsked(envelope=envelope, call_id=checked.call_id)


def _dismiss(envelope: a.Envelope, payload: JsonObject) -> a.AgentCommand:
    checked = validate(_Dismiss, payload, "/payload")
    if len(payload) != 1:
        raise Invalid(Refusal(pointer="/payload", expected="either interaction_id or call_id", got_type="object", got_size=len(payload)))
    return a.InteractionDismissAsked(envelope=envelope, interaction_id=checked.interaction_id, call_id=checked.call_id)


def _app_message(envelope: a.Envelope, payload: JsonObject) -> a.AgentCommand:
    checked = validate(_AppMessage, payload, "/payload")
    _require_body(checked.body, "/payload/body")
    return a.AppMessageReceived(envelope=envelope, topic=checked.topic, body=checked.body)


def _task(envelope: a.Envelope, payload: JsonObject) -> a.AgentCommand:
    validate(_Task, payload, "/payload")
    return a.TaskUpdated(envelope=envelope, task=payload)


_BUILDERS = {
    a.APP_MESSAGE: _app_message,
    a.INTERACTION_DISMISS: _dismiss,
    a.MESSAGE_TEXT: _text,
    a.TASK_UPDATE: _task,
    a.TOOL_CALL: _tool_call,
    a.TOOL_CANCEL: _tool_cancel,
}
