"""Judges that no word of anybody's left the store: what was written to files and streams, and what codes and details were said."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.faults.marked import MARK
from tests.processes.kernel_under_test import ROOT

CONTENT = ("kernel.db", "kernel.db-wal", "artifacts", "app-folders.json")  # the store, bytes, and folders that the person named
POINTER = re.compile(r'"pointer": ?"[^"]*"')  # it may name the member or option that its asker typed


def words_in(value: Any) -> set[str]:
    """Every text that was said in these frames."""
    if isinstance(value, dict):
        return set().union(*(words_in(member) for member in value.values()))
    if isinstance(value, list):
        return set().union(*(words_in(member) for member in value))
    return {value} if isinstance(value, str) else set()


def codes_in(value: Any) -> set[str]:
    """Every code that was said in these frames as one."""
    if isinstance(value, dict):
        own = {value[name] for name in ("code", "error_code", "error") if isinstance(value.get(name), str)}
        return own.union(*(codes_in(member) for member in value.values()))
    return set().union(*(codes_in(member) for member in value)) if isinstance(value, list) else set()


def details_in(value: Any) -> list[Any]:
    """Every detail, and every report's detail, that was said in these frames."""
    if isinstance(value, dict):
        own = [value["detail"]] if isinstance(value.get("detail"), dict) else []
        return own + [one for member in value.values() for one in details_in(member)]
    return [one for member in value for one in details_in(member)] if isinstance(value, list) else []


def telling_details(frames: Iterable[Any]) -> list[Any]:
    """Details that hold the marker. A pointer may name the property that its asker sent; what stood there is told by type and size."""
    return [detail for detail in details_in(list(frames)) if MARK in json.dumps(detail | {"pointer": ""}, default=str)]


def telling_files(home: Path, *streams: Path) -> list[str]:
    """Names of files in which the marker stands and may not: everything in the home that is no content, and what was said on streams."""
    files = [path for path in home.rglob("*") if path.is_file() and path.relative_to(home).parts[0] not in CONTENT]
    return [path.name for path in (*files, *streams) if MARK.encode() in path.read_bytes()]


def offline(*words: str) -> bytes:
    """What a command of the kernel's own program says, on both streams."""
    done = subprocess.run([sys.executable, "-m", "kernel", *words], cwd=ROOT, capture_output=True, check=False, timeout=60)
    return done.stdout + done.stderr


def telling_lines(text: str) -> list[str]:
    """Lines that hold the marker elsewhere than in a pointer."""
    return [line for line in text.splitlines() if MARK in POINTER.sub("", line)]
