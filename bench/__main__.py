"""`python -m bench`: measure everything once, print a table and what grew since the run before, keep the JSON.

It fails when something does not work, never on a number.
"""

from __future__ import annotations

import sys

from bench import counts, growth, measures, report
from bench.kernel_process import ROOT


def main() -> int:
    """Run the bench."""
    if not measures.PEER_PYTHON.exists():
        print(f"the peer is not installed: {measures.PEER_PYTHON} is missing; `make bench` installs it", file=sys.stderr)
        return 2
    run: report.Json = {}
    _say("calls, launches, memory")
    with measures.contest() as (contest, running, launched):
        run["machine"] = report.machine(contest.peer.hello["versions"])
        run["launch"] = launched
        run["calls"] = measures.calls(contest)
        run["memory"] = measures.memory(running, contest.peer)
    _say("starts")
    run["starts"] = measures.starts()
    _say("counts")
    run["counts"] = counts.per_call()
    before = growth.newest()
    path = report.keep(run)
    print(report.table(run))
    for line in growth.grown(run, before) if before else ():
        print(f"grown: {line}")
    _say(f"kept as {path.relative_to(ROOT)}")
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
