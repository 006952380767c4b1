"""The focus stack and which instance is in front (SPEC 8.2). The kernel owns it; Apps only ask.

Rules:
1. `chat` is the fixed bottom and never stands in the stack: an empty stack means chat is in front.
2. After every change the top instance that has a process and is started is `foreground`, every other one `background`.
3. A crash keeps the place. Only stopped and failed give it up; then the previous entry comes to the front.
4. Whoever comes to the front gets the calls that waited for that, in a turn of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kernel.core import machines
from kernel.core.decision import Draft, SendToWorker, StartWorker, StopWorker, Then
from kernel.core.events import DeliverCalls
from kernel.core.limits import MAX_FOCUS_DEPTH, STOP_DEADLINE_MS
from kernel.core.machines import CallStatus, InstanceEvent, InstanceState
from kernel.core.records import FocusStack, Instance
from lineup_sdk.protocol.messages import ContextChanged

_SHOWN = frozenset({InstanceState.FOREGROUND, InstanceState.BACKGROUND})


def front(draft: Draft) -> str | None:
    """The instance in front, or None for chat."""
    stack = draft.focus()
    return stack[-1] if stack else None


def raise_instance(draft: Draft, instance_id: str) -> None:
    """Put an instance on top; the one that falls out at the bottom is suspended."""
    stack = [*(entry for entry in draft.focus() if entry != instance_id), instance_id]
    for dropped in stack[:-MAX_FOCUS_DEPTH]:
        _suspend(draft, dropped)
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
    for instance_id in dict.fromkeys((*old, *new)):
        instance = draft.instance(instance_id)
        if instance is not None and instance.state in _SHOWN:
            show(draft, instance)


def show(draft: Draft, instance: Instance) -> Instance:
    """Give one started instance the state its place in the stack asks for, and tell it."""
    is_front = front(draft) == instance.instance_id
    wanted = InstanceState.FOREGROUND if is_front else InstanceState.BACKGROUND
    if instance.state is wanted:
        return instance
    event = InstanceEvent.TO_FRONT if is_front else InstanceEvent.TO_BACK
    shown = replace(instance, state=machines.step(machines.INSTANCE, instance.state, event))
    draft.put(shown)
    announce(draft, shown)
    if is_front:
        _wake_waiting_calls(draft, instance.instance_id)
    return shown


def _wake_waiting_calls(draft: Draft, instance_id: str) -> None:
    calls = draft.view.open_calls(instance_id)
    if any(call.status is CallStatus.WAITING_FOR_APP and call.delivered_life is None for call in calls):
        draft.effect(Then(command=DeliverCalls(instance_id=instance_id)))


def announce(draft: Draft, instance: Instance) -> None:
    """Tell a worker the state its instance has now."""
    message = ContextChanged(state=instance.state.value)
    draft.effect(SendToWorker(instance_id=instance.instance_id, life=instance.life, message=message))


def revive(draft: Draft, instance: Instance) -> Instance:
    """Give a suspended instance a new process."""
    manifest = draft.view.manifests.get(instance.app_scope)
    revived = replace(
        instance,
        state=machines.step(machines.INSTANCE, instance.state, InstanceEvent.REVIVE),
        life=instance.life + 1,
        app_version=manifest.version if manifest else instance.app_version,
        bundle_digest=manifest.bundle_digest if manifest else instance.bundle_digest,
        tools_subscribed=False,
        inbox_subscribed=False,
    )
    draft.put(revived)
    draft.audit("instance.revived", instance_id=revived.instance_id)
    draft.effect(StartWorker(instance_id=revived.instance_id, life=revived.life))
    return revived


def _suspend(draft: Draft, instance_id: str) -> None:
    instance = draft.instance(instance_id)
    if instance is None or instance.state not in {InstanceState.STARTING, *_SHOWN} or draft.view.open_calls(instance_id):
        return  # with an open call it stays at work in the background (SPEC 8.3)
    suspended = replace(instance, state=machines.step(machines.INSTANCE, instance.state, InstanceEvent.SUSPEND))
    draft.put(suspended)
    draft.audit("instance.suspended", instance_id=instance_id)
    announce(draft, suspended)  # a worker is told before its process ends (SPEC 3)
    draft.effect(StopWorker(instance_id=instance_id, life=instance.life, reason="suspend", deadline_ms=STOP_DEADLINE_MS))
