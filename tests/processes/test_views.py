"""What a view sees: every change in order, everything within one frame's size, and a cut for who does not read (SPEC 2.6)."""

from __future__ import annotations

from itertools import pairwise

import pytest
import trio

from kernel import projection
from kernel.core.machines import CALL, CallStatus
from kernel.protocol.host import CallsShow, FocusRaise, KernelStatus, MessagesList
from tests.processes.conftest import Starter
from tests.processes.kernel_under_test import KernelUnderTest
from tests.processes.peers import Peer, greet, new_name

BIG = "\N{FAMILY}" * 60_000  # 240 KB of UTF-8 in one message


def reachable(status: str) -> set[str]:
    """Every status that may follow, near or far."""
    reached: set[str] = set()
    waiting = [CallStatus(status)]
    while waiting:
        following = {target for target in CALL[waiting.pop()].values() if target.value not in reached}
        reached |= {one.value for one in following}
        waiting += following
    return reached


@pytest.mark.clause("2.6")
@pytest.mark.invariant("10")
async def test_a_view_sees_every_change_of_a_call_in_order(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    """One delta a pass: what was passed within one is not told apart; what was told goes along the table and ends right."""
    person = await warm.join(nursery)
    other = await warm.join(nursery)
    agent = await warm.agent(nursery)
    calls = {
        "completed": await agent.invoke("fixture.slow", {"key": new_name("key")}),
        "failed": await agent.invoke("fixture.fail", {"reason": "no"}),
        "rejected": await agent.invoke("fixture.no_such", {}),
        "cancelled": await agent.invoke("raw.hold", {"json": "[]"}),
    }
    await person.status(calls["completed"], "running")
    await person.status(calls["cancelled"], "waiting_for_app")
    await person.instance("raw", "background")
    await agent.go("fixture", (await person.ask(CallsShow(call_id=calls["completed"])))["input"]["key"])
    await agent.send("tool.cancel", {"call_id": calls["cancelled"]})
    for view in (person, other):
        for status, call_id in calls.items():
            await view.status(call_id, status)
            seen = view.statuses[call_id]
            assert all(later in reachable(earlier) for earlier, later in pairwise(seen)), seen
        assert [frame["seq"] for frame in view.of_type("delta")] == list(range(1, len(view.of_type("delta")) + 1))
    assert person.statuses[calls["completed"]][-3:] in (["running", "submitted", "completed"], ["waiting_for_app", "running", "completed"])


@pytest.mark.clause("2.6")
async def test_focus_and_instances_of_a_view_follow_what_the_person_does(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    person = await warm.join(nursery)
    agent = await warm.agent(nursery)
    call_id = await agent.invoke("fixture.open", {"key": "front"})
    front = await person.instance("fixture", "foreground")
    assert person.focus == [front["instance_id"]]
    await person.ask(FocusRaise(instance_id="chat"))
    await person.instance("fixture", "background")
    await person.until(lambda: person.focus == [])
    await agent.go("fixture", "front")
    await agent.result(call_id)
    late = await warm.join(nursery)
    assert late.focus == []
    assert late.calls[call_id]["status"] in {"submitted", "completed"}


@pytest.mark.clause("2.1")
async def test_many_big_messages_fit_the_frames_of_every_view(start: Starter, nursery: trio.Nursery) -> None:
    """In deltas, in a snapshot, in a page; none is lost and the kernel lives."""
    kernel = start()
    person = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    sent = [agent.envelope("message.text", {"text": BIG}) for _ in range(12)]
    for envelope in sent:
        agent.submit(envelope)
    for envelope in sent:
        await agent.until(lambda: agent.receipts(envelope["message_id"]))  # noqa: B023
    ids = [one["message_id"] for one in sent]
    await person.until(lambda: _messages_told(person) >= set(ids))
    late = await kernel.join(nursery)
    shown = [one["message_id"] for one in late.of_type("snapshot")[0]["state"]["messages"]]
    assert shown == ids[-len(shown) :]
    listed: list[str] = []
    before = None
    more = True
    while more:
        page = await late.ask(MessagesList(before=before, limit=200))
        listed = [one["message_id"] for one in page["messages"]] + listed
        before, more = page["messages"][0]["number"], page["more"]
    assert listed == ids


def _messages_told(person: Peer) -> set[str]:
    changes = [change for frame in person.of_type("delta") for change in frame["changes"]]
    return {change["value"]["message_id"] for change in changes if change["kind"] == "message"}


@pytest.mark.clause("2.1")
def test_a_list_is_cut_where_it_would_not_fit_a_frame_any_more_and_is_never_empty() -> None:
    small, big = {"text": "x" * 1_000}, {"text": "x" * projection.PAGE_BYTES}
    assert projection.fitting([big, small]) == [big]
    kept = projection.fitting([small] * 1_000)
    assert kept == [small] * len(kept)
    assert projection.PAGE_BYTES - 2_000 < len(kept) * 1_008 <= projection.PAGE_BYTES


@pytest.mark.clause("2.6")
async def test_a_view_that_does_not_read_is_cut_and_comes_back_to_a_snapshot(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    witness = await warm.join(nursery)
    agent = await warm.agent(nursery)
    deaf = Peer(warm.connect())
    nursery.start_soon(deaf.run)
    await greet(deaf, {"role": "view", "pairing": warm.pairing})
    deaf.stop_reading()
    views = (await witness.ask(KernelStatus()))["views"]
    sent = 0
    while (await witness.ask(KernelStatus()))["views"] == views:
        await agent.send("message.text", {"text": BIG})
        sent += 1
        assert sent < 100
    assert sent > 8  # what a queue of 8 MiB takes
    back = await warm.join(nursery)
    assert back.of_type("snapshot")[0]["state"]["messages"]
    assert not witness.is_closed
