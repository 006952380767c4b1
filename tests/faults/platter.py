"""A home on a disk that loses power, fails or lies: everything this process does to the files of one folder is noted, so that at any
moment it can be said what a power cut would have left of them.

    layer = NotedLayer(); platter = Platter(folder, seed); layer.watch(platter)      once a process, before the kernel is imported
    platter.cut_at = platter.operations + 7       the seventh operation from now raises PowerCut, and so does every later one
    platter.lose_power()                          the folder now holds what the next boot finds

Rules:
1. The files are real; SQLite's own layer does the work. Beside each stands what surely is on the platter and what was written since.
2. Of all that was not synced any part may be found, in any order, torn at sectors; a name that was made, moved or removed is sure only
   once its folder was synced. What SQLite syncs by itself (the folder of a new log or journal) counts.
3. The checksum layer wraps whatever file layer is the default when it is first loaded: this one has to be there before.
4. A file written past `os` (buffered bytes of an artifact) is found as it was at its last sync, as it is, or cut short.
5. What SQLite asks of chance (the salts of its log) comes from `layer.salts` when there is one: the same seed writes the same bytes.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw

from tests.store.power_loss import Op, arrived, do

_DIRECTLY_SYNCED = ("-journal", "-wal")  # SQLite syncs the folder when it first syncs one of these
_SEEN_WHOLE = ("audit.head", "kernel.db")  # every write of theirs comes by here; others may be written past `os` (rule 4)


class PowerCut(BaseException):
    """The machine is off. Nothing of the kernel may catch it."""


@dataclass
class Noted:
    """One file: its durable bytes, and what was done to it since they were."""

    durable: bytearray = field(default_factory=bytearray)
    pending: list[Op] = field(default_factory=list)
    is_opaque: bool = False  # it may have been written in ways that are not seen

    def sync(self) -> None:
        for op in self.pending:
            do(self.durable, op)
        self.pending = []


Fault = Callable[[int], str | None]  # "io" or "full" for an operation, of that number, that fails


def no_fault(operation: int) -> str | None:
    """The disk is sound."""
    del operation
    return None


class Platter:
    """See the head of the file."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        self.operations = 0
        self.cut_at: int | None = None
        self.is_off = False
        self.is_lying = False
        self.reads = 0  # of SQLite, and its opening of files
        self.fault: Fault = no_fault
        self.read_fault: Fault = no_fault
        self.failed = 0  # of both
        self.found = sha256()  # over all that was found after all cuts
        self.adopt()

    def adopt(self) -> None:
        """What is in the folder now is durable."""
        self._live = {name: Noted(bytearray((self.folder / name).read_bytes())) for name in self._names()}
        self._durable = dict(self._live)
        self._changes: list[tuple[str, str, Noted | None]] = []  # (folder, name, what it now names)

    def _names(self) -> Iterator[str]:
        for path in self.folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                yield str(path.relative_to(self.folder))

    # ------------------------------------------------------------------ what is done to it

    def name_of(self, path: Any) -> str | None:
        """The name of a path inside the folder; None for any other."""
        text = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
        prefix = f"{self.folder}/"
        return text[len(prefix) :] if isinstance(text, str) and text.startswith(prefix) else None

    def touch(self, code: int | None = None) -> None:
        """One more operation that changes something; code: what SQLite's layer says when it fails, None for a call of `os`.

        Raises: PowerCut, apsw.Error, OSError.
        """
        self.operations += 1
        if self.is_off or (self.cut_at is not None and self.operations >= self.cut_at):
            self.is_off = True
            raise PowerCut
        self._fail(self.fault(self.operations), code)

    def read(self, code: int) -> None:
        """One more operation that changes nothing. Raises: apsw.Error."""
        self.reads += 1
        self._fail(self.read_fault(self.reads), code)

    def _fail(self, kind: str | None, code: int | None) -> None:
        if kind is None:
            return
        self.failed += 1
        if code is None:
            raise OSError(errno.ENOSPC if kind == "full" else errno.EIO, "as the test wants it")
        raise apsw.exception_for(apsw.SQLITE_FULL if kind == "full" else code)

    def file(self, name: str) -> Noted:
        """What a name stands for; it is made when it was not there."""
        if name not in self._live:
            self._live[name] = Noted()
            self._note(name)
        return self._live[name]

    def _note(self, name: str) -> None:
        self._changes.append((os.path.dirname(name), name, self._live.get(name)))

    def change(self, name: str, op: Op, code: int | None = None) -> None:
        """A write or truncation, also one that is under way when the power goes."""
        pending = self.file(name).pending
        pending.append(op)
        try:
            self.touch(code)
        except Exception:  # it failed: nothing of it was done
            pending.pop()
            raise

    def sync(self, name: str, code: int | None = None) -> None:
        self.touch(code)
        if self.is_lying:
            return
        noted = self.file(name)
        noted.sync()
        if noted.is_opaque:
            noted.durable = bytearray((self.folder / name).read_bytes())
        if name.endswith(_DIRECTLY_SYNCED):
            self.sync_names(os.path.dirname(name))

    def sync_names(self, folder: str) -> None:
        """The folder was synced: its names are sure."""
        for _, name, noted in [change for change in self._changes if change[0] == folder]:
            _point(self._durable, name, noted)
        self._changes = [change for change in self._changes if change[0] != folder]

    def remove(self, name: str, code: int | None = None) -> None:
        self.touch(code)
        self._live.pop(name, None)
        self._note(name)

    def rename(self, old: str, new: str) -> None:
        self.touch()
        self._live[new] = self.file(old)
        del self._live[old]
        self._note(new)
        self._note(old)

    # ------------------------------------------------------------------ the power goes

    def lose_power(self) -> None:
        """Put into the folder what is found after the power came back."""
        found = dict(self._durable)
        kept = self._changes if self.chance.random() < 0.5 else [one for one in self._changes if self.chance.random() < 0.6]
        for _, name, noted in kept[: self.chance.randrange(len(kept) + 1)] if self.chance.random() < 0.5 else kept:
            _point(found, name, noted)
        images = {name: self._image(name, noted) for name, noted in sorted(found.items())}
        for name, image in images.items():
            self.found.update(f"{name} {len(image)} ".encode() + image)
        for name in list(self._names()):
            if name not in images:
                os.remove(self.folder / name)
        for name, image in images.items():
            path = self.folder / name
            if not path.is_file() or path.read_bytes() != image:
                path.write_bytes(image)
                path.chmod(0o600)
        self.adopt()
        self.is_off, self.cut_at = False, None

    def _image(self, name: str, noted: Noted) -> bytes:
        image = bytearray(noted.durable)
        live = (self.folder / name).read_bytes() if noted.is_opaque and (self.folder / name).is_file() else image
        if live != image and self.chance.random() < 0.5:  # what was written since the last sync is there, whole or in part
            image = bytearray(live[: self.chance.randrange(len(live) + 1)] if self.chance.random() < 0.5 else live)
        for op in arrived(noted.pending, self.chance):
            do(image, op)
        return bytes(image)


def _point(names: dict[str, Noted], name: str, noted: Noted | None) -> None:
    if noted is None:
        names.pop(name, None)
    else:
        names[name] = noted


# --------------------------------------------------------------------------------- between the process and its files


class NotedFile(apsw.VFSFile):
    """A file of SQLite's own layer, each change of it noted."""

    def __init__(self, layer: NotedLayer, name: Any, flags: list[int]) -> None:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._platter = layer.platter
        self._name = layer.platter.name_of(path) if layer.platter is not None else None
        self._note_a_read(apsw.SQLITE_CANTOPEN)
        super().__init__("unix", name, flags)
        if self._platter is not None and self._name is not None:
            self._platter.file(self._name)

    def _note_a_read(self, code: int) -> None:
        if self._platter is not None and self._name is not None:
            self._platter.read(code)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        self._note_a_read(apsw.SQLITE_IOERR_READ)
        return bytes(super().xRead(amount, offset))

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        if self._platter is not None and self._name is not None:
            self._platter.change(self._name, ("write", offset, bytes(data)), apsw.SQLITE_IOERR_WRITE)
        super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        if self._platter is not None and self._name is not None:
            self._platter.change(self._name, ("truncate", size, b""), apsw.SQLITE_IOERR_TRUNCATE)
        super().xTruncate(size)

    def xSync(self, flags: int) -> None:  # noqa: N802
        if self._platter is not None and self._name is not None:
            self._platter.sync(self._name, apsw.SQLITE_IOERR_FSYNC)  # the real sync is left out: the platter is what counts


class NotedLayer(apsw.VFS):
    """SQLite's own file layer and the calls of `os` that change files, over whatever platter is watched."""

    def __init__(self) -> None:
        self.platter: Platter | None = None
        self.salts: random.Random | None = None
        super().__init__("noted", "unix", makedefault=True)

    def watch(self, platter: Platter) -> None:
        """Note what happens to this platter from now on."""
        self.platter = platter

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802
        return NotedFile(self, name, flags)

    def xRandomness(self, count: int) -> bytes:  # noqa: N802
        return self.salts.randbytes(count) if self.salts is not None else bytes(super().xRandomness(count))

    def xDelete(self, name: str, syncdir: bool) -> None:  # noqa: N802
        platter = self.platter
        known = platter.name_of(name) if platter is not None else None
        if platter is not None and known is not None and os.path.exists(name):
            platter.remove(known, apsw.SQLITE_IOERR_DELETE)
            if syncdir:
                platter.sync_names(os.path.dirname(known))
        super().xDelete(name, syncdir)

    def note_calls(self) -> None:
        """Note what `os` is asked to do, too: the kept head, a rename, the sync of a folder."""
        for name, function in _NOTED_CALLS.items():
            setattr(os, name, function(self, getattr(os, name)))


def _place(layer: NotedLayer, path: Any) -> tuple[Platter, str] | None:
    platter = layer.platter
    name = platter.name_of(path) if platter is not None else None
    return (platter, name) if platter is not None and name is not None else None


def _place_of(layer: NotedLayer, descriptor: int) -> tuple[Platter, str] | None:
    return _place(layer, os.readlink(f"/proc/self/fd/{descriptor}")) if layer.platter is not None else None


def _noted_open(layer: NotedLayer, real: Callable[..., int]) -> Callable[..., int]:
    def open_it(path: Any, flags: int, mode: int = 0o777, **more: Any) -> int:
        place = _place(layer, path) if flags & os.O_CREAT else None
        if place is not None and not os.path.exists(path):
            place[0].touch()
            place[0].file(place[1]).is_opaque = not place[1].startswith(_SEEN_WHOLE)
        return real(path, flags, mode, **more)

    return open_it


def _noted_pwrite(layer: NotedLayer, real: Callable[..., int]) -> Callable[..., int]:
    def pwrite(descriptor: int, data: bytes, offset: int) -> int:
        place = _place_of(layer, descriptor)
        if place is not None:
            place[0].change(place[1], ("write", offset, bytes(data)))
        return real(descriptor, data, offset)

    return pwrite


def _noted_fsync(layer: NotedLayer, real: Callable[..., None]) -> Callable[..., None]:
    def fsync(descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        place = _place(layer, path)
        if layer.platter is not None and path == str(layer.platter.folder):
            layer.platter.touch()
            layer.platter.sync_names("")
        elif place is not None and os.path.isdir(path):
            place[0].touch()
            place[0].sync_names(place[1])
        elif place is not None:
            place[0].sync(place[1])
        else:
            real(descriptor)

    return fsync


def _noted_rename(layer: NotedLayer, real: Callable[..., None]) -> Callable[..., None]:
    def rename(old: Any, new: Any, **more: Any) -> None:
        place = _place(layer, old)
        target = _place(layer, new)
        if place is not None and target is not None:
            place[0].rename(place[1], target[1])
        real(old, new, **more)

    return rename


def _noted_unlink(layer: NotedLayer, real: Callable[..., None]) -> Callable[..., None]:
    def unlink(path: Any, **more: Any) -> None:
        place = _place(layer, path)
        if place is not None and os.path.exists(path):
            place[0].remove(place[1])
        real(path, **more)

    return unlink


_NOTED_CALLS: dict[str, Callable[[NotedLayer, Callable[..., Any]], Callable[..., Any]]] = {
    "fsync": _noted_fsync,
    "open": _noted_open,
    "pwrite": _noted_pwrite,
    "rename": _noted_rename,
    "replace": _noted_rename,
    "unlink": _noted_unlink,
}
