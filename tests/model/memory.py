"""What holds between two passes: memory says what the rows say (kernel/store_memory.py, rule 1), and no follow-up was forgotten."""

from __future__ import annotations

from collections.abc import Iterator

from kernel.core import merge_patch
from kernel.core.records import decode_body
from kernel.store import Store
from kernel.store_interactions import OPEN_INTERACTIONS, read_interaction
from kernel.store_rows import CURRENT_INSTANCES, OPEN_CALLS, read_focus, read_instance, read_tool_call


def unlike_the_rows(store: Store) -> list[str]:
    """What a start would now read otherwise than it is remembered."""
    return list(_differences(store))


def _differences(store: Store) -> Iterator[str]:
    run, memory, view = store._db.run, store._memory, store.view
    if memory.open.all() != sorted((read_tool_call(row) for row in run(OPEN_CALLS, (0,))), key=lambda call: call.number):
        yield "open calls"
    if list(view.current_instances()) != sorted((read_instance(row) for row in run(CURRENT_INSTANCES)), key=lambda one: one.number):
        yield "instances"
    if list(view.open_interactions()) != [read_interaction(row) for row in run(OPEN_INTERACTIONS)]:
        yield "open questions"
    if memory.focus.instance_ids != next((read_focus(row).instance_ids for row in run("SELECT * FROM focus")), ()):
        yield "the focus stack"
    if memory.pending_rows != {row[0] for row in run("SELECT number FROM outbox_row WHERE state = 'pending'")}:
        yield "pending rows"
    if memory.policies != {row[0] for row in run("SELECT name FROM policy WHERE allowed = 1")}:
        yield "policies"
    if memory.enablement.disabled != {row[0] for row in run("SELECT name FROM switch WHERE enabled = 0")}:
        yield "switches"
    newest = run("SELECT epoch, number, digest FROM published_inventory ORDER BY number DESC LIMIT 1")
    if newest and (view.inventory.epoch, view.inventory.number, view.inventory.digest) != newest[0]:
        yield "the inventory"
    open_requests = {row[0] for row in run("SELECT request_id FROM capability_request WHERE status IN ('asked', 'granted')")}
    if {one.request_id for one in view.capabilities.open_requests()} != open_requests:
        yield "requests for capabilities"
    if {one.number for one in view.capabilities.permissions()} != {
        row[0] for row in run("SELECT number FROM permission WHERE state = 'active'")
    }:
        yield "permissions"
    for surface in view.surfaces.open_ones():
        state = merge_patch.encode(view.surfaces.state(surface.number))
        if decode_body(state) != _folded(store, surface.number) or len(state) != surface.state_bytes:
            yield f"the state of surface {surface.number}"


_SETTLED = {
    "a received call was not routed": "SELECT number FROM tool_call WHERE status = 'received'",
    "a question was not presented": "SELECT number FROM interaction WHERE status = 'pending'",
    "a presented notice was not accepted": "SELECT number FROM interaction WHERE kind = 'notice' AND status = 'presented'",
}


def left_undone(store: Store) -> list[str]:
    """What the turn after the one that wrote it should have taken up."""
    return [f"{what}: {number}" for what, sql in _SETTLED.items() for (number,) in store._db.run(sql)]


def _folded(store: Store, number: int) -> object:
    """A surface's state from its rows, by a merge patch of our own (RFC 7396)."""
    state: object = decode_body(store._db.run("SELECT state_cbor FROM surface_snapshot WHERE surface_number = ?", (number,))[0][0])
    for (patch,) in store._db.run("SELECT patch_cbor FROM surface_patch WHERE surface_number = ? ORDER BY version", (number,)):
        state = _merged(state, decode_body(patch))
    return state


def _merged(target: object, patch: object) -> object:
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged(merged.get(name), value)
    return merged
