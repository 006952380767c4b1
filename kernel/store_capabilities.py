"""Capabilities as rows, and the reads of them (kernel.core.capability_records: CapabilityView).

Rules:
1. Those of kernel/store_rows.py. What is open or active is held in memory and follows every write; if a write is lost, so is the store.
2. Attached views are of this run: never a row, gone with the store.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kernel.core.capability_records import Acceptance, AttachedView, AttachedViews, CapabilityRequest, ConsentScope, Permission
from kernel.core.machines import CAPABILITY_OPEN, CapabilityStatus, PermissionState
from kernel.core.records import Record
from kernel.database import Database, Row
from kernel.store_rows import Values, opt_time_value, read_code, read_opt_time, read_time, time_value

_FOREVER = 2**63 - 1  # above every number

_PUT_REQUEST = """
INSERT INTO capability_request VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
ON CONFLICT (number) DO UPDATE SET
  status = excluded.status, updated_at = excluded.updated_at, arguments_cbor = excluded.arguments_cbor, scope = excluded.scope,
  consent_view_id = excluded.consent_view_id, provider_view_id = excluded.provider_view_id, deadline_ms = excluded.deadline_ms,
  error_code = excluded.error_code, reason_of_end = excluded.reason_of_end
"""
_PUT_PERMISSION = """
INSERT INTO permission VALUES (?,?,?,?,?,?,?,?,?,?,?)
ON CONFLICT (number) DO UPDATE SET state = excluded.state, ended_at = excluded.ended_at
"""
_PUT_ACCEPTANCE = """
INSERT INTO acceptance VALUES (?,?,?)
ON CONFLICT (app_scope) DO UPDATE SET capabilities = excluded.capabilities, accepted_at = excluded.accepted_at
"""
_OPEN_REQUESTS = "SELECT * FROM capability_request WHERE status IN ('asked', 'granted') ORDER BY number"
_ACTIVE_PERMISSIONS = "SELECT * FROM permission INDEXED BY permission_active WHERE state = 'active'"


def _request_values(r: CapabilityRequest) -> Values:
    identity = (r.number, r.request_id, r.capability, r.contract_version, r.app_scope, r.instance_id, r.conversation_id, r.anchor)
    asked = (r.reason, r.parent_call_number, r.shown_digest, time_value(r.created_at))
    standing = (r.status, time_value(r.updated_at), r.arguments_cbor, r.scope, r.consent_view_id, r.provider_view_id, r.deadline_ms)
    return (*identity, *asked, *standing, r.error_code, r.reason_of_end)


def read_request(row: Row) -> CapabilityRequest:
    """A request from its row."""
    return CapabilityRequest(
        number=row[0],
        request_id=row[1],
        capability=row[2],
        contract_version=row[3],
        app_scope=row[4],
        instance_id=row[5],
        conversation_id=row[6],
        anchor=row[7],
        reason=row[8],
        parent_call_number=row[9],
        shown_digest=row[10],
        created_at=read_time(row[11]),
        status=CapabilityStatus(row[12]),
        updated_at=read_time(row[13]),
        arguments_cbor=row[14],
        scope=None if row[15] is None else ConsentScope(row[15]),
        consent_view_id=row[16],
        provider_view_id=row[17],
        deadline_ms=row[18],
        error_code=read_code(row[19]),
        reason_of_end=row[20],
    )


def _permission_values(p: Permission) -> Values:
    identity = (p.number, p.app_scope, p.capability, p.contract_version, p.anchor, p.scope, p.instance_id, p.view_id)
    return (*identity, time_value(p.granted_at), p.state, opt_time_value(p.ended_at))


def _read_permission(row: Row) -> Permission:
    return Permission(
        number=row[0],
        app_scope=row[1],
        capability=row[2],
        contract_version=row[3],
        anchor=row[4],
        scope=ConsentScope(row[5]),
        instance_id=row[6],
        view_id=row[7],
        granted_at=read_time(row[8]),
        state=PermissionState(row[9]),
        ended_at=read_opt_time(row[10]),
    )


def _acceptance_values(a: Acceptance) -> Values:
    return (a.app_scope, json.dumps(a.capabilities), time_value(a.accepted_at))


PUTS: Mapping[type, tuple[str, Callable[[Any], Values]]] = {
    Acceptance: (_PUT_ACCEPTANCE, _acceptance_values),
    CapabilityRequest: (_PUT_REQUEST, _request_values),
    Permission: (_PUT_PERMISSION, _permission_values),
}


class CapabilityReads:
    """The CapabilityView of one open store."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._open: dict[str, CapabilityRequest] = {}
        self._active: dict[tuple[str, str], Permission] = {}
        self._views: tuple[AttachedView, ...] = ()
        self.follow(read_request(row) for row in database.run(_OPEN_REQUESTS))
        self.follow(_read_permission(row) for row in database.run(_ACTIVE_PERMISSIONS))

    def follow(self, records: Iterable[Record]) -> None:
        """Follow what a decision writes."""
        for record in records:
            match record:
                case CapabilityRequest():
                    self._follow_request(record)
                case Permission():
                    self._follow_permission(record)
                case AttachedViews():
                    self._views = record.views
                case _:
                    pass

    def _follow_request(self, request: CapabilityRequest) -> None:
        if request.status in CAPABILITY_OPEN:
            self._open[request.request_id] = request
        else:
            self._open.pop(request.request_id, None)

    def _follow_permission(self, permission: Permission) -> None:
        key = (permission.app_scope, permission.capability)
        if permission.state is PermissionState.ACTIVE:
            self._active[key] = permission
        elif key in self._active and self._active[key].number == permission.number:
            del self._active[key]

    # --- the core's part

    def request(self, request_id: str) -> CapabilityRequest | None:
        """A request by its id, open or ended."""
        known = self._open.get(request_id)
        if known is not None:
            return known
        row = self._db.run_one("SELECT * FROM capability_request WHERE request_id = ?", (request_id,))
        return None if row is None else read_request(row)

    def open_requests(self) -> Sequence[CapabilityRequest]:
        """Asked or granted, oldest first."""
        return sorted(self._open.values(), key=lambda one: one.number)

    def permission(self, app_scope: str, capability: str) -> Permission | None:
        """The active answer about an App and a capability."""
        return self._active.get((app_scope, capability))

    def permissions(self) -> Sequence[Permission]:
        """Every active answer, oldest first."""
        return sorted(self._active.values(), key=lambda one: one.number)

    def acceptance(self, app_scope: str) -> Acceptance | None:
        """What was accepted of an App."""
        row = self._db.run_one("SELECT * FROM acceptance WHERE app_scope = ?", (app_scope,))
        return None if row is None else Acceptance(app_scope=row[0], capabilities=tuple(json.loads(row[1])), accepted_at=read_time(row[2]))

    def views(self) -> Sequence[AttachedView]:
        """The views that are attached now, oldest first."""
        return self._views

    # --- for drawing and listing

    def requests(self, *, before: int | None = None, limit: int = 50) -> Sequence[CapabilityRequest]:
        """Requests with a number below `before`, ended ones too, newest first."""
        top = _FOREVER if before is None else before
        rows = self._db.run("SELECT * FROM capability_request WHERE number < ? ORDER BY number DESC LIMIT ?", (top, limit))
        return [read_request(row) for row in rows]
