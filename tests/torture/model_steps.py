"""That many homes of the model (tests/model), other ones every time: `python -m tests.torture.model_steps FIRST RUNS`."""

from __future__ import annotations

import json
import os
import sys

RUNS = sys.argv[2]
os.environ["LINEUP_MODEL_RUNS"] = RUNS  # read when the model is imported

from hypothesis.stateful import run_state_machine_as_test  # noqa: E402

from tests.model.test_model import SETTINGS, Anything  # noqa: E402


def main() -> dict[str, object]:
    """Run them; what broke is told with the steps that led to it."""
    violations: dict[str, str] = {}
    try:
        run_state_machine_as_test(Anything, settings=SETTINGS)
    except Exception as error:
        violations[f"runs from {sys.argv[1]}"] = "\n".join([str(error), *getattr(error, "__notes__", [])])[:4000]
    return {"done": Anything.steps, "runs": int(RUNS), "violations": violations}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main()) + "\n")
