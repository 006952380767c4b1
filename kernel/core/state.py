"""What an App remembers: one saved object an App session (SPEC 8.5)."""

from __future__ import annotations

from kernel.core import instances
from kernel.core.decision import Decision, Detail, Draft, Origin, Rejected, Stamp, View
from kernel.core.records import SavedState, decode_body, encode_body
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.limits import MAX_STATE_BYTES
from lineup_sdk.protocol.messages import StateLoad, StateSave


def save(view: View, origin: Origin, stamp: Stamp, command: StateSave) -> Decision:
    """Replace the saved state. Raises: Rejected(limit_exceeded)."""
    draft = Draft(view, origin, stamp)
    instance = instances.require_own(draft)
    body = encode_body(command.state)
    if len(body) > MAX_STATE_BYTES:
        expected = f"at most {MAX_STATE_BYTES} bytes as CBOR"
        raise Rejected(Code.LIMIT_EXCEEDED, Detail(pointer="/state", expected=expected, got_type="object", got_size=len(body)))
    draft.put(SavedState(app_session_id=instance.app_session_id, state_cbor=body, updated_at=stamp.now))
    draft.audit("state.saved", instance_id=instance.instance_id)
    return draft.decision()


def load(view: View, origin: Origin, stamp: Stamp, command: StateLoad) -> Decision:
    """Read the saved state, or null."""
    draft = Draft(view, origin, stamp)
    saved = view.saved_state(instances.require_own(draft).app_session_id)
    return draft.decision({"state": decode_body(saved.state_cbor) if saved is not None else None})
