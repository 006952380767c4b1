"""What the person switches on and off, and the inventory that follows (SPEC 4.4, 4.5).

Rules:
1. The inventory is a function of Manifests and switches; a new revision is written in the turn that changes its content.
2. Switching an App off ends its open calls as failed app_disabled and closes its instance; a tool off ends its own calls.
3. An App that asks for more capabilities than the person accepted is off until the person switches it on again: that accepts it (SPEC 10).
"""

from __future__ import annotations

from kernel.core import calls, instances, machines, outbox
from kernel.core.capability_records import Acceptance
from kernel.core.decision import Decision, Detail, Draft, Origin, Rejected, Stamp, View
from kernel.core.inventory import Enablement, Inventory, publish
from kernel.core.machines import CallEvent, InstanceState
from kernel.core.manifest import RESERVED_SCOPES, Manifest
from kernel.core.records import KeptDescriptor, PublishedInventory, Switch, encode_body
from kernel.protocol.host import AppDisable, AppEnable
from lineup_sdk.protocol.codes import Code

ALWAYS_ON = frozenset({"chat", "runtime"})


def enable(view: View, origin: Origin, stamp: Stamp, command: AppEnable) -> Decision:
    """Switch an app or tool on. Raises: Rejected(tool_not_advertised) for a name no Manifest has."""
    draft = Draft(view, origin, stamp)
    _require_known(view, command.name)
    revision = view.inventory.revision
    if command.name in view.enablement.disabled:
        draft.put(Switch(name=command.name, enabled=True))
        draft.audit("switch.enabled")
        if command.name in view.manifests:
            _accept(draft, view.manifests[command.name])
        revision = _publish(draft, view.enablement.disabled - {command.name})
    return draft.decision({"revision": revision})


def disable(view: View, origin: Origin, stamp: Stamp, command: AppDisable) -> Decision:
    """Switch an app or tool off. Raises: Rejected(tool_not_advertised, lifecycle_denied for what is always on)."""
    draft = Draft(view, origin, stamp)
    scope = _require_known(view, command.name)
    if scope in ALWAYS_ON:
        raise Rejected(Code.LIFECYCLE_DENIED, Detail(pointer="/name", expected="an App that can be switched off"))
    revision = view.inventory.revision
    if command.name not in view.enablement.disabled:
        draft.audit("switch.disabled")
        _switch_off(draft, scope, command.name)
        revision = _publish(draft, view.enablement.disabled | {command.name})
    return draft.decision({"revision": revision})


def hold_updates(draft: Draft) -> None:
    """At a start: switch off every App whose Manifest asks for more than was accepted. One seen for the first time is accepted as it is."""
    view = draft.view
    held: set[str] = set()
    for scope, manifest in view.manifests.items():
        if scope in RESERVED_SCOPES:
            continue
        accepted = view.capabilities.acceptance(scope)
        if accepted is None or manifest.requested_capabilities < frozenset(accepted.capabilities):
            _accept(draft, manifest)
        elif not manifest.requested_capabilities <= frozenset(accepted.capabilities):
            held.add(scope)
    held -= view.enablement.disabled | ALWAYS_ON
    for scope in sorted(held):
        draft.audit("switch.held")
        _switch_off(draft, scope, scope)
    if held:
        _publish(draft, view.enablement.disabled | held)


def _accept(draft: Draft, manifest: Manifest) -> None:
    capabilities = tuple(sorted(manifest.requested_capabilities))
    draft.put(Acceptance(app_scope=manifest.app_scope, capabilities=capabilities, accepted_at=draft.stamp.now))


def _switch_off(draft: Draft, scope: str, name: str) -> None:
    """Switch an App, or a tool of it, off."""
    draft.put(Switch(name=name, enabled=False))
    _end_calls(draft, scope, None if name == scope else name)
    if name == scope:
        _close_instance(draft, scope)


def _require_known(view: View, name: str) -> str:
    scope = name.partition(".")[0]
    manifest = view.manifests.get(scope)
    if manifest is None or (name != scope and all(tool.id != name for tool in manifest.tools)):
        raise Rejected(Code.TOOL_NOT_ADVERTISED, Detail(pointer="/name", expected="an app_scope or tool_id of a Manifest"))
    return scope


def _end_calls(draft: Draft, scope: str, tool_id: str | None) -> None:
    for call in draft.view.open_calls_of_app(scope):
        if tool_id is None or call.tool_id == tool_id:
            calls.finish(draft, call, CallEvent.FAIL, code=Code.APP_DISABLED)


def _close_instance(draft: Draft, scope: str) -> None:
    current = draft.view.current_instance(scope)
    instance = draft.instance(current.instance_id) if current is not None else None
    if instance is not None and instance.state not in {InstanceState.STOPPING, *machines.INSTANCE_FINAL}:
        instances.close(draft, instance, "disabled")


def _publish(draft: Draft, disabled: frozenset[str]) -> str:
    """Write the revision that follows from these switches, if its content is new, and tell the Agent."""
    view = draft.view
    new = publish(view.inventory, view.epoch, view.manifests, Enablement(disabled=disabled))
    if new.revision != view.inventory.revision:
        record_inventory(draft, new)
        outbox.send_inventory(draft, view.door(), {"inventory_revision": new.revision, **new.content})
    return new.revision


def record_inventory(draft: Draft, inventory: Inventory) -> None:
    """Store a revision and every descriptor it advertises."""
    draft.put(
        PublishedInventory(
            number=inventory.number,
            epoch=inventory.epoch,
            digest=inventory.digest,
            fingerprint_cbor=encode_body(inventory.fingerprint()),
        )
    )
    for tool in inventory.tools:
        draft.put(KeptDescriptor(digest=tool.digest, document_cbor=encode_body(tool.content)))
    draft.audit("inventory.published", number=inventory.number)
