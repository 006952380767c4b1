"""What a page may say: text from a socket becomes an operation, or is refused with a code and a pointer (SPEC 2.1, 2.5).

Rules:
1. JSON is read under the value rules of the wire: duplicate keys, NaN, lone surrogates, deep nesting and the rest are refused.
2. Requests to the kernel are those of ASKS and no others: what ends the kernel, writes files or belongs to doors is not for pages.
3. Fields are judged by the kernel's own border (kernel.protocol.strict), so that a page hears the same of a mistake from both.
4. A refusal never holds what was sent. It bears the page's number wherever there is one, so that no question waits for ever.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hosts.strict_json import JsonRefused, NotJson, read_json
from hosts.web.half_lines import MAX_LINE
from kernel.protocol import host
from kernel.protocol.host_capabilities import ConsentAnswer, ConsentsList, PermissionsList, PermissionsReset, PermissionsRevoke
from kernel.protocol.host_interactions import DraftSave, InteractionAnswer, InteractionMove, InteractionsList, PolicySet
from kernel.protocol.host_sessions import AppOpen, AppStartEmpty, ModeRequest, SessionsContinue, SessionsList, SessionsShow
from kernel.protocol.host_upkeep import AuditTail, Explain, InboxDrop, InboxParked, InboxRetry
from kernel.protocol.strict import Invalid, json_type, parse_host
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.framing import ProtocolViolation
from lineup_sdk.protocol.limits import MAX_INTEGER
from lineup_sdk.protocol.messages import JsonObject, Message

MAX_MESSAGE_BYTES = 256 * 1024

ASKS: Mapping[str, type[Message]] = {
    kind.TYPE: kind
    for kind in (
        host.AppClose, host.AppDisable, host.AppEnable, AppOpen, AppStartEmpty, host.AppsList, AuditTail, host.CallCancel,
        host.CallInvoke, host.CallsList, host.CallsShow, ConsentAnswer, ConsentsList, DraftSave, Explain, host.FocusRaise, InboxDrop,
        InboxParked, InboxRetry, host.InstancesList, InteractionAnswer, InteractionMove, InteractionsList, host.InventoryShow,
        host.KernelStatus, host.LogsRead, host.MessageSend, host.MessagesList, ModeRequest, PermissionsList, PermissionsReset,
        PermissionsRevoke, PolicySet, SessionsContinue, SessionsList, SessionsShow,
    )
}  # fmt: skip


class AskRefused(Exception):
    """What came is not taken. `id` is the page's own number, when there was one to be read."""

    def __init__(self, detail: JsonObject, ask_id: int | None = None) -> None:
        super().__init__(detail.get("expected"))
        self.code = Code.PROTOCOL_VIOLATION
        self.detail = detail
        self.id = ask_id


_Check = Callable[[Any], bool]


def _is(kind: type) -> _Check:
    return lambda value: type(value) is kind


def _is_text(longest: int, shortest: int = 1) -> _Check:
    return lambda value: type(value) is str and shortest <= len(value) <= longest


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_INTEGER


def _is_language(value: Any) -> bool:
    return value in ("en", "zh")


@dataclass(frozen=True, slots=True)
class _Field:
    check: _Check
    expected: str
    is_required: bool = True


_ID = _Field(_is_count, "integer")
_NAME = _Field(_is_text(128), "string of 1 to 128 code points")
_OPS: Mapping[str, Mapping[str, _Field]] = {
    "artifact": {"id": _ID, "artifact_id": _NAME, "save_as": _Field(_is_text(128), "string of 1 to 128 code points", is_required=False)},
    "auth": {
        "token": _Field(_is_text(256), "string"),
        "lang": _Field(_is_language, "en or zh", is_required=False),
        "tab": _Field(_is_text(64), "string of 1 to 64 code points", is_required=False),
    },
    "line": {"text": _Field(_is_text(MAX_LINE, 0), f"string of at most {MAX_LINE} code points")},
    "provided": {"request_id": _NAME, "ok": _Field(_is(bool), "boolean"), "code": _Field(_is_text(128), "string", is_required=False)},
    "retry": {},
    "surface.event": {"id": _ID, "mount": _NAME, "name": _NAME, "body": _Field(_is(dict), "object")},
    "surface.mount": {"id": _ID, "surface_id": _NAME},
    "surface.patch": {"id": _ID, "mount": _NAME, "base_version": _ID, "patch": _Field(_is(dict), "object")},
    "surface.unmount": {"id": _ID, "mount": _NAME},
}


_LAST_ID = re.compile(r',"id":([0-9]{1,15})\}\Z')


@dataclass(frozen=True, slots=True)
class Ask:
    """A request for the kernel, under the page's number."""

    id: int
    message: Message


@dataclass(frozen=True, slots=True)
class Op:
    """Another operation, its fields checked by the table."""

    name: str
    fields: JsonObject


def read_message(untrusted_text: str) -> Ask | Op:
    """Turn what a page sent into what it means. Raises: AskRefused."""
    try:
        untrusted = read_json(untrusted_text)
    except NotJson as error:
        raise AskRefused({"pointer": "", "expected": "JSON"}) from error
    except JsonRefused as error:
        ask_id = id_at_the_end(untrusted_text)
        raise AskRefused({"pointer": "", "expected": "JSON the wire admits", "reason": error.reason}, ask_id) from error
    if type(untrusted) is not dict:
        raise AskRefused({"pointer": "", "expected": "object", "got_type": json_type(untrusted)})
    ask_id = untrusted["id"] if _is_count(untrusted.get("id")) else None
    name = untrusted.pop("op", None)
    if name == "ask":
        return _ask(untrusted, ask_id)
    if type(name) is not str or name not in _OPS:
        raise AskRefused({"pointer": "/op", "expected": "a known operation"}, ask_id)
    _require_fields(untrusted, _OPS[name], ask_id)
    return Op(name, untrusted)


def id_at_the_end(untrusted_text: str) -> int | None:
    """Return the number of one of the page's own messages, of which it is the last member, when the rest is not looked at."""
    found = _LAST_ID.search(untrusted_text)
    return int(found[1]) if found else None


def _ask(untrusted: JsonObject, ask_id: int | None) -> Ask:
    if ask_id is None:
        raise AskRefused({"pointer": "/id", "expected": "integer"})
    name = untrusted.get("type")
    if type(name) is not str or name not in ASKS:
        raise AskRefused({"pointer": "/type", "expected": "a request a page may make"}, ask_id)
    try:
        message, _ = parse_host({**untrusted, "id": 1})  # the link gives it a number of its own
    except Invalid as error:
        raise AskRefused(error.refusal.as_json(), ask_id) from None
    except ProtocolViolation as error:
        raise AskRefused({"pointer": "", "expected": "a request", "reason": error.reason}, ask_id) from error
    return Ask(ask_id, message)


def _require_fields(untrusted: JsonObject, expected: Mapping[str, _Field], ask_id: int | None) -> None:
    if not untrusted.keys() <= expected.keys():
        raise AskRefused({"pointer": "", "expected": "no such property"}, ask_id)
    for name, field in expected.items():
        if name not in untrusted:
            if field.is_required:
                raise AskRefused({"pointer": f"/{name}", "expected": "property required", "got_type": "absent"}, ask_id)
        elif not field.check(untrusted[name]):
            raise AskRefused({"pointer": f"/{name}", "expected": field.expected, "got_type": json_type(untrusted[name])}, ask_id)
