"""The kernel's own Manifests, constant text: `runtime`, tools the kernel answers itself (SPEC 6.9); `interaction`, what it asks the
person for an Agent (SPEC 7.2). None has a worker."""

from __future__ import annotations

from typing import Final

from kernel.core.manifest import Manifest, parse_manifest
from lineup_sdk.protocol.messages import JsonObject

RUNTIME: Final[Manifest] = parse_manifest(
    {
        "app_scope": "runtime",
        "version": "0.1.0",
        "kind": "runtime",
        "title": "Runtime",
        "description": "The kernel itself.",
        "tools": [
            {
                "id": "runtime.status",
                "version": 1,
                "title": "Runtime status",
                "description": "Say which kernel runs and how many apps, instances and open calls it has.",
                "handling": "direct",
                "target": {"app_scope": "runtime", "requires_foreground": False, "restore_previous_focus": False},
                "input_schema": {"type": "object", "properties": {}, "additionalProperties": False},
                "output_schema": {
                    "type": "object",
                    "properties": {
                        "kernel_version": {"type": "string", "description": "Version of the running kernel."},
                        "epoch": {"type": "string", "description": "Prefix of every id this kernel makes."},
                        "apps": {"type": "integer", "minimum": 0, "description": "Apps that are enabled."},
                        "instances": {"type": "integer", "minimum": 0, "description": "Instances that have not ended."},
                        "open_calls": {"type": "integer", "minimum": 0, "description": "Calls without an outcome yet."},
                    },
                    "required": ["kernel_version", "epoch", "apps", "instances", "open_calls"],
                    "additionalProperties": False,
                },
                "hints": {"read_only": True, "idempotent": True},
            }
        ],
        "subscriptions": [],
        "requested_capabilities": [],
        "host": {"min_version": "0.1.0", "surface_required": False},
    },
    builtin=True,
)

# --------------------------------------------------------------------------------- interaction

MAX_ACTIONS: Final = 32
MAX_FIELDS: Final = 16
MAX_FIELD_LENGTH: Final = 4_000  # code points of one answer

_ID: Final = {"type": "string", "minLength": 1, "maxLength": 64}
_LABEL: Final = {"type": "string", "minLength": 1, "maxLength": 200}
_TEXT: Final = {"type": "string", "minLength": 1, "maxLength": 4_000, "description": "Plain text or Markdown."}
_LENGTH: Final = {"type": "integer", "minimum": 0, "maximum": MAX_FIELD_LENGTH, "description": "In code points; for text and textarea."}
_BOUND: Final = {"type": "number", "description": "For number."}
_PRESENTATION: Final = {
    "type": "string",
    "enum": ["default", "inline", "modal"],
    "description": "Where it would best be shown; a wish.",
}
_DECLINED: Final = {"type": "boolean", "description": "True: the person did not want to answer."}


def _closed(properties: JsonObject, required: list[str], description: str | None = None) -> JsonObject:
    said = {} if description is None else {"description": description}
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False, **said}


def _list(items: JsonObject, max_items: int, description: str) -> JsonObject:
    return {"type": "array", "items": items, "maxItems": max_items, "description": description}


_ACTION: Final = _closed({"id": _ID, "label": _LABEL, "description": {"type": "string", "maxLength": 1_000}}, ["id", "label"])
_FIELD: Final = _closed(
    {
        "id": _ID,
        "label": _LABEL,
        "type": {"type": "string", "enum": ["text", "textarea", "number"]},
        "required": {"type": "boolean"},
        "placeholder": {"type": "string", "maxLength": 200},
        "min_length": _LENGTH,
        "max_length": _LENGTH,
        "minimum": _BOUND,
        "maximum": _BOUND,
    },
    ["id", "label", "type"],
)
_VALUE: Final = _closed({"id": _ID, "text": {"type": "string", "maxLength": MAX_FIELD_LENGTH}, "number": {"type": "number"}}, ["id"])


def _tool(verb: str, title: str, description: str, request: JsonObject, required: list[str], answer: JsonObject | None) -> JsonObject:
    outcome = {"type": "string", "enum": ["accepted" if answer is None else "answered"]}
    said = {} if answer is None else {"answer": _closed(answer, [])}
    return {
        "id": f"interaction.{verb}",
        "version": 1,
        "title": title,
        "description": description,
        "handling": "interactive",
        "target": {"app_scope": "interaction", "requires_foreground": False, "restore_previous_focus": False},
        "input_schema": _closed({"title": _LABEL, **request, "presentation": _PRESENTATION}, ["title", *required]),
        "output_schema": _closed({"outcome": outcome, **said}, ["outcome"]),
        "hints": {"read_only": True, "idempotent": True},
    }


INTERACTION: Final[Manifest] = parse_manifest(
    {
        "app_scope": "interaction",
        "version": "0.1.0",
        "kind": "runtime",
        "title": "Questions to the person",
        "description": "Notices and questions the Agent shows to the person. They wait until they are answered, dismissed or expired.",
        "tools": [
            _tool(
                "notice",
                "Show a notice",
                "Show the person something to know. Ends at once as accepted: it is shown, which does not mean that it was read.",
                {"message": _TEXT, "acknowledge_label": _LABEL},
                ["message"],
                None,
            ),
            _tool(
                "choice",
                "Let the person choose",
                "Offer actions. mode single-choice and button: one is chosen; multi-choice: one or more. The person may decline.",
                {
                    "prompt": _TEXT,
                    "mode": {"type": "string", "enum": ["single-choice", "multi-choice", "button"]},
                    "actions": _list(_ACTION, MAX_ACTIONS, "At least one; ids are distinct."),
                },
                ["prompt", "mode", "actions"],
                {"declined": _DECLINED, "action_ids": _list(_ID, MAX_ACTIONS, "What was chosen, in the order it was offered.")},
            ),
            _tool(
                "confirm",
                "Ask for a yes or no",
                "Ask the person to approve one thing that the prompt explains.",
                {"prompt": _TEXT, "approve_label": _LABEL, "cancel_label": _LABEL},
                ["prompt"],
                {"approved": {"type": "boolean"}},
            ),
            _tool(
                "input",
                "Ask the person to fill in",
                "Ask for a few values, each a text, a longer text or a number. Never for a secret: answers are chat history. May decline.",
                {
                    "prompt": _TEXT,
                    "fields": _list(_FIELD, MAX_FIELDS, "At least one; ids are distinct."),
                    "submit_label": _LABEL,
                    "cancel_label": _LABEL,
                },
                ["prompt", "fields"],
                {"declined": _DECLINED, "fields": _list(_VALUE, MAX_FIELDS, "text or number of each field that was filled in.")},
            ),
        ],
        "subscriptions": [],
        "requested_capabilities": [],
        "host": {"min_version": "0.1.0", "surface_required": False},
    },
    builtin=True,
)

BUILTIN: Final[dict[str, Manifest]] = {manifest.app_scope: manifest for manifest in (INTERACTION, RUNTIME)}
