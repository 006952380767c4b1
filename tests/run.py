"""Run every test in two processes side by side, one a core; each part's output is printed whole when it ends.

    python tests/run.py              every test
    python tests/run.py ARGUMENTS…   one pytest with these arguments

The parts share nothing: real kernels and hosts in one, all the rest in the other. Exit code 0 only if both have it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIVING = ("tests/processes", "tests/faults", "tests/hosts")
PARTS = {
    "kernels and hosts that run": [*LIVING],
    "everything else": ["tests", *(f"--ignore={folder}" for folder in LIVING)],
}
BOUND_SECONDS = 30 * 60


def start(arguments: list[str], folder: Path, output: Path) -> subprocess.Popen[bytes]:
    """Start one pytest with temporary folders of its own: two that share them would sweep each other's."""
    command = [sys.executable, "-m", "pytest", "--quiet", f"--basetemp={folder}", *arguments]
    with output.open("wb") as file:
        return subprocess.Popen(command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT)


def main() -> int:
    """Run what was asked and return the exit code."""
    if sys.argv[1:]:
        return subprocess.call([sys.executable, "-m", "pytest", *sys.argv[1:]], cwd=ROOT)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="lineup-test-") as name:
        folder = Path(name)
        files = {part: folder / f"{number}.txt" for number, part in enumerate(PARTS)}
        running = {part: start(PARTS[part], folder / f"t{number}", files[part]) for number, part in enumerate(PARTS)}
        codes = {}
        for part, process in running.items():
            codes[part] = process.wait(BOUND_SECONDS)
            print(f"==== {part}", files[part].read_text(errors="replace"), sep="\n", flush=True)
    print(
        f"==== {time.monotonic() - began:.0f} s; "
        + ", ".join(f"{part}: {'passed' if not code else 'FAILED'}" for part, code in codes.items())
    )
    return max(codes.values())


if __name__ == "__main__":
    sys.exit(main())
