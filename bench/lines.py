"""A process that carries out lines: both Agents, ours and the peer's, are driven through one of these."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Sample:
    """What one line measured: microseconds of each call, seconds of all."""

    micros: list[int]
    seconds: float

    @property
    def per_second(self) -> float:
        """Calls a second."""
        return len(self.micros) / self.seconds


class LineProcess:
    """A child that answers one JSON line with another."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.hello = self._read()

    @classmethod
    @contextmanager
    def start(cls, command: Sequence[str], folder: Path) -> Iterator[LineProcess]:
        """Start a child; it ends when its input does."""
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            yield cls(process)
            assert process.stdin is not None
            process.stdin.close()
            process.wait(10)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()

    def measure(self, do: str, count: int, *, width: int = 1, tools: int = 1) -> Sample:
        """Have one line carried out: do = sequential | concurrent | launch."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, "count": count, "width": width, "tools": tools}) + "\n")
        self._process.stdin.flush()
        answer = self._read()
        return Sample(answer["micros"], answer["seconds"])

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self._process.args!r} ended early; see above")
        value: dict[str, Any] = json.loads(line)
        return value
