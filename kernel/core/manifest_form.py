"""The form of a Manifest as text: what keys there are and what each may hold (SPEC 4.1, 4.2). Pure; strict pydantic models.

Use: `ManifestForm.model_validate(untrusted)`, only from manifest.py, which translates what pydantic raises.
Rules:
1. Strict and closed: nothing is coerced, an unknown key is refused, and errors hide what came.
2. Only what one field can say by itself stands here; rules between fields stand in manifest.py, schemas in schema.py.
"""

from __future__ import annotations

import unicodedata
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

from lineup_sdk.protocol.messages import JsonObject

MAX_TIMEOUT_MS: Final = 24 * 60 * 60 * 1000  # the cap of SPEC 6.6
MAX_ENTRY_FILES: Final = 256
MAX_SURFACE_SCRIPTS: Final = 32


def _require_displayable(text: str) -> str:
    # Control characters steer terminals, bidirectional ones make a name read as another; a line break is ordinary.
    for character in text:
        is_control = unicodedata.category(character) == "Cc" and character != "\n"
        if is_control or "\u202a" <= character <= "\u202e" or "\u2066" <= character <= "\u2069":
            raise PydanticCustomError("displayable", "text without control characters")
    return text


def _require_one_line(text: str) -> str:
    if "\n" in text or not text.strip():
        raise PydanticCustomError("one_line", "one line of text")
    return _require_displayable(text)


_SEMVER = (
    r"^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(-(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*)?"
    r"(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$"
)
_AppScope = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,63}$")]
_CapabilityName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9.-]{0,63}$")]
_Description = Annotated[str, StringConstraints(min_length=1, max_length=2000), AfterValidator(_require_displayable)]
_FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$")]
_AnyFileName = Annotated[str, StringConstraints(pattern=r"^(surface/)?[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$")]
_SurfaceFileName = Annotated[str, StringConstraints(pattern=r"^surface/[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$")]
_Semver = Annotated[str, StringConstraints(pattern=_SEMVER, max_length=64)]
_Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
_Title = Annotated[str, StringConstraints(max_length=100), AfterValidator(_require_one_line)]
_ToolId = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,63}\.[a-z][a-z0-9_-]{0,63}$")]
_Topic = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$")]


class _Model(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", hide_input_in_errors=True)


class TargetForm(_Model):
    app_scope: _AppScope
    requires_foreground: bool
    restore_previous_focus: bool


class HintsForm(_Model):
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False


class ToolForm(_Model):
    id: _ToolId
    version: Annotated[int, Field(ge=1, le=1)]  # Literal[1] would admit true
    title: _Title
    description: _Description
    handling: Literal["direct", "interactive", "launch", "foreground", "operation"]
    target: TargetForm
    input_schema: JsonObject
    output_schema: JsonObject
    permissions: list[_CapabilityName] = Field(default_factory=list)
    timeout_ms: Annotated[int, Field(ge=1, le=MAX_TIMEOUT_MS)] | None = None
    hints: HintsForm = HintsForm()


class SubscriptionForm(_Model):
    topic: _Topic


class HostForm(_Model):
    min_version: _Semver
    surface_required: bool


class EntryFileForm(_Model):
    name: _AnyFileName
    size: Annotated[int, Field(ge=1)]
    sha256: _Sha256


class SurfaceForm(_Model):
    version: Annotated[int, Field(ge=1, le=1000)]
    scripts: Annotated[list[_SurfaceFileName], Field(min_length=1, max_length=MAX_SURFACE_SCRIPTS)]
    style: _SurfaceFileName | None = None


class EntryForm(_Model):
    main: _FileName
    files: Annotated[list[EntryFileForm], Field(min_length=1, max_length=MAX_ENTRY_FILES)]
    surface: SurfaceForm | None = None


class ManifestForm(_Model):
    app_scope: _AppScope
    version: _Semver
    kind: Literal["system", "bundled", "bundled-reference", "installed", "runtime"]
    title: _Title
    description: _Description
    tools: list[ToolForm]
    subscriptions: list[SubscriptionForm]
    requested_capabilities: list[_CapabilityName]
    host: HostForm
    entry: EntryForm | None = None
