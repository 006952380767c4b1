"""What a start makes of what it finds (SPEC 6.8, 8.3, 12). Idempotent: a start cut off and done again ends the same.

Rules:
1. No process survives a kernel: starting and stopping become suspended, a close cut off did not happen.
2. chat, the instance in front, and every one with open calls get a new process; the rest stay suspended until they are wanted. In front
   is the top of the stack, whatever state the last kernel left it in: a start cut off forgets nothing.
3. Calls are taken back and delivered again; what may not run twice ends as interrupted. Nothing unfinished is shown as done.
"""

from __future__ import annotations

from kernel.core import focus, instances, interactions, machines, outbox, surface_life, switches
from kernel.core.decision import ArmDeadline, Decision, Draft, Origin, Stamp, StopKernel, Then, View
from kernel.core.events import Booted, RecoverCapabilities, RouteCall
from kernel.core.machines import CALL_OPEN, InstanceEvent, InstanceState
from kernel.core.manifest import SYSTEM_SCOPE
from kernel.core.records import Instance, replace
from kernel.protocol.host import KernelStop
from lineup_sdk.protocol.codes import Code


def booted(view: View, origin: Origin, stamp: Stamp, command: Booted) -> Decision:
    """Bring back everything that was on its way."""
    draft = Draft(view, origin, stamp)
    draft.audit("kernel.booted")
    _publish_inventory(draft)
    surface_life.unmount_all(draft)
    _bring_back(draft)
    draft.effect(Then(command=RecoverCapabilities()))  # before any call is routed: an App may be held back
    for call in view.unrouted_calls():
        draft.effect(Then(command=RouteCall(number=call.number)))
    interactions.bring_back(draft)
    deadline_ms = view.next_deadline_ms()
    if deadline_ms is not None:
        draft.effect(ArmDeadline(at_ms=deadline_ms))
    return draft.decision()


def _publish_inventory(draft: Draft) -> None:
    """Manifests may be others than before; then this start has a revision that was never published."""
    inventory = draft.view.inventory
    if draft.view.fingerprint(inventory.revision) is None:
        switches.record_inventory(draft, inventory)
        outbox.send_inventory(draft, draft.view.door())


def _bring_back(draft: Draft) -> None:
    # Three passes: an ending in the second, or a close in the third, may bring another instance to the front, and that one must
    # be known to have no process by then.
    found = draft.view.current_instances()
    for instance in found:
        _suspend(draft, instance)
    for instance in found:
        instances.withdraw_all(draft, instance, is_crash=False)
    for instance in found:
        _restore(draft, instance.instance_id)
    instances.ensure_chat(draft)


def _suspend(draft: Draft, instance: Instance) -> None:
    if instance.state is not InstanceState.SUSPENDED:
        state = machines.step(machines.INSTANCE, instance.state, InstanceEvent.SUSPEND)
        draft.put(replace(instance, state=state, close_reason=None))
        draft.audit("instance.suspended", instance_id=instance.instance_id)
    elif instance.is_ending:
        draft.put(replace(instance, is_ending=False))


def _restore(draft: Draft, instance_id: str) -> None:
    instance = draft.instance(instance_id)
    if instance is None or instance.state is not InstanceState.SUSPENDED:
        return  # an ending of another one brought it to the front already
    if instance.app_scope not in draft.view.manifests or not draft.view.enablement.is_enabled(instance.app_scope):
        _lose(draft, instance)
    elif instance.app_scope == SYSTEM_SCOPE or focus.front(draft) == instance_id or _has_open_calls(draft, instance):
        focus.revive(draft, instance)


def _has_open_calls(draft: Draft, instance: Instance) -> bool:
    found = (draft.call(call.number) for call in draft.view.open_calls(instance.instance_id))
    return any(call is not None and call.status in CALL_OPEN for call in found)


def _lose(draft: Draft, instance: Instance) -> None:
    """The App is not installed any more, or switched off in a turn whose close was cut off: its instance cannot come back."""
    instances.end_open_calls(draft, instance, machines.CallEvent.FAIL, Code.APP_DISABLED)
    instances.close(draft, instance, "removed")


def stop(view: View, origin: Origin, stamp: Stamp, command: KernelStop) -> Decision:
    """The person ends the kernel; everything on its way comes back at the next start."""
    draft = Draft(view, origin, stamp)
    draft.audit("kernel.stopping")
    draft.effect(StopKernel())
    return draft.decision()
