"""Run every test in four processes side by side: most of them wait for other processes much of the time. Each part's output is
printed whole when it ends.

    python tests/run.py              every test
    python tests/run.py ARGUMENTS…   one pytest with these arguments

Rules:
1. The parts share nothing: no temporary folder, no cache.
2. What failed beside the others is run once more, alone, and its names are printed: a test that passes only alone on a crowded machine
   is told, not hidden; one that fails alone fails the run.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ("tests/processes", "tests/faults")
HOSTS = ("tests/hosts", "tests/sdk")
WEB = ("tests/web",)
PARTS = {
    "kernels that run": KERNELS,
    "hosts and the SDK": HOSTS,
    "the web host in a browser": WEB,
    "everything else": ("tests", *(f"--ignore={folder}" for folder in (*KERNELS, *HOSTS, *WEB))),
}
BOUND_SECONDS = 30 * 60
TESTS_FAILED = 1  # pytest's own exit code; any other is no matter of a second try


@dataclass(frozen=True)
class Part:
    """One pytest with its own folders."""

    name: str
    arguments: tuple[str, ...]
    folder: Path

    def start(self, *more: str) -> subprocess.Popen[bytes]:
        """Start it; its output goes to a file."""
        self.folder.mkdir(exist_ok=True)
        own = ("--basetemp", str(self.folder / "tmp"), "-o", f"cache_dir={self.folder / 'cache'}")
        with self.output.open("wb") as file:
            command = [sys.executable, "-m", "pytest", "--quiet", *own, *self.arguments, *more]
            return subprocess.Popen(command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT)

    @property
    def output(self) -> Path:
        """What it printed."""
        return self.folder / "output.txt"

    def finish(self, process: subprocess.Popen[bytes], title: str) -> int:
        """Wait for it, print what it said, return its exit code."""
        code = process.wait(BOUND_SECONDS)
        print(f"==== {title}: {self.name}", self.output.read_text(errors="replace"), sep="\n", flush=True)
        return code


def main() -> int:
    """Run what was asked and return the exit code."""
    if sys.argv[1:]:
        return subprocess.call([sys.executable, "-m", "pytest", *sys.argv[1:]], cwd=ROOT)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="lineup-test-") as name:
        parts = [Part(part, PARTS[part], Path(name) / str(number)) for number, part in enumerate(PARTS)]
        running = [(part, part.start()) for part in parts]
        codes = {part: part.finish(process, "side by side") for part, process in running}
        for part in [part for part, code in codes.items() if code == TESTS_FAILED]:
            codes[part] = part.finish(part.start("--last-failed", "-rA"), "ONCE MORE, ALONE")
    verdicts = ", ".join(f"{part.name}: {'passed' if not code else 'FAILED'}" for part, code in codes.items())
    print(f"==== {time.monotonic() - began:.0f} s; {verdicts}")
    return max(codes.values())


if __name__ == "__main__":
    sys.exit(main())
