"""Every malformed frame of SPEC 2, on every channel: it ends that channel and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio

import lineup_sdk.protocol
from kernel.protocol.host import HostHello, InstancesList, KernelStatus, LogsRead
from lineup_sdk.protocol.framing import encode_frame
from lineup_sdk.protocol.limits import MAX_FRAME_BYTES, WIRE_VERSION
from lineup_sdk.protocol.messages import UNGRANTED_TYPES, to_frame
from tests.processes.kernel_under_test import KernelUnderTest
from tests.processes.peers import Agent, Peer, Person, new_name

VECTORS = json.loads((Path(lineup_sdk.protocol.__file__).parent / "vectors" / "invalid_frames.json").read_text())["frames"]
MALFORMED = [one for one in VECTORS if one["direction"] != "to_worker"]


def framed(frame: dict[str, Any]) -> str:
    return encode_frame(frame, MAX_FRAME_BYTES).hex()


# What is a frame, and not a message of a worker.
WRONG_MESSAGES: dict[str, dict[str, Any]] = {
    "no type": {"n": 1},
    "type that is no text": {"type": 7, "n": 1},
    "type that is a map": {"type": {}, "n": 1},
    "type that is a list": {"type": ["pong"], "n": 1},
    "unknown type": {"type": "no.such"},
    "message of the other direction": {"type": "ping", "n": 1},
    "a second hello": {"type": "hello", "wire": WIRE_VERSION, "sdk": "0.1.0"},
    "message of another wire": {"type": "kernel.stop", "id": 1},
    "extra key": {"type": "pong", "n": 1, "more": 1},
    "missing key": {"type": "pong"},
    "wrong type of a field": {"type": "pong", "n": "1"},
    "true for a number": {"type": "pong", "n": True},
    "null for an optional field": {"type": "tool.progress", "id": 99, "call_id": "c", "percent": None},
    "request without id": {"type": "state.load"},
    "id 0": {"type": "state.load", "id": 0},
    "id that is no integer": {"type": "state.load", "id": "1"},
    "id where none belongs": {"type": "pong", "n": 1, "id": 1},
    "text beyond its bound": {"type": "log.write", "stream": "stdout", "text": "x" * 8193},
    "unknown stream": {"type": "log.write", "stream": "elsewhere", "text": "x"},
}


@pytest.mark.clause("2.2")
@pytest.mark.invariant("47")
async def test_every_malformed_frame_of_a_worker_fails_its_instance_alone(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    person = await warm.join(nursery)
    agent = await warm.agent(nursery)
    held = await agent.invoke("witness.hold", {"json": "[]"})
    frames = {one["name"]: one["hex"] for one in MALFORMED} | {name: framed(frame) for name, frame in WRONG_MESSAGES.items()}
    assert len(frames) >= 40
    for name, text in frames.items():
        call_id = await agent.invoke("rude.write", {"json": text})
        await person.status(call_id, "failed")
        assert (await agent.result(call_id))["code"] == "app_crashed", name
        instance = person.instances[person.calls[call_id]["instance_id"]]
        assert (instance["state"], instance["error"]) == ("failed", "protocol_violation"), name
        assert person.calls[call_id]["attempts"] == 0
    await agent.go("witness")
    assert (await agent.result(held))["status"] == "completed"
    assert (await person.status(held, "completed"))["attempts"] == 0


@pytest.mark.clause("2.2")
async def test_what_came_in_pieces_is_a_frame_all_the_same(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    """So that the test above fails for its frames and not for the way they are written."""
    agent = await warm.agent(nursery)
    call_id = await agent.invoke("noisy.write", {"json": framed({"type": "log.write", "stream": "log", "text": "in one piece"})})
    person = await warm.join(nursery)
    instance = person.instances[(await person.status(call_id, "running"))["instance_id"]]
    while "in one piece" not in (await person.ask(LogsRead(instance_id=instance["instance_id"])))["text"]:
        await trio.lowlevel.checkpoint()
    assert (await person.ask(KernelStatus()))["open_calls"] > 0
    await agent.send("tool.cancel", {"call_id": call_id})
    assert (await agent.result(call_id))["status"] == "cancelled"


HOST_FRAMES = [one["hex"] for one in VECTORS if one["name"] != "length one over the limit from a worker"]


@pytest.mark.clause("2.2")
@pytest.mark.parametrize("role", ["view", "admin", "agent"])
async def test_every_malformed_frame_of_a_host_ends_its_channel_alone(warm: KernelUnderTest, nursery: trio.Nursery, role: str) -> None:
    """Each after a good hello, and each in the place of the hello."""
    witness = await warm.join(nursery)
    wrong: tuple[dict[str, Any], ...] = (
        {"type": "no.such", "id": 1},
        {"type": "hello", "wire": 1, "role": role},
        {"type": "ping", "n": 1},
        {"id": 3},
    )
    for text in [*HOST_FRAMES, *(framed(frame) for frame in wrong)]:
        peer: Peer = await (warm.agent(nursery) if role == "agent" else warm.join(nursery, role))
        await _write(peer, bytes.fromhex(text))
        await peer.wait_closed()
    for text in HOST_FRAMES:
        peer = Peer(warm.connect())
        nursery.start_soon(peer.run)
        await _write(peer, bytes.fromhex(text))
        await peer.wait_closed()
        assert peer.goodbye in {"protocol_violation", None}
    assert not witness.is_closed
    assert (await witness.ask(KernelStatus()))["agent"] == {"connected": False, "demo": False}
    assert isinstance(await warm.agent(nursery), Agent)


async def _write(peer: Peer, data: bytes) -> None:
    peer.channel._queue += data
    peer.channel.flush()
    if _is_only_begun(data):  # the rest of it will never come: the peer leaves
        peer.close()


def _is_only_begun(data: bytes) -> bool:
    size = int.from_bytes(data[:4], "big")
    return len(data) < 4 or (0 < size <= MAX_FRAME_BYTES and len(data) - 4 < size)


@pytest.mark.clause("2.6")
async def test_hellos_that_are_not_for_this_kernel_get_their_code(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    hellos = {
        "unsupported_version": HostHello(wire=WIRE_VERSION + 1, role="view", pairing=warm.pairing),
        "capability_denied": HostHello(wire=WIRE_VERSION, role="view", pairing="guess"),
    }
    for code, hello in hellos.items():
        peer = Peer(warm.connect())
        nursery.start_soon(peer.run)
        peer.put(hello)
        await peer.wait_closed()
        assert peer.goodbye == code
    for frame in ({"type": "hello"}, to_frame(HostHello(wire=1, role="king")), to_frame(KernelStatus(), 1)):
        peer = Peer(warm.connect())
        nursery.start_soon(peer.run)
        await _write(peer, bytes.fromhex(framed(frame)))
        await peer.wait_closed()
        assert peer.goodbye == "protocol_violation"


@pytest.mark.clause("2.8")
@pytest.mark.parametrize("role", ["view", "admin"])
@pytest.mark.parametrize("secret", [None, "", "wrong", "ä"])
async def test_no_pairing_secret_no_view(warm: KernelUnderTest, nursery: trio.Nursery, role: str, secret: str | None) -> None:
    peer = Peer(warm.connect())
    nursery.start_soon(peer.run)
    peer.put(HostHello(wire=WIRE_VERSION, role=role, pairing=secret))
    await peer.wait_closed()
    assert peer.goodbye == ("protocol_violation" if secret == "" else "capability_denied")
    assert not peer.of_type("snapshot")


@pytest.mark.clause("2.3")
async def test_a_worker_that_names_itself_or_asks_for_more_is_denied_and_lives(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    agent = await warm.agent(nursery)
    asked = [
        {"type": "state.load", "app_scope": "fixture"},
        {"type": "state.load", "instance_id": "ins_other"},
        {"type": "state.load", "conversation_id": "another"},
        {"type": "inbox.list", "owner": "fixture"},
        *({"type": kind} for kind in sorted(UNGRANTED_TYPES)),
    ]
    result = await agent.result(await agent.invoke("other.send", {"json": json.dumps(asked)}))
    said = json.loads(result["result"]["json"])
    assert [one["code"] for one in said] == ["capability_denied"] * len(asked)


@pytest.mark.clause("6.5")
@pytest.mark.invariant("05")
@pytest.mark.invariant("17")
async def test_a_foreign_call_is_exactly_as_unknown_as_none(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    person = await warm.join(nursery)
    agent = await warm.agent(nursery)
    foreign = await agent.invoke("witness.hold", {"json": "[]"})
    await person.status(foreign, "waiting_for_app")
    ended = await agent.invoke("fixture.echo", {"text": "x"})
    await agent.result(ended)
    requests: list[dict[str, Any]] = [
        {"type": "tools.get"},
        {"type": "tool.accept"},
        {"type": "tool.progress", "percent": 5},
        {"type": "tool.complete", "result": {"json": "stolen"}},
        {"type": "tool.fail", "reason": "stolen"},
        {"type": "tool.cancel"},
        {"type": "tool.cancel_seen"},
    ]
    said = {}
    for call_id in (foreign, ended, new_name("unknown")):
        asked = json.dumps([request | {"call_id": call_id} for request in requests])
        result = await agent.result(await agent.invoke("other.send", {"json": asked}))
        said[call_id] = [{key: value for key, value in one.items() if key != "at"} for one in json.loads(result["result"]["json"])]
    assert list(said.values()) == [[{"accepted": False, "code": "call_not_found"}] * len(requests)] * 3
    await agent.go("witness")
    assert (await agent.result(foreign))["result"] == {"json": "[]"}


@pytest.mark.clause("6.2")
@pytest.mark.invariant("10")
async def test_a_second_ending_is_refused_and_changes_nothing(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    agent = await warm.agent(nursery)
    asked = [
        {"type": "tool.complete", "call_id": "THIS", "result": {"json": "first"}},
        {"type": "tool.accept", "call_id": "THIS"},
        {"type": "tool.complete", "call_id": "THIS", "result": {"json": "first"}},
        {"type": "tool.fail", "call_id": "THIS", "reason": "late"},
        {"type": "tool.complete", "call_id": "THIS", "result": {"json": "second"}},
        {"type": "tool.cancel", "call_id": "THIS"},
        {"type": "tool.progress", "call_id": "THIS", "percent": 99},
        {"type": "log.write", "stream": "log", "text": "said", "quiet": True},
    ]
    call_id = await agent.invoke("noisy.send", {"json": json.dumps([*asked])})
    result = await agent.result(call_id)
    assert result["result"] == {"json": "first"}
    finals = {one["message_id"] for one in agent.envelopes if one["payload"].get("call_id") == call_id}
    assert len(finals) == 1
    person = await warm.join(nursery)
    heard = await agent.result(await agent.invoke("noisy.heard", {"json": ""}))
    assert "tool.called" in heard["result"]["json"]
    assert (await person.ask(InstancesList()))["instances"]
    assert isinstance(person, Person)
