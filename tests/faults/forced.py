"""A program of the product, run with chosen `except` handlers forced: `-m tests.faults.forced NOTES HANDLERS MODULE ARGUMENTS...`.

NOTES is the file for the names of the handlers that were entered, HANDLERS a JSON list of those to force (noting.py), MODULE what is run
as `python -m` runs it. They are armed by SIGUSR1, when the program is at work: what breaks at a start is the matter of forced_each.
"""

from __future__ import annotations

import json
import runpy
import signal
import sys

from tests.faults import noting

if __name__ == "__main__":
    _, notes, names, module, *rest = sys.argv
    forced = noting.install(notes)  # before the first import of the product
    signal.signal(signal.SIGUSR1, lambda *_: forced.update(json.loads(names)))
    sys.argv = [module, *rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
