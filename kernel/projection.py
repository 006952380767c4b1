"""Records as hosts see them: the summaries of kernel.protocol.host. Reads only; nothing is decided here."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from kernel.core.machines import OutboxState
from kernel.core.manifest import Manifest
from kernel.core.records import Instance, OutboxRow, Source, TimelineMessage, ToolCall, decode_body
from kernel.core.runtime import SCOPE as RUNTIME_SCOPE
from kernel.core.runtime import VERSION
from kernel.protocol.agent import MESSAGE_TEXT
from kernel.store_view import StoreView
from lineup_sdk.protocol.messages import JsonObject

SNAPSHOT_CALLS = 50
SNAPSHOT_MESSAGES = 50


def time_text(at: datetime) -> str:
    """RFC 3339 in UTC with milliseconds."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _without_nulls(summary: dict[str, Any]) -> JsonObject:
    return {name: value for name, value in summary.items() if value is not None}


def call_summary(view: StoreView, call: ToolCall) -> JsonObject:
    """CallSummary."""
    tool = view.descriptor(call.descriptor_digest) if call.descriptor_digest else None
    progress = decode_body(call.progress_cbor) if call.progress_cbor else None
    return _without_nulls(
        {
            "number": call.number,
            "call_id": call.call_id,
            "tool_id": call.tool_id,
            "title": tool.title if tool else call.tool_id,
            "app_scope": call.app_scope,
            "instance_id": call.instance_id,
            "source": call.source.value,
            "status": call.status.value,
            "cancel": call.cancel.value,
            "attempts": call.attempts,
            "progress": {k: v for k, v in progress.items() if k in ("percent", "message")} if progress else None,
            "error_code": call.error_code.value if call.error_code else None,
            "created_at": time_text(call.created_at),
            "updated_at": time_text(call.updated_at),
        }
    )


def call_whole(view: StoreView, call: ToolCall) -> JsonObject:
    """A call with its bodies and its outbox rows."""
    rows = view.outbox_rows_of_call(call.number)
    return _without_nulls(
        call_summary(view, call)
        | {
            "inventory_revision": call.inventory_revision or None,
            "input": decode_body(call.input_cbor),
            "result": decode_body(call.result_cbor) if call.result_cbor else None,
            "outbox": [_row_summary(row) for row in rows],
        }
    )


def _row_summary(row: OutboxRow) -> JsonObject:
    return {
        "number": row.number,
        "kind": row.kind.value,
        "destination": row.destination.value,
        "state": row.state.value,
        "envelope": decode_body(row.envelope_cbor),
    }


def instance_summary(view: StoreView, instance: Instance) -> JsonObject:
    """InstanceSummary."""
    manifest = view.manifests.get(instance.app_scope)
    return _without_nulls(
        {
            "instance_id": instance.instance_id,
            "app_scope": instance.app_scope,
            "title": manifest.title if manifest else instance.app_scope,
            "app_version": instance.app_version,
            "state": instance.state.value,
            "error": instance.error.value if instance.error else None,
            "open_calls": view.open_call_count_of(instance.instance_id),
            "started_at": time_text(instance.started_at),
            "stopped_at": time_text(instance.stopped_at) if instance.stopped_at else None,
        }
    )


def message_summary(message: TimelineMessage, outbox_state: OutboxState | None) -> JsonObject:
    """MessageSummary. A message that is not plain text says so in words; its body is not executed and not drawn."""
    body = decode_body(message.body_cbor)
    is_out = message.author is Source.PERSON
    return {
        "number": message.number,
        "message_id": message.message_id,
        "direction": "out" if is_out else "in",
        "author": message.author.value,
        "type": message.type,
        "text": _text_of(message.type, body),
        "state": outbox_state.value if is_out and outbox_state else "received",
        "created_at": time_text(message.created_at),
    }


def _text_of(type_: str, body: JsonObject) -> str:
    if type_ == MESSAGE_TEXT:
        return str(body.get("text", ""))
    if "title" in body:
        return f"{body['title']}: {body.get('state', '')}"
    return f"[{body.get('code', type_)}]"


def app_summary(manifest: Manifest, disabled: frozenset[str]) -> JsonObject:
    """AppSummary."""
    is_on = manifest.app_scope not in disabled
    return {
        "app_scope": manifest.app_scope,
        "version": manifest.version,
        "kind": manifest.kind.value,
        "title": manifest.title,
        "description": manifest.description,
        "enabled": is_on,
        "tools": [{"tool_id": tool.id, "title": tool.title, "enabled": is_on and tool.id not in disabled} for tool in manifest.tools],
    }


def app_summaries(view: StoreView) -> list[JsonObject]:
    """All Apps a person can see, in order of scope."""
    disabled = view.enablement.disabled
    return [app_summary(view.manifests[scope], disabled) for scope in sorted(view.manifests) if scope != RUNTIME_SCOPE]


def snapshot(view: StoreView, agent: JsonObject) -> JsonObject:
    """All there is to draw, within windows."""
    calls: Sequence[ToolCall] = view.calls(limit=SNAPSHOT_CALLS)
    known = {call.number for call in calls}
    waiting = [call for call in view.calls(state="open", limit=SNAPSHOT_CALLS) if call.number not in known]
    return {
        "calls": [call_summary(view, call) for call in sorted((*calls, *waiting), key=lambda call: call.number)],
        "instances": [instance_summary(view, instance) for instance in view.current_instances()],
        "focus": list(view.focus().instance_ids),
        "messages": [message_summary(message, state) for message, state in view.messages(limit=SNAPSHOT_MESSAGES)],
        "apps": app_summaries(view),
        "revision": view.inventory.revision,
        "agent": agent,
        "kernel": {"version": VERSION, "epoch": view.epoch},
    }
