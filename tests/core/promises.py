"""What holds after every turn, whatever happened: the promises of a DictView and of two views in a row, each named by its invariant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kernel.core.limits import MAX_FOCUS_DEPTH, MAX_OPEN_INTERACTIONS, MAX_OUTBOX_ROWS
from kernel.core.machines import (
    CALL,
    CALL_OPEN,
    INSTANCE,
    INSTANCE_FINAL,
    INTERACTION,
    INTERACTION_OPEN,
    CallStatus,
    InstanceState,
    OutboxState,
)
from kernel.core.records import AppSession, Instance, Interaction, InteractionSource, OutboxKind, OutboxRow, ToolCall, decode_body
from kernel.core.schema import Schema
from tests.core.dict_view import EPOCH, DictView

_SHOWN = {InstanceState.FOREGROUND, InstanceState.BACKGROUND}
_WITH_RESULT = {CallStatus.SUBMITTED, CallStatus.COMPLETED}
_EVENT = re.compile(r"[a-z]+\.[a-z_]+")
_MADE_ID = re.compile(rf"[a-z]+_{EPOCH}_[0-9a-f]{{34}}")


def broken(view: DictView) -> list[str]:
    """What is wrong with what is stored; empty when all is well."""
    checks = (_calls, _interactions, _outbox, _focus, _instances, _audit)
    return [f"{check.__name__}: {what}" for check in checks for what in check(view)]


def broken_between(before: DictView, after: DictView) -> list[str]:
    """What may not have happened between two looks."""
    return [
        *_moved(before, after, ToolCall, "status", CALL),
        *_moved(before, after, Instance, "state", INSTANCE),
        *_moved(before, after, Interaction, "status", INTERACTION),
        *_kept(before, after),
    ]


def _table(view: DictView, kind: type) -> list[Any]:
    return list(view.tables[kind].values())


def _calls(view: DictView) -> Iterator[str]:
    for call in _table(view, ToolCall):
        name = f"call {call.call_id} {call.status}"
        if (call.result_cbor is not None) != (call.status in _WITH_RESULT):
            yield f"INV-20 {name} and its result"
        if call.result_cbor is not None and _schema_of(view, call).check(decode_body(call.result_cbor)) is not None:
            yield f"INV-14 {name} has a result that does not fit"
        if call.app_scope == "interaction":
            if call.status is CallStatus.WAITING_FOR_APP or call.instance_id is not None:
                yield f"INV-26 {name} went to an App"
            continue
        if call.status in {CallStatus.WAITING_FOR_APP, CallStatus.RUNNING}:
            instance = view.instance(call.instance_id or "")
            if instance is None or instance.state in {*INSTANCE_FINAL, InstanceState.STOPPING} or is_at_rest(instance):
                yield f"L2 {name} waits for nobody"
            elif call.delivered_life not in {None, 0, instance.life}:
                yield f"INV-21 {name} is with an older life"
        if call.status is CallStatus.RUNNING and not call.delivered_life:
            yield f"INV-01 {name} was never delivered"


def _interactions(view: DictView) -> Iterator[str]:
    found: list[Interaction] = _table(view, Interaction)
    if len([one for one in found if one.status in INTERACTION_OPEN]) > MAX_OPEN_INTERACTIONS:
        yield "16 too many open interactions"
    by_call = {one.call_number: one for one in found if one.call_number is not None}
    for one in found:
        name = f"interaction {one.interaction_id} {one.status}"
        if (one.result_cbor is None) != (one.status in INTERACTION_OPEN):
            yield f"INV-22 {name} and its result"
        call = view.call(one.call_number) if one.call_number is not None else None
        wanted = CallStatus.RUNNING.value if one.status in INTERACTION_OPEN else one.status.value
        if call is not None and call.status.value != wanted:
            yield f"INV-23 {name} and its call {call.status}"
        if (one.owner_instance_id is None) != (one.source is not InteractionSource.MINIAPP_TOOL):
            yield f"INV-24 {name} and its owner"
    for call in _table(view, ToolCall):
        if call.app_scope == "interaction" and call.status is CallStatus.RUNNING and call.number not in by_call:
            yield f"7.1 call {call.call_id} runs and asks nothing"


def _schema_of(view: DictView, call: ToolCall) -> Schema:
    return view.descriptor(call.descriptor_digest).output_schema


def _outbox(view: DictView) -> Iterator[str]:
    rows = _table(view, OutboxRow)
    finals = {row.call_number: row for row in rows if row.kind is OutboxKind.FINAL}
    for call in _table(view, ToolCall):
        if (call.number in finals) == (call.status in CALL_OPEN):
            yield f"INV-15 call {call.call_id} {call.status} and its final row"
        if call.status is CallStatus.COMPLETED and call.number not in finals:
            yield f"INV-20 call {call.call_id} completed without a row"
    if len([row for row in rows if row.kind is OutboxKind.FINAL]) != len(finals):
        yield "INV-16 two final rows of one call"
    progress = [row for row in rows if row.kind is OutboxKind.PROGRESS]
    for row in progress:
        if row.call_number in finals and row.number > finals[row.call_number].number:
            yield f"INV-18 progress after the end of call {row.call_number}"
    unsent = [row.call_number for row in progress if row.state is OutboxState.PENDING]
    if len(unsent) != len(set(unsent)):
        yield "6.5 two unsent progress rows of one call"
    if view.outbox_pending_count() + view.open_call_count() > MAX_OUTBOX_ROWS:
        yield "11.3 an ending would not fit"
    for row in rows:
        if not _MADE_ID.fullmatch(row.message_id):
            yield "4.6 a row's id is not the kernel's"


def _focus(view: DictView) -> Iterator[str]:
    stack = view.focus().instance_ids
    if len(stack) != len(set(stack)) or len(stack) > MAX_FOCUS_DEPTH:
        yield "INV-37 the stack is not a stack"
    for instance_id in stack:
        instance = view.instance(instance_id)
        if instance is None or instance.state in {*INSTANCE_FINAL, InstanceState.STOPPING}:
            yield f"INV-37 {instance_id} has no place any more"
    front = [one.instance_id for one in _table(view, Instance) if one.state is InstanceState.FOREGROUND]
    chat = view.current_instance("chat")
    top = view.instance(stack[-1]) if stack else chat
    if chat is not None and chat.instance_id in stack:
        yield "8.2 chat stands in the stack"
    if chat is not None and chat.state in {InstanceState.SUSPENDED, InstanceState.STOPPING}:
        yield "8.2 chat is away"
    if front and front != [top.instance_id if top else None]:
        yield "INV-37 another than the top is in front"
    if top is not None and top.state is InstanceState.BACKGROUND:
        yield "INV-37 the top is behind"
    if top is not None and is_at_rest(top):
        yield "8.2 the top was not revived"


def is_at_rest(instance: Instance) -> bool:
    """Suspended, and nothing is on its way that would bring it back."""
    return instance.state is InstanceState.SUSPENDED and not instance.is_ending


def _instances(view: DictView) -> Iterator[str]:
    current = view.current_instances()
    if len({one.app_scope for one in current}) != len(current):
        yield "8 two instances of one App"
    sessions = {one.app_session_id: one for one in _table(view, AppSession)}
    open_sessions = [one.app_scope for one in sessions.values() if one.closed_at is None]
    if len(open_sessions) != len(set(open_sessions)):
        yield "8.4 two open sessions of one App"
    for instance in current:
        if sessions[instance.app_session_id].closed_at is not None:
            yield f"8.4 {instance.app_scope} lives in a closed session"
        if not _MADE_ID.fullmatch(instance.instance_id):
            yield "4.6 an instance's id is not the kernel's"


def _audit(view: DictView) -> Iterator[str]:
    for entry in view.audit:
        if not _EVENT.fullmatch(entry.event):
            yield f"INV-56 {entry.event}"
        if entry.instance_id is not None and not _MADE_ID.fullmatch(entry.instance_id):
            yield "INV-56 an audit row holds a foreign word"


def _moved(before: DictView, after: DictView, kind: type, name: str, machine: Mapping[Any, Mapping[Any, Any]]) -> Iterator[str]:
    for key, old in before.tables[kind].items():
        new = after.tables[kind].get(key)
        if new is None:
            yield f"INV-38 {kind.__name__} {key} is gone"
        elif getattr(new, name) not in _reachable(machine, getattr(old, name)):
            yield f"INV-10 {kind.__name__} {key}: {getattr(old, name)} -> {getattr(new, name)}"


def _reachable(machine: Mapping[Any, Mapping[Any, Any]], state: Any) -> set[Any]:
    found, waiting = {state}, [state]
    while waiting:
        for target in machine[waiting.pop()].values():
            if target not in found:
                found.add(target)
                waiting.append(target)
    return found


def _kept(before: DictView, after: DictView) -> Iterator[str]:
    for key, old in before.tables[ToolCall].items():
        new = after.tables[ToolCall][key]
        fixed = ("input_cbor", "tool_id", "source", "descriptor_digest", "content_digest", "created_at")
        if any(getattr(old, name) != getattr(new, name) for name in fixed):
            yield f"6.1 call {key} became another"
        if old.status not in CALL_OPEN and (old.result_cbor, old.error_code) != (new.result_cbor, new.error_code):
            yield f"INV-10 the outcome of call {key} changed"
        if new.attempts < old.attempts:
            yield f"6.8 call {key} lost an attempt"
    for key, old in before.tables[Instance].items():
        if after.tables[Instance][key].life < old.life:
            yield f"8 {key} went back to an older life"
    for key, old in before.tables[OutboxRow].items():
        new = after.tables[OutboxRow].get(key)
        if new is None and not (old.state is OutboxState.PENDING and old.kind in {OutboxKind.PROGRESS, OutboxKind.INVENTORY}):
            yield f"INV-32 row {key} is gone"
        if new is not None and (new.envelope_cbor, new.message_id, new.destination) != (old.envelope_cbor, old.message_id, old.destination):
            yield f"INV-33 row {key} has other bytes"
    if after.audit[: len(before.audit)] != before.audit:
        yield "INV-55 the audit was rewritten"
