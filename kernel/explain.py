"""Why a call, an instance or an interaction is as it is, in plain words that cite the audit (the person's `explain`).

Rules:
1. Every sentence stands on the record or on audit rows, and says on which: `seqs`.
2. Nothing is guessed: an event without words here is told by its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernel.core.decision import Detail, Rejected
from kernel.core.records import ToolCall
from kernel.projection import call_summary, instance_summary
from kernel.store_view import StoreView
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject

AUDIT_ROWS = 100

# What an audit event means to a person.
EVENT_WORDS: Mapping[str, str] = {
    "call.accepted": "the App began to work on it",
    "call.cancel_acknowledged": "the App saw the request to cancel and got more time",
    "call.cancel_asked": "somebody asked to cancel it and the App was told",
    "call.cancelled": "it ended as cancelled",
    "call.expired": "its time ran out",
    "call.failed": "it ended as failed",
    "call.progressed": "the App reported progress",
    "call.received": "the kernel accepted it and made it durable",
    "call.rejected": "it was refused before anything was done for it",
    "call.repeated": "the same call came again and its stored result was sent again",
    "call.routed": "an instance of the App was chosen for it",
    "call.submitted": "a checked result was fixed and is delivered until it is acknowledged",
    "focus.lowered": "the App asked to go to the background",
    "focus.raised": "the person brought the App to the front",
    "inbox.dropped": "the person gave the message up",
    "inbox.parked": "a message was set aside for the person to decide",
    "inbox.retried": "the person sent a parked message again",
    "instance.closing": "a close began",
    "instance.crashed": "its process died; it was started again",
    "instance.created": "it was made",
    "instance.failed": "it failed for good",
    "instance.restarted": "its process was replaced without a crash of its own",
    "instance.revived": "it got a new process",
    "instance.started": "the App said that it is ready",
    "instance.stopped": "it was closed",
    "instance.suspended": "it was suspended to save memory; it comes back when it is wanted",
    "outbox.acknowledged": "its receiver acknowledged it",
}

# What a code means to a person, where the audit row has one.
CODE_WORDS: Mapping[str, str] = {
    Code.APP_CRASHED: "the App died too often while working on it",
    Code.APP_DISABLED: "the person switched the App or tool off",
    Code.APP_INSTANCE_NOT_FOUND: "no instance of the App was running",
    Code.APP_SCOPE_MISMATCH: "the named App is not the tool's own",
    Code.CALL_ID_CONFLICT: "its call_id was used before for another content",
    Code.CANCELLED: "it was cancelled",
    Code.CAPABILITY_DENIED: "the asker did not hold the right to ask",
    Code.EXPIRED: "its deadline passed",
    Code.INTERRUPTED: "it was half done when its worker died and may not run twice",
    Code.INVENTORY_REVISION_MISMATCH: "the caller used an older list of tools",
    Code.LIFECYCLE_DENIED: "policy does not allow it now",
    Code.LIMIT_EXCEEDED: "a bound was reached",
    Code.PROTOCOL_VIOLATION: "the worker broke the wire or its seal",
    Code.SURFACE_UNAVAILABLE: "no view can show what the App draws",
    Code.TOOL_FAILED: "the App reported failure",
    Code.TOOL_INPUT_INVALID: "its input does not fit the tool's schema",
    Code.TOOL_NOT_ADVERTISED: "the list of tools has no such tool",
}

_SPEAKER_WORDS = {"agent": "the Agent", "kernel": "the kernel", "view": "the person", "worker": "the App"}


@dataclass(frozen=True, slots=True)
class _Found:
    """What an id stands for."""

    kind: str
    state: str
    summary: JsonObject
    audit: Sequence[Mapping[str, Any]]
    opening: str


def explain(view: StoreView, what: str) -> JsonObject:
    """Explain one thing by its id or local number. Raises: Rejected(call_not_found)."""
    found = _find(view, what)
    sentences: list[JsonObject] = [{"text": found.opening, "seqs": []}]
    sentences.extend({"text": _sentence(row), "seqs": _seqs(row)} for row in found.audit)
    return {
        "what": what,
        "kind": found.kind,
        "state": found.state,
        "summary": found.summary,
        "sentences": sentences,
        "audit": list(found.audit),
    }


def _find(view: StoreView, what: str) -> _Found:
    call = view.call_by_id(what) or (view.call(int(what)) if what.isdecimal() and len(what) < 16 else None)
    if call is not None:
        return _found_call(view, call)
    instance = view.instance(what)
    if instance is not None:
        audit = view.upkeep.audit_about(number=None, instance_id=what, limit=AUDIT_ROWS)
        opening = f"This is an instance of {instance.app_scope}; it is {instance.state.value}."
        return _Found("instance", instance.state.value, instance_summary(view, instance), audit, opening)
    if what.isdecimal() and len(what) < 16:
        audit = view.upkeep.audit_about(number=int(what), instance_id=None, limit=AUDIT_ROWS)
        if audit:
            return _Found("row", "", {"number": int(what)}, audit, "The audit names this number.")
    raise Rejected(Code.CALL_NOT_FOUND, Detail(pointer="/what", expected="the id or local number of something the kernel knows"))


def _found_call(view: StoreView, call: ToolCall) -> _Found:
    audit = view.upkeep.audit_about(number=call.number, instance_id=None, limit=AUDIT_ROWS)
    final = view.final_row(call.number)
    rows = list(audit)
    if final is not None:
        rows.extend(view.upkeep.audit_about(number=final.number, instance_id=None, limit=AUDIT_ROWS))
    reason = CODE_WORDS.get(call.error_code or "", "")
    why = f", because {reason}" if reason else ""
    opening = f"This is a call of {call.tool_id} from the {call.source.value}; it is {call.status.value}{why}."
    return _Found("call", call.status.value, call_summary(view, call), rows, opening)


def _sentence(row: Mapping[str, Any]) -> str:
    words = EVENT_WORDS.get(row["event"], row["event"].replace(".", ": ", 1).replace("_", " "))
    code = CODE_WORDS.get(row.get("code", ""), row.get("code", ""))
    because = f" ({code})" if code else ""
    return f"{row['at']}: {words}{because}; {_SPEAKER_WORDS[row['speaker']]} set this off by {row['command']}."


def _seqs(row: Mapping[str, Any]) -> list[int]:
    return [row["seq"], *([row["cause"]] if "cause" in row else [])]
