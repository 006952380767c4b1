"""The promises of the kernel (INVARIANTS, groups A to H), each with its check: what holds is checked the same way everywhere.

    check_all(db)            rows of a kernel's database, after any turn, at any start, after any death
    check_trace(trace)       everything that was decided and that left, in order, at the end of a run (tests/trace.py)
    PROCESS_CHECKS[number]   over facts that the test of a real process, or of a real browser (49: its half), brings

A check returns one line a violation, `INV-NN: ...`, and nothing when the promise holds. Users: the model (tests/model), the tests of
faults and of processes; tests/store/test_invariants.py and tests/model/test_teeth.py show that each goes red.

Open until their parts exist:
  06 33 35   the half of the relay: its cursor, its resends and its acknowledgements (the kernel's half is checked here)
  58 59      bundles
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import apsw

from tests import invariants_of_browser as browser
from tests import invariants_of_processes as processes
from tests import invariants_of_questions as questions
from tests import invariants_of_rows as rows
from tests import invariants_of_traced_instances as traced_instances
from tests import invariants_of_traced_questions as traced_questions
from tests import invariants_of_traces as traces
from tests.invariants_of_rows import check_inv_10, watch_inv_10
from tests.trace import Trace

__all__ = [
    "CHECKS",
    "OPEN",
    "PROCESS_CHECKS",
    "TRACE_CHECKS",
    "check_after_a_turn",
    "check_all",
    "check_inv_10",
    "check_trace",
    "watch_inv_10",
]

Check = Callable[[apsw.Connection], list[str]]
TraceCheck = Callable[[Trace], list[str]]

OPEN: tuple[str, ...] = ()  # of 06, 33 and 35 the kernel's half is checked
_PREFIX = "check_inv_"


def _checks_of(*modules: Any) -> dict[str, Any]:
    found = [(name.removeprefix(_PREFIX), module, name) for module in modules for name in vars(module) if name.startswith(_PREFIX)]
    return {number: getattr(module, name) for number, module, name in sorted(found, key=lambda one: one[0])}


_NEEDS_A_WATCH = {"10", "38"}
CHECKS: Mapping[str, Check] = {number: check for number, check in _checks_of(rows, questions).items() if number not in _NEEDS_A_WATCH}
TRACE_CHECKS: Mapping[str, TraceCheck] = {
    number: check
    for number, check in _checks_of(traces, traced_instances, traced_questions).items()
    if number != "45"  # compares two
}
PROCESS_CHECKS: Mapping[str, Callable[..., list[str]]] = _checks_of(processes, browser)

_AT_THE_END = {"12", "14", "56"}  # another validator for every input and result, and every word of the audit: too slow for every step
_AFTER_A_TURN = [check for number, check in CHECKS.items() if number not in _AT_THE_END]


def check_after_a_turn(db: apsw.Connection) -> list[str]:
    """What is cheap enough to look at after every step. The connection is one that watch_inv_10 was called for."""
    return [line for check in (*_AFTER_A_TURN, check_inv_10) for line in check(db)]


def check_all(db: apsw.Connection) -> list[str]:
    """Every check that needs only the rows."""
    return [line for check in (*CHECKS.values(), rows.check_chain_of_inv_55) for line in check(db)]


def check_trace(trace: Trace) -> list[str]:
    """Every check that needs only the trace of a run."""
    return [line for check in (*TRACE_CHECKS.values(), traced_instances.check_processes) for line in check(trace)]
