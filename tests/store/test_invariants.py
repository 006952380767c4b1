"""The checks of tests/invariants.py have teeth: each goes red for a break of its own promise, and green without."""

from __future__ import annotations

from collections.abc import Iterator

import apsw
import pytest

from kernel.core.decision import AuditEntry
from kernel.core.machines import CallStatus, InstanceState
from kernel.core.records import FocusStack, KeptDescriptor, OutboxKind, encode_body
from tests.invariants import CHECKS, check_all, check_inv_10, watch_inv_10
from tests.store.world import World, call, inbox_row, instance, key_of, message, open_raw, outbox_row

_OPEN_DESCRIPTOR = KeptDescriptor(digest="d" * 64, document_cbor=encode_body({"output_schema": {"type": "object"}}))
SOUND = (
    _OPEN_DESCRIPTOR,
    call(1),
    key_of(call(1)),
    call(2, CallStatus.SUBMITTED, result_cbor=encode_body({"a": 1})),
    key_of(call(2)),
    outbox_row(3, OutboxKind.FINAL, call_number=2),
    instance(4, InstanceState.BACKGROUND),
    instance(5, InstanceState.FOREGROUND),
    FocusStack(instance_ids=("ins_e1_04", "ins_e1_05")),
    inbox_row(6),
    message(7),
)
AUDIT = (AuditEntry(event="call.received", number=1), AuditEntry(event="call.submitted", number=2))


@pytest.fixture
def raw(world: World) -> Iterator[apsw.Connection]:
    """The database of a sound world, open for spoiling."""
    world.turn(*SOUND, audit=AUDIT, numbers=7)
    world.close()
    connection = open_raw(world.path)
    yield connection
    connection.close()


def test_a_sound_database_breaks_no_promise(raw: apsw.Connection) -> None:
    assert check_all(raw) == []


@pytest.mark.parametrize(
    ("number", "spoil"),
    [
        ("09", "DELETE FROM used_key"),
        ("09", "UPDATE used_key SET content_digest = x'00'"),
        ("15", "DELETE FROM outbox_row"),
        ("15", "UPDATE audit SET event = 'call.accepted' WHERE number = 2"),
        ("15", "UPDATE tool_call SET status = 'running' WHERE number = 2"),
        ("15", "UPDATE audit SET event = 'call.failed' WHERE number = 1"),
        ("16", "UPDATE outbox_row SET call_number = 99"),
        ("20", "UPDATE tool_call SET status = 'completed', result_cbor = NULL WHERE number = 2"),
        ("20", "UPDATE tool_call SET result_cbor = x'a0' WHERE number = 1"),
        ("37", "UPDATE instance SET state = 'foreground'"),
        ("37", "UPDATE focus SET instance_ids = '[\"ins_e1_04\"]'"),
        ("37", "UPDATE instance SET state = 'stopped' WHERE number = 4"),
        ("37", 'UPDATE focus SET instance_ids = \'["ins_e1_05", "ins_e1_05"]\''),
        ("55", "DELETE FROM audit WHERE seq = 2"),
        ("55", "UPDATE audit SET number = 77 WHERE number = 1"),
        ("55", "UPDATE instance SET state = 'failed' WHERE number = 4"),
        ("55", "UPDATE audit SET cause = 9 WHERE seq = 2"),
    ],
)
def test_a_break_of_a_promise_is_told_under_its_number(raw: apsw.Connection, number: str, spoil: str) -> None:
    raw.execute(spoil)
    found = [line for line in check_all(raw) if line.startswith(f"INV-{number}: ")]
    assert found


_FREE_MESSAGE_IDS = """
PRAGMA writable_schema = 1;
UPDATE sqlite_schema SET sql = replace(sql, ',\n  UNIQUE (message_id, conversation_id)', '') WHERE name = 'inbox_row';
DELETE FROM sqlite_schema WHERE name = 'sqlite_autoindex_inbox_row_1';
PRAGMA writable_schema = RESET
"""
_COPY_INBOX_ROW = """
INSERT INTO inbox_row SELECT 99, message_id, app_scope, conversation_id, instance_id, topic, body_cbor, created_at, state, delivery_count,
  delivered_life, crash_count, body_bytes FROM inbox_row
"""
_COPY_OUTBOX_ROW = """
INSERT INTO outbox_row SELECT 99, 'other', destination, conversation_id, kind, envelope_cbor, created_at, call_number, state,
  refused_code FROM outbox_row
"""


@pytest.mark.parametrize(
    ("number", "index", "copy"),
    [("16", "DROP INDEX outbox_row_final", _COPY_OUTBOX_ROW), ("04", _FREE_MESSAGE_IDS, _COPY_INBOX_ROW)],
    ids=["16", "04"],
)
def test_a_promise_that_the_schema_keeps_is_checked_without_it_too(raw: apsw.Connection, number: str, index: str, copy: str) -> None:
    with pytest.raises(apsw.ConstraintError):
        raw.execute(copy)
    raw.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    raw.execute(index)
    raw.execute(copy)
    assert CHECKS[number](raw)


@pytest.mark.invariant("10")
def test_a_step_outside_the_tables_is_told(raw: apsw.Connection) -> None:
    watch_inv_10(raw)
    raw.execute("UPDATE tool_call SET status = 'waiting_for_app' WHERE number = 1")  # through routing, in one turn
    raw.execute("UPDATE tool_call SET status = 'completed' WHERE number = 2")
    raw.execute("UPDATE instance SET state = 'stopped' WHERE number = 5")
    assert check_inv_10(raw) == []
    raw.execute("UPDATE tool_call SET status = 'received' WHERE number = 1")
    raw.execute("UPDATE tool_call SET status = 'running' WHERE number = 2")
    raw.execute("UPDATE instance SET state = 'starting' WHERE number = 5")
    assert check_inv_10(raw) == [
        "INV-10: tool_call 1 went from waiting_for_app to received",
        "INV-10: tool_call 2 went from completed to running",
        "INV-10: instance 5 went from stopped to starting",
    ]
