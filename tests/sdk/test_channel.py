"""One end of a framed channel: bounded, coalescing, and clear about the end."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator

import pytest
import trio
import trio.testing

from lineup_sdk.channel import Channel, ChannelClosed, ChannelOverflow
from lineup_sdk.protocol.framing import ProtocolViolation, encode_frame
from lineup_sdk.protocol.limits import MAX_FRAME_BYTES, MAX_WORKER_FRAME_BYTES


@pytest.fixture
async def pair() -> AsyncIterator[tuple[Channel, socket.socket]]:
    ours, theirs = socket.socketpair()
    channel = Channel(ours, max_in_bytes=MAX_FRAME_BYTES, max_out_bytes=MAX_WORKER_FRAME_BYTES, max_queued_bytes=256 * 1024)
    theirs.setblocking(False)
    yield channel, theirs
    channel.close()
    theirs.close()


def fill(channel: Channel, message: dict) -> int:
    """Send until the channel refuses; return how many frames it took."""
    for sent in range(1_000_000):
        try:
            channel.send(message)
        except ChannelOverflow:
            return sent
        channel.flush()
    raise AssertionError("the channel never refused")


def frame(n: int) -> bytes:
    return encode_frame({"n": n}, MAX_FRAME_BYTES)


@pytest.mark.clause("2.1")
async def test_frames_queued_together_leave_in_one_write() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # keeps the borders of writes
    channel = Channel(ours, max_in_bytes=MAX_FRAME_BYTES, max_out_bytes=MAX_FRAME_BYTES)
    with theirs:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(channel.run_flusher)
            for n in range(20):
                channel.send({"n": n})
            with trio.fail_after(30):
                await trio.lowlevel.wait_readable(theirs)
            assert theirs.recv(65536) == b"".join(frame(n) for n in range(20))
            nursery.cancel_scope.cancel()
    channel.close()


async def test_a_queued_frame_leaves_with_the_next_one_in_one_write() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # keeps the borders of writes
    channel = Channel(ours, max_in_bytes=MAX_FRAME_BYTES, max_out_bytes=MAX_FRAME_BYTES)
    theirs.setblocking(False)
    with theirs:
        channel.queue({"n": 1})
        with pytest.raises(BlockingIOError):
            theirs.recv(65536)
        channel.queue_body(frame(2)[4:])
        channel.flush()
        assert theirs.recv(65536) == frame(1) + frame(2)
    channel.close()


async def test_a_queued_frame_waits_for_the_flush_and_what_that_cannot_write_is_written_later(pair: tuple[Channel, socket.socket]) -> None:
    channel, theirs = pair
    async with trio.open_nursery() as nursery:
        nursery.start_soon(channel.run_flusher)
        await trio.testing.wait_all_tasks_blocked()
        channel.queue({"n": 1})
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(BlockingIOError):
            theirs.recv(65536)
        channel.flush()
        assert theirs.recv(65536) == frame(1)
        big = {"blob": bytes(60 * 1024)}
        while not channel.queued_bytes:
            channel.queue(big)
            channel.flush()
        with trio.fail_after(30):
            while channel.queued_bytes:
                await trio.lowlevel.wait_readable(theirs)
                theirs.recv(1 << 20)
        nursery.cancel_scope.cancel()


async def test_all_whole_frames_of_one_read_come_back_together(pair: tuple[Channel, socket.socket]) -> None:
    channel, theirs = pair
    theirs.send(frame(1) + frame(2) + frame(3)[:-1])
    with trio.fail_after(30):
        assert await channel.receive() == [{"n": 1}, {"n": 2}]
        theirs.send(frame(3)[-1:])
        assert await channel.receive() == [{"n": 3}]


async def test_a_frame_that_comes_byte_by_byte_is_waited_for(pair: tuple[Channel, socket.socket]) -> None:
    channel, theirs = pair
    came: list[dict] = []

    async def read() -> None:
        came.extend(await channel.receive())

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            for byte in frame(7):
                theirs.send(bytes([byte]))
                await trio.testing.wait_all_tasks_blocked()
    assert came == [{"n": 7}]


@pytest.mark.clause("16")
async def test_a_peer_that_does_not_read_is_an_overflow_and_never_memory(pair: tuple[Channel, socket.socket]) -> None:
    channel, _ = pair
    assert fill(channel, {"text": "x" * 60_000}) < 1000
    assert channel.queued_bytes <= 256 * 1024


async def test_what_a_slow_peer_left_is_written_when_it_reads_again(pair: tuple[Channel, socket.socket]) -> None:
    channel, theirs = pair
    sent = fill(channel, {"n": 1})
    reader = Channel(socket.socket(fileno=os.dup(theirs.fileno())), max_in_bytes=MAX_FRAME_BYTES, max_out_bytes=MAX_FRAME_BYTES)
    came: list[dict] = []
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(channel.drain)
            while len(came) < sent:
                came += await reader.receive()
    assert came == [{"n": 1}] * sent
    assert channel.queued_bytes == 0
    reader.close()


async def test_end_of_stream_is_channel_closed_also_in_the_middle_of_a_frame(pair: tuple[Channel, socket.socket]) -> None:
    channel, theirs = pair
    theirs.send(frame(1)[:3])
    theirs.shutdown(socket.SHUT_WR)
    with trio.fail_after(30), pytest.raises(ChannelClosed):
        await channel.receive()


async def test_writing_to_a_peer_that_is_gone_is_channel_closed(pair: tuple[Channel, socket.socket]) -> None:
    channel, theirs = pair
    theirs.close()
    channel.send({"n": 1})
    with pytest.raises(ChannelClosed):
        channel.flush()


async def test_closing_wakes_whoever_reads_and_refuses_what_comes_after(pair: tuple[Channel, socket.socket]) -> None:
    channel, _ = pair
    ended = trio.Event()

    async def read() -> None:
        with pytest.raises(ChannelClosed):
            await channel.receive()
        ended.set()

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await trio.testing.wait_all_tasks_blocked()
            channel.close()
            await ended.wait()
    assert channel.is_closed
    with pytest.raises(ChannelClosed):
        channel.send({"n": 1})
    with pytest.raises(ChannelClosed):
        await channel.receive()


@pytest.mark.clause("2.1")
async def test_a_frame_too_large_for_the_peer_is_refused_before_it_is_queued(pair: tuple[Channel, socket.socket]) -> None:
    channel, _ = pair
    with pytest.raises(ProtocolViolation, match="frame_size"):
        channel.send({"t": "x" * MAX_WORKER_FRAME_BYTES})
    assert channel.queued_bytes == 0


@pytest.mark.clause("2.2")
async def test_a_bad_length_or_item_is_a_protocol_violation(pair: tuple[Channel, socket.socket]) -> None:
    channel, theirs = pair
    theirs.send(b"\x00\x00\x00\x01\xff")
    with trio.fail_after(30), pytest.raises(ProtocolViolation, match="cbor"):
        await channel.receive()
    theirs.send(b"\xff\xff\xff\xff")
    with trio.fail_after(30), pytest.raises(ProtocolViolation, match="frame_size"):
        await channel.receive()
