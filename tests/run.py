"""Run every test in parts, five processes side by side: most tests wait for other processes much of the time. Each part's output is
printed whole when it ends.

    python tests/run.py              every test
    python tests/run.py ARGUMENTS…   one pytest with these arguments

Rules:
1. The parts share nothing: no temporary folder, no cache. The longest begins first; a short one fills what is left at the end.
2. What failed beside the others is run once more, alone, and its names are printed: a test that passes only alone on a crowded machine
   is told, not hidden; one that fails alone fails the run.
3. Homes of kernels lie in memory where there is room: a kill loses nothing of a file system, so a sync to a real disk proves nothing there
   and is waited for thousands of times. What a power cut leaves is made up anyway (tests/faults/platter.py).
4. What is compiled stays beside the sources, whatever the shell says: hundreds of programs are started.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WEB, FAULTS = "tests/web", "tests/faults"
JOURNEYS = tuple(f"{WEB}/test_{name}.py" for name in ("boards", "bridge", "desktop", "journey", "kill", "surface_attack"))
SHELL = tuple(sorted(str(path.relative_to(ROOT)) for path in (ROOT / WEB).glob("test_shell_*.py")))
CANARY = tuple(sorted(str(path.relative_to(ROOT)) for path in (ROOT / FAULTS).glob("test_canary*.py")))
SIMULATION = tuple(f"{FAULTS}/test_{name}.py" for name in ("broken_kernels", "simulation"))
PARTS = {
    "the shell in a browser": SHELL,
    "journeys and surfaces in a browser": JOURNEYS,
    "hosts and the SDK": ("tests/hosts", "tests/sdk"),
    "kernels that die": (FAULTS, *(f"--ignore={file}" for file in (*CANARY, *SIMULATION))),
    "the web host": (WEB, *(f"--ignore={file}" for file in (*JOURNEYS, *SHELL))),
    "kernels that run": ("tests/processes",),
    "kernels in simulation": SIMULATION,
    "the canary": CANARY,
    "the conformance suite": ("tests/conformance",),
    "the model": ("tests/model",),
}
_REST = tuple({f"--ignore={name}" for names in PARTS.values() for name in names if not name.startswith("-")})
PARTS |= {"everything else": ("tests", *_REST)}
SIDE_BY_SIDE = 5
BOUND_SECONDS = 30 * 60
TESTS_FAILED = 1  # pytest's own exit code; any other is no matter of a second try
_MEMORY = Path("/dev/shm")
_LEAST_BYTES = 2 << 30  # of memory that is free for files: a run takes a few hundred MB


@dataclass(frozen=True)
class Part:
    """One pytest with its own folders."""

    name: str
    arguments: tuple[str, ...]
    folder: Path

    def run(self, title: str, *more: str) -> int:
        """Run it to its end, print what it said, return its exit code."""
        self.folder.mkdir(exist_ok=True)
        own = ("--basetemp", str(self.folder / "tmp"), "-o", f"cache_dir={self.folder / 'cache'}")
        command = [sys.executable, "-m", "pytest", "--quiet", *own, *self.arguments, *more]
        began = time.monotonic()
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},  # rule 4
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=BOUND_SECONDS,
            check=False,
        )
        said = done.stdout.decode(errors="replace")
        print(f"==== {title}: {self.name}, {time.monotonic() - began:.0f} s\n{said}", flush=True)
        return done.returncode


@contextmanager
def _folder() -> Iterator[Path]:
    """Rule 3."""
    has_room = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= _LEAST_BYTES
    with tempfile.TemporaryDirectory(prefix="lineup-test-", dir=_MEMORY if has_room else None) as name:
        yield Path(name)


def main() -> int:
    """Run what was asked and return the exit code."""
    if sys.argv[1:]:
        return subprocess.call([sys.executable, "-m", "pytest", *sys.argv[1:]], cwd=ROOT)
    began = time.monotonic()
    with _folder() as folder:
        parts = [Part(name, PARTS[name], folder / str(number)) for number, name in enumerate(PARTS)]
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            codes = dict(zip(parts, pool.map(lambda part: part.run("side by side"), parts), strict=True))
        for part in [part for part, code in codes.items() if code == TESTS_FAILED]:
            codes[part] = part.run("ONCE MORE, ALONE", "--last-failed", "-rA")
    verdicts = ", ".join(f"{part.name}: {'passed' if not code else 'FAILED'}" for part, code in codes.items())
    print(f"==== {time.monotonic() - began:.0f} s; {verdicts}")
    return max(codes.values())


if __name__ == "__main__":
    sys.exit(main())
