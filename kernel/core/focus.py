"""The focus stack and which instance is in front (SPEC 8.2). The kernel owns it; Apps only ask.

Rules:
1. `chat` is the fixed bottom and never stands in the stack: an empty stack means chat is in front. It is never suspended.
2. After every change the top instance that has a process and is started is `foreground`, every other one `background`.
3. A crash keeps the place. Only stopped and failed give it up; then the previous entry comes to the front.
4. Whoever comes to the front, by any path, gets the calls that waited for that, in a turn of its own.
5. Idle = in the background, no open call, no message on its way, nothing written of it for IDLE_AFTER_MS. What an App does for itself
   (its state, its surface) keeps nobody awake. One command looks at all of them; no instance has a timer.
6. A suspended process may still be finishing (`is_ending`). Its last words count, so the next life waits for its end.
"""

from __future__ import annotations

from collections.abc import Iterable

from kernel.core import machines
from kernel.core.decision import ArmDeadline, Draft, SendToWorker, StartWorker, StopWorker, Then
from kernel.core.events import DeliverCalls
from kernel.core.limits import IDLE_AFTER_MS, INBOX_WINDOW, MAX_FOCUS_DEPTH, STOP_DEADLINE_MS
from kernel.core.machines import CallStatus, InstanceEvent, InstanceState
from kernel.core.manifest import SYSTEM_SCOPE
from kernel.core.records import FocusStack, Instance, replace
from lineup_sdk.protocol.messages import ContextChanged

_SHOWN = frozenset({InstanceState.FOREGROUND, InstanceState.BACKGROUND})


def front(draft: Draft) -> str | None:
    """The instance in front, or None for chat."""
    stack = draft.focus()
    return stack[-1] if stack else None


def is_front(draft: Draft, instance: Instance) -> bool:
    """True for the top of the stack, and for chat while nothing stands above it."""
    top = front(draft)
    return instance.app_scope == SYSTEM_SCOPE if top is None else instance.instance_id == top


def raise_instance(draft: Draft, instance_id: str) -> None:
    """Put an instance on top; the one that falls out at the bottom is suspended."""
    stack = [*(entry for entry in draft.focus() if entry != instance_id), instance_id]
    for dropped in stack[:-MAX_FOCUS_DEPTH]:
        _drop(draft, dropped)
    settle(draft, stack[-MAX_FOCUS_DEPTH:])


def lower_instance(draft: Draft, instance_id: str) -> None:
    """Take an instance out of the stack; the previous one comes to the front, revived if it was suspended."""
    stack = [entry for entry in draft.focus() if entry != instance_id]
    settle(draft, stack)
    top = draft.instance(stack[-1]) if stack else None
    if top is not None and top.state is InstanceState.SUSPENDED:
        revive(draft, top)


def settle(draft: Draft, stack: Iterable[str]) -> None:
    """Make the stack what it says and give every started instance the state that follows."""
    old = draft.focus()
    new = tuple(stack)
    if new != old:
        draft.put(FocusStack(instance_ids=new))
    chat = draft.view.current_instance(SYSTEM_SCOPE)
    for instance_id in dict.fromkeys((*old, *new, *((chat.instance_id,) if chat else ()))):
        instance = draft.instance(instance_id)
        if instance is not None and instance.state in _SHOWN:
            show(draft, instance)


def show(draft: Draft, instance: Instance) -> Instance:
    """Give one started instance the state its place in the stack asks for, and tell it."""
    is_top = is_front(draft, instance)
    wanted = InstanceState.FOREGROUND if is_top else InstanceState.BACKGROUND
    if instance.state is wanted:
        return instance
    event = InstanceEvent.TO_FRONT if is_top else InstanceEvent.TO_BACK
    shown = replace(instance, state=machines.step(machines.INSTANCE, instance.state, event))
    draft.put(shown)
    announce(draft, shown)
    if is_top:
        _wake_waiting_calls(draft, instance.instance_id)
    else:
        watch_idle(draft)
    return shown


def _wake_waiting_calls(draft: Draft, instance_id: str) -> None:
    calls = draft.view.open_calls(instance_id)
    if any(call.status is CallStatus.WAITING_FOR_APP and not call.delivered_life for call in calls):
        draft.effect(Then(command=DeliverCalls(instance_id=instance_id)))


def announce(draft: Draft, instance: Instance) -> None:
    """Tell a worker the state its instance has now."""
    message = ContextChanged(state=instance.state.value)
    draft.effect(SendToWorker(instance_id=instance.instance_id, life=instance.life, message=message))


def revive(draft: Draft, instance: Instance) -> Instance:
    """Give a suspended instance a new process; while the old one finishes, its exit does that (`process_gone`).

    An App that is not here has none to give: at a start without several Apps, the end of the first may bring the next to the front.
    """
    manifest = draft.view.manifests.get(instance.app_scope)
    if instance.is_ending or manifest is None:
        return instance
    revived = replace(
        instance,
        state=machines.step(machines.INSTANCE, instance.state, InstanceEvent.REVIVE),
        life=instance.life + 1,
        app_version=manifest.version,
        bundle_digest=manifest.bundle_digest,
        tools_subscribed=False,
        inbox_subscribed=False,
    )
    draft.put(revived)
    draft.audit("instance.revived", instance_id=revived.instance_id)
    draft.effect(StartWorker(instance_id=revived.instance_id, life=revived.life))
    return revived


def person_acted(draft: Draft, instance: Instance) -> Instance:
    """Note that the person touched this App: it may ask for the front, and no call takes the front away from it at its end.

    Whatever the person does to an App or in its surface is such an act (SPEC 6.9, 8.2).
    """
    touched = replace(instance, act_boot_id=draft.stamp.boot_id, act_ms=draft.stamp.boottime_ms)
    draft.put(touched)
    for found in draft.view.open_calls(instance.instance_id):
        call = draft.call(found.number) or found
        if call.raised:
            draft.put(replace(call, raised=False))
    return touched


# ------------------------------------------------------------------------------------ suspended and back


def _drop(draft: Draft, instance_id: str) -> None:
    """Suspend what fell out of the stack; with an open call it stays at work in the background (SPEC 8.3)."""
    instance = draft.instance(instance_id)
    if instance is not None and instance.state in {InstanceState.STARTING, *_SHOWN} and not draft.view.open_calls(instance_id):
        suspend(draft, instance)


def suspend(draft: Draft, instance: Instance) -> None:
    """Let a started instance without open calls go; it comes back when it is wanted."""
    state = machines.step(machines.INSTANCE, instance.state, InstanceEvent.SUSPEND)
    suspended = replace(instance, state=state, is_ending=True)
    draft.put(suspended)
    draft.audit("instance.suspended", instance_id=instance.instance_id)
    announce(draft, suspended)  # a worker is told before its process ends (SPEC 3)
    stop = StopWorker(instance_id=instance.instance_id, life=instance.life, reason="suspend", deadline_ms=STOP_DEADLINE_MS)
    draft.effect(stop)


def process_gone(draft: Draft, instance: Instance) -> None:
    """The process of a suspended instance has finished; whoever wanted the App meanwhile gets it now."""
    rested = replace(instance, is_ending=False)
    draft.put(rested)
    if is_front(draft, rested) or draft.view.open_calls(rested.instance_id) or _has_waiting_messages(draft, rested):
        revive(draft, rested)


def suspend_idle(draft: Draft) -> None:
    """Suspend what has been idle for long enough, and wake the kernel for the next one."""
    for instance in _unused(draft):
        since_ms = draft.view.quiet_since_ms(instance.instance_id)
        if since_ms + IDLE_AFTER_MS > draft.stamp.boottime_ms:
            draft.effect(ArmDeadline(at_ms=since_ms + IDLE_AFTER_MS))
            return  # the rest has been quiet for less
        suspend(draft, instance)


def suspend_quietest(draft: Draft) -> None:
    """Suspend the instance that was unused for longest, if there is one: memory is short."""
    for instance in _unused(draft)[:1]:
        suspend(draft, instance)


def watch_idle(draft: Draft) -> None:
    """Something went quiet in this turn: look again when it would be idle."""
    draft.effect(ArmDeadline(at_ms=draft.stamp.boottime_ms + IDLE_AFTER_MS))


def _unused(draft: Draft) -> list[Instance]:
    """Instances in the background that nobody waits for, quiet for longest first."""
    view = draft.view
    resting = [one for one in view.current_instances() if one.state is InstanceState.BACKGROUND and one.app_scope != SYSTEM_SCOPE]
    unused = [
        one
        for one in resting
        if draft.instance(one.instance_id) == one and not view.open_calls(one.instance_id) and not _has_waiting_messages(draft, one)
    ]
    return sorted(unused, key=lambda one: view.quiet_since_ms(one.instance_id))


def _has_waiting_messages(draft: Draft, instance: Instance) -> bool:
    rows = draft.view.inbox_rows(instance.instance_id, 0, INBOX_WINDOW + 1)
    return any(row.delivered_life != instance.life for row in rows)
