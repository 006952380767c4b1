"""How long bodies are kept (SPEC 16).

Rules:
1. What is waited for is never given up, whatever its age: open calls and questions, rows without an acknowledgement, parked messages,
   what an App session needs that is open, or that one goes on with.
2. A used id is kept for ever: a call, a question, a request for a capability leave a key with their outcome, so that the same call again is
   answered and never run again, and what became of each can still be told.
3. What belongs together goes in one decision: a call with its final row and the question it is, a surface with its state.
4. App sessions and instances are no bodies: they stay, and a session whose bodies are gone goes on as one that remembers nothing.
5. A sweep is bounded: at most SWEPT_A_TURN things, oldest first; the kernel says it again while there is more.
6. Bytes of artifacts go after the commit. A death in between leaves them to the next start (kernel/artifact_store.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from kernel.core.decision import Decision, Draft, Origin, Stamp, View
from kernel.core.events import SweepBodies
from kernel.core.limits import SWEPT_A_TURN
from kernel.core.records import Interaction, Key, ToolCall, key_digest
from kernel.core.retention_records import (
    ForgottenArtifact,
    ForgottenCall,
    ForgottenCapabilityRequest,
    ForgottenInboxRow,
    ForgottenInteraction,
    ForgottenMessage,
    ForgottenOutboxRow,
    ForgottenPatches,
    ForgottenSnapshot,
    ForgottenState,
    ForgottenSurface,
)
from kernel.core.surface_effects import DropBytes
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject

NOT_KEPT = "the result is not kept any more"


def sweep(view: View, origin: Origin, stamp: Stamp, command: SweepBodies) -> Decision:
    """Give up what is older than it has to be kept. Value: {swept: how many things}."""
    draft = Draft(view, origin, stamp)
    room = SWEPT_A_TURN
    for give_up in _KINDS:
        room -= give_up(draft, command.before, room) if room else 0
    if room < SWEPT_A_TURN:
        draft.audit("retention.swept", count=SWEPT_A_TURN - room)
    return draft.decision({"swept": SWEPT_A_TURN - room})


def _calls(draft: Draft, before: datetime, room: int) -> int:
    found = draft.view.retention.ended_calls(before, room)
    for call in found:
        _forget_call(draft, call)
    return len(found)


def _forget_call(draft: Draft, call: ToolCall) -> None:
    _keep_key(draft, "call", call.call_id, call.number, call.content_digest, call.status.value, call.error_code)
    draft.put(ForgottenCall(number=call.number))
    final = draft.view.final_row(call.number)
    if final is not None:
        draft.put(ForgottenOutboxRow(number=final.number))
    interaction = draft.view.interaction_of_call(call.number)
    if interaction is not None:
        _forget_interaction(draft, interaction)


def _forget_interaction(draft: Draft, one: Interaction) -> None:
    _keep_key(draft, "interaction", one.interaction_id, one.number, one.shown_digest, one.status.value, one.error_code)
    draft.put(ForgottenInteraction(number=one.number))


def _keep_key(draft: Draft, kind: str, ident: str, number: int, content_digest: bytes, status: str, code: Code | None) -> None:
    digest = key_digest(kind, draft.view.conversation_id, ident)
    outcome = " ".join(word for word in (status, code) if word)
    draft.put(Key(digest=digest, content_digest=content_digest, number=number, outcome=outcome))


def _interactions(draft: Draft, before: datetime, room: int) -> int:
    found = draft.view.retention.ended_interactions(before, room)
    for one in found:
        _forget_interaction(draft, one)
    return len(found)


def _capability_requests(draft: Draft, before: datetime, room: int) -> int:
    found = draft.view.retention.ended_capability_requests(before, room)
    for one in found:
        _keep_key(draft, "capability", one.request_id, one.number, one.shown_digest, one.status.value, one.error_code)
        draft.put(ForgottenCapabilityRequest(number=one.number))
    return len(found)


def _outbox_rows(draft: Draft, before: datetime, room: int) -> int:
    return _put_all(draft, [ForgottenOutboxRow(number=number) for number in draft.view.retention.done_outbox_rows(before, room)])


def _inbox_rows(draft: Draft, before: datetime, room: int) -> int:
    return _put_all(draft, [ForgottenInboxRow(number=number) for number in draft.view.retention.done_inbox_rows(before, room)])


def _messages(draft: Draft, before: datetime, room: int) -> int:
    return _put_all(draft, [ForgottenMessage(number=number) for number in draft.view.retention.messages(before, room)])


def _states(draft: Draft, before: datetime, room: int) -> int:
    return _put_all(draft, [ForgottenState(app_session_id=name) for name in draft.view.retention.states(before, room)])


_Row = ForgottenInboxRow | ForgottenMessage | ForgottenOutboxRow | ForgottenState


def _put_all(draft: Draft, records: Sequence[_Row]) -> int:
    for record in records:
        draft.put(record)
    return len(records)


def _surfaces(draft: Draft, before: datetime, room: int) -> int:
    found = draft.view.retention.surfaces(before, room)
    for number in found:
        draft.put(ForgottenPatches(number=number))
        draft.put(ForgottenSnapshot(number=number))
        draft.put(ForgottenSurface(number=number))
    return len(found)


def _artifacts(draft: Draft, before: datetime, room: int) -> int:
    found = draft.view.retention.artifacts(before, room)
    for artifact in found:
        draft.put(ForgottenArtifact(number=artifact.number))
    if found:
        draft.effect(DropBytes(sha256s=tuple(sorted({artifact.sha256 for artifact in found}))))
    return len(found)


_KINDS: Sequence[Callable[[Draft, datetime, int], int]] = (
    _calls,
    _interactions,
    _capability_requests,
    _outbox_rows,
    _inbox_rows,
    _messages,
    _artifacts,
    _surfaces,
    _states,
)


def outcome_said(call_id: str, outcome: str) -> JsonObject:
    """What is said of a call of which only its outcome is left: the payload of a tool.result."""
    status, _, code = outcome.partition(" ")
    said: JsonObject = {"call_id": call_id, "status": status, "report": {"hint": NOT_KEPT}}
    return said | ({"code": Code(code).value} if code else {})
