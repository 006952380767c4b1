"""The bytes of artifacts: files of HOME/artifacts, named by their SHA-256 (SPEC 9.4).

Use: `upload = store.begin(size, sha256)`, `upload.add(data)` for each part, `upload.finish()` (it syncs: away from the event loop);
then the metadata may be committed. `store.read(...)` for a window. `store.sweep(contents)` once, at the start of a kernel.
Rules:
1. Bytes go to a file without a name in the folder's `partial`; they get their name only when size and digest are as announced and the
   file is synced; then the folder is. So a name never stands for other bytes, and metadata never comes before them (INV-51).
2. What nobody needs any more is removed: a refused upload at once, what a crash left behind at the next start.
3. A file is hashed whole before its first byte is read in a run; one that is not what it is named is lost, not served.
4. Errors of the disk are told as a Trouble with its code; no path and no content is in it.
"""

from __future__ import annotations

import errno
import os
import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from hashlib import file_digest, sha256
from pathlib import Path

from kernel import log
from lineup_sdk.protocol.codes import Code

_NAME = re.compile("[0-9a-f]{64}")
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Trouble(Exception):
    """Bytes could not be taken. code: size_mismatch, digest_mismatch, store_full, unknown."""

    def __init__(self, code: Code) -> None:
        super().__init__(code)
        self.code = code


def _trouble(error: OSError) -> Trouble:
    return Trouble(Code.STORE_FULL if error.errno in (errno.ENOSPC, errno.EDQUOT) else Code.UNKNOWN)


class ArtifactStore:
    """The folder of one home. Made once a kernel, under the home's lock."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._partial = folder / "partial"
        self._partial.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._proven: set[str] = set()  # hashed in this run
        self._arriving: Counter[str] = Counter()  # uploads on their way, by what they will be
        self._uploads = 0

    def begin(self, size: int, digest: str) -> Upload:
        """Start to take bytes that were announced. Raises: Trouble."""
        self._uploads += 1
        return Upload(self, self._partial / str(self._uploads), size, digest)

    def read(self, digest: str, size: int, offset: int, length: int) -> bytes | None:
        """A window of kept bytes, empty beyond their end; None when they are lost."""
        try:
            fd = os.open(self._folder / digest, _READ)
        except OSError:
            log.trouble("artifact.lost")
            return None
        try:
            with open(fd, "rb") as file:
                if digest not in self._proven:
                    if os.fstat(file.fileno()).st_size != size or file_digest(file, "sha256").hexdigest() != digest:
                        raise OSError("not what it is named")
                    self._proven.add(digest)
                return os.pread(file.fileno(), max(0, min(length, size - offset)), offset)
        except OSError:
            log.trouble("artifact.lost")
            return None

    def drop(self, digest: str) -> None:
        """Remove bytes nobody needs, unless the same are just arriving for somebody else."""
        if not self._arriving[digest]:
            self._proven.discard(digest)
            (self._folder / digest).unlink(missing_ok=True)

    def sweep(self, contents: Iterable[tuple[int, str, int]]) -> tuple[int, ...]:
        """Remove what no artifact needs, and return the numbers of artifacts whose bytes are not there whole.

        contents: (number, sha256, size) of all that the database promises. Only names and sizes are looked at; see rule 3.
        """
        for left in self._partial.iterdir():
            left.unlink()
        promised = list(contents)
        needed = {digest for _, digest, _ in promised}
        sizes = {entry.name: entry.stat(follow_symlinks=False).st_size for entry in os.scandir(self._folder) if _NAME.fullmatch(entry.name)}
        for name in sizes.keys() - needed:
            (self._folder / name).unlink()
        return tuple(number for number, digest, size in promised if sizes.get(digest) != size)

    # ----------------------------------------------------------------------------- of an upload

    def expect(self, digest: str, change: int) -> None:
        """One upload of these bytes more or less."""
        self._arriving[digest] += change
        if not self._arriving[digest]:
            del self._arriving[digest]

    def keep(self, partial: Path, digest: str) -> None:
        """Give synced bytes their name, durably."""
        os.replace(partial, self._folder / digest)
        fd = os.open(self._folder, _FOLDER)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
        self._proven.add(digest)


class Upload:
    """Bytes on their way in. Ended by `finish` or `discard`, and then by `settle`."""

    def __init__(self, store: ArtifactStore, path: Path, size: int, digest: str) -> None:
        self._store = store
        self._path = path
        self._left = size
        self._digest = digest
        self._state = sha256()
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _trouble(error) from None
        self._file = open(fd, "wb", buffering=0)  # noqa: SIM115 - it lives until finish or discard
        store.expect(digest, 1)

    def add(self, data: bytes) -> None:
        """Take the next part. Raises: Trouble; the upload is then discarded."""
        try:
            if len(data) > self._left:
                raise Trouble(Code.SIZE_MISMATCH)
            self._left -= len(data)
            self._state.update(data)
            self._write(data)
        except Trouble:
            self.discard()
            raise

    def _write(self, data: bytes) -> None:
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            raise _trouble(error) from None

    def finish(self) -> None:
        """Prove and sync the bytes and give them their name. Raises: Trouble; the upload is then discarded."""
        try:
            if self._left:
                raise Trouble(Code.SIZE_MISMATCH)
            if self._state.hexdigest() != self._digest:
                raise Trouble(Code.DIGEST_MISMATCH)
            self._keep()
        except Trouble:
            self.discard()
            raise

    def _keep(self) -> None:
        try:
            os.fsync(self._file.fileno())
            self._file.close()
            self._store.keep(self._path, self._digest)
        except OSError as error:
            raise _trouble(error) from None

    def discard(self) -> None:
        """Give up: nothing of it stays but the claim on its name, until `settle`."""
        self._file.close()
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def settle(self) -> None:
        """The turn about it is decided, or it never will be: the claim on its name ends."""
        self._store.expect(self._digest, -1)
