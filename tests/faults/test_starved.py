"""What commands fare while the disk is full, over a real store whose commits find no room when the test says so (SPEC 12)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from kernel.core.builtin import RUNTIME
from kernel.core.decision import Origin, Speaker, Stamp
from kernel.core.events import AgentAttached, Booted
from kernel.core.records import Source
from kernel.database import StorageFailed
from kernel.protocol.agent import MESSAGE_TEXT, Envelope, TextReceived
from kernel.protocol.host import MessageSend
from kernel.starved import MAX_WAITING, RETRY_SECONDS
from kernel.store import Store
from kernel.turns import KERNEL, Handlers, Outcome, Turn, Turns
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import StateLoad
from tests.faults.test_counted_refusals import NOW, TrioClock

AGENT = Origin(speaker=Speaker.AGENT, channel=1, source=Source.AGENT)
VIEW = Origin(speaker=Speaker.VIEW, channel=-1, source=Source.PERSON, view_id="view-1-test", request_id=7)
WORKER = Origin(speaker=Speaker.WORKER, channel=2, instance_id="ins_1", app_scope="board", life=1, request_id=3)
_TOKENS = count(1)


class CountingClock(TrioClock):
    """Every turn gets a token of its own, for its ids."""

    def stamp(self, first_number: int) -> Stamp:
        plain = super().stamp(first_number)
        token = f"{next(_TOKENS):032x}"
        return Stamp(now=plain.now, boot_id=plain.boot_id, boottime_ms=plain.boottime_ms, token=token, first_number=first_number)


class SmallStore(Store):
    """A store that has room, or none, or says too late that it has none."""

    trouble: Code | None = None
    is_late = False

    def commit(self) -> None:
        """As the real one, where there is room."""
        if self.trouble is None:
            super().commit()
            return
        if self.is_late:
            super().commit()
            self._durable_head = self._first_head
        self.abandon()
        raise StorageFailed(self.trouble)

    def begin(self) -> None:
        """As the real one."""
        super().begin()
        self._first_head = self._head


@dataclass
class Kernel:
    """Turns over such a store, and what leaves them."""

    store: SmallStore
    outcomes: list[Outcome] = field(default_factory=list)
    doors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        handlers = Handlers(
            effects=_Anything(),
            reply=self.outcomes.append,
            committed=lambda records: None,
            flush=lambda: None,
            starving=lambda: self.doors.append("shut"),
            fed=lambda: self.doors.append("open"),
        )
        self.turns = Turns(self.store, CountingClock(), handlers)

    def say(self, origin: Origin, command: object) -> None:
        self.turns.post(Turn(command=command, origin=origin))

    @property
    def said(self) -> list[tuple[Speaker, Code | None]]:
        return [(outcome.turn.origin.speaker, outcome.code) for outcome in self.outcomes]

    def audited(self) -> list[tuple[str, int | None]]:
        return [(str(row["event"]), row.get("count")) for row in self.store.view.upkeep.audit_after(after=None, limit=100)]


class _Anything(dict[type, Any]):
    """Effects that go nowhere."""

    def __missing__(self, kind: type) -> Any:
        return lambda effect: None


@pytest.fixture
def kernel(tmp_path: Path, nursery: trio.Nursery) -> Iterator[Kernel]:
    store = SmallStore.open(
        tmp_path / "kernel.db",
        manifests={RUNTIME.app_scope: RUNTIME},
        make_epoch=lambda: "e1",
        make_id=lambda kind, epoch: f"{kind}_{epoch}_00",
        now=lambda: NOW,
    )
    assert isinstance(store, SmallStore)
    made = Kernel(store)
    nursery.start_soon(made.turns.run)
    made.say(KERNEL, Booted())
    made.say(AGENT, AgentAttached())
    yield made
    store.abandon()


def text(message_id: str, conversation_id: str) -> TextReceived:
    outer = Envelope(
        type=MESSAGE_TEXT,
        message_id=message_id,
        conversation_id=conversation_id,
        digest=message_id.encode(),
        app_scope=None,
        instance_id=None,
        created_at="2026-11-30T12:00:00Z",
    )
    return TextReceived(envelope=outer, text=message_id)


async def be_full(kernel: Kernel) -> None:
    await trio.testing.wait_all_tasks_blocked()
    kernel.outcomes.clear()
    kernel.store.trouble = Code.STORE_FULL
    kernel.say(VIEW, MessageSend(text="too much"))
    await trio.testing.wait_all_tasks_blocked()


@pytest.mark.clause("12")
async def test_who_asks_is_refused_and_what_the_doors_handed_over_waits(kernel: Kernel, autojump_clock: trio.testing.MockClock) -> None:
    await be_full(kernel)
    assert kernel.turns.is_starved
    assert kernel.doors == ["shut"]
    assert kernel.said == [(Speaker.VIEW, Code.STORE_FULL)]
    for _ in range(3):
        kernel.say(WORKER, StateLoad())
    kernel.say(AGENT, text("m1", kernel.store.view.conversation_id))
    assert kernel.said[1:] == [(Speaker.WORKER, Code.STORE_FULL)] * 3
    assert kernel.store.view.messages() == []  # and reading goes on
    before = kernel.audited()

    await trio.sleep(3 * RETRY_SECONDS)
    assert kernel.turns.is_starved
    assert kernel.audited() == before
    kernel.store.trouble = None
    await trio.sleep(RETRY_SECONDS + 0.1)
    assert not kernel.turns.is_starved
    assert kernel.doors[-1] == "open"
    assert kernel.said[4:] == [(Speaker.AGENT, None)]
    assert [entry.message_id for entry, _ in kernel.store.view.messages()] == ["m1"]
    assert kernel.audited()[len(before) :] == [("store.recovered", 3), ("message.received", None)]


@pytest.mark.clause("12")
async def test_a_turn_that_found_no_room_left_nothing_and_is_not_done_twice(kernel: Kernel, autojump_clock: trio.testing.MockClock) -> None:
    await trio.testing.wait_all_tasks_blocked()
    kernel.store.trouble = Code.STORE_FULL
    number = kernel.store.next_number
    kernel.say(AGENT, text("m1", kernel.store.view.conversation_id))
    await trio.testing.wait_all_tasks_blocked()
    assert kernel.turns.is_starved
    assert kernel.store.next_number == number
    kernel.store.trouble = None
    await trio.sleep(RETRY_SECONDS + 0.1)
    assert [entry.message_id for entry, _ in kernel.store.view.messages()] == ["m1"]
    assert [event for event, _ in kernel.audited()].count("message.received") == 1


@pytest.mark.clause("12")
async def test_a_full_disk_that_had_taken_the_transaction_after_all_is_undecided(
    kernel: Kernel, autojump_clock: trio.testing.MockClock
) -> None:
    """Nobody is answered, and the kernel stops."""
    await trio.testing.wait_all_tasks_blocked()
    kernel.store.is_late = True
    kernel.store.trouble = Code.STORE_FULL
    kernel.outcomes.clear()
    with pytest.raises(StorageFailed):
        kernel.say(VIEW, MessageSend(text="there after all"))
    assert kernel.said == []


@pytest.mark.clause("12")
@pytest.mark.parametrize("code", [Code.STORE_CORRUPT, Code.UNKNOWN])
async def test_any_other_trouble_of_the_storage_stops_the_kernel(
    kernel: Kernel, code: Code, autojump_clock: trio.testing.MockClock
) -> None:
    await trio.testing.wait_all_tasks_blocked()
    kernel.store.trouble = code
    kernel.outcomes.clear()
    with pytest.raises(StorageFailed):
        kernel.say(VIEW, MessageSend(text="lost"))
    assert kernel.said == []


@pytest.mark.clause("12")
async def test_what_waits_is_bounded(kernel: Kernel, autojump_clock: trio.testing.MockClock) -> None:
    await be_full(kernel)
    turn = Turn(command=AgentAttached(), origin=AGENT)
    kernel.turns.post(*[turn] * MAX_WAITING)
    with pytest.raises(StorageFailed):
        kernel.turns.post(turn)
