"""What the system App is told of the timeline: the newest window, then what changed, a few times a second at most."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing

from kernel.core.decision import FeedTimeline, SendToWorker
from kernel.core.machines import CallStatus, InstanceState, OutboxState
from kernel.core.records import Record, Source
from kernel.projection import SNAPSHOT_MESSAGES
from kernel.timeline_feed import HOLD_SECONDS, MAX_CHANGES, TimelineFeed
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject
from lineup_sdk.protocol.system_messages import TimelineChanged
from tests.store.world import World, call, instance, message, outbox_row

pytestmark = pytest.mark.clause("9.3")
READER = FeedTimeline(instance_id="ins_e1_01", life=2)


class Reader:
    """A feed over a small store, and what it tells."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.told: list[list[JsonObject]] = []
        self.flushes = 0
        world.turn(instance(1, InstanceState.FOREGROUND, life=2))
        self.feed = TimelineFeed(world.store.view, self._send, self._flush)

    def _send(self, effect: SendToWorker) -> None:
        assert (effect.instance_id, effect.life) == (READER.instance_id, READER.life)
        assert isinstance(effect.message, TimelineChanged)
        self.told.append(effect.message.changes)

    def _flush(self) -> None:
        self.flushes += 1

    def turn(self, *records: Record) -> None:
        self.world.turn(*records)
        self.feed.committed(records)


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(World(tmp_path))


def numbers(changes: list[JsonObject]) -> list[tuple[str, int]]:
    return [(change["kind"], change["value"]["number"]) for change in changes]


async def test_a_reader_begins_with_the_newest_window_oldest_first(reader: Reader) -> None:
    reader.world.turn(*(message(number) for number in range(10, 10 + SNAPSHOT_MESSAGES + 5)))
    reader.feed.open(READER)
    assert numbers(reader.told[0]) == [("message", number) for number in range(15, 15 + SNAPSHOT_MESSAGES)]
    assert len(reader.told) == 1


async def test_what_changes_within_a_hold_is_told_once_as_it_is_then(
    reader: Reader, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    nursery.start_soon(reader.feed.run)
    reader.feed.open(READER)
    reader.told.clear()
    said = message(20, author=Source.PERSON, message_id="msg_e1_14")
    reader.turn(said, outbox_row(20))
    reader.turn(call(21, CallStatus.RUNNING, descriptor_digest=""))
    reader.turn(call(21, CallStatus.FAILED, error_code=Code.TOOL_FAILED, descriptor_digest=""))
    reader.turn(outbox_row(20, state=OutboxState.REFUSED, refused_code="too_long"))
    await trio.sleep(HOLD_SECONDS / 2)
    assert reader.told == []
    await trio.sleep(HOLD_SECONDS)
    [changes] = reader.told
    assert numbers(changes) == [("call", 21), ("message", 20)]
    assert changes[0]["value"].keys() == {"number", "call_id", "tool_id", "title", "status", "error_code", "updated_at"}
    assert (changes[1]["value"]["state"], changes[1]["value"]["code"]) == ("refused", "too_long")
    await trio.sleep(10 * HOLD_SECONDS)
    assert len(reader.told) == 1


@pytest.mark.clause("16")
async def test_a_crowd_of_calls_costs_one_frame_of_the_newest(
    reader: Reader, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    nursery.start_soon(reader.feed.run)
    reader.feed.open(READER)
    reader.told.clear()
    for number in range(10, 10 + MAX_CHANGES + 7):
        reader.feed.committed([call(number, CallStatus.CANCELLED, error_code=Code.CANCELLED, descriptor_digest="")])
    await trio.sleep(2 * HOLD_SECONDS)
    assert [numbers(changes) for changes in reader.told] == [[("call", number) for number in range(17, 17 + MAX_CHANGES)]]


async def test_nobody_is_told_before_somebody_subscribed_and_an_older_life_is_told_nothing_more(
    reader: Reader, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    nursery.start_soon(reader.feed.run)
    reader.turn(message(10))
    await trio.sleep(2 * HOLD_SECONDS)
    assert reader.told == []
    reader.feed.open(READER)
    reader.told.clear()
    reader.world.turn(instance(1, InstanceState.STARTING, life=3))
    reader.turn(message(11))
    await trio.sleep(2 * HOLD_SECONDS)
    assert reader.told == []
