"""What Apps ask of their lifecycle and what the person does to Apps (SPEC 8.2).

Rules:
1. An App only asks. From the background it comes forward only within 5 s of the person's act on it.
2. An App with open calls is closed by nobody in silence: itself refused, the person asked first and the calls cancelled.
3. A process that is ending has nothing more to ask.
4. A touch by the person takes from open calls the right to give the front back at their end (SPEC 6.9).
"""

from __future__ import annotations

from dataclasses import replace

from kernel.core import focus, machines
from kernel.core.decision import Decision, Detail, Draft, Origin, Rejected, Stamp, View
from kernel.core.instances import close, end_open_calls, require_own
from kernel.core.limits import PERSON_ACT_WINDOW_MS
from kernel.core.machines import CallEvent, InstanceState
from kernel.core.records import Instance
from kernel.protocol.host import AppClose, FocusRaise
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import LifecycleRequestBackground, LifecycleRequestClose, LifecycleRequestForeground


def request_foreground(view: View, origin: Origin, stamp: Stamp, command: LifecycleRequestForeground) -> Decision:
    """An App asks to come to the front. Raises: Rejected(lifecycle_denied) unless the person just acted on it (SPEC 8.2)."""
    draft = Draft(view, origin, stamp)
    instance = _require_at_work(draft)
    if focus.front(draft) != instance.instance_id:
        acted_ms = stamp.boottime_ms - instance.act_ms if instance.act_boot_id == stamp.boot_id else None
        if acted_ms is None or acted_ms > PERSON_ACT_WINDOW_MS:
            raise Rejected(Code.LIFECYCLE_DENIED, Detail(hint="only right after the person acted on this App"))
        draft.audit("focus.granted", instance_id=instance.instance_id)
        focus.raise_instance(draft, instance.instance_id)
    return draft.decision()


def request_background(view: View, origin: Origin, stamp: Stamp, command: LifecycleRequestBackground) -> Decision:
    """An App asks to go to the background."""
    draft = Draft(view, origin, stamp)
    instance = _require_at_work(draft)
    if instance.instance_id in draft.focus():
        draft.audit("focus.lowered", instance_id=instance.instance_id)
        focus.lower_instance(draft, instance.instance_id)
    return draft.decision()


def request_close(view: View, origin: Origin, stamp: Stamp, command: LifecycleRequestClose) -> Decision:
    """An App asks to be closed. Raises: Rejected(lifecycle_denied) while it has open calls."""
    draft = Draft(view, origin, stamp)
    instance = _require_at_work(draft)
    if view.open_calls(instance.instance_id):
        raise Rejected(Code.LIFECYCLE_DENIED, Detail(hint="end the open calls first"))
    close(draft, instance, "app")
    return draft.decision()


def person_closes(view: View, origin: Origin, stamp: Stamp, command: AppClose) -> Decision:
    """The person closes an App; with open calls only after saying so.

    Raises: Rejected(app_instance_not_found, lifecycle_denied with open_calls).
    """
    draft = Draft(view, origin, stamp)
    instance = _require_current(view, command.instance_id)
    open_calls = view.open_calls(instance.instance_id)
    if open_calls and not command.cancel_calls:
        detail = Detail(hint="ask the person, then close with cancel_calls", more={"open_calls": len(open_calls)})
        raise Rejected(Code.LIFECYCLE_DENIED, detail)
    end_open_calls(draft, instance, CallEvent.CANCEL, Code.CANCELLED)
    close(draft, draft.instance(instance.instance_id) or instance, "person")
    return draft.decision()


def person_raises(view: View, origin: Origin, stamp: Stamp, command: FocusRaise) -> Decision:
    """The person brings an App, or chat, to the front. Raises: Rejected(app_instance_not_found)."""
    draft = Draft(view, origin, stamp)
    if command.instance_id == "chat":
        draft.audit("focus.chat")
        focus.settle(draft, ())
        return draft.decision()
    instance = _require_current(view, command.instance_id)
    draft.put(replace(instance, act_boot_id=stamp.boot_id, act_ms=stamp.boottime_ms))
    for call in view.open_calls(instance.instance_id):
        if call.raised:
            draft.put(replace(call, raised=False))  # the person touched it: no call takes the front away at its end
    draft.audit("focus.raised", instance_id=instance.instance_id)
    if instance.state is InstanceState.SUSPENDED:
        focus.revive(draft, draft.instance(instance.instance_id) or instance)
    focus.raise_instance(draft, instance.instance_id)
    return draft.decision()


def _require_at_work(draft: Draft) -> Instance:
    instance = require_own(draft)
    if instance.state in {InstanceState.SUSPENDED, InstanceState.STOPPING}:
        raise Rejected(Code.LIFECYCLE_DENIED, Detail(hint="this process is ending"))
    return instance


def _require_current(view: View, instance_id: str) -> Instance:
    instance = view.instance(instance_id)
    if instance is None or instance.state in machines.INSTANCE_FINAL or instance.state is InstanceState.STOPPING:
        raise Rejected(Code.APP_INSTANCE_NOT_FOUND)
    return instance
