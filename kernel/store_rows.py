"""Records as rows: how each kind is written and read back.

Rules:
1. Columns stand in the order of the record's fields (kernel/schema.sql), so `SELECT *` is read by position; migrations append.
2. A put is an upsert by the record's key. Its update part names only what may change after the first write: what a row is about
   (ids, owner, bytes, times of creation) stays whatever a decider hands in. Records that never change are plain inserts.
3. SQL is literals; every value is bound.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from kernel.core.machines import CallStatus, InboxState, InstanceState
from kernel.core.records import (
    AppSession,
    Cancel,
    Deadline,
    Door,
    FocusStack,
    InboxRow,
    Instance,
    KeptDescriptor,
    Key,
    PublishedInventory,
    SavedState,
    Source,
    Switch,
    TimelineMessage,
    ToolCall,
)
from kernel.database import Row
from lineup_sdk.protocol.codes import Code

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
Values = tuple[Any, ...]


def time_value(at: datetime) -> int:
    """A wall time as it is stored: whole microseconds since 1970 UTC."""
    return (at - _EPOCH) // _MICROSECOND


def read_time(value: int) -> datetime:
    """A stored wall time."""
    return _EPOCH + timedelta(microseconds=value)


def opt_time_value(at: datetime | None) -> int | None:
    """time_value, or None."""
    return None if at is None else time_value(at)


def read_opt_time(value: int | None) -> datetime | None:
    """read_time, or None."""
    return None if value is None else read_time(value)


def deadline_values(deadline: Deadline | None) -> tuple[str | None, int | None]:
    """The two columns of a deadline."""
    return (None, None) if deadline is None else (deadline.boot_id, deadline.at_ms)


def read_deadline(boot_id: str | None, at_ms: int | None) -> Deadline | None:
    """A deadline from its two columns."""
    return None if boot_id is None or at_ms is None else Deadline(boot_id, at_ms)


def read_code(value: str | None) -> Code | None:
    """A code, or None."""
    return None if value is None else Code(value)


# --------------------------------------------------------------------------------- tool calls

_PUT_TOOL_CALL = """
INSERT INTO tool_call VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
ON CONFLICT (number) DO UPDATE SET
  status = excluded.status, updated_at = excluded.updated_at, instance_id = excluded.instance_id, attempts = excluded.attempts,
  delivered_life = excluded.delivered_life, raised = excluded.raised, deadline_boot_id = excluded.deadline_boot_id,
  deadline_at_ms = excluded.deadline_at_ms, cancel = excluded.cancel, cancel_boot_id = excluded.cancel_boot_id,
  cancel_at_ms = excluded.cancel_at_ms, human_waits = excluded.human_waits, held_ms = excluded.held_ms,
  progress_cbor = excluded.progress_cbor, progress_window_ms = excluded.progress_window_ms,
  progress_count = excluded.progress_count, result_cbor = excluded.result_cbor, error_code = excluded.error_code
"""

UPDATE_TOOL_CALL = """
UPDATE tool_call SET
  status = ?, updated_at = ?, instance_id = ?, attempts = ?, delivered_life = ?, raised = ?, deadline_boot_id = ?, deadline_at_ms = ?,
  cancel = ?, cancel_boot_id = ?, cancel_at_ms = ?, human_waits = ?, held_ms = ?, progress_cbor = ?, progress_window_ms = ?,
  progress_count = ?, result_cbor = ?, error_code = ?
WHERE number = ?
"""

OPEN_CALLS = """
SELECT * FROM tool_call
WHERE number >= ? AND status IN ('received', 'routing', 'waiting_for_app', 'running') ORDER BY number
"""


def _tool_call_values(c: ToolCall) -> Values:
    identity = (c.number, c.call_id, c.tool_id, c.inventory_revision, c.descriptor_digest, c.source, c.app_scope, c.conversation_id)
    return (*identity, c.content_digest, c.input_cbor, time_value(c.created_at), *_standing_values(c))


def updated_call_values(c: ToolCall) -> Values:
    """What UPDATE_TOOL_CALL takes: the columns that change, then the number."""
    return (*_standing_values(c), c.number)


def _standing_values(c: ToolCall) -> Values:
    standing = (c.status, time_value(c.updated_at), c.instance_id, c.attempts, c.delivered_life, c.raised)
    clocks = (*deadline_values(c.deadline), c.cancel, *deadline_values(c.cancel_deadline), c.human_waits, c.held_ms)
    return (*standing, *clocks, c.progress_cbor, c.progress_window_ms, c.progress_count, c.result_cbor, c.error_code)


def read_tool_call(row: Row) -> ToolCall:
    """A call from its row."""
    return ToolCall(
        number=row[0],
        call_id=row[1],
        tool_id=row[2],
        inventory_revision=row[3],
        descriptor_digest=row[4],
        source=Source(row[5]),
        app_scope=row[6],
        conversation_id=row[7],
        content_digest=row[8],
        input_cbor=row[9],
        created_at=read_time(row[10]),
        status=CallStatus(row[11]),
        updated_at=read_time(row[12]),
        instance_id=row[13],
        attempts=row[14],
        delivered_life=row[15],
        raised=bool(row[16]),
        deadline=read_deadline(row[17], row[18]),
        cancel=Cancel(row[19]),
        cancel_deadline=read_deadline(row[20], row[21]),
        human_waits=row[22],
        held_ms=row[23],
        progress_cbor=row[24],
        progress_window_ms=row[25],
        progress_count=row[26],
        result_cbor=row[27],
        error_code=read_code(row[28]),
    )


# --------------------------------------------------------------------------------- instances, focus, sessions, state

_PUT_INSTANCE = """
INSERT INTO instance VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
ON CONFLICT (number) DO UPDATE SET
  app_version = excluded.app_version, bundle_digest = excluded.bundle_digest, state = excluded.state, life = excluded.life,
  tools_subscribed = excluded.tools_subscribed, inbox_subscribed = excluded.inbox_subscribed, crash_boot_id = excluded.crash_boot_id,
  crashes_ms = excluded.crashes_ms, act_boot_id = excluded.act_boot_id, act_ms = excluded.act_ms, close_reason = excluded.close_reason,
  stopped_at = excluded.stopped_at, error = excluded.error, is_ending = excluded.is_ending,
  ui_subscribed_life = excluded.ui_subscribed_life
"""


CURRENT_INSTANCES = (
    "SELECT * FROM instance INDEXED BY instance_current"
    " WHERE state IN ('starting', 'foreground', 'background', 'suspended', 'stopping') ORDER BY number"
)


def _instance_values(i: Instance) -> Values:
    identity = (i.number, i.instance_id, i.app_scope, i.app_version, i.bundle_digest, i.conversation_id, i.app_session_id)
    life = (i.state, i.life, i.parent_instance_id, i.tools_subscribed, i.inbox_subscribed)
    clocks = (i.crash_boot_id, json.dumps(i.crashes_ms), i.act_boot_id, i.act_ms)
    end = (i.close_reason, opt_time_value(i.stopped_at), i.error, i.is_ending, i.ui_subscribed_life)
    return (*identity, time_value(i.started_at), *life, *clocks, *end)


def read_instance(row: Row) -> Instance:
    """An instance from its row."""
    return Instance(
        number=row[0],
        instance_id=row[1],
        app_scope=row[2],
        app_version=row[3],
        bundle_digest=row[4],
        conversation_id=row[5],
        app_session_id=row[6],
        started_at=read_time(row[7]),
        state=InstanceState(row[8]),
        life=row[9],
        parent_instance_id=row[10],
        tools_subscribed=bool(row[11]),
        inbox_subscribed=bool(row[12]),
        crash_boot_id=row[13],
        crashes_ms=tuple(json.loads(row[14])),
        act_boot_id=row[15],
        act_ms=row[16],
        close_reason=row[17],
        stopped_at=read_opt_time(row[18]),
        error=read_code(row[19]),
        is_ending=bool(row[20]),
        ui_subscribed_life=row[21],
    )


_PUT_FOCUS = "INSERT INTO focus VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET instance_ids = excluded.instance_ids"


def _focus_values(focus: FocusStack) -> Values:
    return (json.dumps(focus.instance_ids),)


def read_focus(row: Row) -> FocusStack:
    """The focus stack from its one row."""
    return FocusStack(instance_ids=tuple(json.loads(row[1])))


_PUT_APP_SESSION = "INSERT INTO app_session VALUES (?,?,?,?,?,?,?) ON CONFLICT (number) DO UPDATE SET closed_at = excluded.closed_at"


def _app_session_values(s: AppSession) -> Values:
    identity = (s.number, s.app_session_id, s.app_scope, s.conversation_id)
    return (*identity, time_value(s.opened_at), opt_time_value(s.closed_at), s.continues)


def read_app_session(row: Row) -> AppSession:
    """An App session from its row."""
    return AppSession(
        number=row[0],
        app_session_id=row[1],
        app_scope=row[2],
        conversation_id=row[3],
        opened_at=read_time(row[4]),
        closed_at=read_opt_time(row[5]),
        continues=row[6],
    )


_PUT_SAVED_STATE = """
INSERT INTO saved_state VALUES (?,?,?)
ON CONFLICT (app_session_id) DO UPDATE SET state_cbor = excluded.state_cbor, updated_at = excluded.updated_at
"""


def _saved_state_values(s: SavedState) -> Values:
    return (s.app_session_id, s.state_cbor, time_value(s.updated_at))


def read_saved_state(row: Row) -> SavedState:
    """A saved state from its row."""
    return SavedState(app_session_id=row[0], state_cbor=row[1], updated_at=read_time(row[2]))


# --------------------------------------------------------------------------------- inbox, timeline, keys

_PUT_INBOX_ROW = """
INSERT INTO inbox_row VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)
ON CONFLICT (number) DO UPDATE SET
  instance_id = excluded.instance_id, state = excluded.state, delivery_count = excluded.delivery_count,
  delivered_life = excluded.delivered_life, crash_count = excluded.crash_count
"""


def _inbox_row_values(r: InboxRow) -> Values:
    identity = (r.number, r.message_id, r.app_scope, r.conversation_id, r.instance_id, r.topic, r.body_cbor, time_value(r.created_at))
    return (*identity, r.state, r.delivery_count, r.delivered_life, r.crash_count, len(r.body_cbor))


def read_inbox_row(row: Row) -> InboxRow:
    """An inbox row from its row."""
    return InboxRow(
        number=row[0],
        message_id=row[1],
        app_scope=row[2],
        conversation_id=row[3],
        instance_id=row[4],
        topic=row[5],
        body_cbor=row[6],
        created_at=read_time(row[7]),
        state=InboxState(row[8]),
        delivery_count=row[9],
        delivered_life=row[10],
        crash_count=row[11],
    )


_PUT_TIMELINE_MESSAGE = """
INSERT INTO timeline_message VALUES (?,?,?,?,?,?,?,?,?) ON CONFLICT (number) DO UPDATE SET is_folded = excluded.is_folded
"""


def _timeline_message_values(m: TimelineMessage) -> Values:
    identity = (m.number, m.message_id, m.conversation_id, m.author, m.type)
    return (*identity, m.body_cbor, time_value(m.created_at), m.app_session_id, m.is_folded)


def read_timeline_message(row: Row) -> TimelineMessage:
    """A timeline entry from its row."""
    return TimelineMessage(
        number=row[0],
        message_id=row[1],
        conversation_id=row[2],
        author=Source(row[3]),
        type=row[4],
        body_cbor=row[5],
        created_at=read_time(row[6]),
        app_session_id=row[7],
        is_folded=bool(row[8]),
    )


_PUT_KEY = "INSERT INTO used_key VALUES (?,?,?,?) ON CONFLICT (digest) DO UPDATE SET outcome = excluded.outcome"


def _key_values(key: Key) -> Values:
    return (key.digest, key.content_digest, key.number, key.outcome)


def read_key(row: Row) -> Key:
    """A used key from its row."""
    return Key(digest=row[0], content_digest=row[1], number=row[2], outcome=row[3])


# --------------------------------------------------------------------------------- switches, door, inventory, descriptors

_PUT_SWITCH = "INSERT INTO switch VALUES (?,?) ON CONFLICT (name) DO UPDATE SET enabled = excluded.enabled"
_PUT_DOOR = "INSERT INTO door VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET destination = excluded.destination"
_PUT_PUBLISHED_INVENTORY = "INSERT INTO published_inventory VALUES (?,?,?,?)"
_PUT_KEPT_DESCRIPTOR = "INSERT INTO kept_descriptor VALUES (?,?) ON CONFLICT (digest) DO NOTHING"


def _switch_values(switch: Switch) -> Values:
    return (switch.name, switch.enabled)


def _door_values(door: Door) -> Values:
    return (door.destination,)


def _published_inventory_values(p: PublishedInventory) -> Values:
    return (p.number, p.epoch, p.digest, p.fingerprint_cbor)


def read_published_inventory(row: Row) -> PublishedInventory:
    """A published inventory from its row."""
    return PublishedInventory(number=row[0], epoch=row[1], digest=row[2], fingerprint_cbor=row[3])


def _kept_descriptor_values(kept: KeptDescriptor) -> Values:
    return (kept.digest, kept.document_cbor)


PUTS: Mapping[type, tuple[str, Callable[[Any], Values]]] = {
    AppSession: (_PUT_APP_SESSION, _app_session_values),
    Door: (_PUT_DOOR, _door_values),
    FocusStack: (_PUT_FOCUS, _focus_values),
    InboxRow: (_PUT_INBOX_ROW, _inbox_row_values),
    Instance: (_PUT_INSTANCE, _instance_values),
    KeptDescriptor: (_PUT_KEPT_DESCRIPTOR, _kept_descriptor_values),
    Key: (_PUT_KEY, _key_values),
    PublishedInventory: (_PUT_PUBLISHED_INVENTORY, _published_inventory_values),
    SavedState: (_PUT_SAVED_STATE, _saved_state_values),
    Switch: (_PUT_SWITCH, _switch_values),
    TimelineMessage: (_PUT_TIMELINE_MESSAGE, _timeline_message_values),
    ToolCall: (_PUT_TOOL_CALL, _tool_call_values),
}
