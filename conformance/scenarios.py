"""The form of `conformance.json` (plays.py tells what it means), and that it speaks of what the Manifest has.

Use: `require_scenarios(app)` before anything of it is read.
Rules:
1. What no kernel would deliver is the file's fault and never the worker's: a tool or topic the Manifest does not have, an input its schema
   does not admit. It is refused with the place where it stands, and nothing is judged.
2. A Manifest that does not fit its own schema is not asked: that is a case (4.1).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator

from conformance.targets import App, TargetInvalid, misfits
from lineup_sdk.protocol.messages import JsonObject

ROLES = ("answers", "asks_host", "asks_lifecycle", "asks_person", "fails", "puts", "reports", "stays_open")

_TEXT = {"type": "string"}
_OBJECT = {"type": "object"}


def _record(*required: str, **members: Any) -> JsonObject:
    return {"type": "object", "additionalProperties": False, "required": list(required), "properties": members}


def _list_of(*forms: JsonObject) -> JsonObject:
    return {"type": "array", "items": {"anyOf": list(forms)}}


_CALL = _record("tool", "input", tool=_TEXT, input=_OBJECT)
_MESSAGE = _record("topic", "body", topic=_TEXT, body=_OBJECT, saves={"type": "boolean"})
_EVENT = _record("event", "body", event=_TEXT, body=_OBJECT)
_STEPS = _list_of(_CALL, _MESSAGE, _EVENT)
_PLAY = _record("tool", "input", tool=_TEXT, input=_OBJECT, before=_STEPS, result=_OBJECT)
_FORM = _record(
    **dict.fromkeys(ROLES, _PLAY),
    ends_open=_STEPS,
    events=_list_of(_record("name", "body", name=_TEXT, body=_OBJECT)),
    inputs={"type": "object", "additionalProperties": _OBJECT},
    left_out={"type": "object", "additionalProperties": _TEXT},
    messages=_STEPS,
    remembers=_record("first", "then", first=_PLAY, then=_PLAY),
)


def require_scenarios(app: App) -> None:
    """Raises: TargetInvalid with the place of the first thing that is wrong."""
    said = app.scenarios
    if unknown := said.keys() - _FORM["properties"].keys():
        raise TargetInvalid(f"conformance.json: unknown keys {sorted(unknown)}")
    if places := sorted(_pointer(error.path) for error in Draft202012Validator(_FORM).iter_errors(said)):
        raise TargetInvalid(f"conformance.json: not in its form at {places[0]}")
    if said and not misfits(app.manifest):
        for wrong in _wrong_names(app):
            raise TargetInvalid(f"conformance.json: {wrong}")


def _pointer(path: Any) -> str:
    return "/" + "/".join(map(str, path))


def _wrong_names(app: App) -> Iterator[str]:
    schemas = {tool["id"]: tool["input_schema"] for tool in app.tools}
    for place, tool_id, tool_input in _calls(app.scenarios):
        if tool_id not in schemas:
            yield f"{place}: the Manifest has no tool {tool_id}"
        elif tool_input is not None and (at := _misfit(schemas[tool_id], tool_input)) is not None:
            yield f"{place}: the input schema of {tool_id} does not admit it at {at}"
    for place, step in _steps(app.scenarios, ""):
        if "topic" in step and step["topic"] not in app.topics:
            yield f"{place}: the Manifest does not subscribe to {step['topic']}"


def _misfit(schema: JsonObject, value: Any) -> str | None:
    return min((_pointer(error.path) for error in Draft202012Validator(schema).iter_errors(value)), default=None)


def _calls(said: JsonObject) -> Iterator[tuple[str, str, JsonObject | None]]:
    yield from ((f"/left_out/{tool_id}", tool_id, None) for tool_id in said.get("left_out", ()))
    yield from ((f"/inputs/{tool_id}", tool_id, value) for tool_id, value in said.get("inputs", {}).items())
    yield from ((place, step["tool"], step["input"]) for place, step in _steps(said, "") if "tool" in step)


def _steps(said: Any, place: str) -> Iterator[tuple[str, JsonObject]]:
    """Every call, message and act of the file, wherever it stands, with its place."""
    if isinstance(said, list):
        for number, part in enumerate(said):
            yield from _steps(part, f"{place}/{number}")
    elif isinstance(said, dict):
        if "tool" in said or "topic" in said:
            yield place, said
        for name, part in said.items():
            if name not in {"body", "input", "inputs", "left_out", "result"}:
                yield from _steps(part, f"{place}/{name}")
