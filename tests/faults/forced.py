"""A program of the product, run with chosen `except` handlers forced: `-m tests.faults.forced NOTES HANDLERS MODULE ARGUMENTS...`.

NOTES is the file for the names of the handlers that were entered, HANDLERS a JSON list of the names to force, MODULE what is run as
`python -m` runs it (noting.py).
"""

from __future__ import annotations

import json
import runpy
import sys

from tests.faults import noting

if __name__ == "__main__":
    _, notes, forced, module, *rest = sys.argv
    noting.install(notes, json.loads(forced))  # before the first import of the product
    sys.argv = [module, *rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
