"""`python -m bench`: measure everything once, print a table and what grew since the run before, keep the JSON.

`--only kernel` or `--only web` measures that part alone. It fails when something does not work, never on a number.
"""

from __future__ import annotations

import argparse
import sys

from bench import counts, growth, measures, report, web
from bench.kernel_process import ROOT

PARTS = ("kernel", "web")


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", choices=PARTS, help="measure this part alone")
    only = parser.parse_args().only
    parts = PARTS if only is None else (only,)
    if "kernel" in parts and not measures.PEER_PYTHON.exists():
        print(f"the peer is not installed: {measures.PEER_PYTHON} is missing; `make bench` installs it", file=sys.stderr)
        return 2
    run: report.Json = {"machine": report.machine()}
    if "kernel" in parts:
        _measure_kernel(run)
    if "web" in parts:
        _say("the page")
        run["web"] = web.measure()
    before = growth.newest()
    path = report.keep(run)
    print(report.table(run))
    for line in growth.grown(run, before) if before and "counts" in run else ():
        print(f"grown: {line}")
    _say(f"kept as {path.relative_to(ROOT)}")
    return 0


def _measure_kernel(run: report.Json) -> None:
    _say("calls, launches, memory")
    with measures.contest() as (contest, running, launched):
        run["machine"]["peer"] = contest.peer.hello["versions"]
        run["launch"] = launched
        run["calls"] = measures.calls(contest)
        run["memory"] = measures.memory(running, contest.peer)
    _say("starts")
    run["starts"] = measures.starts()
    _say("counts")
    run["counts"] = counts.per_call()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
