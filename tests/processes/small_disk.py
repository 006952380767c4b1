"""A real file system with little room: a tmpfs of its own, made and taken away by the test that uses it (as root)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

IS_ROOT = os.geteuid() == 0
BALLAST = "ballast"


@contextmanager
def small_disk(folder: Path, *, size_kib: int) -> Iterator[Path]:
    """Mount a disk of that size on a new folder."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_kib}k,mode=700", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
        folder.rmdir()


def fill(disk: Path) -> None:
    """Write until nothing fits any more."""
    with (disk / BALLAST).open("ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return


def make_room(disk: Path) -> None:
    """Give the room back."""
    (disk / BALLAST).unlink()
