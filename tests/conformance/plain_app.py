"""The app around the good worker and its villains: Manifest, files and scenarios, in memory."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from conformance.targets import App

VILLAINS = Path(__file__).parent / "villains"


def _schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties, "required": list(properties)[:1]}


_TEXT = _schema(text={"type": "string", "maxLength": 40_000})
_KEY = _schema(key={"type": "string", "maxLength": 64})
_ECHO = _schema(
    text={"type": "string", "maxLength": 20_000},
    count={"type": "integer", "minimum": 0, "maximum": 9},
    mood={"type": "string", "enum": ["calm", "wild"]},
)
_INPUTS = {"echo": _ECHO, "wait": _KEY, "remember": _TEXT}
_ROLES = {
    "asks_host": "ask_host",
    "asks_lifecycle": "ask_life",
    "asks_person": "ask_person",
    "fails": "fail",
    "puts": "keep",
    "reports": "report",
}
_VERBS = ("echo", "wait", "report", "fail", "remember", "keep", "ask_host", "ask_person", "ask_life")


def _tool(scope: str, verb: str) -> dict[str, Any]:
    return {
        "id": f"{scope}.{verb}",
        "version": 1,
        "title": verb,
        "description": "For tests.",
        "handling": "direct",
        "target": {"app_scope": scope, "requires_foreground": False, "restore_previous_focus": False},
        "input_schema": _INPUTS.get(verb, {"type": "object", "additionalProperties": False}),
        "output_schema": _TEXT,
        "hints": {"read_only": False, "destructive": False, "idempotent": True},
    }


def _scenarios(scope: str) -> dict[str, Any]:
    return {
        "answers": {"tool": f"{scope}.echo", "input": {"text": "hello"}, "result": {"text": "hello"}},
        "stays_open": {"tool": f"{scope}.wait", "input": {"key": "door"}},
        **{role: {"tool": f"{scope}.{verb}", "input": {}} for role, verb in _ROLES.items()},
        "ends_open": [{"topic": "plain.go", "body": {"key": "door"}}],
        "remembers": {
            "first": {"tool": f"{scope}.remember", "input": {"text": "blue"}},
            "then": {"tool": f"{scope}.remember", "input": {"text": "red"}, "result": {"text": "blue"}},
        },
        "messages": [
            {"topic": "plain.go", "body": {"key": "other"}},
            {"topic": "plain.note", "body": {"text": "noted"}, "saves": True},
        ],
        "events": [{"name": "poke", "body": {}}],
    }


def plain_app(code: str, /, *, is_system: bool = False, **changes: Any) -> App:
    """The app whose entry file says this. changes: members of the Manifest that differ."""
    sources = {path.name: path.read_bytes() for path in sorted(VILLAINS.glob("*.py"))}
    files = {"app.py": code.encode(), **sources}
    scope = "chat" if is_system else "plain"
    manifest = {
        "app_scope": scope,
        "version": "1.0.0",
        "kind": "system" if is_system else "bundled",
        "title": "Plain",
        "description": "For tests.",
        "tools": [] if is_system else [_tool(scope, verb) for verb in _VERBS],
        "subscriptions": [{"topic": "plain.go"}, {"topic": "plain.note"}],
        "requested_capabilities": ["notification.show", "standard-interaction"],
        "host": {"min_version": "0.1.0", "surface_required": True},
        "entry": {
            "main": "app.py",
            "files": [{"name": n, "size": len(d), "sha256": hashlib.sha256(d).hexdigest()} for n, d in files.items()],
        },
    }
    scenarios = {"events": [{"name": "poke", "body": {}}]} if is_system else _scenarios(scope)
    return App(manifest={**manifest, **changes}, files=files, scenarios=scenarios)
