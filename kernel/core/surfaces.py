"""Surfaces: an App's UI as a JSON state in the kernel, changed by its worker and by the one view that shows it (SPEC 9.1, 9.2).

Rules:
1. One surface an App session. Worker and mount change it by the same check: open, base version, patch, weight of the new state.
2. A change is durable before anyone hears of it: the mount gets the App's patches, the worker one `surface.changed` until it looks.
3. What a view says counts only from the present mount: its view and its epoch, else stale_mount.
4. A patch is appended; the turn after it folds patches into a snapshot once they weigh as much as the state, so that drawing on a big
   board costs what it costs on a small one.
5. What the person does in a surface is an act on its App (SPEC 8.2).
"""

from __future__ import annotations

from kernel.core import focus, instances, merge_patch, surface_life
from kernel.core.decision import Decision, Detail, Draft, Origin, Rejected, SendToWorker, Stamp, Then, View
from kernel.core.events import CompactSurface, DeliverMessages
from kernel.core.limits import COMPACT_PATCH_BYTES, MAX_EVENT_NAME, MAX_INBOX_BYTES, MAX_INBOX_ROWS, MAX_PATCHES, MAX_SURFACE_MEMBERS
from kernel.core.manifest import SURFACE_EVENT_TOPIC, Kind
from kernel.core.records import InboxRow, Instance, decode_body, encode_body, replace
from kernel.core.surface_effects import SendToView, TellSurfaceChanged, chunks_of
from kernel.core.surface_records import AppendedPatch, Container, Surface, SurfaceSnapshot
from kernel.protocol.host_surfaces import SurfaceEvent, SurfaceMount, SurfacePatch, SurfacePatched, SurfaceUnmount
from lineup_sdk.protocol import limits as wire
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.framing import ProtocolViolation, check_value
from lineup_sdk.protocol.messages import JsonObject
from lineup_sdk.protocol.surface_messages import SurfaceClose, SurfaceOpen, SurfaceRead, SurfaceUpdate

SURFACE_VERSION = 1  # the contract between a view and a surface of an App that names none
ACT_RESOLUTION_MS = 1_000  # a person who draws acts all the time; noted once a second

# --------------------------------------------------------------------------------- what the App asks


def open_surface(view: View, origin: Origin, stamp: Stamp, command: SurfaceOpen) -> Decision:
    """Open the surface of the own App session; what an earlier instance left in it is still there."""
    draft = Draft(view, origin, stamp)
    instance = instances.require_own(draft)
    surface = view.surfaces.of_session(instance.app_session_id)
    if surface is None:
        surface = _new(draft, instance)
        draft.put(SurfaceSnapshot(surface_number=surface.number, version=0, state_cbor=merge_patch.encode({})))
    elif surface.closed_at is None:
        return draft.decision({"version": surface.version})
    draft.put(replace(surface, closed_at=None, updated_at=stamp.now))
    draft.audit("surface.opened", number=surface.number, instance_id=instance.instance_id)
    return draft.decision({"version": surface.version})


def _new(draft: Draft, instance: Instance) -> Surface:
    kind = draft.view.manifests[instance.app_scope].kind
    return Surface(
        number=draft.new_number(),
        surface_id=draft.new_id("srf"),
        app_session_id=instance.app_session_id,
        app_scope=instance.app_scope,
        conversation_id=instance.conversation_id,
        container=Container.TRUSTED if kind is Kind.SYSTEM else Container.ISOLATED,
        opened_at=draft.stamp.now,
        updated_at=draft.stamp.now,
    )


def update(view: View, origin: Origin, stamp: Stamp, command: SurfaceUpdate) -> Decision:
    """The App changes its surface. Raises: Rejected(surface_unavailable, version_conflict, limit_exceeded)."""
    draft = Draft(view, origin, stamp)
    surface = _require_own(draft)
    changed, patch = _change(draft, surface, command.base_version, command.patch)
    if changed.mounted_view_id is not None:
        told = SurfacePatched(
            surface_id=changed.surface_id, mount_epoch=changed.mount_epoch, version=changed.version, patch=decode_body(patch)
        )
        draft.effect(SendToView(view_id=changed.mounted_view_id, message=told))
    return draft.decision({"version": changed.version})


def read(view: View, origin: Origin, stamp: Stamp, command: SurfaceRead) -> Decision:
    """The App reads its surface: the value, then the state in chunks. Raises: Rejected(surface_unavailable)."""
    draft = Draft(view, origin, stamp)
    surface = _require_own(draft)
    of = f"{SurfaceRead.TYPE}:{origin.request_id}"
    state = merge_patch.encode(view.surfaces.state(surface.number))
    for chunk in chunks_of(of, state):
        draft.effect(SendToWorker(instance_id=origin.instance_id, life=origin.life, message=chunk))
    return draft.decision({"version": surface.version, "size": len(state), "of": of})


def close(view: View, origin: Origin, stamp: Stamp, command: SurfaceClose) -> Decision:
    """The App closes its surface. Raises: Rejected(surface_unavailable)."""
    draft = Draft(view, origin, stamp)
    surface_life.close(draft, _require_own(draft))
    return draft.decision()


def _require_own(draft: Draft) -> Surface:
    instance = instances.require_own(draft)
    surface = draft.view.surfaces.of_session(instance.app_session_id)
    if surface is None or surface.closed_at is not None:
        raise Rejected(Code.SURFACE_UNAVAILABLE, Detail(hint="surface.open first"))
    return surface


# --------------------------------------------------------------------------------- what a view says


def mount(view: View, origin: Origin, stamp: Stamp, command: SurfaceMount) -> Decision:
    """A view shows the surface from now on; one that did is told. Raises: Rejected(surface_unavailable)."""
    draft = Draft(view, origin, stamp)
    surface = _require_open(view, command.surface_id)
    contract = _contract_of(view, surface)
    if command.surface_version != contract:
        raise Rejected(Code.SURFACE_UNAVAILABLE, Detail(pointer="/surface_version", expected=str(contract)))
    if surface.mounted_view_id != origin.view_id:
        surface_life.tell_unmounted(draft, surface, "taken_over")
    mounted = replace(surface, mount_epoch=surface.mount_epoch + 1, mounted_view_id=origin.view_id)
    draft.put(mounted)
    draft.audit("surface.mounted", number=surface.number)
    of = f"{SurfaceMount.TYPE}:{mounted.number}:{mounted.mount_epoch}"
    state = merge_patch.encode(view.surfaces.state(surface.number))
    for chunk in chunks_of(of, state):
        draft.effect(SendToView(view_id=origin.view_id, message=chunk))
    return draft.decision({"mount_epoch": mounted.mount_epoch, "version": mounted.version, "size": len(state), "of": of})


def _contract_of(view: View, surface: Surface) -> int:
    """The contract a view has to speak; an App without code for a frame is shown by the host's own, in the first one."""
    manifest = view.manifests.get(surface.app_scope)
    declared = manifest.entry.surface if manifest is not None and manifest.entry is not None else None
    return SURFACE_VERSION if declared is None else declared.version


def unmount(view: View, origin: Origin, stamp: Stamp, command: SurfaceUnmount) -> Decision:
    """A view shows the surface no longer. Raises: Rejected(surface_unavailable, stale_mount)."""
    draft = Draft(view, origin, stamp)
    surface = _require_mount(view, origin, command.surface_id, command.mount_epoch)
    draft.put(replace(surface, mounted_view_id=None))
    draft.audit("surface.unmounted", number=surface.number)
    return draft.decision()


def patch(view: View, origin: Origin, stamp: Stamp, command: SurfacePatch) -> Decision:
    """The mount changes the surface. Raises: Rejected(surface_unavailable, stale_mount, version_conflict, limit_exceeded)."""
    draft = Draft(view, origin, stamp)
    surface = _require_mount(view, origin, command.surface_id, command.mount_epoch)
    changed, _ = _change(draft, surface, command.base_version, command.patch)
    instance = _instance_of(view, surface)
    if instance is not None:
        _note_act(draft, instance)
        draft.effect(TellSurfaceChanged(instance_id=instance.instance_id, life=instance.life, version=changed.version))
    return draft.decision({"version": changed.version})


def event(view: View, origin: Origin, stamp: Stamp, command: SurfaceEvent) -> Decision:
    """A deliberate act in the surface goes to the App's inbox.

    Raises: Rejected(surface_unavailable, stale_mount, app_instance_not_found, limit_exceeded).
    """
    draft = Draft(view, origin, stamp)
    surface = _require_mount(view, origin, command.surface_id, command.mount_epoch)
    instance = _instance_of(view, surface)
    if instance is None:
        raise Rejected(Code.APP_INSTANCE_NOT_FOUND, Detail(hint="the App is not running"))
    if not 0 < len(command.name) <= MAX_EVENT_NAME:
        raise Rejected(Code.LIMIT_EXCEEDED, Detail(pointer="/name", expected=f"1 to {MAX_EVENT_NAME} code points"))
    body = _require_body({"name": command.name, "body": command.body}, "/body")
    rows, held_bytes = view.inbox_size(instance.instance_id)
    if rows >= MAX_INBOX_ROWS or held_bytes + len(body) > MAX_INBOX_BYTES:
        raise Rejected(Code.LIMIT_EXCEEDED, Detail(expected="an inbox with room", hint="wait until the App acknowledged"))
    _store_event(draft, instance, body)
    _note_act(draft, instance)
    return draft.decision()


def _store_event(draft: Draft, instance: Instance, body: bytes) -> None:
    number = draft.new_number()
    draft.put(
        InboxRow(
            number=number,
            message_id=draft.new_id("msg"),
            app_scope=instance.app_scope,
            conversation_id=instance.conversation_id,
            instance_id=instance.instance_id,
            topic=SURFACE_EVENT_TOPIC,
            body_cbor=body,
            created_at=draft.stamp.now,
        )
    )
    draft.audit("inbox.stored", number=number, instance_id=instance.instance_id)
    draft.effect(Then(command=DeliverMessages(instance_id=instance.instance_id)))


def _require_open(view: View, surface_id: str) -> Surface:
    surface = view.surfaces.by_id(surface_id)
    if surface is None or surface.closed_at is not None:
        raise Rejected(Code.SURFACE_UNAVAILABLE, Detail(pointer="/surface_id", expected="an open surface"))
    return surface


def _require_mount(view: View, origin: Origin, surface_id: str, mount_epoch: int) -> Surface:
    surface = _require_open(view, surface_id)
    if surface.mounted_view_id != origin.view_id or surface.mount_epoch != mount_epoch:
        raise Rejected(Code.STALE_MOUNT, Detail(hint="mount the surface again"))
    return surface


def _instance_of(view: View, surface: Surface) -> Instance | None:
    instance = view.current_instance(surface.app_scope)
    return instance if instance is not None and instance.app_session_id == surface.app_session_id else None


def _note_act(draft: Draft, instance: Instance) -> None:
    stamp = draft.stamp
    is_noted = instance.act_boot_id == stamp.boot_id and stamp.boottime_ms - instance.act_ms < ACT_RESOLUTION_MS
    if not is_noted or any(call.raised for call in draft.view.open_calls(instance.instance_id)):
        focus.person_acted(draft, instance)


# --------------------------------------------------------------------------------- the one check of a change


def _change(draft: Draft, surface: Surface, base_version: int, patch: JsonObject) -> tuple[Surface, bytes]:
    """Append a patch; returns the surface as it is then, and the patch encoded."""
    if base_version != surface.version:
        detail = Detail(pointer="/base_version", expected="the current version", more={"version": surface.version})
        raise Rejected(Code.VERSION_CONFLICT, detail)
    encoded = _require_body(patch, "/patch")
    weight = merge_patch.Weight(surface.state_bytes, surface.state_members)
    weight += merge_patch.weigh_change(draft.view.surfaces.state(surface.number), patch)
    if weight.size > wire.MAX_SURFACE_BYTES:
        raise Rejected(Code.LIMIT_EXCEEDED, Detail(pointer="/patch", expected=f"a state of at most {wire.MAX_SURFACE_BYTES} bytes as CBOR"))
    if weight.members > MAX_SURFACE_MEMBERS:
        raise Rejected(Code.LIMIT_EXCEEDED, Detail(pointer="/patch", expected=f"a state of at most {MAX_SURFACE_MEMBERS} members"))
    changed = replace(
        surface,
        version=surface.version + 1,
        state_bytes=weight.size,
        state_members=weight.members,
        patch_bytes=surface.patch_bytes + len(encoded),
        updated_at=draft.stamp.now,
    )
    draft.put(changed)
    appended = AppendedPatch(surface_number=surface.number, version=changed.version, patch_cbor=encoded, created_at=draft.stamp.now)
    draft.put(appended)
    draft.audit("surface.changed", number=surface.number)
    if _is_heavy(changed):
        draft.effect(Then(command=CompactSurface(number=surface.number)))
    return changed, encoded


def _require_body(value: JsonObject, pointer: str) -> bytes:
    """The value as CBOR, when it is one that can travel. Raises: Rejected(limit_exceeded)."""
    try:
        check_value(value, max_depth=wire.MAX_BODY_DEPTH, allow_bytes=False)
    except ProtocolViolation as violation:
        raise Rejected(Code.LIMIT_EXCEEDED, Detail(pointer=pointer, expected=f"JSON values of the wire ({violation.reason})")) from None
    body = encode_body(value)
    if len(body) > wire.MAX_PATCH_BYTES:
        expected = f"at most {wire.MAX_PATCH_BYTES} bytes as CBOR"
        raise Rejected(Code.LIMIT_EXCEEDED, Detail(pointer=pointer, expected=expected, got_type="object", got_size=len(body)))
    return body


def _is_heavy(surface: Surface) -> bool:
    patches = surface.version - surface.snapshot_version
    return patches >= MAX_PATCHES or surface.patch_bytes >= max(COMPACT_PATCH_BYTES, surface.state_bytes)


def compact(view: View, origin: Origin, stamp: Stamp, command: CompactSurface) -> Decision:
    """Fold the patches of a surface into its snapshot; nothing anyone sees changes."""
    draft = Draft(view, origin, stamp)
    surface = view.surfaces.by_number(command.number)
    if surface is not None and _is_heavy(surface):
        state = merge_patch.encode(view.surfaces.state(surface.number))
        draft.put(SurfaceSnapshot(surface_number=surface.number, version=surface.version, state_cbor=state))
        draft.put(replace(surface, snapshot_version=surface.version, patch_bytes=0))
    return draft.decision()
