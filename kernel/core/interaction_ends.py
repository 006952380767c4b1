"""How an interaction ends, whoever ends it: one place writes the outcome (SPEC 7.3).

Rules:
1. The first ending, from pending or presented, wins. A later one is refused by its decider and changes nothing.
2. The Agent's interaction ends with its call, in the decision that writes the call's outcome and its one final row: `follow_call` is
   called by calls.finish and by nobody else. An App's own interaction ends in interactions.end.
3. A result has one shape for all kinds: {outcome, answer?}. Only what was submitted has an answer.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernel.core import machines
from kernel.core.decision import Draft
from kernel.core.machines import INTERACTION_OPEN, CallEvent, InteractionEvent, InteractionStatus
from kernel.core.records import Interaction, InteractionKind, ToolCall, encode_body, replace
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject

SCOPE = "interaction"  # of the kernel's own interactive tools

_OUTCOMES: Mapping[InteractionEvent, str] = {
    InteractionEvent.CANCEL: "cancelled",
    InteractionEvent.EXPIRE: "expired",
    InteractionEvent.FAIL: "failed",
    InteractionEvent.SUBMIT: "answered",
}
_EVENT_OF_CALL: Mapping[CallEvent, InteractionEvent] = {
    CallEvent.CANCEL: InteractionEvent.CANCEL,
    CallEvent.EXPIRE: InteractionEvent.EXPIRE,
    CallEvent.FAIL: InteractionEvent.FAIL,
    CallEvent.SUBMIT: InteractionEvent.SUBMIT,
}


def result_of(kind: InteractionKind, event: InteractionEvent, answer: JsonObject | None = None) -> JsonObject:
    """What the asker reads."""
    if event is InteractionEvent.SUBMIT and kind is InteractionKind.NOTICE:
        return {"outcome": "accepted"}  # shown, not read
    return {"outcome": _OUTCOMES[event]} | ({"answer": answer} if answer is not None else {})


def write(draft: Draft, interaction: Interaction, event: InteractionEvent, result: JsonObject, code: Code | None) -> None:
    """Write the outcome and its audit row. Raises: machines.NoSuchTransition when it has one already."""
    ended = replace(
        interaction,
        status=machines.step(machines.INTERACTION, interaction.status, event),
        deadline=None,
        result_cbor=encode_body(result),
        answered_by_view=(draft.origin.view_id or None) if event is InteractionEvent.SUBMIT else None,
        error_code=code,
        updated_at=draft.stamp.now,
    )
    draft.put(ended)
    draft.audit(f"interaction.{ended.status.value}", number=ended.number, instance_id=ended.owner_instance_id, code=code)


def follow_call(draft: Draft, call: ToolCall, event: CallEvent, code: Code | None, result: JsonObject | None) -> JsonObject | None:
    """End the interaction of an interactive call with it; what the Agent reads. One that was never opened needs no ending."""
    ending = _EVENT_OF_CALL.get(event)
    if ending is None:  # refused before there was anything to ask
        return result
    said = result if result is not None else {"outcome": _OUTCOMES[ending]}
    found = draft.view.interaction_of_call(call.number)
    interaction = draft.interaction(found.interaction_id) if found is not None else None
    if interaction is not None and interaction.status in INTERACTION_OPEN:
        write(draft, interaction, ending, said, code)
    return said


def acknowledge(draft: Draft, interaction: Interaction) -> None:
    """The asker has the result: what was submitted is completed."""
    if interaction.status is InteractionStatus.SUBMITTED:
        status = machines.step(machines.INTERACTION, interaction.status, InteractionEvent.ACKNOWLEDGE)
        draft.put(replace(interaction, status=status, updated_at=draft.stamp.now))
