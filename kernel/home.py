"""A LINEUP_HOME: the folder one kernel owns (SPEC 2.8, 2.9).

Rules:
1. The folder is 0700 and of this user; every file the kernel makes is 0600. A home of somebody else is refused.
2. One kernel a home: the lock is held on an open descriptor for the kernel's whole life.
3. Which further apps there are is remembered, so that a restart by another host does not take them away.
4. The pairing secret is made once and read by the person's hosts only.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from kernel.store_open import StoreRefused, refusal
from lineup_sdk.protocol.codes import Code


class Home:
    """The paths of a home whose lock this process holds."""

    def __init__(self, folder: Path) -> None:
        """Make and lock the home. Raises: StoreRefused(store_foreign, store_full, store_locked)."""
        os.umask(0o077)
        self.folder = folder
        self.database = folder / "kernel.db"
        self.run = folder / "run"
        self.socket = self.run / "kernel.sock"
        for needed in (folder, self.run):
            _require_own(needed)
        try:
            self._lock = os.open(folder / "kernel.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _unusable(error) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.pairing = self._pairing_secret()
        except BaseException as error:
            self.close()
            if isinstance(error, BlockingIOError):
                raise refusal(Code.STORE_LOCKED) from None
            if isinstance(error, OSError):
                raise _unusable(error) from error
            raise

    def close(self) -> None:
        """Give the lock back."""
        os.close(self._lock)

    def app_folders(self, given: Sequence[Path]) -> list[Path]:
        """The folders of further apps: those given now, which are remembered, else those of the last start.

        So a kernel that any host starts again has the apps that its open calls belong to. Raises: StoreRefused(store_corrupt, when it
        cannot be read: without these apps their open calls would end; store_foreign, store_full).
        """
        path = self.folder / "app-folders.json"
        if not given:
            return [folder for folder in map(Path, _remembered(path)) if folder.is_dir()]
        folders = [folder.resolve() for folder in given]
        try:
            self._remember(path, json.dumps([str(folder) for folder in folders]))
        except OSError as error:
            raise _unusable(error) from error
        return folders

    def _remember(self, path: Path, text: str) -> None:
        """Write a file that a power cut leaves whole, as it was or as it is: synced before it gets its name, and its folder after."""
        with suppress(FileNotFoundError, UnicodeDecodeError):
            if path.read_text() == text:
                return
        making = path.with_suffix(".new")
        descriptor = os.open(making, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        making.replace(path)
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _pairing_secret(self) -> str:
        path = self.run / "pairing"
        with suppress(FileNotFoundError, UnicodeDecodeError):
            if len(known := path.read_text().strip()) >= 32:
                return known
        secret = secrets.token_urlsafe(32)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secret)
        return secret


__all__ = ["Home", "StoreRefused"]


def _require_own(folder: Path) -> None:
    """Make a folder of this user's, or see that it is one. Raises: StoreRefused(store_foreign, store_full)."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner = folder.stat().st_uid
    except OSError as error:
        raise _unusable(error) from error
    if owner != os.getuid():
        raise refusal(Code.STORE_FOREIGN)
    folder.chmod(0o700)


def _remembered(path: Path) -> list[str]:
    try:
        untrusted = json.loads(path.read_text())
    except FileNotFoundError:
        return []
    except (OSError, RecursionError, ValueError):
        untrusted = None
    if type(untrusted) is not list or not all(type(folder) is str for folder in untrusted):
        hint = f"{path.name} of the home cannot be read; start once with every --app-folder, which writes it anew, or take it away"
        raise StoreRefused(Code.STORE_CORRUPT, hint)
    return untrusted


def _unusable(error: OSError) -> StoreRefused:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return refusal(Code.STORE_FULL)
    reason = os.strerror(error.errno or 0)
    return StoreRefused(Code.STORE_FOREIGN, f"the home folder cannot be made or used ({reason}); choose another LINEUP_HOME")
