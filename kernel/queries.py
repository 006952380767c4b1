"""What hosts may read. Reads are not decisions: they start no turn and leave no audit row (SPEC 17)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kernel import capabilities_shown, interactions_shown, projection
from kernel.core.decision import Detail, Rejected
from kernel.core.machines import CallStatus
from kernel.core.manifest import SYSTEM_SCOPE
from kernel.core.runtime import VERSION
from kernel.drafts import Drafts
from kernel.explain import explain
from kernel.logring import LogRings
from kernel.presence import Presence
from kernel.protocol import host as h
from kernel.protocol import host_capabilities as hc
from kernel.protocol import host_interactions as hi
from kernel.protocol import host_sessions as n
from kernel.protocol import host_upkeep as u
from kernel.store_view import StoreView
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject

_STATES = frozenset({"open", "ended", *CallStatus})


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What queries read from: the store's view, the log rings, and what the running parts say of themselves."""

    view: StoreView
    rings: LogRings
    presence: Presence
    drafts: Drafts
    machine: Callable[[], JsonObject]  # layers, workers


def _calls_list(facts: Facts, query: h.CallsList) -> JsonObject:
    if query.state is not None and query.state not in _STATES:
        raise Rejected(Code.CALL_NOT_FOUND, Detail(pointer="/state", expected="open, ended or a call status"))
    calls = facts.view.calls(state=query.state, before=query.before, limit=query.limit + 1)
    page = projection.fitting(projection.call_summary(facts.view, call) for call in calls[: query.limit])
    return {"calls": page, "more": len(calls) > len(page)}


def _calls_show(facts: Facts, query: h.CallsShow) -> JsonObject:
    call = facts.view.call_by_id(query.call_id)
    if call is None:
        raise Rejected(Code.CALL_NOT_FOUND, Detail(pointer="/call_id", expected="the id of a call"))
    return projection.call_whole(facts.view, call)


def _instances_list(facts: Facts, query: h.InstancesList) -> JsonObject:
    return {
        "instances": [projection.instance_summary(facts.view, instance) for instance in facts.view.current_instances()],
        "focus": list(facts.view.focus().instance_ids),
        "workers": facts.machine()["workers"],
    }


def _inventory_show(facts: Facts, query: h.InventoryShow) -> JsonObject:
    inventory = facts.view.inventory
    return {"inventory_revision": inventory.revision, **inventory.content}


def _apps_list(facts: Facts, query: h.AppsList) -> JsonObject:
    return {"apps": projection.app_summaries(facts.view)}


def _messages_list(facts: Facts, query: h.MessagesList) -> JsonObject:
    found = facts.view.messages(before=query.before, limit=query.limit + 1)
    page = projection.fitting(projection.message_summary(*entry) for entry in reversed(found[-query.limit :]))
    return {"messages": page[::-1], "more": len(found) > len(page)}


def _consents_list(facts: Facts, query: hc.ConsentsList) -> JsonObject:
    return {"consents": capabilities_shown.waiting_consents(facts.view)}


def _permissions_list(facts: Facts, query: hc.PermissionsList) -> JsonObject:
    return {"permissions": capabilities_shown.standing_permissions(facts.view)}


def _sessions_list(facts: Facts, query: n.SessionsList) -> JsonObject:
    found = facts.view.sessions.newest(before=query.before, limit=query.limit + 1)
    return {
        "sessions": [projection.session_summary(facts.view, session) for session in found[: query.limit]],
        "more": len(found) > query.limit,
    }


def _sessions_show(facts: Facts, query: n.SessionsShow) -> JsonObject:
    session = facts.view.sessions.by_id(query.app_session_id)
    if session is None or session.app_scope == SYSTEM_SCOPE:
        raise Rejected(Code.APP_INSTANCE_NOT_FOUND, Detail(pointer="/app_session_id", expected="the id of an App session"))
    found = facts.view.messages(before=query.before, limit=query.limit + 1, app_session_id=session.app_session_id)
    page = projection.fitting(projection.message_summary(*entry) for entry in reversed(found[-query.limit :]))
    return {"session": projection.session_summary(facts.view, session), "messages": page[::-1], "more": len(found) > len(page)}


def _logs_read(facts: Facts, query: h.LogsRead) -> JsonObject:
    if facts.view.instance(query.instance_id) is None:
        raise Rejected(Code.APP_INSTANCE_NOT_FOUND, Detail(pointer="/instance_id", expected="the id of an instance"))
    return {"text": facts.rings.read(query.instance_id) or ""}


def _interactions_list(facts: Facts, query: hi.InteractionsList) -> JsonObject:
    return interactions_shown.listed(facts.view, facts.drafts, query)


def _draft_save(facts: Facts, query: hi.DraftSave) -> JsonObject:
    """Not a decision either: what is typed is never stored."""
    facts.drafts.save(query.interaction_id, query.draft)
    return {"saved": True}


def _kernel_status(facts: Facts, query: h.KernelStatus) -> JsonObject:
    view = facts.view
    return {
        "kernel_version": VERSION,
        "epoch": view.epoch,
        "revision": view.inventory.revision,
        "open_calls": view.open_call_count(),
        "instances": len(view.current_instances()),
        "outbox_pending": view.outbox_pending_count(),
        "views": facts.presence.views,
        "agent": facts.presence.agent_summary,
        **facts.machine(),
    }


def _inbox_parked(facts: Facts, query: u.InboxParked) -> JsonObject:
    rows = facts.view.upkeep.parked_rows(after=query.after, limit=query.limit + 1)
    page = rows[: query.limit]
    return {"rows": [projection.parked_summary(row) for row in page], "more": len(rows) > len(page)}


def _audit_tail(facts: Facts, query: u.AuditTail) -> JsonObject:
    return {"rows": list(facts.view.upkeep.audit_after(after=query.after, limit=query.limit))}


def _explain(facts: Facts, query: u.Explain) -> JsonObject:
    return explain(facts.view, query.what)


QUERIES: Mapping[type, Callable[[Facts, Any], JsonObject]] = {
    h.AppsList: _apps_list,
    u.AuditTail: _audit_tail,
    u.Explain: _explain,
    u.InboxParked: _inbox_parked,
    h.CallsList: _calls_list,
    h.CallsShow: _calls_show,
    hc.ConsentsList: _consents_list,
    hc.PermissionsList: _permissions_list,
    hi.DraftSave: _draft_save,
    h.InstancesList: _instances_list,
    hi.InteractionsList: _interactions_list,
    h.InventoryShow: _inventory_show,
    h.KernelStatus: _kernel_status,
    h.LogsRead: _logs_read,
    h.MessagesList: _messages_list,
    n.SessionsList: _sessions_list,
    n.SessionsShow: _sessions_show,
}
