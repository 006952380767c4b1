"""JSON Merge Patch (RFC 7396) over a state of any size, at the price of the patch alone (SPEC 9.1). Pure.

A state is a Tree: its objects are dicts, everything else stands as its CBOR (`bytes`), because a merge patch never looks inside an
array. So a board of 5,000 strokes takes about its own size in memory, and its weight is known without a walk over it.

Use: `change = weigh_change(tree, patch)` says what a patch would do to the weight; `apply(tree, patch)` does it, in place.
Rules:
1. Null removes a member, an object is merged, anything else replaces. A state and a patch are objects; a new object in a patch loses
   its nulls, as the RFC says.
2. Members keep the order in which they came; `encode` writes them in it, so a snapshot and its patches give one state again.
3. A patch was checked before (kernel.core.surfaces): values of the wire, of bounded depth. Recursion here is as deep as the patch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cbor2

from lineup_sdk.protocol.messages import JsonObject

Tree = dict[str, "Tree | bytes"]

_MAP = 0xA0
_TEXT = 0x60


@dataclass(frozen=True, slots=True)
class Weight:
    """What a state weighs: bytes as CBOR, and members of objects at every depth (each costs memory whatever its size)."""

    size: int
    members: int

    def __add__(self, other: Weight) -> Weight:
        return Weight(self.size + other.size, self.members + other.members)

    def __sub__(self, other: Weight) -> Weight:
        return Weight(self.size - other.size, self.members - other.members)


EMPTY = Weight(1, 0)  # of {}


def tree_of(value: JsonObject) -> Tree:
    """The tree of an object, nulls dropped (rule 1)."""
    tree: Tree = {}
    apply(tree, value)
    return tree


def apply(tree: Tree, patch: JsonObject) -> None:
    """Change a tree in place."""
    for name, value in patch.items():
        if value is None:
            tree.pop(name, None)
        elif isinstance(value, dict):
            inner = tree.get(name)
            if not isinstance(inner, dict):
                inner = tree[name] = {}
            apply(inner, value)
        else:
            tree[name] = _leaf(value)


def weigh_change(tree: Tree, patch: JsonObject) -> Weight:
    """How much heavier a patch would make a tree; nothing is changed."""
    total = Weight(0, 0)
    count = len(tree)
    for name, value in patch.items():
        old = tree.get(name)
        if value is None:
            count -= old is not None
            total = total - _weight_of_member(name, old)
        elif isinstance(value, dict) and isinstance(old, dict):
            total = total + weigh_change(old, value)
        else:
            count += old is None
            new = tree_of(value) if isinstance(value, dict) else _leaf(value)
            total = total - _weight_of_member(name, old) + _weight_of_member(name, new)
    return total + Weight(_head_size(count) - _head_size(len(tree)), 0)


def weigh(tree: Tree) -> Weight:
    """What a tree weighs, by a walk over all of it."""
    total = Weight(_head_size(len(tree)), 0)
    for name, value in tree.items():
        total = total + _weight_of_member(name, value)
    return total


def _weight_of_member(name: str, value: Tree | bytes | None) -> Weight:
    if value is None:
        return Weight(0, 0)
    key_size = len(name.encode())
    own = Weight(_head_size(key_size) + key_size, 1)
    return own + (weigh(value) if isinstance(value, dict) else Weight(len(value), 0))


def _leaf(value: Any) -> bytes:
    return cbor2.dumps(value, canonical=True)


def _head_size(argument: int) -> int:
    """Bytes of the head of a CBOR map or text with that many members or bytes."""
    if argument < 24:
        return 1
    if argument < 0x100:
        return 2
    return 3 if argument < 0x10000 else 5


def _head(major: int, argument: int) -> bytes:
    size = _head_size(argument)
    if size == 1:
        return bytes((major | argument,))
    return bytes((major | {2: 24, 3: 25, 5: 26}[size],)) + argument.to_bytes(size - 1, "big")


def encode(tree: Tree) -> bytes:
    """The state as CBOR."""
    pieces: list[bytes] = []
    _gather(tree, pieces)
    return b"".join(pieces)


def _gather(tree: Tree, pieces: list[bytes]) -> None:
    pieces.append(_head(_MAP, len(tree)))
    for name, value in tree.items():
        key = name.encode()
        pieces.append(_head(_TEXT, len(key)) + key)
        if isinstance(value, dict):
            _gather(value, pieces)
        else:
            pieces.append(value)


def decode(state_cbor: bytes) -> Tree:
    """The tree of what `encode` wrote. Only for bytes that the kernel stored itself."""
    return tree_of(cbor2.loads(state_cbor))


def value_of(leaf: bytes) -> Any:
    """The value of a member that is no object."""
    return cbor2.loads(leaf)
