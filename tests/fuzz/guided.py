"""The targets under a fuzzer that follows coverage (atheris); needs the environment of its own: `make fuzz`.

    .venv-fuzz/bin/python -m tests.fuzz.guided SECONDS [TARGET ...]     each target for so long; what reaches new code goes into corpus/

Rules:
1. Each target runs in a process of its own (the fuzzer never returns), on a folder made of seeds.py.
2. What a run adds to the corpus is at most MAX_KEPT inputs a target, of at most MAX_KEPT_BYTES: the shortest that reach new code.
3. A finding ends the run, and its input is kept: from then on it is a regression (test_mutate.py).
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fuzz.seeds import CORPUS, kept, seeds
from tests.fuzz.targets import TARGETS

MAX_INPUT_BYTES = 4096
MAX_KEPT = 60
MAX_KEPT_BYTES = 512


def fuzz(target: str, folder: Path, seconds: int) -> None:
    """Never returns; the fuzzer ends the process."""
    import atheris

    with atheris.instrument_imports(include=["kernel", "lineup_sdk", "hosts"]):
        for name in [name for name in sys.modules if name.partition(".")[0] in {"kernel", "lineup_sdk", "hosts"}]:
            del sys.modules[name]  # seeds and targets have imported them plain
        sys.modules.pop("tests.fuzz.targets", None)
        again = importlib.import_module("tests.fuzz.targets")
    act = again.TARGETS[target]
    options = [f"-max_total_time={seconds}", f"-max_len={MAX_INPUT_BYTES}", "-timeout=10", f"-artifact_prefix={folder}/found-"]
    atheris.Setup([sys.argv[0], str(folder / "reached"), str(folder / "begun"), *options], lambda data: (act(data), None)[1])
    atheris.Fuzz()


def run(target: str, seconds: int) -> dict[str, object]:
    """One target in a process of its own; what it reached goes into the corpus."""
    with tempfile.TemporaryDirectory(prefix="lineup-fuzz-") as name:
        folder = Path(name)
        for part in ("begun", "reached"):
            (folder / part).mkdir()
        for number, data in enumerate(seeds()[target]):
            (folder / "begun" / f"{number:06}").write_bytes(data)
        command = [sys.executable, "-m", "tests.fuzz.guided", "--one", target, name, str(seconds)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 300, check=False)
        found = [path.read_bytes() for path in folder.glob("found-*")]
        reached = [path.read_bytes() for path in (folder / "reached").iterdir()]
        keep(target, found, reached)
        said = {"target": target, "inputs": _inputs_of(done.stderr), "reached": len(reached), "found": len(found)}
        return said if said["inputs"] else {**said, "said": done.stderr[-600:]}


def _inputs_of(log: str) -> int:
    """How many the fuzzer says it gave: the number of its last line, `#12345 DONE ...`."""
    lines = [line for line in log.splitlines() if "DONE" in line and "#" in line]
    return int(lines[-1].split("#")[1].split()[0]) if lines else 0


def keep(target: str, found: list[bytes], reached: list[bytes]) -> None:
    """Add to the corpus of a target."""
    short = sorted((one for one in reached if len(one) <= MAX_KEPT_BYTES), key=len)
    known = kept(target)
    lines = dict.fromkeys(one.hex() for one in (*known, *found, *short[: max(0, MAX_KEPT - len(known))]) if one)
    CORPUS.mkdir(exist_ok=True)
    (CORPUS / f"{target}.txt").write_text("\n".join(lines) + "\n", "ascii")


def main(arguments: list[str]) -> int:
    """Fuzz what is named, or all."""
    if arguments[0] == "--one":
        fuzz(arguments[1], Path(arguments[2]), int(arguments[3]))
        return 0
    said = [run(target, int(arguments[0])) for target in arguments[1:] or TARGETS]
    for one in said:
        print(json.dumps(one), flush=True)
    return int(any(one["found"] for one in said))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
