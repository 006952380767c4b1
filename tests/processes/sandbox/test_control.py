"""The packets between kernel and zygote."""

from __future__ import annotations

import cbor2
import pytest

from lineup_sdk.protocol.control import LAYERS, TO_KERNEL, TO_ZYGOTE, Exited, Layer, NotSpawned, Ready, Spawn, Spawned, decode, encode
from lineup_sdk.protocol.framing import ProtocolViolation

MESSAGES = [
    (Spawn(number=1), TO_ZYGOTE),
    (Layer(name="landlock", ok=False, detail="not there", hint="boot with it"), TO_KERNEL),
    (Ready(), TO_KERNEL),
    (Spawned(number=2**40), TO_KERNEL),
    (NotSpawned(number=3, errno=11), TO_KERNEL),
    (Exited(number=4, how="killed", status=31), TO_KERNEL),
]


@pytest.mark.parametrize(("message", "registry"), MESSAGES)
def test_a_message_comes_back_as_it_was_sent(message, registry):
    assert decode(encode(message), registry) == message


@pytest.mark.parametrize(("message", "registry"), MESSAGES)
def test_a_message_of_the_other_direction_is_refused(message, registry):
    with pytest.raises(ProtocolViolation):
        decode(encode(message), TO_ZYGOTE if registry is TO_KERNEL else TO_KERNEL)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"type": "spawned"},
        {"type": "spawned", "number": True},
        {"type": "spawned", "number": "1"},
        {"type": "spawned", "number": 1, "more": 1},
        {"type": 5, "number": 1},
        {"type": "ready", "number": 1},
    ],
)
def test_a_packet_that_is_not_exactly_a_message_is_refused(body):
    with pytest.raises(ProtocolViolation):
        decode(cbor2.dumps(body), TO_KERNEL)


def test_a_packet_with_bytes_behind_it_is_refused():
    with pytest.raises(ProtocolViolation, match="trailing_bytes"):
        decode(encode(Ready()) + b"\x00", TO_KERNEL)


def test_every_layer_has_one_name():
    assert len(set(LAYERS)) == len(LAYERS)
