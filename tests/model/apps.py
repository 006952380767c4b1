"""The Apps of the model: those of the core's tests, the system App, and one that asks for capabilities."""

from __future__ import annotations

import json
from pathlib import Path

from kernel.core.manifest import Manifest, parse_manifest
from tests.core.dict_view import MANIFESTS, manifest_of

_CHAT = json.loads((Path(__file__).parents[2] / "manifests" / "chat.json").read_text("utf-8"))

APPS: dict[str, Manifest] = MANIFESTS | {
    "chat": parse_manifest(_CHAT),
    "notes": manifest_of("notes", requested_capabilities=["clipboard.write", "notification.show"]),
}
