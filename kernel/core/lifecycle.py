"""What Apps ask of their lifecycle and what the person does to Apps (SPEC 8.2).

Rules:
1. An App only asks. From the background it comes forward only within 5 s of the person's act on it.
2. An App with open calls is closed by nobody in silence: itself it is refused, the person is asked first (own_questions.py).
3. A process that is ending has nothing more to ask.
4. A touch by the person takes from open calls the right to give the front back at their end (SPEC 6.9).
5. chat can go nowhere and be closed by nobody; going to it is leaving everything else. It has one mode, im (SPEC 3).
"""

from __future__ import annotations

from kernel.core import focus, machines, own_questions
from kernel.core.decision import Decision, Detail, Draft, Origin, Rejected, Stamp, View
from kernel.core.events import MemoryRanShort
from kernel.core.instances import close, ensure_chat, require_own
from kernel.core.limits import PERSON_ACT_WINDOW_MS
from kernel.core.machines import InstanceState
from kernel.core.manifest import SYSTEM_SCOPE
from kernel.core.records import Instance
from kernel.protocol.host import AppClose, FocusRaise
from kernel.protocol.host_sessions import ModeRequest
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import LifecycleRequestBackground, LifecycleRequestClose, LifecycleRequestForeground
from lineup_sdk.protocol.system_messages import LifecycleRequestMode

MODE = "im"  # the one there is; an instance that was in another comes back in it


def request_foreground(view: View, origin: Origin, stamp: Stamp, command: LifecycleRequestForeground) -> Decision:
    """An App asks to come to the front. Raises: Rejected(lifecycle_denied) unless the person just acted on it (SPEC 8.2)."""
    draft = Draft(view, origin, stamp)
    instance = _require_at_work(draft)
    if not focus.is_front(draft, instance):
        acted_ms = stamp.boottime_ms - instance.act_ms if instance.act_boot_id == stamp.boot_id else None
        if acted_ms is None or acted_ms > PERSON_ACT_WINDOW_MS:
            raise Rejected(Code.LIFECYCLE_DENIED, Detail(hint="only right after the person acted on this App"))
        draft.audit("focus.granted", instance_id=instance.instance_id)
        if instance.app_scope == SYSTEM_SCOPE:
            focus.settle(draft, ())
        else:
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
    """An App asks to be closed. Raises: Rejected(lifecycle_denied) while it has open calls, and for chat."""
    draft = Draft(view, origin, stamp)
    instance = _require_at_work(draft)
    _require_closable(instance)
    if view.open_calls(instance.instance_id):
        raise Rejected(Code.LIFECYCLE_DENIED, Detail(hint="end the open calls first"))
    close(draft, instance, "app")
    return draft.decision()


def person_closes(view: View, origin: Origin, stamp: Stamp, command: AppClose) -> Decision:
    """The person closes an App; with open calls the kernel asks first. Value: {asked: interaction_id} while it is not closed.

    Raises: Rejected(app_instance_not_found, lifecycle_denied for chat, limit_exceeded with too many questions open).
    """
    draft = Draft(view, origin, stamp)
    instance = _require_current(view, command.instance_id)
    _require_closable(instance)
    if view.open_calls(instance.instance_id):
        return draft.decision({"asked": own_questions.ask_to_close(draft, instance)})
    close(draft, instance, "person")
    return draft.decision()


def person_raises(view: View, origin: Origin, stamp: Stamp, command: FocusRaise) -> Decision:
    """The person brings an App, or chat, to the front. Raises: Rejected(app_instance_not_found)."""
    draft = Draft(view, origin, stamp)
    chat = view.current_instance(SYSTEM_SCOPE)
    if command.instance_id in {SYSTEM_SCOPE, chat.instance_id if chat else None}:
        go_to_chat(draft)
    else:
        bring_forward(draft, _require_current(view, command.instance_id))
    return draft.decision()


def go_to_chat(draft: Draft) -> None:
    """The person leaves the Apps for the conversation; a chat that failed is made anew."""
    draft.audit("focus.chat")
    chat = draft.view.current_instance(SYSTEM_SCOPE)
    if chat is not None:
        focus.person_acted(draft, chat)
    focus.settle(draft, ())
    ensure_chat(draft)


def bring_forward(draft: Draft, instance: Instance) -> None:
    """The person brings an App to the front, with a new process if it was suspended."""
    instance = focus.person_acted(draft, instance)
    draft.audit("focus.raised", instance_id=instance.instance_id)
    if instance.state is InstanceState.SUSPENDED:
        focus.revive(draft, instance)
    focus.raise_instance(draft, instance.instance_id)


def request_mode(view: View, origin: Origin, stamp: Stamp, command: LifecycleRequestMode | ModeRequest) -> Decision:
    """Chat, or the person, asks for a mode of the conversation. Raises: Rejected(mode_unavailable) for audio and video."""
    draft = Draft(view, origin, stamp)
    if command.mode != MODE:
        raise Rejected(Code.MODE_UNAVAILABLE, Detail(pointer="/mode", expected=MODE))
    return draft.decision()


def memory_ran_short(view: View, origin: Origin, stamp: Stamp, command: MemoryRanShort) -> Decision:
    """The machine is short of memory: one unused App gives its process up."""
    draft = Draft(view, origin, stamp)
    focus.suspend_quietest(draft)
    return draft.decision()


def _require_closable(instance: Instance) -> None:
    if instance.app_scope == SYSTEM_SCOPE:
        raise Rejected(Code.LIFECYCLE_DENIED, Detail(hint="the conversation cannot be closed"))


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
