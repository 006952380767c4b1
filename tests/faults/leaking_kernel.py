"""A kernel that leaves something behind on purpose, to see that it is told: `-m tests.faults.leaking_kernel serve ...`, or as the module of
a warm parent. LEAKS says what.

    descriptor     with every worker that ends a descriptor stays open
    view           with every view that leaves a descriptor stays open
    zombie         with every worker that ends a child ends, too, and nobody takes its end
    orphan         a process that outlives the kernel
    environment    the zygote, and so every worker, gets to know where the home is
    memory         what waits for a worker that does not read has no bound
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable

import kernel.__main__ as program
from kernel import launch, supervisor
from kernel.presence import Presence
from lineup_sdk.channel import Channel

LEAKS = "LINEUP_TEST_LEAKS"  # a warm parent hands its environment on
_ORPHAN_SECONDS = 120  # longer than it is waited for, and no longer
_KEPT: list[object] = []


def _keep_a_descriptor() -> None:
    _KEPT.append(os.open(os.devnull, os.O_RDONLY))


def _keep_a_zombie() -> None:
    _KEPT.append(subprocess.Popen([sys.executable, "-S", "-c", "pass"], stdin=subprocess.DEVNULL))


def _leave_an_orphan() -> None:
    if not os.fork():
        os.setsid()
        time.sleep(_ORPHAN_SECONDS)
        os._exit(0)


def _tell_the_zygote() -> None:
    home = sys.argv[sys.argv.index("--home") + 1]
    launch.ENVIRONMENT = {**launch.ENVIRONMENT, "LINEUP_HOME": home}


def _forget_the_bound() -> None:
    Channel.__init__.__kwdefaults__["max_queued_bytes"] = sys.maxsize


def _keep_what_a_view_held() -> None:
    real = Presence.host_closed

    def host_closed(presence: Presence, *, is_view: bool) -> None:
        _keep_a_descriptor()
        real(presence, is_view=is_view)

    Presence.host_closed = host_closed  # type: ignore[method-assign]


_AT_ONCE = {
    "environment": _tell_the_zygote,
    "memory": _forget_the_bound,
    "orphan": _leave_an_orphan,
    "view": _keep_what_a_view_held,
}


def main() -> int:
    """Run a kernel of this kind."""
    leaks = os.environ[LEAKS]
    if at_once := _AT_ONCE.get(leaks):
        at_once()
    else:
        _leak_with_every_end({"descriptor": _keep_a_descriptor, "zombie": _keep_a_zombie}[leaks])
    return program.main()


def _leak_with_every_end(leak: Callable[[], None]) -> None:
    real = supervisor._death_of  # every worker's end comes by here

    def death_of(*arguments: object) -> object:
        leak()
        return real(*arguments)  # type: ignore[arg-type]

    supervisor._death_of = death_of  # type: ignore[assignment]


if __name__ == "__main__":
    sys.exit(main())
