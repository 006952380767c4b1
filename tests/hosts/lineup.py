"""The `lineup` command as a process of the tests: most are forked by a warm parent, some are executed, as a person's shell does it.

    popen = lineup.start(["agent", "--no-wait"], stdin=PIPE, ...)      more: as of subprocess.Popen
    done = lineup.run(["ps"], timeout=SECONDS, env=...)                its stdout and stderr are captured

Rules:
1. The first and then every eighth is executed, whatever it is: the way in, and imports that come when they are needed, stay in the tests.
2. A test about how the program begins (streams, a broken environment, a first journey) executes all it starts.
"""

from __future__ import annotations

import atexit
import itertools
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from tests.processes.warm_parent import WarmParent

EXECUTED_EVERY = 8
PROGRAM = (sys.executable, "-P", "-m", "hosts.cli")
MODULE = "tests.hosts.every_verb"  # of a warm parent
_PARENT = WarmParent(MODULE)
_NUMBERS = itertools.count()
atexit.register(_PARENT.close)


def start(words: Sequence[str], *, is_executed: bool = False, **more: Any) -> subprocess.Popen[Any]:
    """Start the command with these words. is_executed: it is no fork."""
    if next(_NUMBERS) % EXECUTED_EVERY == 0 or is_executed:
        return subprocess.Popen([*PROGRAM, *words], **more)
    return _PARENT.popen(words, **more)


def run(
    words: Sequence[str], *, timeout: float, stdin: bytes | str | None = None, is_executed: bool = False, **more: Any
) -> subprocess.CompletedProcess[Any]:
    """Run the command to its end. stdin: what it reads; nothing is added to it. Raises: TimeoutExpired, the process ended."""
    pipe = subprocess.PIPE
    with start(words, is_executed=is_executed, stdin=pipe, stdout=pipe, stderr=pipe, **more) as popen:
        try:
            out, errors = popen.communicate(stdin, timeout)
        except BaseException:
            popen.kill()
            raise
    return subprocess.CompletedProcess([*PROGRAM, *words], popen.returncode, out, errors)
