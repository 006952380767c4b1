"""What is written down about a life: what the worker said, what it was answered, and how one body of a frame is heard."""

from __future__ import annotations

from dataclasses import dataclass, field

from lineup_sdk.protocol.framing import ProtocolViolation, decode_item
from lineup_sdk.protocol.limits import MAX_WORKER_FRAME_BYTES
from lineup_sdk.protocol.messages import FROM_WORKER, IDENTITY_KEYS, JsonObject, Message
from lineup_sdk.protocol.parsing import parse_frame

ENDINGS = ("tool.complete", "tool.fail", "tool.cancel")


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """One frame of the worker. trouble = why the wire refuses it, else empty; at = seconds since the life began."""

    at: float
    size: int
    trouble: str = ""
    frame: JsonObject = field(default_factory=dict)
    message: Message | None = None
    request_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What the kernel said to a request of the worker; code is empty when it was accepted."""

    to: Message
    request_id: int
    code: str


Entry = Heard | Answered | Message  # a message is one that the script said


def hear(body: bytes, at: float) -> Heard:
    """Read a frame as the kernel reads it."""
    if len(body) > MAX_WORKER_FRAME_BYTES:
        return Heard(at=at, size=len(body), trouble="frame_size")
    frame: JsonObject = {}
    try:
        frame = decode_item(body)
        if not IDENTITY_KEYS.isdisjoint(frame):
            return Heard(at=at, size=len(body), trouble="identity", frame=frame)
        message, request_id = parse_frame(frame, FROM_WORKER)
    except ProtocolViolation as violation:
        return Heard(at=at, size=len(body), trouble=violation.reason, frame=frame)
    return Heard(at=at, size=len(body), frame=frame, message=message, request_id=request_id)


def framed(body: bytes) -> bytes:
    """Put the length before a body, whatever it is."""
    return len(body).to_bytes(4, "big") + body
