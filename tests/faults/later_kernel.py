"""The kernel on a machine whose wall clock is so many days ahead: `-m tests.faults.later_kernel DAYS MOMENT COMMAND NOTES serve ...`.

What follows DAYS is that of dying_kernel.py.
"""

from __future__ import annotations

import runpy
import sys
from datetime import datetime, timedelta, tzinfo

from kernel import clock, serve

AHEAD = timedelta(days=int(sys.argv.pop(1)))


class Later(datetime):
    """The wall clock of that machine."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        """So many days after the real one."""
        return datetime.now(tz) + AHEAD


if __name__ == "__main__":
    clock.datetime = serve.datetime = Later  # type: ignore[misc, attr-defined]
    runpy.run_module("tests.faults.dying_kernel", run_name="__main__")
