"""That many homes of the model (tests/model), each from its own number: `python -m tests.torture.model_steps FIRST RUNS`, and
`... seed NUMBER` for one of them, which tells its steps.

Rules:
1. The rules are those of the model, every promise is looked at after every step and at the end of a home: only who draws the lots is
   another. Hypothesis draws in `make test`, where it also finds the shortest way to what it broke; here it would take a third of the time.
2. Half of the homes do without some rules, so that what usually ends a story has a chance not to.
"""

from __future__ import annotations

import json
import random
import sys

from tests.model.steps import RULE_NAMES, draw_step
from tests.model.test_model import STEPS_A_RUN, Anything

LEFT_OUT = 0.3  # of the rules, in a home that does without some


def home(seed: int) -> tuple[int, str, list[str]]:
    """One home from its making to the end of all faults: how many steps it had, what broke, and the steps."""
    chance = random.Random(seed)
    without = frozenset(name for name in RULE_NAMES if chance.random() < LEFT_OUT) if chance.random() < 0.5 else frozenset()
    machine, done = Anything(), []
    try:
        machine.begin(is_used=chance.random() < 0.75)
        for _ in range(STEPS_A_RUN):
            name, arguments = draw_step(chance, without)
            done.append(f"{name}({', '.join(f'{name}={value!r}' for name, value in arguments.items())})")
            getattr(machine, name)(**arguments)
            machine.check()
        machine.teardown()
    except Exception as error:
        machine.kernel.end()
        return len(done), f"{type(error).__name__}: {error}"[:1500], done
    return len(done), "", done


def main(first: int, runs: int) -> dict[str, object]:
    """Run them; what broke is told with the steps that led to it."""
    steps = 0
    violations: dict[str, str] = {}
    for seed in range(first, first + runs):
        done, broken, told = home(seed)
        steps += done
        if broken:
            violations[f"seed {seed}"] = f"{broken} | {'; '.join(told)}"[:4000]
    return {"done": steps, "runs": runs, "violations": violations}


if __name__ == "__main__":
    if sys.argv[1] == "seed":
        _, broken, told = home(int(sys.argv[2]))
        sys.stdout.write("\n".join([*told, broken or "every promise holds", ""]))
    else:
        sys.stdout.write(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]))) + "\n")
