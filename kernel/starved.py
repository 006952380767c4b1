"""What becomes of commands while the disk is full (SPEC 12): a kernel that cannot write reads on, refuses what can be asked again, and
lets everything else wait.

Rules:
1. Who waits for a reply is refused store_full at once, and so is a worker's every message; worker refusals are counted, and the count
   is the first thing that is written when there is room again.
2. What happened (a worker died, a view left, an Agent came) and what the doors had handed over waits in its order and is lost to nobody.
3. Deadlines wait: the passing of time is looked at again when there is room.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel.core.decision import Origin, Speaker
from kernel.core.events import StoreRecovered, TimePassed
from kernel.database import StorageFailed
from lineup_sdk.protocol.codes import Code

RETRY_SECONDS = 5.0
MAX_WAITING = 10_000  # comings and goings; a kernel that is starved for longer ends, and takes up what is stored at its next start


@dataclass(slots=True)
class Starved:
    """One time without room. refused: how many messages of workers were refused in it."""

    refused: int = 0
    waiting: int = 0

    def refuses(self, origin: Origin) -> bool:
        """True for what is refused now; a worker's is counted."""
        if origin.speaker is Speaker.WORKER:
            self.refused += 1
            return True
        return origin.speaker is Speaker.VIEW and origin.request_id is not None

    def keeps(self, command: object) -> bool:
        """True for what has to wait. Raises: StorageFailed(store_full) when too much does."""
        match command:
            case TimePassed():
                return False
            case StoreRecovered(refused=refused):  # there was no room after all
                self.refused += refused
                return False
        self.waiting += 1
        if self.waiting > MAX_WAITING:
            raise StorageFailed(Code.STORE_FULL)
        return True
