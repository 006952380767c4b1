"""Consent questions and standing answers as hosts see them (kernel.protocol.host_capabilities). Reads only."""

from __future__ import annotations

from kernel.core.capability_catalog import CATALOG
from kernel.core.capability_records import CapabilityRequest, ConsentScope, Permission
from kernel.core.machines import CapabilityStatus
from kernel.core.records import decode_body
from kernel.projection import fitting, time_text
from kernel.store_view import StoreView
from lineup_sdk.protocol.messages import JsonObject


def consent_summary(view: StoreView, request: CapabilityRequest) -> JsonObject:
    """ConsentSummary."""
    row, manifest = CATALOG.get(request.capability), view.manifests.get(request.app_scope)
    call = view.call(request.parent_call_number) if request.parent_call_number is not None else None
    is_asked = request.status is CapabilityStatus.ASKED and request.arguments_cbor is not None
    summary = {
        "number": request.number,
        "request_id": request.request_id,
        "capability": request.capability,
        "title": row.title if row else request.capability,
        "app_scope": request.app_scope,
        "app_title": manifest.title if manifest else request.app_scope,
        "instance_id": request.instance_id,
        "reason": request.reason,
        "arguments": decode_body(request.arguments_cbor) if is_asked and request.arguments_cbor is not None else None,
        "scopes": [scope.value for scope in row.scopes] if row else [],
        "shown": request.shown_digest.hex(),
        "status": request.status.value,
        "code": request.error_code.value if request.error_code else None,
        "created_at": time_text(request.created_at),
        "parent_call_id": call.call_id if call else None,
    }
    return {name: value for name, value in summary.items() if value is not None}


def waiting_consents(view: StoreView) -> list[JsonObject]:
    """The questions that wait for the person, oldest first."""
    asked = [one for one in view.capabilities.open_requests() if one.status is CapabilityStatus.ASKED]
    return fitting(consent_summary(view, one) for one in asked)


def permission_summary(view: StoreView, permission: Permission) -> JsonObject:
    """PermissionSummary."""
    row, manifest = CATALOG.get(permission.capability), view.manifests.get(permission.app_scope)
    is_bound = row is not None and manifest is not None and (row.contract_version, manifest.bundle_digest) == _bound_to(permission)
    summary = {
        "number": permission.number,
        "app_scope": permission.app_scope,
        "app_title": manifest.title if manifest else permission.app_scope,
        "capability": permission.capability,
        "title": row.title if row else permission.capability,
        "scope": permission.scope.value,
        "instance_id": permission.instance_id,
        "granted_at": time_text(permission.granted_at),
        "counts": is_bound or permission.scope is ConsentScope.NEVER,
    }
    return {name: value for name, value in summary.items() if value is not None}


def _bound_to(permission: Permission) -> tuple[int, str]:
    return permission.contract_version, permission.anchor


def standing_permissions(view: StoreView) -> list[JsonObject]:
    """Every standing answer, oldest first."""
    return [permission_summary(view, one) for one in view.capabilities.permissions()]
