"""What a host can be asked to do for an App, and what our policy says about it (SPEC 10). Tables; pure.

Rules:
1. A name that is not in CATALOG is not supported, whatever a Manifest asks for. KNOWN_UNSUPPORTED are those we mean to have one day.
2. A row says all that is the kernel's to say: the form of the arguments, what kinds of App may ask, in which states, and which answers
   the person is offered. Nothing of it comes from an App.
3. contract_version goes up when a row lets an App do more: consents given before then count no longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kernel.core.capability_records import ConsentScope
from kernel.core.machines import InstanceState
from kernel.core.manifest import Kind
from kernel.core.schema import Schema, compile_schema
from lineup_sdk.protocol.messages import JsonObject

MAX_CLIPBOARD_LENGTH: Final = 8_192  # code points: as base64 it passes through every terminal
MAX_FILE_NAME_LENGTH: Final = 100
MAX_NOTICE_TITLE_LENGTH: Final = 80
MAX_NOTICE_BODY_LENGTH: Final = 400

_EVERY_KIND: Final = frozenset({Kind.BUNDLED, Kind.INSTALLED, Kind.SYSTEM})
_IN_FRONT: Final = frozenset({InstanceState.FOREGROUND})
_SHOWN: Final = frozenset({InstanceState.BACKGROUND, InstanceState.FOREGROUND})
_EVERY_SCOPE: Final = (ConsentScope.ONCE, ConsentScope.WHILE_OPEN, ConsentScope.ALWAYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """One row of the catalog. title is what the person reads."""

    name: str
    title: str
    arguments: Schema
    kinds: frozenset[Kind] = _EVERY_KIND
    states: frozenset[InstanceState] = _IN_FRONT
    scopes: tuple[ConsentScope, ...] = _EVERY_SCOPE
    contract_version: int = 1


def _arguments(required: tuple[str, ...], **properties: JsonObject) -> Schema:
    return compile_schema({"type": "object", "properties": properties, "required": list(required), "additionalProperties": False})


def _text(longest: int) -> JsonObject:
    return {"type": "string", "minLength": 1, "maxLength": longest}


CATALOG: Final[Mapping[str, Capability]] = {
    row.name: row
    for row in (
        Capability(
            name="artifact.save",
            title="Save a file",
            arguments=_arguments(("artifact_id", "name"), artifact_id=_text(128), name=_text(MAX_FILE_NAME_LENGTH)),
        ),
        Capability(
            name="clipboard.write",
            title="Replace what is on the clipboard",
            arguments=_arguments(("text",), text=_text(MAX_CLIPBOARD_LENGTH)),
        ),
        Capability(
            name="notification.show",
            title="Show a notification",
            arguments=_arguments(("title",), title=_text(MAX_NOTICE_TITLE_LENGTH), body=_text(MAX_NOTICE_BODY_LENGTH)),
            states=_SHOWN,  # it is for those who look elsewhere
        ),
    )
}

KNOWN_UNSUPPORTED: Final = frozenset({"camera", "clipboard.read", "file.pick", "microphone"})
