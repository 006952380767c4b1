"""A View over dicts (kernel.core.decision.View), and the Apps of the tests (apps.json).

Rules:
1. It keeps what the database would refuse: one final row a call, one call an id, ids never used twice, every new content of the
   inventory published. Breaking one is a KernelBug.
2. Reads scan; the worlds of tests are small.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from kernel.core.builtin import BUILTIN
from kernel.core.capability_records import AttachedViews, Permission
from kernel.core.decision import AuditEntry, Decision, KernelBug
from kernel.core.inventory import Enablement, Inventory, PublishedRevision, publish
from kernel.core.machines import (
    CALL_OPEN,
    INSTANCE_FINAL,
    INTERACTION_OPEN,
    CallStatus,
    InboxState,
    InstanceState,
    OutboxState,
    PermissionState,
)
from kernel.core.manifest import Manifest, ToolDescriptor, parse_manifest
from kernel.core.records import (
    AppSession,
    Door,
    FocusStack,
    InboxRow,
    Instance,
    Interaction,
    KeptDescriptor,
    Key,
    OutboxKind,
    OutboxRow,
    Policy,
    PublishedInventory,
    Record,
    SavedState,
    Source,
    Switch,
    TimelineMessage,
    ToolCall,
    decode_body,
)
from kernel.core.surface_records import AppendedPatch, SurfaceSnapshot
from tests.core.dict_capabilities import KEYS as CAPABILITY_KEYS
from tests.core.dict_capabilities import DictCapabilities
from tests.core.dict_retention import DictRetention, forget
from tests.core.dict_surfaces import KEYS as SURFACE_KEYS
from tests.core.dict_surfaces import DictArtifacts, DictSurfaces, patch_key

EPOCH = "e1"
CONVERSATION = "cnv_e1_main"

# ------------------------------------------------------------------------------------ the Apps of the tests

_APPS = json.loads((Path(__file__).parent / "apps.json").read_text("utf-8"))


def manifest_of(scope: str, **changes: Any) -> Manifest:
    """One App of the tests; changes replace top keys of its Manifest."""
    return parse_manifest(deepcopy(_APPS[scope]) | changes)


def renamed(scope: str, new_scope: str) -> Manifest:
    """A copy of an App under another scope."""
    return parse_manifest(json.loads(json.dumps(_APPS[scope]).replace(f'"{scope}', f'"{new_scope}')))


MANIFESTS: dict[str, Manifest] = BUILTIN | {scope: manifest_of(scope) for scope in _APPS}


# ------------------------------------------------------------------------------------ the View

_KEYS: Mapping[type, str] = {
    **CAPABILITY_KEYS,
    **SURFACE_KEYS,
    AppSession: "app_session_id",
    InboxRow: "number",
    Instance: "instance_id",
    Interaction: "interaction_id",
    KeptDescriptor: "digest",
    Key: "digest",
    OutboxRow: "number",
    Policy: "name",
    PublishedInventory: "number",
    SavedState: "app_session_id",
    Switch: "name",
    TimelineMessage: "number",
    ToolCall: "number",
}


class DictSessions:
    """App sessions over a dict."""

    def __init__(self, table: Mapping[object, Any]) -> None:
        self._table = table

    def by_id(self, app_session_id: str) -> AppSession | None:
        return self._table.get(app_session_id)


class DictView:
    """All the kernel knows, in dicts."""

    def __init__(self, manifests: Mapping[str, Manifest] = MANIFESTS) -> None:
        self.epoch = EPOCH
        self.conversation_id = CONVERSATION
        self.tables: dict[type, dict[object, Any]] = {kind: {} for kind in (*_KEYS, AttachedViews, FocusStack, Door)}
        self.audit: list[AuditEntry] = []
        self.touched_ms: dict[str, int] = {}  # of one run only, as in kernel/store_memory.py
        self._descriptors: dict[str, ToolDescriptor] = {}
        self.reopen(manifests)

    def reopen(self, manifests: Mapping[str, Manifest]) -> None:
        """What a start makes of what is stored."""
        self.manifests = manifests
        self.touched_ms = {}
        self.tables[AttachedViews].clear()  # of one run only
        self._descriptors |= {tool.digest: tool for manifest in manifests.values() for tool in manifest.tools}  # kept for ever
        self._publish()

    def copy(self) -> DictView:
        """Another one with the same content; records are frozen and shared."""
        twin = DictView.__new__(DictView)
        twin.__dict__.update(self.__dict__)
        twin.tables = {kind: dict(table) for kind, table in self.tables.items()}
        twin.audit = list(self.audit)
        twin.touched_ms = dict(self.touched_ms)
        twin._descriptors = dict(self._descriptors)
        return twin

    @property
    def surfaces(self) -> DictSurfaces:
        return DictSurfaces(self.tables)

    @property
    def artifacts(self) -> DictArtifacts:
        return DictArtifacts(self.tables)

    @property
    def capabilities(self) -> DictCapabilities:
        return DictCapabilities(self.tables)

    @property
    def retention(self) -> DictRetention:
        return DictRetention(self.tables)

    @property
    def sessions(self) -> DictSessions:
        return DictSessions(self.tables[AppSession])

    def quiet_since_ms(self, instance_id: str) -> int:
        return self.touched_ms.get(instance_id, 0)

    def timeline_entry(self, number: int) -> TimelineMessage | None:
        return self.tables[TimelineMessage].get(number)

    def _publish(self) -> None:
        switches = self._all(Switch)
        self.enablement = Enablement(frozenset(switch.name for switch in switches if not switch.enabled))
        stored = self._all(PublishedInventory)
        newest = max(stored, key=lambda one: one.number) if stored else None
        previous = PublishedRevision(newest.epoch, newest.number, newest.digest) if newest else None
        self.inventory: Inventory = publish(previous, self.epoch, self.manifests, self.enablement)

    # --- writing

    def apply(self, decision: Decision, boottime_ms: int = 0) -> None:
        """Write one decision. Raises: KernelBug where the database would refuse."""
        for number in decision.removed_rows:
            removed = self.tables[OutboxRow].pop(number)
            if removed.state is not OutboxState.PENDING or removed.kind is OutboxKind.FINAL:
                raise KernelBug("this row may not be removed")
        for record in decision.puts:
            if forget(self.tables, record):
                continue
            self._require_unique(record)
            if isinstance(record, Instance | InboxRow | ToolCall) and record.instance_id is not None:
                self.touched_ms[record.instance_id] = boottime_ms
            name = _KEYS.get(type(record))
            key = patch_key(record) if isinstance(record, AppendedPatch) else getattr(record, name) if name else None
            self.tables[type(record)][key] = record
            if isinstance(record, SurfaceSnapshot):
                self.surfaces.drop_patches(record)
        self.audit.extend(decision.audit)
        if any(isinstance(record, Switch | PublishedInventory) for record in decision.puts):
            before = self.inventory
            self._publish()
            if self.inventory.content != before.content and self.fingerprint(self.inventory.revision) is None:
                raise KernelBug("the content changed and its revision was not published")

    def _require_unique(self, record: Record) -> None:
        match record:
            case ToolCall():
                twins = [one for one in self._all(ToolCall) if one.call_id == record.call_id and one.number != record.number]
            case OutboxRow(kind=OutboxKind.FINAL):
                twins = [one for one in self._finals(record.call_number) if one.number != record.number]
            case Permission(state=PermissionState.ACTIVE):
                twins = [one for one in self.capabilities.permissions() if one.number != record.number and _is_about(one, record)]
            case Key():
                old = self.tables[Key].get(record.digest)
                twins = [old] if old is not None and old.content_digest != record.content_digest else []
            case _:
                twins = []
        if twins:
            raise KernelBug(f"a second {type(record).__name__} of that id")

    def _all(self, kind: type) -> list[Any]:
        return list(self.tables[kind].values())

    def _finals(self, call_number: int | None) -> list[OutboxRow]:
        return [row for row in self._all(OutboxRow) if row.kind is OutboxKind.FINAL and row.call_number == call_number]

    # --- reading: the View

    def descriptor(self, digest: str) -> ToolDescriptor:
        if digest not in self._descriptors:
            raise KernelBug("a descriptor that was never kept")
        return self._descriptors[digest]

    def fingerprint(self, revision: str) -> Mapping[str, str] | None:
        found = [one for one in self._all(PublishedInventory) if f"{one.epoch}.{one.number}" == revision]
        return decode_body(found[0].fingerprint_cbor) if found else None

    def key(self, digest: bytes) -> Key | None:
        return self.tables[Key].get(digest)

    def call(self, number: int) -> ToolCall | None:
        return self.tables[ToolCall].get(number)

    def call_by_id(self, call_id: str) -> ToolCall | None:
        return next((call for call in self._all(ToolCall) if call.call_id == call_id), None)

    def _open(self) -> list[ToolCall]:
        return sorted((call for call in self._all(ToolCall) if call.status in CALL_OPEN), key=lambda call: call.number)

    def open_calls(self, instance_id: str) -> Sequence[ToolCall]:
        return [call for call in self._open() if call.instance_id == instance_id]

    def open_calls_of_app(self, app_scope: str) -> Sequence[ToolCall]:
        return [call for call in self._open() if call.app_scope == app_scope]

    def unrouted_calls(self) -> Sequence[ToolCall]:
        return [call for call in self._open() if call.status in {CallStatus.RECEIVED, CallStatus.ROUTING}]

    def due_calls(self, boottime_ms: int, limit: int) -> Sequence[ToolCall]:
        due = [(at, call) for call in self._open() if (at := _due_ms(call)) is not None and at <= boottime_ms]
        return [call for _, call in sorted(due, key=lambda pair: pair[0])][:limit]

    def next_deadline_ms(self) -> int | None:
        of_calls = [at for call in self._open() if (at := _due_ms(call)) is not None]
        of_grants = [one.deadline_ms for one in self.capabilities.open_requests() if one.deadline_ms is not None]
        return min((*of_calls, *of_grants, *(one.deadline.at_ms for one in self.open_interactions() if one.deadline)), default=None)

    def open_call_count(self) -> int:
        return len(self._open())

    def interaction(self, interaction_id: str) -> Interaction | None:
        return self.tables[Interaction].get(interaction_id)

    def interaction_of_call(self, call_number: int) -> Interaction | None:
        return next((one for one in self._all(Interaction) if one.call_number == call_number), None)

    def open_interactions(self) -> Sequence[Interaction]:
        return sorted((one for one in self._all(Interaction) if one.status in INTERACTION_OPEN), key=lambda one: one.number)

    def is_allowed(self, policy: str) -> bool:
        return any(one.name == policy and one.allowed for one in self._all(Policy))

    def instance(self, instance_id: str) -> Instance | None:
        return self.tables[Instance].get(instance_id)

    def current_instance(self, app_scope: str) -> Instance | None:
        gone = {*INSTANCE_FINAL, InstanceState.STOPPING}
        return next((one for one in self._all(Instance) if one.app_scope == app_scope and one.state not in gone), None)

    def current_instances(self) -> Sequence[Instance]:
        return sorted((one for one in self._all(Instance) if one.state not in INSTANCE_FINAL), key=lambda one: one.number)

    def focus(self) -> FocusStack:
        stack: FocusStack = self.tables[FocusStack].get(None, FocusStack(instance_ids=()))
        return stack

    def open_session(self, app_scope: str) -> AppSession | None:
        found = [one for one in self._all(AppSession) if one.app_scope == app_scope and one.closed_at is None]
        return max(found, key=lambda one: one.number, default=None)

    def saved_state(self, app_session_id: str) -> SavedState | None:
        return self.tables[SavedState].get(app_session_id)

    def inbox_row_by_number(self, number: int) -> InboxRow | None:
        return self.tables[InboxRow].get(number)

    def _inbox(self, instance_id: str) -> list[InboxRow]:
        rows = (row for row in self._all(InboxRow) if row.instance_id == instance_id)
        return sorted(rows, key=lambda row: row.number)

    def inbox_row(self, instance_id: str, message_id: str) -> InboxRow | None:
        return next((row for row in self._inbox(instance_id) if row.message_id == message_id), None)

    def inbox_rows(self, instance_id: str, after: int, limit: int) -> Sequence[InboxRow]:
        rows = (row for row in self._inbox(instance_id) if row.state is InboxState.DELIVERABLE and row.number > after)
        return list(rows)[:limit]

    def inbox_size(self, instance_id: str) -> tuple[int, int]:
        held = [row for row in self._inbox(instance_id) if row.state is not InboxState.ACKNOWLEDGED]
        return len(held), sum(len(row.body_cbor) for row in held)

    def _pending(self) -> list[OutboxRow]:
        return sorted((row for row in self._all(OutboxRow) if row.state is OutboxState.PENDING), key=lambda row: row.number)

    def outbox_row(self, message_id: str) -> OutboxRow | None:
        return next((row for row in self._all(OutboxRow) if row.message_id == message_id), None)

    def outbox_pending(self, destination: Source, after: int, limit: int) -> Sequence[OutboxRow]:
        return [row for row in self._pending() if row.destination is destination and row.number > after][:limit]

    def outbox_pending_count(self) -> int:
        return len(self._pending())

    def final_row(self, call_number: int) -> OutboxRow | None:
        return next(iter(self._finals(call_number)), None)

    def pending_progress_row(self, call_number: int) -> OutboxRow | None:
        rows = (row for row in self._pending() if row.kind is OutboxKind.PROGRESS and row.call_number == call_number)
        return next(rows, None)

    def pending_inventory_row(self, destination: Source) -> OutboxRow | None:
        rows = (row for row in self._pending() if row.kind is OutboxKind.INVENTORY and row.destination is destination)
        return next(rows, None)

    def door(self) -> Source:
        door = self.tables[Door].get(None)
        return door.destination if door else Source.AGENT


def _is_about(one: Permission, other: Permission) -> bool:
    return (one.app_scope, one.capability) == (other.app_scope, other.capability)


def _due_ms(call: ToolCall) -> int | None:
    return min((deadline.at_ms for deadline in (call.deadline, call.cancel_deadline) if deadline), default=None)
