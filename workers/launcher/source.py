"""The source of an app: taken in parts over the channel, checked, and importable from memory.

Rules:
1. Announced first (name, size, SHA-256), then sent: a part that does not fit what was announced ends the guest at once.
2. Names are plain file names ending in .py; the module is the stem. A name that is already loaded is refused: no file of an app can
   stand in for a module that others use.
3. Sources are kept for tracebacks (linecache), because there is no file to read them from.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import linecache
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import CodeType, ModuleType
from typing import Any

from lineup_sdk.protocol.messages import Chunk

MAX_FILES = 256
MAX_BYTES = 16 * 1024 * 1024


class SourceInvalid(Exception):
    """The source is not what was announced, or is announced in a form that is not admitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnouncedFile:
    """One file as welcome announced it. size in bytes, sha256 in hex."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnouncedSource:
    """All files in the order in which they come, and the module that is run."""

    entry: str
    files: tuple[AnnouncedFile, ...]


def read_announcement(untrusted_source: Any) -> AnnouncedSource:
    """Check `welcome.source`. Raises: SourceInvalid."""
    if type(untrusted_source) is not dict or untrusted_source.keys() != {"entry", "files"}:
        raise SourceInvalid("welcome names no source")
    untrusted_files = untrusted_source["files"]
    if type(untrusted_files) is not list or not 0 < len(untrusted_files) <= MAX_FILES:
        raise SourceInvalid("the number of files is out of bounds")
    files = tuple(_read_file(item) for item in untrusted_files)
    names = [file.name for file in files]
    if len(set(names)) != len(names) or untrusted_source["entry"] not in names:
        raise SourceInvalid("a name is there twice, or the entry is not among the files")
    if sum(file.size for file in files) > MAX_BYTES:
        raise SourceInvalid("the source is too large")
    return AnnouncedSource(entry=untrusted_source["entry"], files=files)


def _read_file(untrusted_file: Any) -> AnnouncedFile:
    if type(untrusted_file) is not dict or untrusted_file.keys() != {"name", "size", "sha256"}:
        raise SourceInvalid("a file is announced by name, size and sha256")
    name, size, sha256 = untrusted_file["name"], untrusted_file["size"], untrusted_file["sha256"]
    if type(name) is not str or type(size) is not int or type(sha256) is not str or size < 0:
        raise SourceInvalid("a file is announced with a wrong kind of value")
    stem = name.removesuffix(".py")
    if stem == name or not stem.isidentifier() or not stem.isascii():
        raise SourceInvalid("a file name is not a module name with .py")
    if stem in sys.modules or stem in sys.builtin_module_names:
        raise SourceInvalid(f"{name}: the name of a module that is already there")
    return AnnouncedFile(name=name, size=size, sha256=sha256)


class Gathering:
    """Gathers the parts of one file and checks the whole."""

    def __init__(self, file: AnnouncedFile) -> None:
        self._file = file
        self._data = bytearray()
        self.is_whole = False

    def add(self, chunk: Chunk) -> None:
        """Take one part. Raises: SourceInvalid."""
        if chunk.of != self._file.name or type(chunk.data) is not bytes:
            raise SourceInvalid("a part of another file")
        self._data += chunk.data
        if len(self._data) > self._file.size:
            raise SourceInvalid(f"{self._file.name}: larger than announced")
        self.is_whole = chunk.last is True

    def checked(self) -> bytes:
        """Return the file. Raises: SourceInvalid for another size or digest."""
        data = bytes(self._data)
        if len(data) != self._file.size:
            raise SourceInvalid(f"{self._file.name}: smaller than announced")
        if hashlib.sha256(data).hexdigest() != self._file.sha256:
            raise SourceInvalid(f"{self._file.name}: not the announced digest")
        return data


class MemoryImporter:
    """Finds and loads the app's own files; the first of sys.meta_path, which cannot hide a loaded module (rule 2)."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._sources = {name.removesuffix(".py"): data for name, data in files.items()}

    def install(self) -> None:
        """Make the files importable by stem, and their lines known to tracebacks."""
        for stem, data in self._sources.items():
            text = data.decode("utf-8", "replace")
            linecache.cache[f"{stem}.py"] = (len(data), None, text.splitlines(keepends=True), f"{stem}.py")
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        """Part of the finder protocol."""
        if name not in self._sources:
            return None
        return importlib.machinery.ModuleSpec(name, self, origin=f"{name}.py")  # type: ignore[arg-type]

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        """Part of the loader protocol: the ordinary module."""

    def exec_module(self, module: ModuleType) -> None:
        """Part of the loader protocol: run the code of the module."""
        module.__file__ = f"{module.__name__}.py"
        exec(self.get_code(module.__name__), module.__dict__)

    def get_code(self, name: str) -> CodeType:
        """Compile one module from memory."""
        code: CodeType = compile(self._sources[name], f"{name}.py", "exec", dont_inherit=True)
        return code

    def get_source(self, name: str) -> str:
        """The text of one module, for inspect."""
        return self._sources[name].decode()
