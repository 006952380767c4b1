"""The kernel with counters around it: statements, commits, frames. Only for bench/counts.py; it is slower than the kernel it counts.

SIGUSR1 appends one JSON line with the counts so far to the file named by LINEUP_BENCH_COUNTS.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import apsw

from kernel.__main__ import main
from lineup_sdk import channel
from lineup_sdk.protocol import framing

counts = {"statements": 0, "commits": 0, "frames_in": 0, "frames_out": 0}


def count_statements(connection: apsw.Connection) -> None:
    """Count every statement a connection runs."""

    def on_statement(event: dict[str, object]) -> None:
        counts["statements"] += 1
        counts["commits"] += event.get("sql") == "COMMIT"

    connection.trace_v2(apsw.SQLITE_TRACE_STMT, on_statement)


class CountedReader(framing.FrameReader):
    """Counts whole frames."""

    def next_frame_bytes(self) -> bytes | None:
        """As FrameReader."""
        frame = super().next_frame_bytes()
        counts["frames_in"] += frame is not None
        return frame


def count_frames() -> None:
    """Count frames of every channel."""
    encode = framing.encode_frame

    def counted(frame: dict[str, object], max_frame_bytes: int) -> bytes:
        counts["frames_out"] += 1
        return encode(frame, max_frame_bytes)

    channel.encode_frame = counted  # type: ignore[attr-defined]
    channel.FrameReader = CountedReader  # type: ignore[attr-defined]


def tell(*_: object) -> None:
    """Write the counts so far."""
    with Path(os.environ["LINEUP_BENCH_COUNTS"]).open("a") as file:
        file.write(json.dumps(counts) + "\n")


if __name__ == "__main__":
    apsw.connection_hooks.append(count_statements)
    count_frames()
    signal.signal(signal.SIGUSR1, tell)
    sys.exit(main())
