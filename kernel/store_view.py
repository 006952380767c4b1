"""The View over rows: what deciders and ports may read (kernel.core.decision.View).

Rules:
1. What is open comes from memory (kernel/store_memory.py). Every other read is served by an index and bounded by a limit.
2. It only reads. A read that meets a rotten page closes the store (kernel/database.py): nothing is decided on it.
3. Deciders use the first part only; the second part is for drawing and listing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from kernel.core.capability_records import AttachedViews
from kernel.core.decision import KernelBug
from kernel.core.inventory import Enablement, Inventory
from kernel.core.machines import CALL_OPEN, CallStatus, InstanceState
from kernel.core.manifest import Handling, Hints, Manifest, ToolDescriptor
from kernel.core.manifest_form import ToolForm
from kernel.core.records import (
    AppSession,
    FocusStack,
    InboxRow,
    Instance,
    Key,
    OutboxRow,
    SavedState,
    Source,
    TimelineMessage,
    ToolCall,
    decode_body,
    key_digest,
)
from kernel.core.schema import compile_schema
from kernel.database import Database
from kernel.store_capabilities import CapabilityReads
from kernel.store_interactions import InteractionReads
from kernel.store_memory import Memory
from kernel.store_outbox import OutboxReads, read_outbox_row
from kernel.store_retention import RetentionReads
from kernel.store_rows import (
    read_app_session,
    read_inbox_row,
    read_instance,
    read_key,
    read_saved_state,
    read_timeline_message,
    read_tool_call,
)
from kernel.store_sessions import SessionRows
from kernel.store_surfaces import ArtifactRows, SurfaceRows
from kernel.store_upkeep import UpkeepView

_FOREVER = 2**63 - 1  # above every number
# Entries of the timeline, each beside its row to an Agent; only the person's have one, under the same number.
_ENTRIES = "SELECT m.*, o.* FROM timeline_message AS m LEFT JOIN outbox_row AS o ON o.number = m.number AND m.author = 'person'"
_OF_ROW = 9  # the first column of the row
_UNROUTED = frozenset({CallStatus.RECEIVED, CallStatus.ROUTING})


class StoreView(InteractionReads, OutboxReads):
    """Reads of one open store."""

    def __init__(self, database: Database, memory: Memory) -> None:
        self._db = database
        self._memory = memory
        self.capabilities = CapabilityReads(database)
        self.sessions = SessionRows(database)
        self.surfaces = SurfaceRows(database)
        self.artifacts = ArtifactRows(database)
        self.retention = RetentionReads(database)
        self.upkeep = UpkeepView(database)

    def forget_cached(self) -> None:
        """Read again what was held beside the rows; the views that are attached are of this run and stay."""
        views = AttachedViews(views=tuple(self.capabilities.views()))
        self.capabilities = CapabilityReads(self._db)
        self.capabilities.follow((views,))
        self.surfaces = SurfaceRows(self._db)

    # ----------------------------------------------------------------------------- standing facts

    @property
    def epoch(self) -> str:
        """The prefix of every kernel-made id."""
        return self._memory.epoch

    @property
    def conversation_id(self) -> str:
        """The one main conversation."""
        return self._memory.conversation_id

    @property
    def inventory(self) -> Inventory:
        """The inventory in force."""
        return self._memory.inventory

    @property
    def enablement(self) -> Enablement:
        """What the person switched off."""
        return self._memory.enablement

    @property
    def manifests(self) -> Mapping[str, Manifest]:
        """Every App there is, by app_scope."""
        return self._memory.manifests

    def door(self) -> Source:
        """Which Agent the person talks to."""
        return self._memory.door

    def descriptor(self, digest: str) -> ToolDescriptor:
        """The descriptor a call was accepted under. Raises: KernelBug when it was never kept."""
        known = self._memory.descriptors.get(digest)
        if known is None:
            known = self._memory.descriptors[digest] = self._kept_descriptor(digest)
        return known

    def _kept_descriptor(self, digest: str) -> ToolDescriptor:
        row = self._db.run_one("SELECT document_cbor FROM kept_descriptor WHERE digest = ?", (digest,))
        if row is None:
            raise KernelBug("a call names a descriptor that was not kept")
        descriptor = _read_descriptor(row[0])
        if descriptor.digest != digest:
            raise KernelBug("a kept descriptor has another digest")
        return descriptor

    def fingerprint(self, revision: str) -> Mapping[str, str] | None:
        """Tool id to digest of a revision that was published here, else None."""
        epoch, _, number = revision.rpartition(".")
        if not (number.isascii() and number.isdecimal() and len(number) <= 15):
            return None
        row = self._db.run_one("SELECT epoch, fingerprint_cbor FROM published_inventory WHERE number = ?", (int(number),))
        return decode_body(row[1]) if row is not None and row[0] == epoch else None

    def key(self, digest: bytes) -> Key | None:
        """What a used id stood for."""
        row = self._db.run_one("SELECT * FROM used_key WHERE digest = ?", (digest,))
        return None if row is None else read_key(row)

    # ----------------------------------------------------------------------------- tool calls

    def call(self, number: int) -> ToolCall | None:
        """A call by its local number."""
        known = self._memory.open.by_number(number)
        if known is not None:
            return known
        row = self._db.run_one("SELECT * FROM tool_call WHERE number = ?", (number,))
        return None if row is None else read_tool_call(row)

    def call_by_id(self, call_id: str) -> ToolCall | None:
        """A call by the id its caller gave it."""
        known = self._memory.open.by_id(call_id)
        if known is not None:
            return known
        key = self.key(key_digest("call", self.conversation_id, call_id))
        return None if key is None else self.call(key.number)

    def open_calls(self, instance_id: str) -> Sequence[ToolCall]:
        """The open calls of an instance, oldest first."""
        return self._memory.open.of_instance(instance_id)

    def open_calls_of_app(self, app_scope: str) -> Sequence[ToolCall]:
        """The open calls for an App, oldest first, also those without an instance yet."""
        return [call for call in self._memory.open.all() if call.app_scope == app_scope]

    def unrouted_calls(self) -> Sequence[ToolCall]:
        """Calls that are accepted and have no place yet, oldest first."""
        return [call for call in self._memory.open.all() if call.status in _UNROUTED]

    def due_calls(self, boottime_ms: int, limit: int) -> Sequence[ToolCall]:
        """Open calls with a deadline at or before that boottime, the earliest first."""
        dated = [(at_ms, call) for call in self._memory.open.all() if (at_ms := _due_ms(call)) is not None and at_ms <= boottime_ms]
        return [call for _, call in sorted(dated, key=lambda due: due[0])[:limit]]

    def next_deadline_ms(self) -> int | None:
        """The boottime of the earliest deadline of an open call, interaction or grant; None when none has one."""
        of_calls = [at_ms for call in self._memory.open.all() if (at_ms := _due_ms(call)) is not None]
        of_questions = [one.deadline.at_ms for one in self._memory.interactions.values() if one.deadline is not None]
        of_grants = [one.deadline_ms for one in self.capabilities.open_requests() if one.deadline_ms is not None]
        return min((*of_calls, *of_questions, *of_grants), default=None)

    def open_call_count(self) -> int:
        """How many calls have no outcome yet."""
        return len(self._memory.open)

    # ----------------------------------------------------------------------------- instances

    def instance(self, instance_id: str) -> Instance | None:
        """An instance by its id, ended or not."""
        known = self._memory.instances.get(instance_id)
        if known is not None:
            return known
        row = self._db.run_one("SELECT * FROM instance WHERE instance_id = ?", (instance_id,))
        return None if row is None else read_instance(row)

    def current_instance(self, app_scope: str) -> Instance | None:
        """The App's instance a call can go to: not stopping, stopped or failed."""
        current = self._memory.instances.values()
        found = [one for one in current if one.app_scope == app_scope and one.state is not InstanceState.STOPPING]
        return max(found, key=lambda instance: instance.number, default=None)

    def quiet_since_ms(self, instance_id: str) -> int:
        """The boottime at which a record about an instance was last written in this run."""
        return self._memory.touched_ms.get(instance_id, 0)

    def current_instances(self) -> Sequence[Instance]:
        """Every instance that is neither stopped nor failed, oldest first."""
        return sorted(self._memory.instances.values(), key=lambda instance: instance.number)

    def focus(self) -> FocusStack:
        """The focus stack; empty = chat in front."""
        return self._memory.focus

    def open_session(self, app_scope: str) -> AppSession | None:
        """The newest App session of an App that is not closed."""
        row = self._db.run_one(
            "SELECT * FROM app_session WHERE app_scope = ? AND closed_at IS NULL ORDER BY number DESC LIMIT 1", (app_scope,)
        )
        return None if row is None else read_app_session(row)

    def saved_state(self, app_session_id: str) -> SavedState | None:
        """What the App of a session remembers."""
        row = self._db.run_one("SELECT * FROM saved_state WHERE app_session_id = ?", (app_session_id,))
        return None if row is None else read_saved_state(row)

    # ----------------------------------------------------------------------------- inbox

    def inbox_row(self, instance_id: str, message_id: str) -> InboxRow | None:
        """A message of that instance, in any state; another instance's is None."""
        row = self._db.run_one("SELECT * FROM inbox_row WHERE message_id = ? AND instance_id = ?", (message_id, instance_id))
        return None if row is None else read_inbox_row(row)

    def inbox_row_by_number(self, number: int) -> InboxRow | None:
        """One inbox row, in any state."""
        row = self._db.run_one("SELECT * FROM inbox_row WHERE number = ?", (number,))
        return None if row is None else read_inbox_row(row)

    def inbox_rows(self, instance_id: str, after: int, limit: int) -> Sequence[InboxRow]:
        """Deliverable messages of an instance with a number above `after`, oldest first."""
        rows = self._db.run(
            "SELECT * FROM inbox_row WHERE instance_id = ? AND number > ? AND state IN ('deliverable', 'parked')"
            " AND state = 'deliverable' ORDER BY number LIMIT ?",
            (instance_id, after, limit),
        )
        return [read_inbox_row(row) for row in rows]

    def inbox_size(self, instance_id: str) -> tuple[int, int]:
        """Rows and bytes of bodies held for an instance: deliverable and parked."""
        row = self._db.run_one(
            "SELECT count(*), ifnull(sum(body_bytes), 0) FROM inbox_row WHERE instance_id = ? AND state IN ('deliverable', 'parked')",
            (instance_id,),
        )
        return (0, 0) if row is None else (row[0], row[1])

    # =============================================================================
    # for drawing and listing: not part of the core's View
    # =============================================================================

    def calls(self, *, state: str | None = None, before: int | None = None, limit: int = 50) -> Sequence[ToolCall]:
        """Calls with a number below `before`, newest first. state: open | ended | one status | None for all."""
        top = _FOREVER if before is None else before
        if state == "open" or state in CALL_OPEN:
            found = (call for call in reversed(self._memory.open.all()) if call.number < top and state in ("open", call.status))
            return list(islice(found, limit))
        if state is None or state == "ended":
            rows = self._db.run(_CALLS_ENDED if state else _CALLS, (top, limit))
        else:
            is_success = state in (CallStatus.SUBMITTED, CallStatus.COMPLETED)
            rows = self._db.run(_CALLS_SUCCEEDED if is_success else _CALLS_NOT_SUCCEEDED, (CallStatus(state), top, limit))
        return [read_tool_call(row) for row in rows]

    def open_call_count_of(self, instance_id: str) -> int:
        """How many open calls an instance has."""
        return len(self._memory.open.of_instance(instance_id))

    def instances(self, *, before: int | None = None, limit: int = 100) -> Sequence[Instance]:
        """Instances with a number below `before`, ended ones too, newest first."""
        top = _FOREVER if before is None else before
        rows = self._db.run("SELECT * FROM instance WHERE number < ? ORDER BY number DESC LIMIT ?", (top, limit))
        return [read_instance(row) for row in rows]

    def messages(
        self, *, before: int | None = None, limit: int = 50, app_session_id: str | None = None
    ) -> Sequence[tuple[TimelineMessage, OutboxRow | None]]:
        """The window of the timeline below `before`, oldest first, each with its row to an Agent if it has one.

        app_session_id: only what was said while that App was in front.
        """
        top = _FOREVER if before is None else before
        if app_session_id is None:
            rows = self._db.run(f"{_ENTRIES} WHERE m.number < ? ORDER BY m.number DESC LIMIT ?", (top, limit))
        else:
            rows = self._db.run(
                f"{_ENTRIES} WHERE m.app_session_id = ? AND m.number < ? ORDER BY m.number DESC LIMIT ?", (app_session_id, top, limit)
            )
        found = [(read_timeline_message(row), None if row[_OF_ROW] is None else read_outbox_row(row[_OF_ROW:])) for row in rows]
        return found[::-1]

    def timeline_entry(self, number: int) -> TimelineMessage | None:
        """One entry of the timeline."""
        row = self._db.run_one("SELECT * FROM timeline_message WHERE number = ?", (number,))
        return None if row is None else read_timeline_message(row)

    def message(self, number: int) -> tuple[TimelineMessage, OutboxRow | None] | None:
        """One entry of the timeline, as `messages` gives it."""
        found = self.messages(before=number + 1, limit=1)
        return found[0] if found and found[0][0].number == number else None

    def parked_rows(self, instance_id: str, *, limit: int = 50) -> Sequence[InboxRow]:
        """Parked messages of an instance, oldest first."""
        rows = self._db.run(
            "SELECT * FROM inbox_row WHERE instance_id = ? AND state IN ('deliverable', 'parked') AND state = 'parked'"
            " ORDER BY number LIMIT ?",
            (instance_id, limit),
        )
        return [read_inbox_row(row) for row in rows]


def _due_ms(call: ToolCall) -> int | None:
    """The earlier of a call's two deadlines."""
    return min((deadline.at_ms for deadline in (call.deadline, call.cancel_deadline) if deadline is not None), default=None)


_CALLS = "SELECT * FROM tool_call WHERE number < ? ORDER BY number DESC LIMIT ?"
# At most MAX_OPEN_CALLS rows are passed over.
_CALLS_ENDED = """SELECT * FROM tool_call WHERE number < ? AND +status NOT IN ('received', 'routing', 'waiting_for_app', 'running')
  ORDER BY number DESC LIMIT ?"""
# Most calls succeed: the newest ones are near. The others have an index, tool_call_by_status.
_CALLS_SUCCEEDED = "SELECT * FROM tool_call WHERE +status = ? AND number < ? ORDER BY number DESC LIMIT ?"
_CALLS_NOT_SUCCEEDED = """SELECT * FROM tool_call
  WHERE (status = 'failed' OR status = 'cancelled' OR status = 'expired' OR status = 'rejected')
  AND status = ? AND number < ? ORDER BY number DESC LIMIT ?"""


def _read_descriptor(document_cbor: bytes) -> ToolDescriptor:
    form = ToolForm.model_validate(decode_body(document_cbor))
    return ToolDescriptor(
        id=form.id,
        version=form.version,
        title=form.title,
        description=form.description,
        handling=Handling(form.handling),
        app_scope=form.target.app_scope,
        requires_foreground=form.target.requires_foreground,
        restore_previous_focus=form.target.restore_previous_focus,
        input_schema=compile_schema(form.input_schema),
        output_schema=compile_schema(form.output_schema),
        permissions=frozenset(form.permissions),
        timeout_ms=form.timeout_ms,
        hints=Hints(form.hints.read_only, form.hints.destructive, form.hints.idempotent),
    )
