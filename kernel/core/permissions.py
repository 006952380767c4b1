"""Standing answers of the person about Apps and capabilities (SPEC 4.2, 10): given, asked for, taken back.

Rules:
1. At most one answer about an App and a capability is active; a newer one replaces it.
2. An answer that allows counts only for the very App it was given to: contract version and bundle. An update starts without it.
   One that refuses counts for every version: an update is no way around it.
3. `while_open` ends with the instance. Taking an answer back ends what is under way, at once, and the App is told.
"""

from __future__ import annotations

from typing import Final

from kernel.core import capability_ends, machines
from kernel.core.capability_catalog import CATALOG, Capability
from kernel.core.capability_records import CapabilityRequest, ConsentScope, Permission
from kernel.core.decision import Decision, Detail, Draft, Origin, Rejected, Stamp, View
from kernel.core.grants import STANDARD_INTERACTION, policy_of
from kernel.core.machines import CapabilityEvent, CapabilityStatus, PermissionEvent, PermissionState
from kernel.core.manifest import Manifest, ToolDescriptor
from kernel.core.records import Instance, replace
from kernel.core.surface_effects import SendToView
from kernel.protocol.host_capabilities import CapabilityStop, PermissionsReset, PermissionsRevoke
from lineup_sdk.protocol.codes import Code

_STANDING: Final = frozenset({ConsentScope.ALWAYS, ConsentScope.NEVER, ConsentScope.WHILE_OPEN})


def is_denied(view: View, manifest: Manifest, capability: str) -> bool:
    """Does policy, ours or the person's, refuse this to the App without a question?"""
    if capability == STANDARD_INTERACTION:
        return not view.is_allowed(policy_of(manifest.app_scope))
    row = CATALOG.get(capability)
    if row is not None and manifest.kind not in row.kinds:
        return True
    permission = view.capabilities.permission(manifest.app_scope, capability)
    return permission is not None and permission.scope is ConsentScope.NEVER


def require_not_denied(view: View, descriptor: ToolDescriptor) -> None:
    """What a tool says it needs is not refused by policy (SPEC 4.2). Raises: Rejected(capability_denied)."""
    manifest = view.manifests[descriptor.app_scope]
    for capability in sorted(descriptor.permissions):
        if capability not in manifest.requested_capabilities or is_denied(view, manifest, capability):
            expected = f"a tool whose capability {capability} is not refused"
            raise Rejected(Code.CAPABILITY_DENIED, Detail(expected=expected, hint="the person can allow it: lineup permissions"))


def standing(view: View, manifest: Manifest, row: Capability, instance_id: str) -> Permission | None:
    """The answer that spares the person a question; None when there is none for this very App."""
    permission = view.capabilities.permission(manifest.app_scope, row.name)
    if permission is None or permission.scope is ConsentScope.NEVER:
        return None
    is_bound = (permission.contract_version, permission.anchor) == (row.contract_version, manifest.bundle_digest)
    return permission if is_bound and permission.instance_id in {None, instance_id} else None


def keep(draft: Draft, request: CapabilityRequest, scope: ConsentScope) -> None:
    """Keep an answer that goes beyond one request, in place of an older one."""
    if scope not in _STANDING:
        return
    older = draft.view.capabilities.permission(request.app_scope, request.capability)
    if older is not None:
        _end(draft, older, PermissionEvent.REPLACE)
    permission = Permission(
        number=draft.new_number(),
        app_scope=request.app_scope,
        capability=request.capability,
        contract_version=request.contract_version,
        anchor=request.anchor,
        scope=scope,
        instance_id=request.instance_id if scope is ConsentScope.WHILE_OPEN else None,
        view_id=draft.origin.view_id,
        granted_at=draft.stamp.now,
    )
    draft.put(permission)
    draft.audit(f"permission.{scope.value}", number=permission.number, instance_id=permission.instance_id)


def end_of_instance(draft: Draft, instance: Instance) -> None:
    """The instance is gone or going: questions for it end, and what was allowed while it is open."""
    capability_ends.end_of_instance(draft, instance)
    for permission in draft.view.capabilities.permissions():
        if permission.instance_id == instance.instance_id:
            _end(draft, permission, PermissionEvent.LAPSE)


def revoke(view: View, origin: Origin, stamp: Stamp, command: PermissionsRevoke) -> Decision:
    """Take one answer back; what is under way ends. Raises: Rejected(capability_denied) when there is nothing to take back."""
    draft = Draft(view, origin, stamp)
    permission = view.capabilities.permission(command.app_scope, command.capability)
    if permission is not None:
        _end(draft, permission, PermissionEvent.REVOKE)
    uses = _end_uses(draft, command.app_scope, command.capability)
    if permission is None and not uses:
        raise Rejected(Code.CAPABILITY_DENIED, Detail(expected="an app_scope and capability of permissions.list"))
    return draft.decision({"revoked": 1})


def reset(view: View, origin: Origin, stamp: Stamp, command: PermissionsReset) -> Decision:
    """Take every answer back, of one App or of all. Value: {revoked}."""
    draft = Draft(view, origin, stamp)
    found = [one for one in view.capabilities.permissions() if command.app_scope in {None, one.app_scope}]
    for permission in found:
        _end(draft, permission, PermissionEvent.REVOKE)
    _end_uses(draft, command.app_scope, None)
    return draft.decision({"revoked": len(found)})


def _end_uses(draft: Draft, app_scope: str | None, capability: str | None) -> int:
    """End what hosts do just now, of one App or capability or of all; how many."""
    uses = [
        request
        for request in draft.view.capabilities.open_requests()
        if request.status is CapabilityStatus.GRANTED
        and app_scope in {None, request.app_scope}
        and capability in {None, request.capability}
    ]
    for request in uses:
        capability_ends.end(draft, request, CapabilityEvent.REVOKE)
        if request.provider_view_id is not None:
            draft.effect(SendToView(view_id=request.provider_view_id, message=CapabilityStop(request_id=request.request_id)))
    return len(uses)


def _end(draft: Draft, found: Permission, event: PermissionEvent) -> None:
    permission = draft.staged_permission(found)
    if permission.state is not PermissionState.ACTIVE:
        return
    ended = replace(permission, state=machines.step(machines.PERMISSION, permission.state, event), ended_at=draft.stamp.now)
    draft.put(ended)
    draft.audit(f"permission.{ended.state.value}", number=ended.number, instance_id=ended.instance_id)
