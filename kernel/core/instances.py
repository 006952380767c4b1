"""Instances: made, started, crashed, closed (SPEC 8).

Rules:
1. One instance an App and conversation that is not stopped or failed, a closing one included. A call that needs a new one waits for
   the end of the close, or for room (routing.py, rule 6). An instance id is never used again.
2. A life is one process. What an older life says or suffers changes nothing (INV-21).
3. Any unplanned death is a crash; the 4th within 60 s fails the instance, a broken wire or seal at once. Its open calls end with it.
4. A close ends the App session; a failure does not.
5. chat is always there: made at a start or when the person goes to it, outside the bound for instances, closed by nobody.
"""

from __future__ import annotations

from kernel.core import calls, capability_ends, delivery, focus, interactions, machines, permissions, surface_life
from kernel.core.decision import Decision, Detail, Draft, Origin, Rejected, Stamp, StartWorker, StopWorker, Then, View
from kernel.core.events import Death, RouteCall, WorkerExited
from kernel.core.limits import (
    CRASH_WINDOW_MS,
    INBOX_WINDOW,
    MAX_ATTEMPTS,
    MAX_CRASHES_IN_WINDOW,
    MAX_INBOX_ROWS,
    MAX_INSTANCES,
    MAX_MESSAGE_CRASHES,
    RESTART_DELAYS_MS,
    STOP_DEADLINE_MS,
)
from kernel.core.machines import CallEvent, InboxEvent, InstanceEvent, InstanceState, InteractionEvent
from kernel.core.manifest import SYSTEM_SCOPE, Manifest
from kernel.core.records import AppSession, Instance, replace
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import LifecycleStarted


def create(draft: Draft, manifest: Manifest, session: AppSession | None = None) -> Instance:
    """Make an instance with a process on its way, in the given session, else in the App's open one or a new one.

    Raises: Rejected(limit_exceeded).
    """
    view = draft.view
    if manifest.app_scope != SYSTEM_SCOPE:
        require_room(view)
    session = session or view.open_session(manifest.app_scope) or new_session(draft, manifest.app_scope)
    instance = Instance(
        number=draft.new_number(),
        instance_id=draft.new_id("ins"),
        app_scope=manifest.app_scope,
        app_version=manifest.version,
        bundle_digest=manifest.bundle_digest,
        conversation_id=view.conversation_id,
        app_session_id=session.app_session_id,
        started_at=draft.stamp.now,
        state=InstanceState.STARTING,
        life=1,
    )
    draft.put(instance)
    draft.audit("instance.created", instance_id=instance.instance_id)
    draft.effect(StartWorker(instance_id=instance.instance_id, life=1))
    return instance


def new_session(draft: Draft, app_scope: str, *, continues: str | None = None) -> AppSession:
    """Open an App session."""
    session = AppSession(
        number=draft.new_number(),
        app_session_id=draft.new_id("ses"),
        app_scope=app_scope,
        conversation_id=draft.view.conversation_id,
        opened_at=draft.stamp.now,
        continues=continues,
    )
    draft.put(session)
    return session


def ensure_chat(draft: Draft) -> None:
    """Make chat's instance when there is none: at the first start, and after it failed."""
    manifest = draft.view.manifests.get(SYSTEM_SCOPE)
    if manifest is not None and draft.view.current_instance(SYSTEM_SCOPE) is None:
        create(draft, manifest)


def has_room(view: View) -> bool:
    """True while one instance more may be made; suspended ones count, as they come back."""
    return sum(one.app_scope != SYSTEM_SCOPE for one in view.current_instances()) < MAX_INSTANCES


def require_room(view: View) -> None:
    """Refuse the person one instance too many. Raises: Rejected(limit_exceeded)."""
    if not has_room(view):
        raise Rejected(Code.LIMIT_EXCEEDED, Detail(expected=f"at most {MAX_INSTANCES} instances"))


def require_own(draft: Draft) -> Instance:
    """The instance whose present life speaks. Raises: Rejected(app_instance_not_found) for an older life."""
    instance = draft.instance(draft.origin.instance_id)
    if instance is None or instance.life != draft.origin.life or instance.state in machines.INSTANCE_FINAL:
        raise Rejected(Code.APP_INSTANCE_NOT_FOUND)
    return instance


def started(view: View, origin: Origin, stamp: Stamp, command: LifecycleStarted) -> Decision:
    """The App is loaded: it is shown where it stands and gets what waits for it."""
    draft = Draft(view, origin, stamp)
    instance = require_own(draft)
    if instance.state is InstanceState.STARTING:
        event = InstanceEvent.TO_FRONT if focus.is_front(draft, instance) else InstanceEvent.TO_BACK
        instance = replace(instance, state=machines.step(machines.INSTANCE, instance.state, event))
        draft.put(instance)
        draft.audit("instance.started", instance_id=instance.instance_id)
        focus.announce(draft, instance)
        focus.watch_idle(draft)
        delivery.deliver_calls(draft, instance)
        delivery.deliver_messages(draft, instance)
    return draft.decision()


def worker_exited(view: View, origin: Origin, stamp: Stamp, command: WorkerExited) -> Decision:
    """The process of a life is gone: finish the close, restart, or fail the instance."""
    draft = Draft(view, origin, stamp)
    instance = view.instance(command.instance_id)
    if instance is None or instance.life != command.life or instance.state in machines.INSTANCE_FINAL:
        return draft.decision()
    if instance.state is InstanceState.STOPPING:
        finish_close(draft, instance)
    elif instance.state is InstanceState.SUSPENDED:
        if instance.is_ending:
            focus.process_gone(draft, instance)
    else:
        _restart_or_fail(draft, instance, command.death)
    return draft.decision()


def _restart_or_fail(draft: Draft, instance: Instance, death: Death) -> None:
    if death is Death.VIOLATION:
        fail(draft, instance, Code.PROTOCOL_VIOLATION)
        return
    crashes = recent_crashes(draft.stamp, instance)
    if death is Death.CRASH:
        crashes = (*crashes, draft.stamp.boottime_ms)
    if len(crashes) > MAX_CRASHES_IN_WINDOW:
        fail(draft, instance, Code.APP_CRASHED)
        return
    is_crash = death is Death.CRASH
    restarted = replace(
        instance,
        state=machines.step(machines.INSTANCE, instance.state, InstanceEvent.CRASH),
        life=instance.life + 1,
        crash_boot_id=draft.stamp.boot_id,
        crashes_ms=crashes,
        tools_subscribed=False,
        inbox_subscribed=False,
    )
    draft.put(restarted)
    draft.audit("instance.crashed" if is_crash else "instance.restarted", instance_id=instance.instance_id, count=len(crashes))
    withdraw_all(draft, instance, is_crash=is_crash)
    delay_ms = RESTART_DELAYS_MS[min(len(crashes), len(RESTART_DELAYS_MS)) - 1] if is_crash else 0
    draft.effect(StartWorker(instance_id=restarted.instance_id, life=restarted.life, delay_ms=delay_ms))


def recent_crashes(stamp: Stamp, instance: Instance) -> tuple[int, ...]:
    """Boottimes of the crashes that still count."""
    if instance.crash_boot_id != stamp.boot_id:
        return ()
    return tuple(at for at in instance.crashes_ms if stamp.boottime_ms - at < CRASH_WINDOW_MS)


def withdraw_all(draft: Draft, instance: Instance, *, is_crash: bool) -> None:
    """Take back calls and messages from a life that is gone; a message that was there at too many crashes is parked."""
    for call in draft.view.open_calls(instance.instance_id):
        calls.withdraw(draft, call, is_crash=is_crash, max_attempts=MAX_ATTEMPTS)
    capability_ends.end_of_life(draft, instance)
    if not is_crash:
        return
    for row in draft.view.inbox_rows(instance.instance_id, 0, INBOX_WINDOW):
        if row.delivered_life != instance.life:
            continue
        hit = replace(row, crash_count=row.crash_count + 1)
        if hit.crash_count >= MAX_MESSAGE_CRASHES:
            hit = replace(hit, state=machines.step(machines.INBOX, hit.state, InboxEvent.PARK))
            draft.audit("inbox.parked", number=row.number, instance_id=instance.instance_id)
        draft.put(hit)


def fail(draft: Draft, instance: Instance, code: Code) -> None:
    """End an instance as failed, its open calls with it, and give the front back."""
    failed = replace(
        instance,
        state=machines.step(machines.INSTANCE, instance.state, InstanceEvent.FAIL),
        stopped_at=draft.stamp.now,
        error=code,
    )
    draft.put(failed)
    draft.audit("instance.failed", instance_id=instance.instance_id, code=code)
    end_open_calls(draft, instance, CallEvent.FAIL, Code.APP_CRASHED)
    interactions.end_of_owner(draft, instance, InteractionEvent.FAIL, Code.APP_CRASHED)
    interactions.end_about(draft, instance)
    permissions.end_of_instance(draft, instance)
    _park_inbox(draft, instance)
    focus.lower_instance(draft, instance.instance_id)
    _take_up_waiting(draft)


def end_open_calls(draft: Draft, instance: Instance, event: CallEvent, code: Code) -> None:
    """End every open call of an instance the same way."""
    for found in draft.view.open_calls(instance.instance_id):
        call = draft.call(found.number)
        if call is not None and call.status in machines.CALL_OPEN:
            calls.finish(draft, call, event, code=code)


def _park_inbox(draft: Draft, instance: Instance) -> None:
    """Rows of an instance that is gone wait for the person (SPEC 5.4)."""
    for found in draft.view.inbox_rows(instance.instance_id, 0, MAX_INBOX_ROWS):
        row = draft.staged_inbox_row(found)
        if row.state is machines.InboxState.DELIVERABLE:
            draft.put(replace(row, state=machines.step(machines.INBOX, row.state, InboxEvent.PARK)))
            draft.audit("inbox.parked", number=row.number, instance_id=instance.instance_id)


def close(draft: Draft, instance: Instance, reason: str) -> None:
    """Begin a real close: the process is asked to finish; without one it is over at once."""
    interactions.end_about(draft, instance)
    if instance.state is InstanceState.SUSPENDED:
        stopped = machines.step(machines.INSTANCE, instance.state, InstanceEvent.CLOSE)
        _record_stopped(draft, replace(instance, state=stopped, close_reason=reason))
        return
    closing = replace(
        instance,
        state=machines.step(machines.INSTANCE, instance.state, InstanceEvent.CLOSE),
        close_reason=reason,
    )
    draft.put(closing)
    draft.audit("instance.closing", instance_id=instance.instance_id)
    focus.lower_instance(draft, instance.instance_id)
    draft.effect(StopWorker(instance_id=instance.instance_id, life=instance.life, reason="close", deadline_ms=STOP_DEADLINE_MS))


def is_closing(view: View, app_scope: str) -> bool:
    """True while an instance of the App has not yet finished its close."""
    return any(one.app_scope == app_scope and one.state is InstanceState.STOPPING for one in view.current_instances())


def finish_close(draft: Draft, instance: Instance) -> None:
    """The process of a closing instance is gone."""
    stopped = machines.step(machines.INSTANCE, instance.state, InstanceEvent.CLOSED)
    _record_stopped(draft, replace(instance, state=stopped))


def _take_up_waiting(draft: Draft) -> None:
    """There is room for an instance, or an App whose close is over: every call that waits for one tries again, oldest first."""
    for call in draft.view.unrouted_calls():
        draft.effect(Then(command=RouteCall(number=call.number)))


def _record_stopped(draft: Draft, instance: Instance) -> None:
    draft.put(replace(instance, stopped_at=draft.stamp.now))
    draft.audit("instance.stopped", instance_id=instance.instance_id)
    interactions.end_of_owner(draft, instance, InteractionEvent.CANCEL, Code.CANCELLED)
    permissions.end_of_instance(draft, instance)
    _park_inbox(draft, instance)
    session = draft.view.open_session(instance.app_scope)
    if session is not None and session.app_session_id == instance.app_session_id:
        draft.put(replace(session, closed_at=draft.stamp.now))
        surface_life.close_of_session(draft, session.app_session_id)
    focus.lower_instance(draft, instance.instance_id)
    _take_up_waiting(draft)
