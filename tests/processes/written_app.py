"""App folders for tests: a Manifest with tools that take and give one text, around one source file.

Rules:
1. A folder is written where the test says, with true sizes and digests; nothing of it is kept in the tree.
2. Every tool has the same schemas: {"json": text} in and out, so that a test can say anything through it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

RAW_SOURCE = Path(__file__).resolve().parent / "apps" / "raw.py"
RAW_VERBS = ("burst", "deaf", "heard", "hold", "seal", "send", "write")
ASKER = Path(__file__).resolve().parents[1] / "fixtures" / "apps" / "asker"
FIXTURE = Path(__file__).resolve().parents[1] / "fixtures" / "apps" / "fixture"

_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["json"],
    "properties": {"json": {"type": "string", "maxLength": 40_000}},
}


def write_raw_app(parent: Path, scope: str) -> Path:
    """Make the folder of a raw worker (apps/raw.py) under this scope; returns it."""
    return write_app(parent, scope, RAW_SOURCE.read_bytes(), RAW_VERBS)


def write_app(parent: Path, scope: str, source: bytes, verbs: Sequence[str], capabilities: Sequence[str] = ()) -> Path:
    """Make an app folder; returns it. capabilities: what its Manifest requests."""
    folder = parent / scope
    folder.mkdir()
    (folder / "app.py").write_bytes(source)
    (folder / "manifest.json").write_text(json.dumps(_manifest(scope, source, verbs) | {"requested_capabilities": list(capabilities)}))
    return folder


def _manifest(scope: str, source: bytes, verbs: Sequence[str]) -> dict[str, Any]:
    file = {"name": "app.py", "size": len(source), "sha256": hashlib.sha256(source).hexdigest()}
    return {
        "app_scope": scope,
        "version": "1.0.0",
        "kind": "bundled",
        "title": f"Test app {scope}",
        "description": "For tests.",
        "tools": [_tool(scope, verb) for verb in verbs],
        "subscriptions": [{"topic": f"{scope}.go"}],
        "requested_capabilities": [],
        "host": {"min_version": "0.1.0", "surface_required": False},
        "entry": {"main": "app.py", "files": [file]},
    }


def _tool(scope: str, verb: str) -> dict[str, Any]:
    return {
        "id": f"{scope}.{verb}",
        "version": 1,
        "title": verb,
        "description": "For tests.",
        "handling": "direct",
        "target": {"app_scope": scope, "requires_foreground": False, "restore_previous_focus": False},
        "input_schema": _SCHEMA,
        "output_schema": _SCHEMA,
        "timeout_ms": 3_600_000,
        "hints": {"read_only": False, "destructive": False, "idempotent": True},
    }
