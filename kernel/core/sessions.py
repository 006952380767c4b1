"""App sessions: what the person opens, goes on with and starts anew (SPEC 8.4).

Rules:
1. An App has at most one open session. It outlives crash, suspension, restart and failure of its instances; a real close ends it.
2. A closed session is history: nothing is written to it again. Going on with it opens a new one, linked to it, that begins with a copy
   of what it remembered.
3. Starting empty is for an App whose instance is gone without a close: the open session becomes history as it is.
"""

from __future__ import annotations

from kernel.core import instances, lifecycle, surface_life
from kernel.core.decision import Decision, Detail, Draft, Origin, Rejected, Stamp, View
from kernel.core.manifest import SYSTEM_SCOPE, Manifest
from kernel.core.records import AppSession, Instance, replace
from kernel.protocol.host_sessions import AppOpen, AppStartEmpty, SessionsContinue
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject


def open_app(view: View, origin: Origin, stamp: Stamp, command: AppOpen) -> Decision:
    """The person opens an App. Raises: Rejected(app_instance_not_found, app_disabled, lifecycle_denied, limit_exceeded)."""
    draft = Draft(view, origin, stamp)
    manifest = _require_app(view, command.app_scope)
    if manifest.app_scope == SYSTEM_SCOPE:
        lifecycle.go_to_chat(draft)
        chat = view.current_instance(SYSTEM_SCOPE)
        return draft.decision({"instance_id": chat.instance_id} if chat is not None else {})
    return draft.decision({"instance_id": _open(draft, manifest).instance_id})


def start_empty(view: View, origin: Origin, stamp: Stamp, command: AppStartEmpty) -> Decision:
    """The person starts an App that remembers nothing. Raises: as open_app; Rejected(lifecycle_denied) while it has an instance."""
    draft = Draft(view, origin, stamp)
    manifest = _require_app(view, command.app_scope)
    if manifest.app_scope == SYSTEM_SCOPE or view.current_instance(manifest.app_scope) is not None:
        raise Rejected(Code.LIFECYCLE_DENIED, Detail(hint="close the App first; the conversation is never started anew"))
    _require_startable(view, manifest)
    left = view.open_session(manifest.app_scope)
    if left is not None:
        draft.put(replace(left, closed_at=stamp.now))
        draft.audit("session.left", number=left.number)
        surface_life.close_of_session(draft, left.app_session_id)
    return draft.decision(_begin(draft, manifest, instances.new_session(draft, manifest.app_scope)))


def go_on(view: View, origin: Origin, stamp: Stamp, command: SessionsContinue) -> Decision:
    """The person goes on with a session. Raises: as open_app; Rejected(lifecycle_denied) while another one of the App is open."""
    draft = Draft(view, origin, stamp)
    old = view.sessions.by_id(command.app_session_id)
    if old is None or old.app_scope == SYSTEM_SCOPE:
        raise Rejected(Code.APP_INSTANCE_NOT_FOUND, Detail(pointer="/app_session_id", expected="the id of an App session"))
    manifest = _require_app(view, old.app_scope)
    if old.closed_at is None:
        return draft.decision({"instance_id": _open(draft, manifest).instance_id, "app_session_id": old.app_session_id})
    if view.open_session(old.app_scope) is not None:
        raise Rejected(Code.LIFECYCLE_DENIED, Detail(hint="close the App, whose session is open, first"))
    _require_startable(view, manifest)
    session = instances.new_session(draft, old.app_scope, continues=old.app_session_id)
    draft.audit("session.continued", number=session.number)
    _take_along(draft, old, session)
    return draft.decision(_begin(draft, manifest, session))


def _open(draft: Draft, manifest: Manifest) -> Instance:
    instance = draft.view.current_instance(manifest.app_scope)
    if instance is None:
        _require_startable(draft.view, manifest)
        instance = instances.create(draft, manifest)
    lifecycle.bring_forward(draft, instance)
    return instance


def _begin(draft: Draft, manifest: Manifest, session: AppSession) -> JsonObject:
    instance = instances.create(draft, manifest, session)
    lifecycle.bring_forward(draft, instance)
    return {"instance_id": instance.instance_id, "app_session_id": session.app_session_id}


def _take_along(draft: Draft, old: AppSession, new: AppSession) -> None:
    saved = draft.view.saved_state(old.app_session_id)
    if saved is not None:
        draft.put(replace(saved, app_session_id=new.app_session_id, updated_at=draft.stamp.now))
    surface = draft.view.surfaces.of_session(old.app_session_id)
    if surface is not None:
        surface_life.copy_to_session(draft, surface, new.app_session_id)


def _require_app(view: View, app_scope: str) -> Manifest:
    manifest = view.manifests.get(app_scope)
    if manifest is None or manifest.entry is None:
        raise Rejected(Code.APP_INSTANCE_NOT_FOUND, Detail(pointer="/app_scope", expected="an App that can be opened"))
    if not view.enablement.is_enabled(app_scope):
        raise Rejected(Code.APP_DISABLED, Detail(pointer="/app_scope", expected="an App that is switched on"))
    return manifest


def _require_startable(view: View, manifest: Manifest) -> None:
    if instances.is_closing(view, manifest.app_scope):
        raise Rejected(Code.LIFECYCLE_DENIED, Detail(hint="it is closing; ask again in a moment"))
    instances.require_room(view)
