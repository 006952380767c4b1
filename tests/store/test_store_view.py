"""The View over rows: each read gives what a plain search of all records would, by an index."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import apsw
import pytest

from kernel.core.decision import KernelBug, View
from kernel.core.machines import CALL_OPEN, CallStatus, InboxState, InstanceState, OutboxState
from kernel.core.records import Deadline, FocusStack, KeptDescriptor, OutboxKind, Source, ToolCall, encode_body
from kernel.database import Database, Row
from kernel.store_view import StoreView
from lineup_sdk.protocol.codes import Code
from tests.store.world import NOW, World, call, golden_manifest, inbox_row, instance, key_of, message, outbox_row, session


def ended(number: int, status: CallStatus, **changes: Any) -> ToolCall:
    return call(number, status, error_code=Code.CANCELLED, result_cbor=b"\xa0", **changes)


CALLS = [
    call(1, instance_id="ins_e1_01", status=CallStatus.RUNNING, deadline=Deadline("boot-1", 500)),
    call(2, status=CallStatus.RECEIVED, deadline=Deadline("boot-1", 200)),
    call(3, app_scope="whiteboard", status=CallStatus.ROUTING),
    call(4, instance_id="ins_e1_01", status=CallStatus.WAITING_FOR_APP, cancel_deadline=Deadline("boot-1", 100)),
    call(5, instance_id="ins_e1_02", status=CallStatus.RUNNING, deadline=Deadline("b", 900), cancel_deadline=Deadline("b", 300)),
    call(6, instance_id="ins_e1_02", status=CallStatus.RUNNING, deadline=Deadline("b", 50), cancel_deadline=Deadline("b", 800)),
    *(
        ended(7 + at, status, instance_id="ins_e1_01", deadline=Deadline("b", 1))
        for at, status in enumerate(CallStatus)
        if status not in CALL_OPEN
    ),
]


def numbers(records: Any) -> list[int]:
    return [record.number for record in records]


@pytest.fixture
def view(world: World) -> StoreView:
    """A view over CALLS, after a start."""
    world.turn(*CALLS, *map(key_of, CALLS))
    return world.reopen().view


def test_the_view_is_a_view(world: World) -> None:
    as_contract: View = world.store.view  # judged by the type checker too
    names = [name for name in vars(View) if not name.startswith("_")]
    assert len(names) > 25
    assert [name for name in names if not hasattr(as_contract, name)] == []


def test_calls_are_found_by_number_and_by_id(view: StoreView) -> None:
    assert [view.call(record.number) for record in CALLS] == CALLS
    assert [view.call_by_id(record.call_id) for record in CALLS] == CALLS
    assert view.call(999) is None
    assert view.call_by_id("call-999") is None


def test_open_calls_are_those_without_an_outcome_oldest_first(view: StoreView) -> None:
    assert numbers(view.open_calls("ins_e1_01")) == [1, 4]
    assert numbers(view.open_calls("ins_e1_02")) == [5, 6]
    assert numbers(view.open_calls("ins_e1_09")) == []
    assert numbers(view.open_calls_of_app("task-dashboard")) == [1, 2, 4, 5, 6]
    assert numbers(view.open_calls_of_app("whiteboard")) == [3]
    assert numbers(view.unrouted_calls()) == [2, 3]
    assert view.open_call_count() == 6
    assert view.open_call_count_of("ins_e1_01") == 2


@pytest.mark.clause("6.6")
def test_due_calls_are_open_ones_whose_earlier_deadline_has_come(view: StoreView) -> None:
    assert view.next_deadline_ms() == 50
    assert numbers(view.due_calls(49, 10)) == []
    assert numbers(view.due_calls(50, 10)) == [6]
    assert numbers(view.due_calls(300, 10)) == [6, 4, 2, 5]
    assert numbers(view.due_calls(300, 2)) == [6, 4]
    assert numbers(view.due_calls(10_000, 10)) == [6, 4, 2, 5, 1]


def test_without_a_deadline_there_is_none(world: World) -> None:
    world.turn(call(1), ended(2, CallStatus.EXPIRED, deadline=Deadline("b", 1)))
    assert world.store.view.next_deadline_ms() is None
    assert world.store.view.due_calls(10_000, 10) == []


@pytest.mark.parametrize("state", [None, "open", "ended", *CallStatus])
@pytest.mark.parametrize(("before", "limit"), [(None, 50), (9, 3), (1, 3)])
def test_listing_gives_the_newest_below_a_number(view: StoreView, state: str | None, before: int | None, limit: int) -> None:
    def is_meant(record: ToolCall) -> bool:
        match state:
            case None:
                return True
            case "open":
                return record.status in CALL_OPEN
            case "ended":
                return record.status not in CALL_OPEN
            case _:
                return record.status == state

    wanted = [record for record in reversed(CALLS) if is_meant(record) and record.number < (before or 10_000)][:limit]
    assert view.calls(state=state, before=before, limit=limit) == wanted


def test_an_unknown_state_to_list_is_refused(view: StoreView) -> None:
    with pytest.raises(ValueError, match="sleeping"):
        view.calls(state="sleeping")


def test_current_instances_are_those_that_are_neither_stopped_nor_failed(world: World) -> None:
    made = [instance(number, state) for number, state in enumerate(InstanceState, start=1)]
    other = instance(20, InstanceState.SUSPENDED, app_scope="whiteboard")
    world.turn(*made, other)
    view = world.store.view
    current = [record for record in made if record.state not in {InstanceState.STOPPED, InstanceState.FAILED}]
    assert list(view.current_instances()) == [*current, other]
    assert view.current_instance("task-dashboard") == current[-2]  # the last of them is closing
    assert view.current_instance("whiteboard") == other
    assert view.current_instance("chat") is None
    assert view.instance(made[-1].instance_id) == made[-1]
    assert view.instance("ins_e1_ff") is None
    assert numbers(view.instances(limit=3)) == [20, 7, 6]
    assert numbers(view.instances(before=3)) == [2, 1]


def test_the_open_session_is_the_newest_that_is_not_closed(world: World) -> None:
    world.turn(session(1), session(2, closed_at=NOW), session(3, app_scope="whiteboard", closed_at=NOW))
    assert world.store.view.open_session("task-dashboard") == session(1)
    assert world.store.view.open_session("whiteboard") is None
    world.turn(session(1, closed_at=NOW))
    assert world.store.view.open_session("task-dashboard") is None


@pytest.mark.clause("5.2")
@pytest.mark.invariant("05")
def test_an_inbox_shows_only_its_own_deliverable_rows(world: World) -> None:
    mine = [inbox_row(number, body_cbor=bytes(number)) for number in (1, 3, 5)]
    parked = inbox_row(6, state=InboxState.PARKED, body_cbor=bytes(6))
    done = inbox_row(7, state=InboxState.ACKNOWLEDGED)
    foreign = inbox_row(4, instance_id="ins_e1_02")
    world.turn(*mine, parked, done, foreign)
    view = world.store.view
    assert list(view.inbox_rows("ins_e1_01", 0, 10)) == mine
    assert list(view.inbox_rows("ins_e1_01", 1, 1)) == [mine[1]]
    assert view.inbox_size("ins_e1_01") == (4, 15)
    assert view.inbox_size("ins_e1_09") == (0, 0)
    assert view.inbox_row("ins_e1_01", "in-4") is None
    assert view.inbox_row("ins_e1_02", "in-4") == foreign
    assert view.inbox_row("ins_e1_01", "in-7") == done
    assert list(view.parked_rows("ins_e1_01")) == [parked]


def test_outbox_rows_are_found_by_destination_kind_and_call(world: World) -> None:
    rows = {
        1: outbox_row(1, OutboxKind.FINAL, call_number=9, state=OutboxState.ACKNOWLEDGED),
        2: outbox_row(2, OutboxKind.PROGRESS, call_number=9, state=OutboxState.ACKNOWLEDGED),
        3: outbox_row(3, OutboxKind.PROGRESS, call_number=9),
        4: outbox_row(4, OutboxKind.PROGRESS, call_number=10),
        5: outbox_row(5, OutboxKind.INVENTORY),
        6: outbox_row(6, OutboxKind.INVENTORY, destination=Source.DEMO, state=OutboxState.REFUSED),
        7: outbox_row(7, destination=Source.PERSON),
    }
    world.turn(*rows.values())
    for is_restarted in (False, True):
        view = (world.reopen() if is_restarted else world.store).view
        assert numbers(view.outbox_pending(Source.AGENT, 0, 10)) == [3, 4, 5]
        assert numbers(view.outbox_pending(Source.AGENT, 3, 1)) == [4]
        assert numbers(view.outbox_pending(Source.DEMO, 0, 10)) == []
        assert view.outbox_pending_count() == 4
        assert view.final_row(9) == rows[1]
        assert view.final_row(10) is None
        assert view.pending_progress_row(9) == rows[3]
        assert view.pending_progress_row(11) is None
        assert view.pending_inventory_row(Source.AGENT) == rows[5]
        assert view.pending_inventory_row(Source.DEMO) is None
        assert numbers(view.outbox_rows_of_call(9)) == [1, 2, 3]


def test_a_row_that_is_sent_again_waits_again(world: World) -> None:
    world.turn(outbox_row(1, OutboxKind.FINAL, call_number=9, state=OutboxState.ACKNOWLEDGED))
    assert world.store.view.outbox_pending_count() == 0
    world.turn(outbox_row(1, OutboxKind.FINAL, call_number=9))
    assert world.store.view.outbox_pending_count() == 1


def test_messages_come_in_windows_with_the_state_of_their_rows(world: World) -> None:
    said = message(3, author=Source.PERSON, message_id="msg_e1_03")
    row = outbox_row(3, state=OutboxState.REFUSED, refused_code="too_long")
    in_app = message(4, app_session_id="ses_e1_01")
    world.turn(message(1), said, row, in_app)
    view = world.store.view
    assert list(view.messages()) == [(message(1), None), (said, row), (in_app, None)]
    assert list(view.messages(before=4, limit=1)) == [(said, row)]
    assert list(view.messages(app_session_id="ses_e1_01")) == [(in_app, None)]
    assert view.message(3) == (said, row)
    assert view.message(2) is None


@pytest.mark.clause("8.4")
def test_sessions_are_listed_newest_first_with_what_was_said_in_them_and_chats_own_is_not(world: World) -> None:
    chat, old, new = session(1, app_scope="chat"), session(2, closed_at=NOW), session(3, continues="ses_e1_02")
    gone = instance(4, InstanceState.STOPPED, app_session_id="ses_e1_02")
    failed = instance(5, InstanceState.FAILED, app_session_id="ses_e1_03")
    world.turn(chat, old, new, gone, failed, message(6, app_session_id="ses_e1_03"))
    sessions = world.store.view.sessions
    assert list(sessions.newest()) == [new, old]
    assert list(sessions.newest(before=3)) == [old]
    assert list(sessions.newest(limit=1)) == [new]
    assert sessions.newest_instance("ses_e1_03") == failed
    assert [sessions.has_failed(one) for one in (old, new)] == [False, True]
    assert [sessions.message_count(one.app_session_id) for one in (old, new)] == [0, 1]


@pytest.mark.clause("8.3")
def test_when_an_instance_was_last_used_is_known_in_this_run_and_forgotten_with_it(world: World) -> None:
    world.turn(instance(1, InstanceState.BACKGROUND))
    first_ms = world.store.view.quiet_since_ms("ins_e1_01")
    assert first_ms == world.boottime_ms
    world.turn(session(2))
    assert world.store.view.quiet_since_ms("ins_e1_01") == first_ms
    world.turn(inbox_row(3, instance_id="ins_e1_01"))
    assert world.store.view.quiet_since_ms("ins_e1_01") == world.boottime_ms > first_ms
    assert world.reopen().view.quiet_since_ms("ins_e1_01") == 0
    world.turn(instance(1, InstanceState.STOPPED))
    assert world.store.view.quiet_since_ms("ins_e1_01") == 0


@pytest.mark.clause("6.5")
def test_a_descriptor_outlives_its_manifest_when_it_was_kept(world: World) -> None:
    tool = golden_manifest().tools[0]
    world.turn(KeptDescriptor(digest=tool.digest, document_cbor=encode_body(tool.content)))
    world.close()
    world.manifests = {}
    kept = world.store.view.descriptor(tool.digest)
    assert kept == tool
    assert kept is not tool
    assert world.store.view.descriptor(tool.digest) is kept  # compiled once


def test_a_descriptor_that_was_never_kept_or_is_another_is_a_kernel_bug(world: World) -> None:
    tool = golden_manifest().tools[0]
    with pytest.raises(KernelBug):
        world.store.view.descriptor("0" * 64)
    world.turn(KeptDescriptor(digest="1" * 64, document_cbor=encode_body(tool.content)))
    with pytest.raises(KernelBug):
        world.store.view.descriptor("1" * 64)


@pytest.mark.clause("4.4")
@pytest.mark.parametrize("revision", ["", "e1", "e1.", ".1", "e2.1", "e1.2", "e1.-1", "e1.1 ", "e1.\u0661", "e1." + "9" * 99])
def test_a_revision_that_was_never_published_has_no_fingerprint(world: World, revision: str) -> None:
    world.turn(world.publish())
    assert world.store.view.fingerprint("e1.1") is not None
    assert world.store.view.fingerprint(revision) is None


class Recorder(Database):
    """A database that keeps the text of every statement."""

    def __init__(self, database: Database) -> None:
        self.__dict__ = database.__dict__
        self.texts: dict[str, int] = {}

    def run(self, sql: str, values: tuple[Any, ...] = ()) -> list[Row]:
        self.texts[sql] = len(values)
        return super().run(sql, values)


@pytest.mark.invariant("08")
def test_every_read_of_the_view_is_served_by_an_index(world: World) -> None:
    world.turn(*CALLS, world.publish())
    database = Recorder(world.store._db)
    view = StoreView(database, world.store._memory)
    _use_every_read(view)
    assert len(database.texts) > 20
    for text, parameters in list(database.texts.items()):
        plan = [row[3] for row in database.run("EXPLAIN QUERY PLAN " + text, ("1",) * parameters)]
        scans = [step for step in plan if step.startswith("SCAN") and "USING INDEX" not in step and "USING COVERING INDEX" not in step]
        if "ORDER BY seq DESC LIMIT" not in text:  # the tail of a chain is read from its end
            assert not scans, (text, plan)


def _use_every_read(view: StoreView) -> None:
    view.fingerprint(view.inventory.revision)
    view.key(b"")
    for read in (view.open_calls, view.open_calls_of_app, view.instance, view.current_instance, view.open_session, view.saved_state):
        read("x")
    for look in (view.call_by_id, view.inbox_size, view.outbox_row, view.open_call_count_of, view.parked_rows):
        look("x")
    for by_number in (view.call, view.final_row, view.pending_progress_row, view.outbox_rows_of_call, view.message, view.timeline_entry):
        by_number(1)
    for plain in (view.unrouted_calls, view.next_deadline_ms, view.current_instances, view.focus, view.instances):
        plain()
    view.due_calls(1, 1)
    view.inbox_row("x", "y")
    view.inbox_rows("x", 0, 1)
    view.outbox_pending(Source.AGENT, 0, 1)
    view.pending_inventory_row(Source.AGENT)
    view.messages()
    view.messages(app_session_id="x")
    view.sessions.newest()
    for read_session in (view.sessions.by_id, view.sessions.newest_instance, view.sessions.message_count):
        read_session("x")
    for state in (None, "open", "ended", CallStatus.FAILED):
        view.calls(state=state)
    for one in (view.surfaces.by_id, view.surfaces.of_session, view.artifacts.by_id, view.artifacts.size_of, view.artifacts.needs):
        one("x")
    view.surfaces.by_number(1)
    view.surfaces.open_ones()
    view.artifacts.by_number(1)
    view.artifacts.of_content("x", "y")
    with pytest.raises(KernelBug):
        view.descriptor("x")


@pytest.mark.parametrize(("is_stable", "compilations"), [(True, 0), (False, 3)])
def test_a_read_through_a_partial_index_is_compiled_once(world: World, is_stable: bool, compilations: int) -> None:
    """Twenty times as fast; the second case shows what the setting is for, and that the count would tell."""
    view, connection = world.store.view, world.store._db._connection
    if not is_stable:
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 0)
    compiled: list[str] = []

    def count_compilation(operation: int, *_: object) -> int:
        if operation == apsw.SQLITE_SELECT:  # once a compilation
            compiled.append("again")
        return apsw.SQLITE_OK

    connection.authorizer = count_compilation
    view.open_session("first")
    compiled.clear()
    for name in ("a", "b", "c"):
        view.open_session(name)
    assert len(compiled) == compilations


@pytest.mark.invariant("60")
def test_what_memory_shows_is_what_a_new_start_reads_from_the_rows(world: World) -> None:
    moved = replace(CALLS[0], instance_id="ins_e1_02", status=CallStatus.WAITING_FOR_APP)
    over = ended(5, CallStatus.CANCELLED, instance_id="ins_e1_02")
    kept, gone = instance(20, InstanceState.SUSPENDED), instance(21, InstanceState.FAILED, error=Code.APP_CRASHED)
    world.turn(*CALLS, *map(key_of, CALLS), instance(20), instance(21), FocusStack(instance_ids=("a",)), outbox_row(30), outbox_row(31))
    world.turn(moved, over, kept, gone, FocusStack(instance_ids=()), replace(outbox_row(31), state=OutboxState.ACKNOWLEDGED))

    def seen(view: StoreView) -> list[object]:
        of_calls = [view.call(number) for number in range(1, 20)] + [view.call_by_id(record.call_id) for record in CALLS]
        of_instances = [view.open_calls(f"ins_e1_{number:02x}") for number in range(9)] + [view.unrouted_calls()]
        standing = [view.current_instances(), view.current_instance("task-dashboard"), view.instance("ins_e1_15"), view.focus()]
        counts = [view.open_call_count(), view.outbox_pending_count(), view.next_deadline_ms(), view.due_calls(10_000, 50)]
        return [*of_calls, *of_instances, *standing, *counts]

    before = seen(world.store.view)
    world.crash()
    assert seen(world.store.view) == before
    assert numbers(world.store.view.open_calls("ins_e1_02")) == [1, 6]


def test_replaced_records_keep_the_sets_of_open_things_right(world: World) -> None:
    for number in range(1, 6):
        world.turn(call(number), outbox_row(100 + number))
    world.turn(*(ended(number, CallStatus.CANCELLED) for number in (1, 2)), replace(outbox_row(101), state=OutboxState.REFUSED))
    counts = (world.store.view.open_call_count(), world.store.view.outbox_pending_count())
    assert counts == (3, 4)
    world.crash()
    assert (world.store.view.open_call_count(), world.store.view.outbox_pending_count()) == counts
