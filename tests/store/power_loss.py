"""What a disk that loses power may keep of the writes that it had not synced: any part, in any order, torn at sectors."""

from __future__ import annotations

import random

SECTOR_BYTES = 512
Op = tuple[str, int, bytes]  # write | truncate, where, what


def do(image: bytearray, op: Op) -> None:
    """Carry out an operation on the bytes of a file."""
    kind, offset, data = op
    if kind == "truncate":
        del image[offset:]
        return
    image.extend(bytes(max(0, offset - len(image))))
    image[offset : offset + len(data)] = data


def arrived(ops: list[Op], chance: random.Random) -> list[Op]:
    """Those of the operations that reached the platter, in the order they did."""
    way = chance.random()
    if way < 0.25:
        return ops
    if way < 0.4:
        return []
    if way < 0.6:
        return ops[: chance.randrange(len(ops) + 1)]
    kept = [piece for op in ops if chance.random() < 0.5 for piece in _torn(op, chance)]
    chance.shuffle(kept)
    return kept


def _torn(op: Op, chance: random.Random) -> list[Op]:
    kind, offset, data = op
    if kind != "write" or chance.random() < 0.7:
        return [op]
    pieces = range(0, len(data), SECTOR_BYTES)
    return [("write", offset + at, data[at : at + SECTOR_BYTES]) for at in pieces if chance.random() < 0.5]
