"""A zygote that leaves out named steps and still reports them as proved. For tests alone: it shows that an attack which the seal
stops does succeed without it, so that the probe bites. Arguments: the real program, the steps, then as the real program.
"""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from types import ModuleType


def load_program(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("zygote_program", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def without(steps, left_out):
    return tuple(replace(s, apply=lambda _: None, prove=lambda _: "left out") if s.name in left_out else s for s in steps)


def main() -> None:
    program_path, names, control_fd, kernel_pid, *import_paths = sys.argv[1:]
    program = load_program(program_path)
    program.prepare_imports(import_paths)
    from workers.launcher import birth, seal

    left_out = {name for name in names.split(",") if not name.startswith("cpu=")}
    seal.STEPS = without(seal.STEPS, left_out)
    birth.STEPS = tuple(s for s in birth.STEPS if s.name not in left_out or s.name in {"landlock", "system_calls"})
    for name in names.split(","):
        if name.startswith("cpu="):
            seal.LIMITS = tuple((n, k, int(name[4:]) if n == "RLIMIT_CPU" else v) for n, k, v in seal.LIMITS)
    program.run(int(control_fd), int(kernel_pid))


if __name__ == "__main__":
    main()
