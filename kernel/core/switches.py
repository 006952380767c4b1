"""What the person switches on and off, and the inventory that follows (SPEC 4.4, 4.5).

Rules:
1. The inventory is a function of Manifests and switches; a new revision is written in the turn that changes its content.
2. Switching an App off ends its open calls as failed app_disabled and closes its instance; a tool off ends its own calls.
"""

from __future__ import annotations

from kernel.core import calls, instances, machines, outbox
from kernel.core.decision import Decision, Detail, Draft, Origin, Rejected, Stamp, View
from kernel.core.inventory import Enablement, Inventory, publish
from kernel.core.machines import CallEvent, InstanceState
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
        draft.put(Switch(name=command.name, enabled=False))
        draft.audit("switch.disabled")
        _end_calls(draft, scope, None if command.name == scope else command.name)
        if command.name == scope:
            _close_instance(draft, scope)
        revision = _publish(draft, view.enablement.disabled | {command.name})
    return draft.decision({"revision": revision})


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
