"""What a worker wrote to stdout, stderr and its log: a bounded ring an instance, for the person's eyes only (SPEC 2.10, 16)."""

from __future__ import annotations

from collections import deque

RING_BYTES = 64 * 1024
MAX_RINGS = 128


class LogRings:
    """The rings of the newest instances; the oldest ring goes when there are too many."""

    def __init__(self) -> None:
        self._rings: dict[str, deque[str]] = {}
        self._sizes: dict[str, int] = {}

    def write(self, instance_id: str, stream: str, text: str) -> None:
        """Add a piece of output; the oldest pieces fall out."""
        if instance_id not in self._rings:
            while len(self._rings) >= MAX_RINGS:
                oldest = next(iter(self._rings))
                del self._rings[oldest], self._sizes[oldest]
            self._rings[instance_id], self._sizes[instance_id] = deque(), 0
        ring = self._rings[instance_id]
        piece = text if stream == "stdout" else f"[{stream}] {text}"
        ring.append(piece)
        self._sizes[instance_id] += len(piece.encode())
        while self._sizes[instance_id] > RING_BYTES:
            self._sizes[instance_id] -= len(ring.popleft().encode())

    def read(self, instance_id: str) -> str | None:
        """All that is kept of an instance, oldest first; None when it never wrote."""
        ring = self._rings.get(instance_id)
        return "".join(piece if piece.endswith("\n") else piece + "\n" for piece in ring) if ring is not None else None
