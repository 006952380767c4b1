"""One line of an Agent at the NDJSON door: an envelope to submit, plain text, or refused (SPEC 11).

Rules:
1. A line that is not JSON, or a JSON value without `type`, is the Agent's plain text and nothing more.
2. JSON that breaks a value rule of the wire is refused and never sent; so is an envelope without its names. The kernel judges the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hosts.strict_json import JsonRefused, NotJson, read_json
from kernel.protocol.agent import MESSAGE_TEXT, TOOL_CALL
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject


class LineRefused(Exception):
    """A line that is not sent. `detail` as in a receipt: pointer, expected, hint."""

    def __init__(self, code: str, detail: JsonObject) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamps:
    """Where made message ids and times come from."""

    new_message_id: Callable[[], str]
    now: Callable[[], str]


def read_envelope(line: bytes, conversation_id: str, stamps: Stamps) -> tuple[JsonObject, bool]:
    """Turn a line into the envelope to submit; true when it was plain text. Raises: LineRefused."""
    try:
        untrusted_text = line.decode().removesuffix("\r")
    except UnicodeDecodeError as error:
        raise LineRefused(Code.PROTOCOL_VIOLATION, {"pointer": "", "expected": "UTF-8 text"}) from error
    try:
        value = read_json(untrusted_text)
    except NotJson:
        return _text_envelope(untrusted_text, conversation_id, stamps), True
    except JsonRefused as error:
        raise LineRefused(Code.PROTOCOL_VIOLATION, {"pointer": "", "expected": "JSON the wire admits", "reason": error.reason}) from error
    if not isinstance(value, dict) or "type" not in value:
        return _text_envelope(untrusted_text, conversation_id, stamps), True
    for name in ("type", "message_id"):
        if not isinstance(value.get(name), str):
            raise LineRefused(Code.PROTOCOL_VIOLATION, {"pointer": f"/{name}", "expected": "text"})
    return value, False


def _text_envelope(text: str, conversation_id: str, stamps: Stamps) -> JsonObject:
    return {
        "type": MESSAGE_TEXT,
        "message_id": stamps.new_message_id(),
        "conversation_id": conversation_id,
        "created_at": stamps.now(),
        "payload": {"text": text},
    }


def call_id_of(envelope: JsonObject) -> str | None:
    """The call that an envelope asks for, if it is one that does."""
    payload = envelope.get("payload")
    if envelope["type"] != TOOL_CALL or not isinstance(payload, dict):
        return None
    call_id = payload.get("call_id")
    return call_id if isinstance(call_id, str) else None
