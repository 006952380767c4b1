"""Records as hosts see them: the summaries of kernel.protocol.host. Reads only; nothing is decided here.

Rules:
1. Whatever is listed fits a frame: a list is cut at PAGE_BYTES (`fitting`), and whoever asked gets the rest by paging.
2. A message that is not plain text says so in words; its body is not executed and not drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import cbor2

from kernel import text_surface
from kernel.core import merge_patch
from kernel.core.grants import STANDARD_INTERACTION, policy_of
from kernel.core.machines import CALL_OPEN, INSTANCE_FINAL
from kernel.core.manifest import Manifest
from kernel.core.records import AppSession, InboxRow, Instance, OutboxRow, Source, TimelineMessage, ToolCall, decode_body
from kernel.core.runtime import SCOPE as RUNTIME_SCOPE
from kernel.core.runtime import VERSION
from kernel.core.surface_records import Container, Surface
from kernel.protocol.agent import INTERACTION_ANSWER, INTERACTION_CARD, MESSAGE_TEXT, TASK_UPDATE
from kernel.store_view import StoreView
from lineup_sdk.protocol.limits import MAX_BODY_BYTES
from lineup_sdk.protocol.messages import JsonObject

SNAPSHOT_CALLS = 50
SNAPSHOT_MESSAGES = 50
PAGE_BYTES = 256 * 1024  # of one list; a frame holds a few of them
MAX_SHOWN_STATE_BYTES = 16 * 1024  # a state beyond that is not in a summary
_SUMMARY_BYTES = 8 * 1024  # more than any summary but a message's and the list of apps
_UTF8_BYTES = 4  # of one code point, at most


def time_text(at: datetime) -> str:
    """RFC 3339 in UTC with milliseconds."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def fitting(summaries: Iterable[JsonObject]) -> list[JsonObject]:
    """The first of these that go into one list of a frame together, at least one: the greatest summary is below PAGE_BYTES."""
    kept: list[JsonObject] = []
    size = 0
    for summary in summaries:
        size += len(cbor2.dumps(summary))
        if kept and size > PAGE_BYTES:
            break
        kept.append(summary)
    return kept


def deltas(changes: Sequence[JsonObject]) -> list[list[JsonObject]]:
    """The changes of one pass in as many frames as they need, in order. Weighed, not measured: this runs at every commit."""
    frames: list[list[JsonObject]] = [[]]
    size = 0
    for change in changes:
        weight = _weight(change["kind"], change["value"])
        if frames[-1] and size + weight > 2 * PAGE_BYTES:
            frames.append([])
            size = 0
        size += weight
        frames[-1].append(change)
    return frames


def _weight(kind: str, value: Any) -> int:
    match kind:
        case "message":
            return _UTF8_BYTES * len(value["text"]) + _SUMMARY_BYTES
        case "surface":
            return _UTF8_BYTES * len(value["text"]) + MAX_SHOWN_STATE_BYTES + _SUMMARY_BYTES
        case "consent":
            return MAX_BODY_BYTES
        case "interaction":
            return 3 * MAX_BODY_BYTES  # request, draft and result
        case "apps":
            return PAGE_BYTES
        case _:
            return _SUMMARY_BYTES


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
    """A call with its bodies and its newest outbox rows."""
    rows = fitting(_row_summary(row) for row in reversed(view.outbox_rows_of_call(call.number)))
    return _without_nulls(
        call_summary(view, call)
        | {
            "inventory_revision": call.inventory_revision or None,
            "input": decode_body(call.input_cbor),
            "result": decode_body(call.result_cbor) if call.result_cbor else None,
            "outbox": rows[::-1],
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


def message_summary(message: TimelineMessage, row: OutboxRow | None) -> JsonObject:
    """MessageSummary."""
    body = decode_body(message.body_cbor)
    is_out = message.author is Source.PERSON
    return {
        "number": message.number,
        "message_id": message.message_id,
        "direction": "out" if is_out else "in",
        "author": message.author.value,
        "type": message.type,
        "text": _text_of(message.type, body),
        "state": row.state.value if is_out and row else "received",
        "folded": message.is_folded,
        "created_at": time_text(message.created_at),
        **({"interaction_id": body["interaction_id"]} if message.type in {INTERACTION_ANSWER, INTERACTION_CARD} else {}),
        **({"task": {k: v for k, v in body.items() if k != "summary"}} if message.type == TASK_UPDATE else {}),
        **({"code": row.refused_code} if row and row.refused_code else {}),
    }


def session_summary(view: StoreView, session: AppSession) -> JsonObject:
    """SessionSummary."""
    manifest = view.manifests.get(session.app_scope)
    newest = view.sessions.newest_instance(session.app_session_id)
    is_alive = newest is not None and newest.state not in INSTANCE_FINAL
    return _without_nulls(
        {
            "number": session.number,
            "app_session_id": session.app_session_id,
            "app_scope": session.app_scope,
            "title": manifest.title if manifest else session.app_scope,
            "state": "open" if session.closed_at is None else "closed",
            "opened_at": time_text(session.opened_at),
            "closed_at": time_text(session.closed_at) if session.closed_at else None,
            "continues": session.continues,
            "instance_id": newest.instance_id if newest is not None and is_alive else None,
            "newest_instance_id": newest.instance_id if newest is not None else None,
            "error": newest.error.value if newest is not None and newest.error else None,
            "failed": view.sessions.has_failed(session),
            "messages": view.sessions.message_count(session.app_session_id),
        }
    )


def _text_of(type_: str, body: JsonObject) -> str:
    if type_ == INTERACTION_CARD:
        return f"{body['title']}: {body['text']}"
    if type_ in {MESSAGE_TEXT, INTERACTION_ANSWER}:
        return str(body.get("text", ""))
    if "title" in body:
        return f"{body['title']}: {body.get('state', '')}"
    return f"[{body.get('code', type_)}]"


def parked_summary(row: InboxRow) -> JsonObject:
    """A parked message as the person's list shows it: all but its body."""
    return {
        "number": row.number,
        "app_scope": row.app_scope,
        "instance_id": row.instance_id,
        "topic": row.topic,
        "delivery_count": row.delivery_count,
        "crash_count": row.crash_count,
        "size": len(row.body_cbor),
        "created_at": time_text(row.created_at),
    }


def surface_summary(view: StoreView, surface: Surface) -> JsonObject:
    """SurfaceSummary."""
    manifest = view.manifests.get(surface.app_scope)
    instance = view.current_instance(surface.app_scope)
    is_open = surface.closed_at is None
    return _without_nulls(
        {
            "surface_id": surface.surface_id,
            "app_scope": surface.app_scope,
            "app_session_id": surface.app_session_id,
            "instance_id": instance.instance_id if instance and instance.app_session_id == surface.app_session_id else None,
            "title": manifest.title if manifest else surface.app_scope,
            "container": surface.container.value,
            "version": surface.version,
            "is_open": is_open,
            "mounted_view_id": surface.mounted_view_id,
            "state": _shown_state(view, surface) if is_open else None,
            "text": text_surface.render(view.surfaces.state(surface.number)) if is_open else "",
        }
    )


def _shown_state(view: StoreView, surface: Surface) -> JsonObject | None:
    """The state of a system App, which every host draws in its own way; of all other Apps hosts get the text, or mount."""
    if surface.container is not Container.TRUSTED or surface.state_bytes > MAX_SHOWN_STATE_BYTES:
        return None
    return decode_body(merge_patch.encode(view.surfaces.state(surface.number)))


def app_summary(view: StoreView, manifest: Manifest, disabled: frozenset[str]) -> JsonObject:
    """AppSummary."""
    is_on = manifest.app_scope not in disabled
    wants_to_ask = STANDARD_INTERACTION in manifest.requested_capabilities
    return {
        **({"may_ask": view.is_allowed(policy_of(manifest.app_scope))} if wants_to_ask else {}),
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
    return [app_summary(view, view.manifests[scope], disabled) for scope in sorted(view.manifests) if scope != RUNTIME_SCOPE]


def snapshot(view: StoreView, agent: JsonObject) -> JsonObject:
    """All there is to draw, within windows."""
    waiting = view.calls(state="open", limit=SNAPSHOT_CALLS)
    ended = [call for call in view.calls(limit=SNAPSHOT_CALLS) if call.status not in CALL_OPEN]
    calls = fitting(call_summary(view, call) for call in (*waiting, *ended))
    messages = fitting(message_summary(*entry) for entry in reversed(view.messages(limit=SNAPSHOT_MESSAGES)))
    return {
        "calls": sorted(calls, key=lambda call: int(call["number"])),
        "instances": [instance_summary(view, instance) for instance in view.current_instances()],
        "focus": list(view.focus().instance_ids),
        "messages": messages[::-1],
        "apps": app_summaries(view),
        "surfaces": [surface_summary(view, surface) for surface in view.surfaces.open_ones()],
        "revision": view.inventory.revision,
        "agent": agent,
        "kernel": {"version": VERSION, "epoch": view.epoch},
    }
