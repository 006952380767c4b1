"""How long bodies are kept (SPEC 16).

Rules:
1. What is waited for is never given up, whatever its age: open calls, rows without an acknowledgement, parked messages.
2. A used id is kept for ever: the key of a call gets its outcome when its row goes, so that the same call again is answered and never
   run again.
3. A sweep is bounded: at most SWEPT_A_TURN rows, oldest first; the kernel says it again while there is more.
"""

from __future__ import annotations

from kernel.core.decision import Decision, Draft, Origin, Stamp, View
from kernel.core.events import SweepBodies
from kernel.core.limits import SWEPT_A_TURN
from kernel.core.records import Key, ToolCall, key_digest
from kernel.core.retention_records import ForgottenCall, ForgottenInboxRow, ForgottenMessage, ForgottenOutboxRow
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject

NOT_KEPT = "the result is not kept any more"


def sweep(view: View, origin: Origin, stamp: Stamp, command: SweepBodies) -> Decision:
    """Give up what is older than it has to be kept. Value: {swept: rows}."""
    draft = Draft(view, origin, stamp)
    old, before, room = view.retention, command.before, SWEPT_A_TURN
    for call in old.ended_calls(before, room):
        draft.put(_key_with_outcome(view, call))
        draft.put(ForgottenCall(number=call.number))
        room -= 1
    for number in old.done_outbox_rows(before, room):
        draft.put(ForgottenOutboxRow(number=number))
        room -= 1
    for number in old.done_inbox_rows(before, room):
        draft.put(ForgottenInboxRow(number=number))
        room -= 1
    for number in old.messages(before, room):
        draft.put(ForgottenMessage(number=number))
        room -= 1
    if room < SWEPT_A_TURN:
        draft.audit("retention.swept", count=SWEPT_A_TURN - room)
    return draft.decision({"swept": SWEPT_A_TURN - room})


def _key_with_outcome(view: View, call: ToolCall) -> Key:
    digest = key_digest("call", view.conversation_id, call.call_id)
    outcome = " ".join(word for word in (call.status.value, call.error_code) if word)
    return Key(digest=digest, content_digest=call.content_digest, number=call.number, outcome=outcome)


def outcome_said(call_id: str, outcome: str) -> JsonObject:
    """What is said of a call of which only its outcome is left: the payload of a tool.result."""
    status, _, code = outcome.partition(" ")
    said: JsonObject = {"call_id": call_id, "status": status, "report": {"hint": NOT_KEPT}}
    return said | ({"code": Code(code).value} if code else {})
