"""Reads Manifests and the sources they name from disk, once, at the start of a kernel (SPEC 4.1).

Use: `load_registry(manifest_folder, workers_folder, app_folders)`.
Built-in apps: `<manifest_folder>/<app_scope>.json`, sources in `<workers_folder>/<app_scope with _ for ->/`, chat's in
`interact/`. Further app folders, given by the person who starts the kernel, hold a `manifest.json` beside their files.
Rules:
1. One bad Manifest or file refuses the start, as ManifestInvalid: its role in words and a pointer, never a path or what stood there.
2. A source is read once, through its folder's descriptor, never through a symbolic link, and must have the stated size and SHA-256.
   Nothing is read again later: what the kernel hands to workers are these very bytes.
3. No scope comes twice. `system` comes from the built-in folder only; `installed` comes from a signed bundle, so from neither.
4. Files no Manifest names are not looked at. What all tools together tell an Agent fits one frame (SPEC 2.1, 4.4).
5. Code of an isolated surface is read and verified with the rest, and kept apart: it goes to hosts, never into a worker.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Final

import cbor2

from kernel.core.builtin import BUILTIN
from kernel.core.inventory import Enablement, advertise
from kernel.core.manifest import SURFACE_FOLDER, SYSTEM_SCOPE, EntryFile, Kind, Manifest, ManifestInvalid
from kernel.manifest_text import parse_manifest_text
from lineup_sdk.protocol.limits import MAX_FRAME_BYTES

MAX_MANIFEST_BYTES: Final = 512 * 1024
MAX_INVENTORY_BYTES: Final = MAX_FRAME_BYTES - 4 * 1024  # of what all Apps advertise, as CBOR: client.inventory is one frame

_OTHER_FOLDERS: Final = {SYSTEM_SCOPE: "interact"}  # the system App is called by its own name
_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# NONBLOCK: a pipe in the place of a file must be refused, not waited for.
_FILE_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A verified file of an App."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class SurfaceCode:
    """The verified bytes an isolated frame may run, and the contract they are written for.

    script: the files of the Manifest's list, one after the other, each on a line of its own. style is empty when there is none.
    """

    version: int
    script: bytes
    style: bytes


@dataclass(frozen=True, slots=True)
class Registry:
    """What exists: every Manifest by app_scope, the kernel's own included, and the verified sources of all others.

    sources: for workers, in the order of the Manifest's file list. surfaces: of the Apps that have code for a frame.
    """

    manifests: Mapping[str, Manifest]
    sources: Mapping[str, tuple[SourceFile, ...]]
    surfaces: Mapping[str, SurfaceCode]


def load_registry(manifest_folder: Path, workers_folder: Path, app_folders: Sequence[Path]) -> Registry:
    """Read and verify everything.

    Raises: ManifestInvalid; OSError when `manifest_folder` itself cannot be read.
    """
    # The folders the caller names may be links; nothing inside them may.
    apps = (
        *_builtin_apps(manifest_folder.resolve(), workers_folder.resolve()),
        *_further_apps([folder.resolve() for folder in app_folders]),
    )
    manifests = dict(BUILTIN)
    sources: dict[str, tuple[SourceFile, ...]] = {}
    surfaces: dict[str, SurfaceCode] = {}
    for role, (manifest, files) in apps:
        if manifest.app_scope in manifests:
            raise ManifestInvalid("/app_scope", "this scope exists already", role)
        manifests[manifest.app_scope] = manifest
        if len(cbor2.dumps(advertise(manifests, Enablement()).document)) > MAX_INVENTORY_BYTES:
            raise ManifestInvalid("/tools", f"more than {MAX_INVENTORY_BYTES} bytes of tools together with the other apps", role)
        sources[manifest.app_scope] = tuple(file for file in files if not file.name.startswith(SURFACE_FOLDER))
        if manifest.entry is not None and (surface := manifest.entry.surface):
            data = {file.name: file.data for file in files}
            script = b"\n".join(data[name] for name in surface.scripts)
            surfaces[manifest.app_scope] = SurfaceCode(surface.version, script, data[surface.style] if surface.style else b"")
    return Registry(MappingProxyType(manifests), MappingProxyType(sources), MappingProxyType(surfaces))


_App = tuple[Manifest, tuple[SourceFile, ...]]


def _builtin_apps(manifest_folder: Path, workers_folder: Path) -> Iterator[tuple[str, _App]]:
    for number, name in enumerate(sorted(name for name in os.listdir(manifest_folder) if name.endswith(".json")), start=1):
        role = f"built-in Manifest {number}"
        with _folder(manifest_folder, role) as folder:
            manifest = _read_manifest(folder, name, role)
        if name != f"{manifest.app_scope}.json":
            raise ManifestInvalid("/app_scope", "the name of the Manifest's file", role)
        role = f"built-in Manifest {manifest.app_scope}"
        _require_kind(manifest, role, Kind.SYSTEM, Kind.BUNDLED)
        with _folder(workers_folder / _folder_name(manifest.app_scope), role) as folder:
            yield role, (manifest, _read_sources(folder, manifest, role))


def _folder_name(app_scope: str) -> str:
    return _OTHER_FOLDERS.get(app_scope, app_scope.replace("-", "_"))


def _further_apps(app_folders: Sequence[Path]) -> Iterator[tuple[str, _App]]:
    for number, path in enumerate(app_folders, start=1):
        role = f"Manifest of app folder {number}"
        with _folder(path, role) as folder:
            manifest = _read_manifest(folder, "manifest.json", role)
            _require_kind(manifest, role, Kind.BUNDLED)
            yield role, (manifest, _read_sources(folder, manifest, role))


def _require_kind(manifest: Manifest, role: str, *allowed: Kind) -> None:
    if manifest.kind not in allowed:
        raise ManifestInvalid("/kind", f"an app that comes from here is {' or '.join(allowed)}", role)


# --- one Manifest


def _read_manifest(folder: int, name: str, role: str) -> Manifest:
    data = _read_file(folder, name, MAX_MANIFEST_BYTES, "", role)
    try:
        return parse_manifest_text(data)
    except ManifestInvalid as invalid:
        raise ManifestInvalid(invalid.pointer, invalid.reason, role) from invalid


# --- files


def _read_sources(folder: int, manifest: Manifest, role: str) -> tuple[SourceFile, ...]:
    files = manifest.entry.files if manifest.entry else ()
    return tuple(_read_source(folder, file, f"/entry/files/{index}", role) for index, file in enumerate(files))


def _read_source(folder: int, file: EntryFile, pointer: str, role: str) -> SourceFile:
    if file.name.startswith(SURFACE_FOLDER):
        with _subfolder(folder, pointer, role) as inner:
            data = _read_file(inner, file.name.removeprefix(SURFACE_FOLDER), file.size, pointer, role)
    else:
        data = _read_file(folder, file.name, file.size, pointer, role)
    if len(data) != file.size:
        raise ManifestInvalid(f"{pointer}/size", f"the file has {len(data)} bytes", role)
    if sha256(data).hexdigest() != file.sha256:
        raise ManifestInvalid(f"{pointer}/sha256", "the file has another digest", role)
    return SourceFile(file.name, data)


def _read_file(folder: int, name: str, max_bytes: int, pointer: str, role: str) -> bytes:
    try:
        fd = os.open(name, _FILE_FLAGS, dir_fd=folder)
    except OSError as error:
        raise ManifestInvalid(pointer, f"the file cannot be opened ({error.strerror})", role) from None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ManifestInvalid(pointer, "not a regular file", role)
        with open(fd, "rb", closefd=False) as file:
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise ManifestInvalid(pointer, f"the file cannot be read ({error.strerror})", role) from None
    finally:
        os.close(fd)
    if len(data) > max_bytes:
        raise ManifestInvalid(pointer, f"the file has more than {max_bytes} bytes", role)
    return data


@contextmanager
def _subfolder(folder: int, pointer: str, role: str) -> Iterator[int]:
    try:
        fd = os.open(SURFACE_FOLDER.rstrip("/"), _FOLDER_FLAGS, dir_fd=folder)
    except OSError as error:
        raise ManifestInvalid(pointer, f"the folder of the surface cannot be opened ({error.strerror})", role) from None
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def _folder(path: Path, role: str) -> Iterator[int]:
    try:
        fd = os.open(path, _FOLDER_FLAGS)
    except OSError as error:
        raise ManifestInvalid("", f"its folder cannot be opened ({error.strerror})", role) from None  # the error holds the path
    try:
        yield fd
    finally:
        os.close(fd)
