"""Where a kernel keeps its state, as the hosts see it: LINEUP_HOME and the names of the files in it (SPEC 2.8, 2.9).

Rules:
1. --home wins over LINEUP_HOME, which wins over the XDG state folder. The environment is read here and nowhere else in the hosts.
2. The folder is created 0700; one that belongs to somebody else is refused, never used.
3. Everything else in the home belongs to the kernel; a host reads the pairing secret, appends the kernel's stderr to kernel.log, and keeps
   what its web pages need to find it again, and how long the person wants things kept: whoever starts the next kernel tells it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

MAX_RETENTION_DAYS = 36_500  # what a kernel takes


class HomeRefused(Exception):
    """This folder cannot be a home. `reason` is a sentence without the path."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Home:
    """One LINEUP_HOME, absolute."""

    folder: Path

    @property
    def run_folder(self) -> Path:
        """The 0700 folder of the local socket."""
        return self.folder / "run"

    @property
    def pairing_file(self) -> Path:
        """Where the pairing secret of this home stands (0600)."""
        return self.run_folder / "pairing"

    @property
    def log_file(self) -> Path:
        """Where the stderr of the kernel goes."""
        return self.folder / "kernel.log"

    @property
    def web_file(self) -> Path:
        """Where the web host keeps its last ports with the tokens of their pages (0600)."""
        return self.folder / "web.places"

    @property
    def retention_file(self) -> Path:
        """Where the person's own number of days stands, once there is one."""
        return self.folder / "retention.days"

    def retention_days(self) -> int | None:
        """Return how many days the person wants texts kept, None for the kernel's own number.

        Raises: HomeRefused when the file says something else: a kernel that took its own number for it would delete.
        """
        try:
            days = int(self.retention_file.read_text(encoding="ascii"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            days = 0
        if not 1 <= days <= MAX_RETENTION_DAYS:
            raise HomeRefused(f"retention.days in the home folder is no number from 1 to {MAX_RETENTION_DAYS}; write one, or remove it")
        return days

    def keep_retention_days(self, days: int) -> None:
        """Remember how many days the person wants texts kept, for every start of a kernel from now on. Raises: HomeRefused."""
        self.create()
        beside = self.retention_file.with_name(f"{self.retention_file.name}.{os.getpid()}")
        try:
            file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(file, "w", encoding="ascii") as opened:
                opened.write(f"{days}\n")
            beside.replace(self.retention_file)
        except OSError as error:
            raise HomeRefused(f"retention.days in the home folder cannot be written: {os.strerror(error.errno or 0)}") from error

    def pairing(self) -> str | None:
        """Return the pairing secret, or None when no kernel has made one yet. Raises: HomeRefused when it may not be read."""
        try:
            return self.pairing_file.read_text(encoding="ascii").strip()
        except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError):
            return None
        except PermissionError as error:
            raise HomeRefused("the home folder belongs to another user") from error
        except OSError as error:  # its path is too long, or leads in a circle
            raise HomeRefused(f"the home folder cannot be used: {os.strerror(error.errno or 0)}") from error

    def create(self) -> None:
        """Make the folder if it is missing. Raises: HomeRefused when it is not a folder of this user."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = self.folder.stat()
        except OSError as error:
            raise HomeRefused(f"the home folder cannot be made: {os.strerror(error.errno or 0)}") from error
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise HomeRefused("the home folder belongs to another user")
        if found.st_mode & 0o022:
            raise HomeRefused("the home folder can be written by others; run chmod go-w on it")


def language_of(environ: Mapping[str, str]) -> str:
    """Return the language of this person's programs, as far as ours speak it: en or zh."""
    named = environ.get("LC_ALL") or environ.get("LC_MESSAGES") or environ.get("LANG") or ""
    return "zh" if named.startswith("zh") else "en"


def choose_home(option: Path | None, environ: Mapping[str, str]) -> Home:
    """Pick the home by rule 1."""
    if option is not None:
        return Home(option.absolute())
    if named := environ.get("LINEUP_HOME"):
        return Home(Path(named).expanduser().absolute())
    state = Path(environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser()
    return Home((state / "lineup").absolute())
