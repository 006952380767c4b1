"""Promises about processes, files and hostile workers, over facts that the test of a real process brings: one line a violation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any


def _files(folders: Iterable[Path]) -> Iterator[Path]:
    return (path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file())


def check_inv_30(folders: Iterable[Path], drafts: Iterable[bytes]) -> list[str]:
    """No byte of a draft that was not sent is in any file, after kill -9 and after a tidy end. drafts: the markers typed."""
    return _holding("INV-30: a draft", _files(folders), drafts)


def _holding(what: str, paths: Iterable[Path], markers: Iterable[bytes]) -> list[str]:
    wanted = list(markers)
    return [f"{what} is in {path.name}" for path in paths for marker in wanted if marker in path.read_bytes()]


def check_inv_42(left: Iterable[int], zombies: int = 0, fd_growth: int = 0) -> list[str]:
    """Nothing of the tree lives after the kernel's end. left: pids found by their pid namespace; the counts are of its life."""
    found = [f"INV-42: process {pid} is left" for pid in left]
    if zombies:
        found.append(f"INV-42: {zombies} zombies")
    if fd_growth > 0:
        found.append(f"INV-42: {fd_growth} descriptors more than before")
    return found


def check_inv_44(report: bytes, secrets: Iterable[bytes]) -> list[str]:
    """What a worker could read of itself (environment, arguments, memory, descriptors) holds nothing of ours. report: all of it."""
    return [f"INV-44: secret {place} is within a worker's reach" for place, secret in enumerate(secrets) if secret in report]


def check_inv_46(outcomes: Mapping[str, Any], expected: Mapping[str, Any]) -> list[str]:
    """What a sealed process tried came out as the expected map says, nothing more and nothing less."""
    return [
        f"INV-46: {name} came out {outcomes.get(name)} instead of {expected.get(name)}"
        for name in sorted({*outcomes, *expected})
        if outcomes.get(name) != expected.get(name)
    ]


def check_inv_47(
    ended: Iterable[str], attacker: str, others_ms: Sequence[float], bound_ms: float, grown_bytes: int, bound_bytes: int
) -> list[str]:
    """A bad worker ends itself at most.

    ended: the instances that ended; others_ms: how long calls of the others took; grown_bytes: of the kernel's memory.
    """
    found = [f"INV-47: {name} ended with it" for name in ended if name != attacker]
    slow = sorted(others_ms)
    if slow and slow[min(len(slow) - 1, len(slow) * 99 // 100)] > bound_ms:
        found.append(f"INV-47: the others' p99 is {slow[len(slow) * 99 // 100 - 1]:.0f} ms")
    if grown_bytes > bound_bytes:
        found.append(f"INV-47: the kernel grew by {grown_bytes} bytes")
    return found


def check_inv_56(paths: Iterable[Path], markers: Iterable[bytes]) -> list[str]:
    """No content is in any log, audit row, error line or crash text. paths: everything that was written of that kind."""
    return _holding("INV-56: content", paths, markers)
