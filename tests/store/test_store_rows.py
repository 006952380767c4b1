"""Every record kind as a row and back; what an upsert may change; the closed lists of the schema."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any, get_args

import pytest

from kernel.core.capability_records import Acceptance, CapabilityRequest, ConsentScope, Permission
from kernel.core.decision import Speaker
from kernel.core.machines import CallStatus, CapabilityStatus, InboxState, InstanceState, InteractionStatus, OutboxState, PermissionState
from kernel.core.records import (
    Cancel,
    Deadline,
    Door,
    FocusStack,
    Instance,
    Interaction,
    InteractionKind,
    InteractionSource,
    KeptDescriptor,
    Key,
    OutboxKind,
    OutboxRow,
    Place,
    Policy,
    Record,
    SavedState,
    Source,
    Switch,
    TimelineMessage,
    ToolCall,
    encode_body,
)
from kernel.core.retention_records import Forgotten
from kernel.core.surface_records import AppendedPatch, Artifact, Surface, SurfaceSnapshot
from kernel.migrations import SCHEMA_PATH
from kernel.store import PUTS, UNSTORED
from kernel.store_view import StoreView
from lineup_sdk.protocol.codes import Code
from tests.store.world import NOW, World, call, golden_manifest, inbox_row, instance, interaction, message, open_raw, outbox_row, session

FULL_CALL = call(
    7,
    CallStatus.FAILED,
    source=Source.DEMO,
    instance_id="ins_e1_01",
    attempts=2,
    delivered_life=3,
    raised=True,
    deadline=Deadline("boot-1", 60_000),
    cancel=Cancel.ACKNOWLEDGED,
    cancel_deadline=Deadline("boot-1", 2_000),
    human_waits=2,
    held_ms=4_000,
    progress_cbor=encode_body({"percent": 4.5}),
    progress_window_ms=900,
    progress_count=3,
    result_cbor=encode_body({"a": "\u00e9\U0001f600"}),
    error_code=Code.APP_CRASHED,
    updated_at=NOW + timedelta(microseconds=1),
)
FULL_INSTANCE = instance(
    3,
    InstanceState.FAILED,
    life=4,
    parent_instance_id="ins_e1_00",
    tools_subscribed=True,
    inbox_subscribed=True,
    crash_boot_id="boot-1",
    crashes_ms=(1, 20, 300),
    act_boot_id="boot-1",
    act_ms=77,
    close_reason="person",
    stopped_at=NOW,
    error=Code.APP_CRASHED,
    ui_subscribed_life=4,
)
FULL_INTERACTION = interaction(
    6,
    InteractionStatus.SUBMITTED,
    kind=InteractionKind.INPUT,
    source=InteractionSource.MINIAPP_TOOL,
    owner_app_scope="task-dashboard",
    owner_instance_id="ins_e1_01",
    call_number=4,
    parent_call_number=5,
    app_session_id="ses_e1_01",
    place=Place.MODAL,
    expires_at=NOW,
    deadline=Deadline("boot-1", 9_000),
    result_cbor=encode_body({"outcome": "answered"}),
    answered_by_view="view-3-web",
    error_code=Code.EXPIRED,
    updated_at=NOW + timedelta(seconds=1),
)
FULL_INBOX_ROW = inbox_row(5, state=InboxState.PARKED, delivery_count=2, delivered_life=1, crash_count=2)
FULL_OUTBOX_ROW = outbox_row(9, OutboxKind.FINAL, call_number=7, state=OutboxState.REFUSED, refused_code="too_long")
FULL_MESSAGE = message(4, app_session_id="ses_e1_01", author=Source.PERSON, is_folded=True)

FULL_REQUEST = CapabilityRequest(
    number=5,
    request_id="cap_e1_05",
    capability="clipboard.write",
    contract_version=1,
    app_scope="board",
    instance_id="ins_e1_05",
    conversation_id="conversation_e1_00",
    anchor="b" * 64,
    reason="to paste it",
    parent_call_number=3,
    shown_digest=b"s" * 32,
    created_at=NOW,
    status=CapabilityStatus.ASKED,
    updated_at=NOW,
    arguments_cbor=encode_body({"text": "x"}),
    scope=ConsentScope.WHILE_OPEN,
    consent_view_id="view-1-console",
    provider_view_id="view-2-console",
    deadline_ms=9,
    error_code=Code.UNKNOWN,
    reason_of_end="no_terminal",
)
FULL_PERMISSION = Permission(
    number=6,
    app_scope="board",
    capability="clipboard.write",
    contract_version=1,
    anchor="b" * 64,
    scope=ConsentScope.WHILE_OPEN,
    instance_id="ins_e1_05",
    view_id="view-1-console",
    granted_at=NOW,
)
ACCEPTANCE = Acceptance(app_scope="board", capabilities=("artifact.save", "clipboard.write"), accepted_at=NOW)

ROUND_TRIPS: list[tuple[Record, Callable[[StoreView], Record | None]]] = [
    (call(7), lambda view: view.call(7)),
    (FULL_CALL, lambda view: view.call(7)),
    (instance(3), lambda view: view.instance("ins_e1_03")),
    (FULL_INSTANCE, lambda view: view.instance("ins_e1_03")),
    (FocusStack(instance_ids=("a", "b")), lambda view: view.focus()),
    (FocusStack(instance_ids=()), lambda view: view.focus()),
    (session(2, continues="ses_e1_01"), lambda view: view.open_session("task-dashboard")),
    (SavedState(app_session_id="s", state_cbor=b"\x00", updated_at=NOW), lambda view: view.saved_state("s")),
    (inbox_row(5), lambda view: view.inbox_row("ins_e1_01", "in-5")),
    (FULL_INBOX_ROW, lambda view: view.inbox_row("ins_e1_01", "in-5")),
    (interaction(6), lambda view: view.interaction("int_e1_06")),
    (FULL_INTERACTION, lambda view: view.interaction("int_e1_06")),
    (FULL_OUTBOX_ROW, lambda view: view.final_row(7)),
    (FULL_MESSAGE, lambda view: view.messages()[0][0]),
    (message(4), lambda view: view.timeline_entry(4)),
    (session(2, closed_at=NOW), lambda view: view.sessions.by_id("ses_e1_02")),
    (FULL_REQUEST, lambda view: view.capabilities.request("cap_e1_05")),
    (replace(FULL_REQUEST, status=CapabilityStatus.GRANTED), lambda view: view.capabilities.open_requests()[0]),
    (FULL_PERMISSION, lambda view: view.capabilities.permission("board", "clipboard.write")),
    (ACCEPTANCE, lambda view: view.capabilities.acceptance("board")),
    (Key(digest=b"k" * 32, content_digest=b"c" * 32, number=4, outcome="failed"), lambda view: view.key(b"k" * 32)),
]


@pytest.mark.parametrize(("record", "read"), ROUND_TRIPS, ids=lambda value: type(value).__name__)
def test_a_record_comes_back_as_it_was_put(world: World, record: Record, read: Callable[[StoreView], Record | None]) -> None:
    world.turn(record)
    assert read(world.store.view) == record
    assert read(world.reopen().view) == record


def test_switches_door_inventory_and_descriptors_come_back_in_the_view(world: World) -> None:
    tool = golden_manifest().tools[0]
    world.turn(world.publish())
    published = world.publish(frozenset({"task-dashboard"}))
    kept = KeptDescriptor(digest=tool.digest, document_cbor=encode_body(tool.content))
    world.turn(
        Policy(name="p", allowed=True),
        Policy(name="q", allowed=False),
        Switch(name="task-dashboard", enabled=False),
        published,
        Door(destination=Source.DEMO),
        kept,
        kept,
    )
    for is_restarted in (False, True):
        view = (world.reopen() if is_restarted else world.store).view
        assert view.enablement.disabled == {"task-dashboard"}
        assert view.door() is Source.DEMO
        assert (view.is_allowed("p"), view.is_allowed("q")) == (True, False)
        assert view.inventory.revision == "e1.2"
        assert [tool.id for tool in view.inventory.tools] == ["runtime.status"]


def test_every_record_kind_has_its_put_and_its_round_trip() -> None:
    kinds = set(get_args(Record))
    assert set(PUTS) == kinds - UNSTORED
    tried = {type(record) for record, _ in ROUND_TRIPS} | {AppendedPatch, Artifact, Surface, SurfaceSnapshot}  # test_store_surfaces.py
    elsewhere = {"Switch", "Door", "Policy", "PublishedInventory", "KeptDescriptor"}  # the test above
    elsewhere |= {kind.__name__ for kind in get_args(Forgotten)}  # test_retention.py
    assert {kind.__name__ for kind in kinds - tried - UNSTORED} == elsewhere


def _changed(value: Any) -> Any:
    """Another value of the same type."""
    match value:
        case StrEnum():
            members = list(type(value))
            return members[(members.index(value) + 1) % len(members)]
        case str():
            return value + value[:1]
        case bytes():
            return value + value[:1]
        case bool():
            return not value
        case int():
            return value + 1
        case tuple():
            return (*value, 5)
        case Deadline():
            return Deadline(value.boot_id, value.at_ms + 1)
        case _:
            return value + timedelta(seconds=1)


MUTABLE: dict[type, set[str]] = {
    ToolCall: {
        "status", "updated_at", "instance_id", "attempts", "delivered_life", "raised", "deadline", "cancel", "cancel_deadline",
        "human_waits", "held_ms", "progress_cbor", "progress_window_ms", "progress_count", "result_cbor", "error_code",
    },
    Instance: {
        "app_version", "bundle_digest", "state", "life", "tools_subscribed", "inbox_subscribed", "crash_boot_id", "crashes_ms",
        "act_boot_id", "act_ms", "close_reason", "stopped_at", "error", "is_ending", "ui_subscribed_life",
    },
    Interaction: {"status", "updated_at", "place", "deadline", "result_cbor", "answered_by_view", "error_code"},
    type(FULL_INBOX_ROW): {"instance_id", "state", "delivery_count", "delivered_life", "crash_count"},
    OutboxRow: {"state", "refused_code"},
    TimelineMessage: {"is_folded"},
}  # fmt: skip
UPSERTS = [
    (FULL_CALL, "SELECT * FROM tool_call"),
    (FULL_INSTANCE, "SELECT * FROM instance"),
    (FULL_INTERACTION, "SELECT * FROM interaction"),
    (FULL_INBOX_ROW, "SELECT * FROM inbox_row"),
    (FULL_OUTBOX_ROW, "SELECT * FROM outbox_row"),
    (FULL_MESSAGE, "SELECT * FROM timeline_message"),
]


@pytest.mark.parametrize(("record", "select"), UPSERTS, ids=lambda value: type(value).__name__)
def test_a_second_put_changes_what_may_change_and_nothing_else(world: World, record: Any, select: str) -> None:
    names = [field.name for field in fields(record)]
    mutable = MUTABLE[type(record)]
    for name in names:
        if name == "number" or (type(record), name) == (OutboxRow, "message_id"):
            continue  # the key itself
        world.turn(record)
        changed = replace(record, **{name: _changed(getattr(record, name))})
        world.turn(changed)
        world.crash()
        raw = open_raw(world.path)
        row = raw.execute(select).get
        raw.close()
        wanted = changed if name in mutable else record
        _, values = PUTS[type(record)]
        assert row[: len(values(wanted))][: row.index(record.number) + 1] == values(wanted)[: row.index(record.number) + 1]
        stored, expected = list(row), list(values(wanted))
        if type(record) is type(FULL_INBOX_ROW):
            stored, expected = stored[:12], expected[:12]
        assert stored == [int(value) if isinstance(value, bool) else value for value in expected], name


def _closed_list(table: str, column: str) -> set[str]:
    text = SCHEMA_PATH.read_text("utf-8")
    body = re.search(rf"CREATE TABLE {table} \((.*?)\n\) STRICT", text, re.DOTALL)
    assert body is not None
    words = re.search(rf"CHECK \({column} (?:IN \(|= )([^)]*)\)", body[1])  # an IN, or the same spelled with OR (rule 3 of the schema)
    assert words is not None
    return set(re.findall(r"'([a-z_]+)'", words[1]))


@pytest.mark.parametrize(
    ("table", "column", "words"),
    [
        ("audit", "speaker", Speaker),
        ("capability_request", "scope", ConsentScope),
        ("capability_request", "status", CapabilityStatus),
        ("door", "destination", Source),
        ("inbox_row", "state", InboxState),
        ("instance", "state", InstanceState),
        ("interaction", "kind", InteractionKind),
        ("interaction", "place", Place),
        ("interaction", "source", InteractionSource),
        ("interaction", "status", InteractionStatus),
        ("outbox_row", "destination", Source),
        ("outbox_row", "kind", OutboxKind),
        ("outbox_row", "state", OutboxState),
        ("permission", "state", PermissionState),
        ("timeline_message", "author", Source),
        ("tool_call", "cancel", Cancel),
        ("tool_call", "source", Source),
        ("tool_call", "status", CallStatus),
    ],
)
def test_a_closed_list_of_the_schema_is_the_enum_of_the_core(table: str, column: str, words: type[StrEnum]) -> None:
    assert _closed_list(table, column) == {word.value for word in words}
