"""The kernel, with one named moment of one turn at which it dies or breaks: `-m tests.faults.dying_kernel MOMENT COMMAND NOTES serve ...`.

Moments, in their order:
  applied    the turn's rows are written, the commit has not begun: kill -9
  committed  the commit is done, nothing of its effects has left: kill -9
  broken     an exception nobody expects, whose text quotes everything the turn wrote
  full       the disk is full when the turn is committed for the first time
  never      it lives on
NOTES is a file for the names of the `except` handlers that are entered (noting.py), or `-`: only then may a warm parent fork it, for it
has to be there before the first import of the kernel.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from tests.faults import noting

if __name__ == "__main__" and sys.argv[3] != "-":
    noting.install(sys.argv[3])

import kernel.__main__ as program
from kernel import serve
from kernel.core.decision import Decision
from kernel.database import StorageFailed
from kernel.store import Store
from lineup_sdk.protocol.codes import Code


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DyingStore(Store):
    """A store that knows its moment."""

    moment = command = ""
    _is_near = False
    _was_full = False

    def apply(self, decision: Decision, *, command: str, **more: Any) -> None:
        """As the real one, up to its moment."""
        super().apply(decision, command=command, **more)
        if command != self.command:
            return
        self._is_near = True
        if self.moment == "applied":
            _die()
        if self.moment == "broken":
            raise RuntimeError(f"{decision}")

    def commit(self) -> None:
        """As the real one, up to its moment."""
        if self._is_near and self.moment == "full" and not self._was_full:
            self._was_full = True  # once: then there is room
            self.abandon()  # as a storage that failed does: closed, what was written is undecided
            raise StorageFailed(Code.STORE_FULL)
        super().commit()
        if self._is_near and self.moment == "committed":
            _die()


def main() -> int:
    """Run a kernel of this kind."""
    DyingStore.moment, DyingStore.command, _ = sys.argv[1:4]
    del sys.argv[1:4]
    serve.Store = DyingStore  # type: ignore[attr-defined]
    return program.main()


if __name__ == "__main__":
    sys.exit(main())
