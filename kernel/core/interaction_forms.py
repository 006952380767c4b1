"""The four standard interactions: what may be asked, and what counts as an answer (SPEC 7.3). Pure data and checks.

Rules:
1. The schema of a tool says what the schema subset can say; `check_request` says the rest (unique ids, a range the right way round).
2. An answer is judged here and nowhere else, against the request it answers. A refusal names the place, never the value.
3. Lengths are code points. A number is a JSON number; text that looks like one is not.
4. An answer has one form, so that it fits a stated output schema: {declined} | {action_ids} | {approved} | {fields: [{id, text | number}]}.
   Chosen ids stand in the order they were offered, fields in the order they were asked, whatever the order of the clicks was.
5. The old tool.call forms (SPEC 11.1) are today's tools under their old names; what they hold is judged as strictly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kernel.core.builtin import INTERACTION, MAX_FIELD_LENGTH
from kernel.core.decision import Detail, Rejected
from kernel.core.records import InteractionKind, digest_of_parts, encode_body, replace
from kernel.core.schema import Schema
from kernel.protocol.agent import ToolInvoke
from lineup_sdk.protocol import limits as wire
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject

# A request for a secret is refused: there is no secret input yet, and an ordinary answer is ordinary chat history (SPEC 14, THREATS T-A4).
_SECRET_WORDS = frozenset({"password", "passwort", "passphrase", "密码", "口令", "pin", "cvv", "secret", "token", "private_key"})


# The old forms: tool ids without a scope, asked without a revision (SPEC 11.1).
_OLD_FORMS = frozenset({"choice", "confirm", "input"})
_OLD_SCOPE = "chat"  # where they were addressed

SCHEMAS: Mapping[InteractionKind, Schema] = {InteractionKind(tool.id.partition(".")[2]): tool.input_schema for tool in INTERACTION.tools}


def kind_of_tool(tool_id: str) -> InteractionKind:
    """The kind that an interactive tool asks for."""
    return InteractionKind(tool_id.partition(".")[2])


def of_today(command: ToolInvoke, revision: str) -> ToolInvoke:
    """An old form as the call it means, under the revision in force; every other call as it is."""
    if command.inventory_revision is not None or command.tool_id not in _OLD_FORMS:
        return command
    asked = dict(command.input)
    if asked.get("kind") == command.tool_id:  # old requests name their kind a second time
        del asked["kind"]
    scope = None if command.app_scope == _OLD_SCOPE else command.app_scope
    return replace(command, tool_id=f"interaction.{command.tool_id}", inventory_revision=revision, input=asked, app_scope=scope)


def shown_digest(kind: InteractionKind, request_cbor: bytes) -> bytes:
    """What was shown, as an answer has to name it."""
    return digest_of_parts("interaction", kind.value, request_cbor)


def check_request(kind: InteractionKind, request: JsonObject, at: str) -> None:
    """Judge what the schema cannot say. at: a JSON pointer to the request. Raises: Rejected(tool_input_invalid)."""
    _REQUEST_CHECKS[kind](request, at)


def check_answer(kind: InteractionKind, request: JsonObject, untrusted_answer: JsonObject) -> JsonObject:
    """Judge an answer and return it in its one form. Raises: Rejected(answer_invalid)."""
    answer = _formed(kind, request, untrusted_answer)
    size = len(encode_body(answer))
    if size > wire.MAX_BODY_BYTES:  # it has to reach a worker, or an Agent, in one frame
        raise _invalid("", f"at most {wire.MAX_BODY_BYTES} bytes as CBOR", size=size)
    return answer


def _formed(kind: InteractionKind, request: JsonObject, answer: JsonObject) -> JsonObject:
    if set(answer) == {"declined"}:
        if answer["declined"] is not True or kind not in (InteractionKind.CHOICE, InteractionKind.INPUT):
            raise _invalid("/declined", "true, for a choice or an input")
        return {"declined": True}
    return _ANSWER_CHECKS[kind](request, answer)


# --------------------------------------------------------------------------------- requests


def _check_nothing(request: JsonObject, at: str) -> None:
    """The schema says it all."""


def _check_choice(request: JsonObject, at: str) -> None:
    if not request["actions"]:
        raise _refused(f"{at}/actions", "at least one action")
    _require_distinct([action["id"] for action in request["actions"]], f"{at}/actions")


def _check_input(request: JsonObject, at: str) -> None:
    fields = request["fields"]
    if not fields:
        raise _refused(f"{at}/fields", "at least one field")
    _require_distinct([field["id"] for field in fields], f"{at}/fields")
    for index, field in enumerate(fields):
        _check_field(field, f"{at}/fields/{index}")


def _check_field(field: JsonObject, at: str) -> None:
    words = {field["id"].casefold(), *(word.strip(".,:;*()") for word in field["label"].casefold().split())}
    if words & _SECRET_WORDS:
        raise _refused(at, "a field that asks for no secret: an answer is ordinary chat history")
    numeric, textual = {"minimum", "maximum"} & set(field), {"min_length", "max_length"} & set(field)
    if textual if field["type"] == "number" else numeric:
        raise _refused(at, "bounds that fit the field's type")
    for low, high in (("min_length", "max_length"), ("minimum", "maximum")):
        if low in field and high in field and field[low] > field[high]:
            raise _refused(f"{at}/{low}", f"at most {high}")


def _require_distinct(idents: list[str], at: str) -> None:
    if len(set(idents)) != len(idents):
        raise _refused(at, "distinct ids")


_REQUEST_CHECKS: Mapping[InteractionKind, Callable[[JsonObject, str], None]] = {
    InteractionKind.CHOICE: _check_choice,
    InteractionKind.CONFIRM: _check_nothing,
    InteractionKind.INPUT: _check_input,
    InteractionKind.NOTICE: _check_nothing,
}

# --------------------------------------------------------------------------------- answers


def _answer_notice(request: JsonObject, answer: JsonObject) -> JsonObject:
    raise _invalid("", "no answer: a notice asks for none")


def _answer_choice(request: JsonObject, answer: JsonObject) -> JsonObject:
    chosen = _only(answer, "action_ids")
    if type(chosen) is not list or not all(type(ident) is str for ident in chosen):
        raise _invalid("/action_ids", "array of action ids")
    offered = [action["id"] for action in request["actions"]]
    if len(set(chosen)) != len(chosen) or not set(chosen) <= set(offered):
        raise _invalid("/action_ids", "distinct ids that were offered")
    is_multiple = request["mode"] == "multi-choice"
    if not chosen or (len(chosen) > 1 and not is_multiple):
        raise _invalid("/action_ids", "one or more ids" if is_multiple else "exactly one id")
    return {"action_ids": sorted(chosen, key=offered.index)}


def _answer_confirm(request: JsonObject, answer: JsonObject) -> JsonObject:
    approved = _only(answer, "approved")
    if type(approved) is not bool:
        raise _invalid("/approved", "boolean")
    return {"approved": approved}


def _answer_input(request: JsonObject, answer: JsonObject) -> JsonObject:
    given = _only(answer, "fields")
    if type(given) is not dict:
        raise _invalid("/fields", "object: field id to value")
    known = {field["id"]: field for field in request["fields"]}
    if not given.keys() <= known.keys():
        raise _invalid("/fields", "ids of the asked fields only")
    values = []
    for ident, field in known.items():
        if ident in given:
            values.append({"id": ident, **_checked_value(field, given[ident], f"/fields/{ident}")})
        elif field.get("required", False):
            raise _invalid(f"/fields/{ident}", "a value: the field is required")
    return {"fields": values}


def _checked_value(field: JsonObject, value: Any, at: str) -> JsonObject:
    if field["type"] == "number":
        if type(value) not in (int, float):
            raise _invalid(at, "number")
        if not field.get("minimum", value) <= value <= field.get("maximum", value):
            raise _invalid(at, "a number within the stated range")
        return {"number": value}
    if type(value) is not str:
        raise _invalid(at, "string")
    low = field.get("min_length", 1 if field.get("required", False) else 0)
    if not low <= len(value) <= field.get("max_length", MAX_FIELD_LENGTH):
        raise _invalid(at, f"{low} to {field.get('max_length', MAX_FIELD_LENGTH)} code points", size=len(value))
    if field["type"] == "text" and ("\n" in value or "\r" in value):
        raise _invalid(at, "one line")
    return {"text": value}


def _only(answer: JsonObject, name: str) -> Any:
    if set(answer) != {name}:
        raise _invalid("", f"an object with {name} only")
    return answer[name]


_ANSWER_CHECKS: Mapping[InteractionKind, Callable[[JsonObject, JsonObject], JsonObject]] = {
    InteractionKind.CHOICE: _answer_choice,
    InteractionKind.CONFIRM: _answer_confirm,
    InteractionKind.INPUT: _answer_input,
    InteractionKind.NOTICE: _answer_notice,
}


# --------------------------------------------------------------------------------- in words


def words(kind: InteractionKind, request: JsonObject, answer: JsonObject) -> str:
    """An answer as one line of chat history, in the words that were shown."""
    if answer.get("declined"):
        return str(request.get("cancel_label", "Declined"))
    match kind:
        case InteractionKind.CHOICE:
            return ", ".join(action["label"] for action in request["actions"] if action["id"] in answer["action_ids"])
        case InteractionKind.CONFIRM:
            label = "approve_label" if answer["approved"] else "cancel_label"
            return str(request.get(label, "Yes" if answer["approved"] else "No"))
        case _:
            labels = {field["id"]: field["label"] for field in request["fields"]}
            return "; ".join(f"{labels[field['id']]}: {field.get('text', field.get('number'))}" for field in answer["fields"])


def _refused(pointer: str, expected: str) -> Rejected:
    return Rejected(Code.TOOL_INPUT_INVALID, Detail(pointer=pointer, expected=expected))


def _invalid(pointer: str, expected: str, *, size: int | None = None) -> Rejected:
    return Rejected(Code.ANSWER_INVALID, Detail(pointer="/answer" + pointer, expected=expected, got_size=size))
