"""Reading a write-ahead log from outside, to see whether it still holds all that was committed (SPEC 12).

SQLite ends a replay at the first frame that does not fit, without a word: one rotten bit in the log would drop every acknowledged
commit behind it. So the frames are counted before the connection opens, and compared with what the replay took.

Rules:
1. Only read before the connection opens, or on a copy: opening and closing the file would drop this process's locks on it.
2. A frame is of this round when one of its two salts is the header's: a frame of an older round has two others, a rotten one keeps one.
3. The last commit may be torn, since nobody was told of it yet; anything before it may not.
4. It counts on SQLite's ordinary file layer, which says that a write harms no byte beside it (POWERSAFE_OVERWRITE). Without that, SQLite
   fills the sector behind a commit with copies of its last frame, and a torn copy would look like a lost commit.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import BinaryIO

HEADER_BYTES = 32
_FRAME_HEADER = struct.Struct(">IIIIII")  # page, pages after the commit or 0, two salts, two checksums
_MAGIC = {0x377F0682: "<", 0x377F0683: ">"}  # magic -> byte order of the checksum


@dataclass(frozen=True, slots=True)
class WalFacts:
    """What a log says of itself. Frames are counted from 1; 0 = none."""

    is_header_rotten: bool = False  # there are frames, and the header that would admit them is broken
    last_frame: int = 0  # of this round
    last_commit: int = 0  # the frame that ends the last transaction
    commit_before: int = 0  # the one that ends the transaction before

    def has_lost(self, frames_replayed: int) -> bool:
        """True when a replay of so many frames dropped a transaction that was acknowledged."""
        return self.is_header_rotten or frames_replayed < self.commit_before

    def is_torn(self, frames_replayed: int) -> bool:
        """True when something of a last transaction stands in the file and was not replayed."""
        return frames_replayed < self.last_frame


def read_wal(file: BinaryIO, size_bytes: int) -> WalFacts:
    """Count the frames of a log of that size, from the start of the file."""
    if size_bytes <= HEADER_BYTES:
        return WalFacts()
    header = file.read(HEADER_BYTES)
    if not _is_sound(header):
        return WalFacts(is_header_rotten=True)
    page_bytes, _, salt_1, salt_2 = struct.unpack_from(">IIII", header, 8)
    last_frame = last_commit = commit_before = 0
    for frame in range(1, (size_bytes - HEADER_BYTES) // (_FRAME_HEADER.size + page_bytes) + 1):
        head = file.read(_FRAME_HEADER.size)
        file.seek(page_bytes, 1)
        if len(head) < _FRAME_HEADER.size:
            break
        _, pages_after, frame_salt_1, frame_salt_2, _, _ = _FRAME_HEADER.unpack(head)
        if frame_salt_1 == salt_1 or frame_salt_2 == salt_2:
            last_frame = frame
            if pages_after:
                last_commit, commit_before = frame, last_commit
    return WalFacts(last_frame=last_frame, last_commit=last_commit, commit_before=commit_before)


def _is_sound(header: bytes) -> bool:
    magic, version = struct.unpack_from(">II", header)
    if magic not in _MAGIC or version != 3007000:
        return False
    order = _MAGIC[magic]
    sum_1 = sum_2 = 0
    for low, high in struct.iter_unpack(order + "II", header[:24]):
        sum_1 = (sum_1 + low + sum_2) & 0xFFFFFFFF
        sum_2 = (sum_2 + high + sum_1) & 0xFFFFFFFF
    return struct.unpack_from(">II", header, 24) == (sum_1, sum_2)
