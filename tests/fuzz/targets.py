"""What is fuzzed: every border at which bytes of somebody else become values, each as a function of bytes.

A target returns whether its input was taken. It raises only when something is wrong: an exception its border does not promise, or a
property of what was taken that does not hold. That is all a fuzzer has to know (mutate.py, guided.py).
Rules:
1. The promised refusals are named, one kind a border; anything else that comes out is a finding.
2. A refusal never holds what was refused: its text is looked through for the marker that every input carries where text may be.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from functools import cached_property
from io import BytesIO
from typing import Any

import cbor2
import jsonschema

from hosts.agents.agent_lines import LineRefused, Stamps, call_id_of, read_envelope
from hosts.strict_json import JsonRefused, NotJson, read_json, write_json
from hosts.web.asks import Ask, AskRefused, Op, read_message
from kernel.core import merge_patch
from kernel.core.manifest import ManifestInvalid, parse_manifest
from kernel.core.schema import SchemaInvalid, compile_schema
from kernel.manifest_text import parse_manifest_text
from kernel.protocol.envelopes import parse_envelope, readable_message_id
from kernel.protocol.host import FROM_HOST
from kernel.protocol.strict import Denied, Invalid, parse_host, parse_worker
from kernel.wal import HEADER_BYTES, read_wal
from lineup_sdk.protocol import control
from lineup_sdk.protocol.framing import FrameReader, ProtocolViolation, check_value, decode_item, encode_frame
from lineup_sdk.protocol.limits import MAX_FRAME_BYTES, MAX_WORKER_FRAME_BYTES
from lineup_sdk.protocol.messages import FROM_WORKER, TO_WORKER, Reply, to_frame
from lineup_sdk.protocol.parsing import check_reply, parse_frame

MARKER = "m4rk3r"  # stands in every text that the mutator makes up
Target = Callable[[bytes], bool]


class Found(AssertionError):
    """A property does not hold."""


def _require(is_so: bool, what: str) -> None:
    if not is_so:
        raise Found(what)


def _require_silent(refusal: object) -> None:
    _require(MARKER not in str(refusal), "a refusal holds what was refused")


def _decoded(data: bytes) -> dict[str, Any] | None:
    try:
        return decode_item(data)
    except ProtocolViolation as refusal:
        _require_silent(refusal)
        return None


def frame(data: bytes) -> bool:
    """The decoder: what it takes is of the wire, and comes back the same."""
    value = _decoded(data)
    if value is None:
        return False
    check_value(value)
    again = cbor2.dumps(value)
    _require(cbor2.dumps(decode_item(again)) == again, "a frame does not come back")
    return True


def stream(data: bytes) -> bool:
    """The splitter, fed in pieces: the same frames as fed at once, or the same refusal."""
    step = 1 + zlib.crc32(data) % 97
    pieces = [data[at : at + step] for at in range(0, len(data), step)]
    _require(_frames_of(pieces) == _frames_of([data]), "the pieces of a stream matter")
    return bool(_frames_of([data])[0])


def _frames_of(pieces: list[bytes]) -> tuple[list[bytes], str]:
    reader = FrameReader(MAX_WORKER_FRAME_BYTES)
    came: list[bytes] = []
    try:
        for piece in pieces:
            reader.feed(piece)
            while (body := reader.next_frame()) is not None:
                came.append(encode_frame(body, MAX_FRAME_BYTES))
    except ProtocolViolation as refusal:
        _require_silent(refusal)
        return came, refusal.reason
    return came, ""


def worker(data: bytes) -> bool:
    """A worker's message: the kernel's border, and the SDK's own, which may be wider and never narrower."""
    value = _decoded(data)
    if value is None:
        return False
    try:
        message, number = parse_worker(value)
    except (Denied, ProtocolViolation) as refusal:
        _require_silent(refusal)
        return False
    _require(parse_frame(value, FROM_WORKER) == (message, number), "the two ends read a frame differently")
    _require(parse_worker(to_frame(message, number)) == (message, number), "a message does not come back")
    return True


def to_worker(data: bytes) -> bool:
    """The kernel's message at the SDK's border, and a reply to every kind of request."""
    value = _decoded(data)
    if value is None:
        return False
    try:
        message, _ = parse_frame(value, TO_WORKER)
    except ProtocolViolation as refusal:
        _require_silent(refusal)
        return False
    for kind in FROM_WORKER.values() if isinstance(message, Reply) else ():
        try:
            check_reply(message, kind)
        except ProtocolViolation as refusal:
            _require_silent(refusal)
    return True


def host(data: bytes) -> bool:
    """A view's, admin's or Agent's message."""
    value = _decoded(data)
    if value is None:
        return False
    try:
        message, number = parse_host(value)
    except Invalid as refusal:
        _require_silent(json.dumps(refusal.refusal.as_json()))
        return False
    except ProtocolViolation as refusal:
        _require_silent(refusal)
        return False
    _require(type(message) in FROM_HOST.values(), "a message of another wire")
    _require(parse_host(to_frame(message, number)) == (message, number), "a message does not come back")
    return True


def envelope(data: bytes) -> bool:
    """An Agent's envelope."""
    value = _decoded(data)
    if value is None:
        return False
    readable_message_id(value)
    try:
        command = parse_envelope(value)
    except Invalid as refusal:
        _require_silent(json.dumps(refusal.refusal.as_json()))
        return False
    _require(command == parse_envelope(dict(reversed(value.items()))), "the order of keys matters")
    return True


def manifest(data: bytes) -> bool:
    """A Manifest, with the schemas in it."""
    value = _decoded(data)
    if value is None:
        return False
    try:
        parsed = parse_manifest(value)
    except ManifestInvalid as refusal:
        _require_silent(refusal.reason)
        return False
    again = parse_manifest(value)
    _require(parsed == again, "a Manifest is read differently each time")
    for part in (parsed, parsed.entry, *parsed.tools):
        facts = [name for name, one in vars(type(part)).items() if isinstance(one, property | cached_property)]
        _require(
            all(getattr(part, name) is getattr(part, name) or getattr(part, name) == getattr(part, name) for name in facts), "facts change"
        )
    return True


def manifest_text(data: bytes) -> bool:
    """A Manifest's file."""
    try:
        parsed = parse_manifest_text(data)
    except ManifestInvalid as refusal:
        _require_silent(refusal.reason)
        return False
    _require(parsed == parse_manifest(json.loads(data)), "text and value are read differently")
    return True


def schema(data: bytes) -> bool:
    """A schema and a value: what is admitted judges as the reference does."""
    value = _decoded(data)
    if value is None:
        return False
    try:
        compiled = compile_schema(value.get("schema"))
    except SchemaInvalid as refusal:
        _require_silent(refusal.reason)
        return False
    given = value.get("value")
    mismatch = compiled.check(given)
    if mismatch is not None:
        _require_silent(json.dumps({**mismatch.detail, "pointer": ""}))  # a pointer names keys, of any length the schema knows
    if not _has_bytes(given) and zlib.crc32(data) % 8 == 0:  # the reference is slow
        fits = jsonschema.Draft202012Validator(compiled.document).is_valid(given)
        _require(fits == (mismatch is None), "the reference judges otherwise")
    return mismatch is None


def _has_bytes(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_bytes, value.values()))
    return any(map(_has_bytes, value)) if isinstance(value, list) else isinstance(value, bytes)


def patch(data: bytes) -> bool:
    """A merge patch over a state: the result and its weight are those of a plain reading of RFC 7396."""
    value = _decoded(data)
    if value is None or not isinstance(value.get("state"), dict) or not isinstance(value.get("patch"), dict):
        return False
    state = _merged({}, value["state"])
    tree = merge_patch.tree_of(value["state"])
    before, change = merge_patch.weigh(tree), merge_patch.weigh_change(tree, value["patch"])
    merge_patch.apply(tree, value["patch"])
    encoded = merge_patch.encode(tree)
    _require(_plain(cbor2.loads(encoded)) == _plain(_merged(state, value["patch"])), "a patch gives another state")
    _require(merge_patch.weigh(tree) == before + change, "a patch was weighed wrongly")
    _require(merge_patch.weigh(tree).size == len(encoded), "a state weighs otherwise than its bytes")
    _require(merge_patch.encode(merge_patch.decode(encoded)) == encoded, "a state does not come back")
    leaves = [leaf for leaf in tree.values() if isinstance(leaf, bytes)]
    _require(all(cbor2.dumps(merge_patch.value_of(leaf), canonical=True) == leaf for leaf in leaves), "a leaf does not come back")
    return True


def _merged(target: Any, change: Any) -> Any:
    if not isinstance(change, dict):
        return change
    merged = dict(target) if isinstance(target, dict) else {}
    for name, member in change.items():
        if member is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged(merged.get(name), member)
    return merged


def _plain(value: Any) -> bytes:
    return cbor2.dumps(value, canonical=True)


def json_text(data: bytes) -> bool:
    """JSON of a command line: what is taken is of the wire, and comes back."""
    text = data.decode(errors="surrogatepass") if _is_text(data) else data.decode("latin-1")
    try:
        value = read_json(text)
    except (JsonRefused, NotJson) as refusal:
        _require_silent(refusal)
        return False
    check_value(value, allow_bytes=False)
    _require(read_json(write_json(value)) == value, "JSON does not come back")
    return True


def _is_text(data: bytes) -> bool:
    try:
        data.decode(errors="surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def agent_line(data: bytes) -> bool:
    """A line of the NDJSON door: an envelope that fits a frame, or plain text, or refused."""
    stamps = Stamps(new_message_id=lambda: "made", now=lambda: "2026-01-01T00:00:00Z")
    try:
        value, is_text = read_envelope(data.replace(b"\n", b""), "conversation", stamps)
    except LineRefused as refusal:
        _require_silent(json.dumps(refusal.detail))
        return False
    _require(type(value["message_id"]) is str and type(value["type"]) is str, "an envelope without its names")
    check_value(value, allow_bytes=False)
    _require(type(call_id_of(value)) in (str, type(None)), "a call without a name")
    return not is_text


def page(data: bytes) -> bool:
    """What the page in the browser says, the bridge of its surfaces included."""
    text = data.decode(errors="surrogatepass") if _is_text(data) else data.decode("latin-1")
    try:
        said = read_message(text)
    except AskRefused as refusal:
        _require_silent(json.dumps(refusal.detail))
        return False
    _require(isinstance(said, Ask | Op), "neither a request nor an operation")
    return True


def zygote(data: bytes) -> bool:
    """A packet of the zygote, and one to it."""
    taken = 0
    for registry in (control.TO_KERNEL, control.TO_ZYGOTE):
        try:
            message = control.decode(data, registry)
        except ProtocolViolation as refusal:
            _require_silent(refusal)
            continue
        _require(control.decode(control.encode(message), registry) == message, "a packet does not come back")
        taken += 1
    return bool(taken)


def log(data: bytes) -> bool:
    """A write-ahead log as found: it is counted, whatever it holds."""
    facts = read_wal(BytesIO(data), len(data))
    _require(facts.commit_before <= facts.last_commit <= facts.last_frame <= max(0, len(data) - HEADER_BYTES), "frames that are not there")
    _require(not facts.has_lost(facts.last_frame) or facts.is_header_rotten, "a whole replay lost something")
    _require(not facts.is_torn(facts.last_frame), "a whole replay is torn")
    return facts.last_frame > 0


_ALL = (
    agent_line, envelope, frame, host, json_text, log, manifest, manifest_text, page, patch, schema, stream, to_worker, worker, zygote,
)  # fmt: skip
TARGETS: dict[str, Target] = {one.__name__: one for one in _ALL}
JSON_TARGETS = frozenset({"agent_line", "json_text", "manifest_text", "page"})
