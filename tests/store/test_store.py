"""One turn as one transaction: what apply, refuse, commit and a start do."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from itertools import pairwise

import pytest

from kernel.audit import HEAD_NAME, read_head
from kernel.core.decision import AuditEntry, Decision, KernelBug, Origin, Speaker
from kernel.core.machines import CallStatus, OutboxState
from kernel.core.records import Cancel, Deadline, OutboxKind, Switch
from kernel.store import CHECKPOINT_COMMITS, StorageFailed
from kernel.store_rows import OPEN_CALLS
from lineup_sdk.protocol.codes import Code
from tests.store.world import AGENT, World, call, instance, key_of, message, open_raw, outbox_row


def test_a_turn_that_is_not_committed_leaves_nothing(world: World) -> None:
    world.count(2)
    world.store.begin()
    world.apply(message(3), audit=(AuditEntry(event="message.stored", number=3),), numbers=1)
    world.crash()
    store = world.store
    assert [entry.number for entry, _ in store.view.messages()] == [1, 2]
    assert (store.next_number, store.last_audit_seq) == (3, 3)


def test_a_later_turn_of_a_group_sees_what_an_earlier_one_wrote(world: World) -> None:
    world.store.begin()
    world.apply(call(1), numbers=1)
    assert world.store.view.call(1) == call(1)
    assert world.store.view.open_call_count() == 1
    world.apply(call(1, CallStatus.FAILED, error_code=Code.TOOL_FAILED))
    assert world.store.view.open_call_count() == 0
    commits = world.store.commits
    world.store.commit()
    assert world.store.commits == commits + 1


@pytest.mark.clause("16")
def test_a_start_reads_from_the_oldest_open_call_on_and_finds_every_open_one(world: World) -> None:
    ended = CallStatus.FAILED
    world.turn(*(call(n) for n in (1, 2, 3, 4)), numbers=4)
    world.turn(call(1, ended, error_code=Code.TOOL_FAILED), call(3, ended, error_code=Code.TOOL_FAILED))
    assert world.store._db.run("SELECT oldest_open, next_number FROM clock") == [(2, 5)]
    world.crash()
    assert [one.number for one in world.store.view.unrouted_calls()] == [2, 4]
    world.turn(*(call(n, ended, error_code=Code.TOOL_FAILED) for n in (2, 4)))
    assert world.store._db.run("SELECT oldest_open, next_number FROM clock") == [(5, 5)]
    (plan,) = world.store._db.run("EXPLAIN QUERY PLAN " + OPEN_CALLS.replace("?", "5"))
    assert plan[3] == "SEARCH tool_call USING INTEGER PRIMARY KEY (rowid>?)"


@pytest.mark.invariant("16")
def test_a_second_final_row_of_a_call_is_a_kernel_bug_and_the_store_stops(world: World) -> None:
    world.turn(call(1), outbox_row(2, OutboxKind.FINAL, call_number=1), numbers=2)
    with pytest.raises(KernelBug):
        world.turn(outbox_row(3, OutboxKind.FINAL, call_number=1), numbers=1)
    with pytest.raises(StorageFailed):
        world.store.view.call(1)
    world.crash()
    assert world.store.view.outbox_pending_count() == 1


@pytest.mark.parametrize(
    "broken",
    [
        call(1, CallStatus.SUBMITTED),
        call(1, CallStatus.FAILED),
        replace(call(1), attempts=-1),
        call(1, tool_id=None),
        outbox_row(1, OutboxKind.FINAL),
    ],
)
@pytest.mark.invariant("20")
def test_a_record_that_breaks_a_promise_of_the_schema_is_a_kernel_bug(world: World, broken: object) -> None:
    with pytest.raises(KernelBug):
        world.turn(broken)  # type: ignore[arg-type]
    world.crash()
    assert world.store.view.call(1) is None


def test_a_stamp_with_another_first_number_is_a_kernel_bug(world: World) -> None:
    stale = world.stamp()
    world.turn(message(1), numbers=1)
    world.store.begin()
    with pytest.raises(KernelBug):
        world.store.apply(Decision(), stamp=stale, origin=AGENT, command="test.turn")


def test_apply_outside_a_transaction_is_a_kernel_bug(world: World) -> None:
    with pytest.raises(KernelBug):
        world.apply(message(1))


def test_a_kernel_bug_closes_the_store_and_loses_only_what_nobody_was_told_of(world: World) -> None:
    world.count(1)
    stale = world.stamp()
    world.store.begin()
    world.apply(message(2), numbers=1)
    with pytest.raises(KernelBug):
        world.store.apply(Decision(), stamp=stale, origin=AGENT, command="test.turn")
    with pytest.raises(StorageFailed):
        world.store.commit()
    world.crash()
    assert [entry.number for entry, _ in world.store.view.messages()] == [1]


def test_a_transaction_that_writes_nothing_takes_no_space_in_the_log(world: World) -> None:
    world.count(1)
    size = world.wal_path.stat().st_size
    world.turn()
    assert world.wal_path.stat().st_size == size
    world.turn(numbers=1)
    assert world.wal_path.stat().st_size > size


@pytest.mark.invariant("60")
def test_a_head_that_cannot_be_kept_stops_the_store(world: World) -> None:
    world.count(1)
    world.store._head_file.close()
    with pytest.raises(StorageFailed) as failed:
        world.count(1)
    assert failed.value.code is Code.UNKNOWN
    world.crash()
    assert len(world.store.view.messages()) == 2  # it was durable; nobody was told, so both are right


def test_numbers_rise_across_starts_and_are_never_given_twice(world: World) -> None:
    world.turn(numbers=5)
    assert world.reopen().next_number == 6
    world.turn(numbers=1)
    world.crash()
    assert world.store.next_number == 7


def test_an_audit_row_holds_who_what_why_and_what_about_and_no_more(world: World) -> None:
    origin = Origin(speaker=Speaker.WORKER, instance_id="ins_e1_01", app_scope="task-dashboard")
    entry = AuditEntry(event="command.refused", instance_id="ins_e1_01", code=Code.CALL_NOT_FOUND, count=3)
    world.store.begin()
    world.store.apply(Decision(audit=(entry,)), stamp=world.stamp(), origin=origin, command="tool.complete", cause=1)
    world.store.commit()
    [row] = world.store.view.upkeep.audit_after(after=None, limit=1)
    assert datetime.fromisoformat(row["at"]) == world.now.replace(microsecond=world.now.microsecond // 1000 * 1000)
    assert {name: value for name, value in row.items() if name != "at"} == {
        "seq": 2,
        "speaker": "worker",
        "command": "tool.complete",
        "cause": 1,
        "event": "command.refused",
        "instance_id": "ins_e1_01",
        "code": "call_not_found",
        "count": 3,
    }


@pytest.mark.clause("17")
def test_an_audit_row_names_the_view_that_answered(world: World) -> None:
    origin = Origin(speaker=Speaker.VIEW, view_id="view_e1_07")
    world.store.begin()
    entry = AuditEntry(event="call.cancel_asked", number=4)
    world.store.apply(Decision(audit=(entry,)), stamp=world.stamp(), origin=origin, command="call.cancel")
    world.store.commit()
    assert world.store.view.upkeep.audit_after(after=None, limit=1)[0]["view_id"] == "view_e1_07"


@pytest.mark.clause("17")
@pytest.mark.invariant("56")
@pytest.mark.parametrize(
    ("entry", "view_id", "command"),
    [
        (AuditEntry(event="a sentence of somebody"), "", "tool.complete"),
        (AuditEntry(event="call.failed", instance_id="Meet me at noon"), "", "tool.complete"),
        (AuditEntry(event="call.failed"), "my view", "tool.complete"),
        (AuditEntry(event="call.failed"), "", "x" * 161),
    ],
)
def test_text_does_not_get_into_an_audit_row(world: World, entry: AuditEntry, view_id: str, command: str) -> None:
    origin = Origin(speaker=Speaker.VIEW, view_id=view_id)
    world.store.begin()
    with pytest.raises(KernelBug):
        world.store.apply(Decision(audit=(entry,)), stamp=world.stamp(), origin=origin, command=command)


def test_a_removed_row_is_gone_and_its_slot_is_free(world: World) -> None:
    world.turn(outbox_row(1, OutboxKind.PROGRESS, call_number=9), numbers=1)
    assert world.store.view.outbox_pending_count() == 1
    world.turn(outbox_row(2, OutboxKind.PROGRESS, call_number=9), removed=(1,), numbers=1)
    assert world.store.view.outbox_pending_count() == 1
    assert world.store.view.outbox_row("msg_e1_01") is None
    assert world.reopen().view.outbox_pending_count() == 1


@pytest.mark.invariant("16")
@pytest.mark.parametrize("number", [1, 2, 77])
def test_a_final_an_acknowledged_or_an_unknown_row_is_never_removed(world: World, number: int) -> None:
    acknowledged = outbox_row(2, state=OutboxState.ACKNOWLEDGED)
    world.turn(outbox_row(1, OutboxKind.FINAL, call_number=9), acknowledged, numbers=2)
    with pytest.raises(KernelBug):
        world.turn(removed=(number,))


def test_the_head_is_kept_after_every_commit(world: World) -> None:
    world.count(3)
    head = read_head(world.folder)
    assert head is not None
    assert head.seq == world.store.last_audit_seq == 4
    assert (world.folder / HEAD_NAME).stat().st_size == 95


@pytest.mark.clause("4.4")
def test_a_switch_without_the_revision_it_asks_for_shows_as_unpublished(world: World) -> None:
    world.turn(world.publish())
    world.turn(Switch(name="task-dashboard", enabled=False))
    view = world.store.view
    assert view.inventory.revision == "e1.2"
    assert view.fingerprint("e1.2") is None


@pytest.mark.clause("4.4")
def test_publishing_another_inventory_than_the_one_in_force_is_a_kernel_bug(world: World) -> None:
    world.turn(world.publish())
    with pytest.raises(KernelBug):
        world.turn(replace(world.publish(), number=2, digest="0" * 64))


@pytest.mark.clause("4.4")
@pytest.mark.invariant("53")
def test_a_revision_stays_over_starts_and_follows_other_manifests(world: World) -> None:
    assert world.store.view.fingerprint("e1.1") is None  # asked for, not yet published
    world.turn(world.publish())
    assert world.reopen().view.inventory.revision == "e1.1"
    fingerprint = world.store.view.fingerprint("e1.1")
    assert fingerprint == world.store.view.inventory.fingerprint()
    world.close()
    both, world.manifests = world.manifests, {"runtime": world.manifests["runtime"]}
    assert world.store.view.inventory.revision == "e1.2"
    world.turn(world.publish())
    world.close()
    world.manifests = both
    assert world.store.view.inventory.revision == "e1.3"  # the content of e1.1 again, and a number of its own
    assert world.store.view.fingerprint("e1.1") == fingerprint


@pytest.mark.clause("6.6")
@pytest.mark.invariant("19")
def test_after_another_boot_a_deadline_is_the_time_that_was_left(world: World) -> None:
    running = call(
        1, CallStatus.RUNNING, deadline=Deadline("boot-1", 61_000), cancel=Cancel.ASKED, cancel_deadline=Deadline("boot-1", 3_500)
    )
    ended = call(2, CallStatus.EXPIRED, deadline=Deadline("boot-1", 61_000))
    world.boottime_ms = 1_999
    world.turn(running, ended, call(3), numbers=3)  # stamped at 2,000
    world.crash()
    world.store.rebase_deadlines("boot-2", 500)
    for _ in range(2):
        view = world.store.view
        found = view.call(1)
        assert found is not None
        assert found.deadline == Deadline("boot-2", 59_500)
        assert found.cancel_deadline == Deadline("boot-2", 2_000)
        assert view.next_deadline_ms() == 2_000
        assert view.call(2) == ended
        assert view.call(3) == call(3)
        world.crash()
        world.store.rebase_deadlines("boot-2", 700_000)  # the same boot again: downtime counts
    world.store.rebase_deadlines("boot-3", 10)
    found = world.store.view.call(1)
    assert found is not None
    assert found.deadline == Deadline("boot-3", 59_010)


@pytest.mark.clause("6.6")
def test_on_the_same_boot_nothing_moves_and_nothing_is_written(world: World) -> None:
    world.turn(call(1, deadline=Deadline("boot-1", 9_000)), numbers=1)
    commits = world.store.commits
    world.store.rebase_deadlines("boot-1", 8_000)
    assert world.store.commits == commits
    assert world.store.view.next_deadline_ms() == 9_000


def test_a_checkpoint_is_due_after_so_many_commits_or_four_mebibytes(world: World) -> None:
    world.store.checkpoint()
    for _ in range(CHECKPOINT_COMMITS - 1):
        world.turn(numbers=1)
    assert not world.store.is_checkpoint_due
    world.turn(numbers=1)
    assert world.store.is_checkpoint_due
    size = world.wal_path.stat().st_size
    world.store.checkpoint()
    assert not world.store.is_checkpoint_due
    world.count(5)
    assert world.wal_path.stat().st_size == size  # the log began anew
    world.turn(message(999, body_cbor=bytes(4 * 1024 * 1024)), numbers=1)
    assert world.store.is_checkpoint_due


def test_a_tidy_end_leaves_an_empty_log(world: World) -> None:
    world.count(5)
    world.close()
    assert world.wal_path.stat().st_size == 0


def test_nothing_works_on_a_closed_store_and_closing_twice_is_fine(world: World) -> None:
    store = world.store
    store.close()
    store.close()
    for use in (store.begin, store.commit, store.checkpoint, lambda: store.view):
        with pytest.raises(StorageFailed):
            use()
    world.crash()


def test_a_typical_turn_takes_few_statements(world: World) -> None:
    """BEGIN, three records, one audit row, the clock, COMMIT."""
    world.count(1)
    before = world.store.statements
    world.turn(call(2), key_of(call(2)), outbox_row(3), audit=(AuditEntry(event="call.received", number=2),), numbers=2)
    assert world.store.statements - before == 7


@pytest.mark.clause("17")
@pytest.mark.invariant("56")
def test_no_body_gets_into_an_audit_row(world: World) -> None:
    canary = "canary-5f1c"
    record = call(1, input_cbor=canary.encode(), call_id=canary, tool_id=canary, conversation_id=canary, app_scope=canary)
    held = instance(2, close_reason=canary)
    row = outbox_row(3, envelope_cbor=canary.encode(), conversation_id=canary)
    world.turn(record, held, row, audit=(AuditEntry(event="call.received", number=1, instance_id=held.instance_id),), numbers=3)
    world.close()
    raw = open_raw(world.path)
    audit = raw.execute("SELECT * FROM audit").fetchall()
    stored = raw.execute("SELECT call_id FROM tool_call").get
    raw.close()
    assert stored == canary
    assert len(audit) == 2
    assert all(canary not in str(value) and canary.encode() not in bytes(str(value), "utf-8") for line in audit for value in line)


def test_audit_rows_chain_one_to_the_next(world: World) -> None:
    world.count(4)
    world.close()
    raw = open_raw(world.path)
    rows = raw.execute("SELECT previous_hash, hash FROM audit ORDER BY seq").fetchall()
    raw.close()
    assert all(later[0] == earlier[1] for earlier, later in pairwise(rows))
