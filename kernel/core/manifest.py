"""The Manifest and the ToolDescriptor, version 1 (SPEC 3, 4.1, 4.2): what an App declares, fixed at run time. Pure.

Use: `parse_manifest(untrusted)`: form first (manifest_form), then the rules that tie the parts together, then the records.
Rules:
1. Unknown keys, coercions and anything outside the forms below are ManifestInvalid, with the JSON pointer and never the value.
2. Scopes `runtime` and `interaction` are the kernel's own; only they have no entry, only `interaction` has interactive tools.
3. `chat` is the one system app and a system app is `chat`: nothing else gets its wider grants by calling itself so.
4. A tool's id begins with its own app_scope, which is also its target; ids are unique.
5. Permissions of a tool are among the requested capabilities; the host it needs is no newer than this one.
6. Entry files are plain names beside one another or in the one folder `surface`, unique whatever the case, each with size and SHA-256.
7. Files in `surface` are what `entry.surface` names: code for the isolated frame that shows the App, never for its process (SPEC 9.2).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import ClassVar, Final

from pydantic import ValidationError

from kernel.core.manifest_form import EntryForm, ManifestForm, ToolForm
from kernel.core.schema import Schema, SchemaInvalid, compile_schema, digest_of, pointer_to, pointer_to_refused
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.framing import ProtocolViolation, check_value
from lineup_sdk.protocol.messages import JsonObject

RESERVED_SCOPES: Final = frozenset({"interaction", "runtime"})
SYSTEM_SCOPE: Final = "chat"
HOST_VERSION: Final = "0.1.0"  # this runtime's own, as Manifests name the oldest they run on
SURFACE_EVENT_TOPIC: Final = "surface.event"
# Topics of messages that only the kernel writes: an App gets them unasked, and nobody else may send them.
RESERVED_TOPICS: Final = frozenset({"capability.result", "interaction.result", SURFACE_EVENT_TOPIC})
MAX_ENTRY_BYTES: Final = 8 * 1024 * 1024  # of all files together: they are held in memory, here and in each worker
SURFACE_FOLDER: Final = "surface/"
MAX_SURFACE_CODE_BYTES: Final = 1024 * 1024  # of script and style together: they travel to a host at once
_MAX_MANIFEST_DEPTH: Final = 64  # only bounds the walks; schemas have their own, smaller depth


class Kind(StrEnum):
    """Where an App comes from (SPEC 3). `runtime` is the kernel itself."""

    SYSTEM = "system"
    BUNDLED = "bundled"
    INSTALLED = "installed"
    RUNTIME = "runtime"


class Handling(StrEnum):
    """How a call of the tool is routed (SPEC 6.9)."""

    DIRECT = "direct"
    INTERACTIVE = "interactive"
    LAUNCH = "launch"
    FOREGROUND = "foreground"
    OPERATION = "operation"


class ManifestInvalid(Exception):
    """A Manifest is outside the fixed form. `role` says which one, in words; `pointer` is a JSON pointer into it."""

    code: ClassVar[Code] = Code.MANIFEST_INVALID

    def __init__(self, pointer: str, reason: str, role: str = "Manifest") -> None:
        super().__init__(f"{role}, at {pointer or '/'}: {reason}")
        self.pointer = pointer
        self.reason = reason
        self.role = role


@dataclass(frozen=True, slots=True)
class Hints:
    """What a tool says of its effect; all false when it says nothing."""

    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False


@dataclass(frozen=True)
class ToolDescriptor:
    """One declared tool. timeout_ms is machine time (SPEC 6.6); None = the default of its handling."""

    id: str
    version: int
    title: str
    description: str
    handling: Handling
    app_scope: str
    requires_foreground: bool
    restore_previous_focus: bool
    input_schema: Schema
    output_schema: Schema
    permissions: frozenset[str]
    timeout_ms: int | None
    hints: Hints

    @cached_property
    def content(self) -> JsonObject:
        """The descriptor as the Agent sees it, complete and in one form whatever was left out in the Manifest."""
        return {
            "id": self.id,
            "version": self.version,
            "title": self.title,
            "description": self.description,
            "handling": str(self.handling),
            "target": {
                "app_scope": self.app_scope,
                "requires_foreground": self.requires_foreground,
                "restore_previous_focus": self.restore_previous_focus,
            },
            "input_schema": self.input_schema.document,
            "output_schema": self.output_schema.document,
            "permissions": sorted(self.permissions),
            "hints": {
                "read_only": self.hints.read_only,
                "destructive": self.hints.destructive,
                "idempotent": self.hints.idempotent,
            },
            **({} if self.timeout_ms is None else {"timeout_ms": self.timeout_ms}),
        }

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the content; a call keeps the one it was accepted under."""
        return digest_of(self.content)


@dataclass(frozen=True, slots=True)
class EntryFile:
    """One file of an App: plain name, exact size in bytes, SHA-256 (hex)."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class SurfaceEntry:
    """The code of an App's isolated surface: the contract it is written for, its scripts in the order they run as one, and its style."""

    version: int
    scripts: tuple[str, ...]
    style: str | None


@dataclass(frozen=True, slots=True)
class Entry:
    """The code of an App; `main` is the name of the file that is run. surface is None for an App that is shown as text."""

    main: str
    files: tuple[EntryFile, ...]
    surface: SurfaceEntry | None = None

    @property
    def worker_files(self) -> tuple[EntryFile, ...]:
        """The files of the App's process."""
        return tuple(file for file in self.files if not file.name.startswith(SURFACE_FOLDER))


@dataclass(frozen=True)
class Manifest:
    """A checked Manifest. entry is None only for the kernel's own."""

    app_scope: str
    version: str
    kind: Kind
    title: str
    description: str
    tools: tuple[ToolDescriptor, ...]
    subscriptions: frozenset[str]
    requested_capabilities: frozenset[str]
    host_min_version: str
    surface_required: bool
    entry: Entry | None

    @cached_property
    def bundle_digest(self) -> str:
        """SHA-256 (hex) over the entry: its main, every file's name, size and digest in order of name, and its surface if it has one."""
        files = [] if self.entry is None else sorted((file.name, file.size, file.sha256) for file in self.entry.files)
        surface = self.entry.surface if self.entry else None
        shown = [] if surface is None else [[surface.version, list(surface.scripts), surface.style]]
        return digest_of([None if self.entry is None else self.entry.main, [list(file) for file in files], *shown])


def parse_manifest(untrusted: object, *, builtin: bool = False) -> Manifest:
    """Check a decoded Manifest and return it as a record. `builtin` admits the kernel's own scopes and kind.

    Raises: ManifestInvalid. Source: SPEC 4.1, 4.2.
    """
    form = _require_form(untrusted)
    for pointer, reason in _broken_rules(form, builtin):
        raise ManifestInvalid(pointer, reason)
    return Manifest(
        app_scope=form.app_scope,
        version=form.version,
        kind=_kind(form),
        title=form.title,
        description=form.description,
        tools=tuple(_descriptor(tool, pointer_to("/tools", index)) for index, tool in enumerate(form.tools)),
        subscriptions=frozenset(subscription.topic for subscription in form.subscriptions),
        requested_capabilities=frozenset(form.requested_capabilities),
        host_min_version=form.host.min_version,
        surface_required=form.host.surface_required,
        entry=_entry(form.entry),
    )


def _require_form(untrusted: object) -> ManifestForm:
    try:
        check_value(untrusted, max_depth=_MAX_MANIFEST_DEPTH, allow_bytes=False)
        return ManifestForm.model_validate(untrusted)
    except ProtocolViolation as violation:
        raise ManifestInvalid("", f"not JSON: {violation.reason}") from violation
    except ValidationError as error:
        raise _first_form_error(error) from None  # pydantic's own text may hold what came


_FORM_REASONS: Final = {"missing": "property required", "extra_forbidden": "no such property"}


def _first_form_error(error: ValidationError) -> ManifestInvalid:
    found = []
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        pointer = ""
        for step in detail["loc"]:
            pointer = pointer_to_refused(pointer, step) if isinstance(step, str) else pointer_to(pointer, step)
        found.append((pointer, _FORM_REASONS.get(detail["type"], detail["msg"])))
    return ManifestInvalid(*min(found))


# --- the rules that tie its parts together; each yields (pointer, reason)


def _broken_rules(form: ManifestForm, builtin: bool) -> Iterator[tuple[str, str]]:
    yield from _broken_identity_rules(form, builtin)
    yield from _duplicates("/tools", [tool.id for tool in form.tools], "/id")
    yield from _duplicates("/subscriptions", [subscription.topic for subscription in form.subscriptions], "/topic")
    for index, subscription in enumerate(form.subscriptions):
        if subscription.topic in RESERVED_TOPICS:
            yield f"/subscriptions/{index}/topic", "this topic is the kernel's own"
    yield from _duplicates("/requested_capabilities", form.requested_capabilities)
    if _precedence(form.host.min_version) > _precedence(HOST_VERSION):
        yield "/host/min_version", f"at most {HOST_VERSION}, this runtime's own: install a newer one, or an older version of the App"
    for index, tool in enumerate(form.tools):
        yield from _broken_tool_rules(form, tool, pointer_to("/tools", index))
    if form.entry is not None:
        yield from _broken_entry_rules(form.entry)


def _precedence(version: str) -> tuple[list[int], bool, list[tuple[bool, int, str]]]:
    """What orders versions as semver 2.0.0 does: numbers, then a release after its pre-releases; build metadata counts for nothing."""
    core, _, pre_release = version.partition("+")[0].partition("-")
    parts = pre_release.split(".") if pre_release else []
    return [int(number) for number in core.split(".")], not parts, [(not p.isdigit(), int(p) if p.isdigit() else 0, p) for p in parts]


def _broken_identity_rules(form: ManifestForm, builtin: bool) -> Iterator[tuple[str, str]]:
    if builtin != (form.app_scope in RESERVED_SCOPES):
        yield "/app_scope", "a reserved scope" if builtin else "this scope is reserved"
    if builtin != (form.kind == "runtime"):
        yield "/kind", "runtime is the kernel's own kind, and the only one of its own scopes"
    if (form.kind == "system") != (form.app_scope == SYSTEM_SCOPE):
        yield "/kind", f"system is the kind of {SYSTEM_SCOPE} and of no other scope"
    if "entry" in form.model_fields_set and form.entry is None:
        yield "/entry", "left out or an object"
    if builtin == (form.entry is not None):
        yield "/entry", "property required" if form.entry is None else "the kernel's own tools have no files"


def _broken_tool_rules(form: ManifestForm, tool: ToolForm, at: str) -> Iterator[tuple[str, str]]:
    if tool.id.partition(".")[0] != form.app_scope:
        yield f"{at}/id", "begins with the Manifest's own app_scope"
    if tool.target.app_scope != form.app_scope:
        yield f"{at}/target/app_scope", "the Manifest's own app_scope"
    if tool.handling == "interactive" and form.app_scope != "interaction":
        yield f"{at}/handling", "interactive exists only in scope interaction"
    if tool.handling == "interactive" and tool.timeout_ms is not None:
        yield f"{at}/timeout_ms", "an interactive tool has no clock of its own"
    if "timeout_ms" in tool.model_fields_set and tool.timeout_ms is None:
        yield f"{at}/timeout_ms", "left out or an integer"
    yield from _duplicates(f"{at}/permissions", tool.permissions)
    for index, permission in enumerate(tool.permissions):
        if permission not in form.requested_capabilities:
            yield f"{at}/permissions/{index}", "one of the requested_capabilities"


def _broken_entry_rules(entry: EntryForm) -> Iterator[tuple[str, str]]:
    # Case is folded because two such names are one file on some systems.
    yield from _duplicates("/entry/files", [file.name.casefold() for file in entry.files], "/name")
    if entry.main not in {file.name for file in entry.files}:
        yield "/entry/main", "the name of one of the files"
    if sum(file.size for file in entry.files) > MAX_ENTRY_BYTES:
        yield "/entry/files", f"more than {MAX_ENTRY_BYTES} bytes together"
    yield from _broken_surface_rules(entry)


def _broken_surface_rules(entry: EntryForm) -> Iterator[tuple[str, str]]:
    surface, sizes = entry.surface, {file.name: file.size for file in entry.files}
    if surface is None:
        named: dict[str, str] = {}
        if "surface" in entry.model_fields_set:
            yield "/entry/surface", "left out or an object"
    else:
        named = {f"scripts/{place}": name for place, name in enumerate(surface.scripts)}
        named |= {} if surface.style is None else {"style": surface.style}
        yield from _duplicates("/entry/surface/scripts", surface.scripts)
        if "style" in surface.model_fields_set and surface.style is None:
            yield "/entry/surface/style", "left out or a name"
    for role, name in named.items():
        if name not in sizes:
            yield f"/entry/surface/{role}", "the name of one of the files"
    if sum(sizes.get(name, 0) for name in named.values()) > MAX_SURFACE_CODE_BYTES:
        yield "/entry/surface", f"more than {MAX_SURFACE_CODE_BYTES} bytes together"
    for index, file in enumerate(entry.files):
        if file.name.startswith(SURFACE_FOLDER) and file.name not in named.values():
            yield f"/entry/files/{index}/name", "named by entry.surface, or not in the folder of the surface"


def _duplicates(at: str, values: Sequence[Hashable], suffix: str = "") -> Iterator[tuple[str, str]]:
    seen: set[Hashable] = set()
    for index, value in enumerate(values):
        if value in seen:
            yield f"{at}/{index}{suffix}", "is in the list already"
        seen.add(value)


# --- from form to record


def _kind(form: ManifestForm) -> Kind:
    return Kind.BUNDLED if form.kind == "bundled-reference" else Kind(form.kind)


def _descriptor(tool: ToolForm, at: str) -> ToolDescriptor:
    return ToolDescriptor(
        id=tool.id,
        version=tool.version,
        title=tool.title,
        description=tool.description,
        handling=Handling(tool.handling),
        app_scope=tool.target.app_scope,
        requires_foreground=tool.target.requires_foreground,
        restore_previous_focus=tool.target.restore_previous_focus,
        input_schema=_object_schema(tool.input_schema, f"{at}/input_schema"),
        output_schema=_object_schema(tool.output_schema, f"{at}/output_schema"),
        permissions=frozenset(tool.permissions),
        timeout_ms=tool.timeout_ms,
        hints=Hints(tool.hints.read_only, tool.hints.destructive, tool.hints.idempotent),
    )


def _object_schema(untrusted: JsonObject, at: str) -> Schema:
    try:
        schema = compile_schema(untrusted, pointer=at)
    except SchemaInvalid as invalid:
        raise ManifestInvalid(invalid.pointer, invalid.reason) from invalid
    if schema.document["type"] != "object":
        raise ManifestInvalid(f"{at}/type", "input and output of a tool are objects")
    return schema


def _entry(form: EntryForm | None) -> Entry | None:
    if form is None:
        return None
    shown = form.surface
    surface = None if shown is None else SurfaceEntry(shown.version, tuple(shown.scripts), shown.style)
    return Entry(form.main, tuple(EntryFile(file.name, file.size, file.sha256) for file in form.files), surface)
