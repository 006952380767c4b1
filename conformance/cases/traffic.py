"""Everything the worker said in the tour, frame by frame (SPEC 2), and the Manifest it comes with (SPEC 4.1)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from conformance.case import MANIFEST_CASE, NotApplicable, case, require
from conformance.targets import misfits
from conformance.trace import Heard
from conformance.world import World
from lineup_sdk.protocol.limits import MAX_LOG_TEXT_BYTES

_REASON = re.compile("[a-z0-9_]{1,64}")
_MAX_ID = 128
_MAX_MESSAGE = 1_000
_STREAMS = ("log", "stderr", "stdout")  # no set: what a worker said there may have no hash
_OF_THE_CODING = frozenset(
    {"cbor", "depth", "integer_range", "key", "lone_surrogate", "not_a_map", "number", "tag", "trailing_bytes", "value_kind"}
)


def _frames(world: World) -> Iterator[Heard]:
    for life in world.seen().lives:
        yield from (entry for entry in life.trace if isinstance(entry, Heard))


def _said(world: World, kind: str) -> list[dict[str, Any]]:
    """The frames of a type as they came: one beyond its bounds is no message."""
    found = [heard.frame for heard in _frames(world) if heard.frame.get("type") == kind]
    if not found:
        world.require_seen(kind)
    return found


def _free_of(troubles: frozenset[str], what: str) -> Any:
    async def run(world: World) -> None:
        for heard in _frames(world):
            require(heard.trouble not in troubles, f"{what} ({heard.trouble}), as {heard.frame.get('type', 'a frame')!s:.40}")

    return run


async def uses_an_id_once(world: World) -> None:
    """An id is not used again while its reply is owed."""
    session = await world.greet()
    session.hold("inbox.subscribe", "lifecycle.started", "timeline.subscribe", "tools.subscribe")
    session.wire.write(world.welcome())
    await session.until(lambda: session.held, "a first request")
    await session.settle()
    ids = [request_id for _, request_id in session.held]
    require(len(ids) == len(set(ids)), "an id came again while its reply was owed")


async def writes_short_lines(world: World) -> None:
    """A piece of log is at most 8 KiB and of a stream that exists."""
    for frame in _said(world, "log.write"):
        require(len(str(frame.get("text")).encode()) <= MAX_LOG_TEXT_BYTES, "a log.write has more than 8 KiB")
        require(frame.get("stream") in _STREAMS, "a log.write is of a stream that does not exist")


async def names_things_shortly(world: World) -> None:
    """Every id that the worker names has 1 to 128 characters, every message at most 1,000."""
    for heard in _frames(world):
        texts = {name: len(value) for name, value in heard.frame.items() if isinstance(value, str)}
        wrong = [name for name, length in texts.items() if name.endswith("_id") and not 0 < length <= _MAX_ID]
        wrong += ["message"] if texts.get("message", 0) > _MAX_MESSAGE else []
        require(not wrong, f"{wrong[:1]} of {heard.frame.get('type')} is empty or too long")


async def gives_reasons_that_are_tokens(world: World) -> None:
    """A failure has a short token as its reason."""
    for frame in _said(world, "tool.fail"):
        require(_REASON.fullmatch(str(frame.get("reason"))), "a reason is no token of [a-z0-9_], 1 to 64")


async def has_a_good_manifest(world: World) -> None:
    """The Manifest fits its published schema, and its tools are of its scope."""
    manifest = _manifest(world)
    errors = misfits(manifest)
    require(not errors, f"the Manifest does not fit manifest.schema.json at {errors[:3]}")
    scope = manifest["app_scope"]
    foreign = [t["id"] for t in manifest["tools"] if t["id"].rpartition(".")[0] != scope or t["target"]["app_scope"] != scope]
    require(not foreign, f"{foreign[:1]} is of another scope")


async def has_true_digests(world: World) -> None:
    """Every file has the size and digest that the Manifest says."""
    app = world.target.app
    data = {**app.files, **app.surface_files}
    for file in _manifest(world)["entry"]["files"]:
        found = data[file["name"]]
        is_true = (len(found), sha256(found).hexdigest()) == (file["size"], file["sha256"])
        require(is_true, f"{file['name']} has another size or digest: python -m workers.digests writes them")


def _manifest(world: World) -> dict[str, Any]:
    if not world.target.app.manifest:
        raise NotApplicable("a command has no Manifest")
    return world.target.app.manifest


_NEEDS = (1, 6)
_TYPES = frozenset({"type"})

CASES = (
    case(
        180,
        "2.1",
        _free_of(_OF_THE_CODING, "a frame is not in the strict form"),
        "Every frame of the worker is one CBOR map in the strict form.",
        needs=_NEEDS,
    ),
    case(
        181,
        "2.1",
        _free_of(frozenset({"frame_size"}), "a frame is too large or empty"),
        "No frame of the worker is over 64 KiB, or empty.",
        needs=_NEEDS,
    ),
    case(182, "2.2", _free_of(_TYPES, "a type does not exist"), "Every frame of the worker has a type that exists.", needs=_NEEDS),
    case(
        183,
        "2.2",
        _free_of(frozenset({"field", "field_kind", "field_missing"}), "the fields are others"),
        "Every frame of the worker has exactly the fields of its type.",
        needs=_NEEDS,
    ),
    case(184, "2.5", _free_of(frozenset({"id"}), "a request has no good id"), "Every request has an id of 1 to 2^53-1.", needs=_NEEDS),
    case(185, "2.3", _free_of(frozenset({"identity"}), "it says who it is"), "No frame of the worker says who speaks.", needs=_NEEDS),
    case(186, "2.5", uses_an_id_once, needs=(1, 6, 21)),
    case(187, "2.10", writes_short_lines, needs=_NEEDS),
    case(188, "16", names_things_shortly, needs=_NEEDS),
    case(189, "6.5", gives_reasons_that_are_tokens, needs=_NEEDS),
    case(MANIFEST_CASE, "4.1", has_a_good_manifest),
    case(191, "4.1", has_true_digests),
)
