"""Why a call, a question, an instance or anything else with an id is as it is, in words that cite the audit (the person's `explain`).

Rules:
1. Every sentence stands on the record or on audit rows, and says on which: `seqs`.
2. Nothing is guessed: what has no words (kernel/explain_words.py) is told by its name.
3. `kind`, `state`, `summary` and `audit` hold all that the sentences say, so that a host can say it in another language.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernel.core.decision import Detail, Rejected
from kernel.core.records import ToolCall, key_digest
from kernel.explain_words import CODE_WORDS, EVENT_WORDS
from kernel.projection import call_summary, instance_summary, session_summary
from kernel.store_view import StoreView
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject

AUDIT_ROWS = 100
_OF_AUDIT = "audit:"  # before a seq: a refusal has no other name
_MAX_DIGITS = 15

_SPEAKER_WORDS = {"agent": "the Agent", "kernel": "the kernel", "view": "the person", "worker": "the App"}

_NAMES = {"call": "call", "interaction": "question to the person", "capability": "request for a capability"}

AuditRow = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Found:
    """What an id stands for."""

    kind: str
    state: str
    summary: JsonObject
    audit: Sequence[AuditRow]
    opening: str


def explain(view: StoreView, what: str) -> JsonObject:
    """Explain one thing by its id, its local number, or `audit:<seq>`. Raises: Rejected(call_not_found)."""
    found = next((found for find in _FINDERS if (found := find(view, what)) is not None), None)
    if found is None:
        expected = "the id or local number of something the kernel knows, or audit:<seq>"
        raise Rejected(Code.CALL_NOT_FOUND, Detail(pointer="/what", expected=expected))
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


def _number_of(what: str) -> int | None:
    return int(what) if what.isascii() and what.isdecimal() and len(what) <= _MAX_DIGITS else None


def _call(view: StoreView, what: str) -> _Found | None:
    number = _number_of(what)
    call = view.call_by_id(what) or (view.call(number) if number is not None else None)
    if call is None:
        return None
    opening = f"This is a call of {call.tool_id} from the {call.source.value}; it is {call.status.value}{_because(call.error_code)}."
    return _Found("call", call.status.value, call_summary(view, call), _audit_of_call(view, call), opening)


def _audit_of_call(view: StoreView, call: ToolCall) -> Sequence[AuditRow]:
    """Of the call, of the row that carries its end, and of the question it may be: in the order of the chain."""
    final, interaction = view.final_row(call.number), view.interaction_of_call(call.number)
    numbers = [call.number, *([final.number] if final else []), *([interaction.number] if interaction else [])]
    rows = [row for number in numbers for row in _about(view, number)]
    return sorted(rows, key=lambda row: int(row["seq"]))[-AUDIT_ROWS:]


def _interaction(view: StoreView, what: str) -> _Found | None:
    interaction = view.interaction(what)
    if interaction is None:
        return None
    state = interaction.status.value
    opening = f"This is a {interaction.kind.value} of {interaction.owner_app_scope}; it is {state}{_because(interaction.error_code)}."
    summary = {
        "number": interaction.number,
        "interaction_id": what,
        "kind": interaction.kind.value,
        "app_scope": interaction.owner_app_scope,
        "status": state,
        **_code(interaction.error_code),
    }
    return _Found("interaction", state, summary, _about(view, interaction.number), opening)


def _instance(view: StoreView, what: str) -> _Found | None:
    instance = view.instance(what)
    if instance is None:
        return None
    state = instance.state.value
    opening = f"This is an instance of {instance.app_scope}; it is {state}."
    audit = view.upkeep.audit_about(number=None, instance_id=what, limit=AUDIT_ROWS)
    return _Found("instance", state, instance_summary(view, instance), audit, opening)


def _session(view: StoreView, what: str) -> _Found | None:
    session = view.sessions.by_id(what)
    if session is None:
        return None
    state = "open" if session.closed_at is None else "closed"
    opening = f"This is a session of {session.app_scope}; it is {state}."
    return _Found("session", state, session_summary(view, session), _about(view, session.number), opening)


def _capability(view: StoreView, what: str) -> _Found | None:
    request = view.capabilities.request(what)
    if request is None:
        return None
    state = request.status.value
    opening = f"This is a request of {request.app_scope} for {request.capability}; it is {state}{_because(request.error_code)}."
    summary = {
        "number": request.number,
        "request_id": what,
        "capability": request.capability,
        "app_scope": request.app_scope,
        "status": state,
        **_code(request.error_code),
    }
    return _Found("capability", state, summary, _about(view, request.number), opening)


def _forgotten(view: StoreView, what: str) -> _Found | None:
    """Something whose time is over: its key says what became of it (SPEC 16)."""
    for kind in ("call", "interaction", "capability"):
        key = view.key(key_digest(kind, view.conversation_id, what))
        if key is not None and key.outcome is not None:
            state, _, code = key.outcome.partition(" ")
            opening = f"This was a {_NAMES[kind]}; it was {state}{_because(Code(code) if code else None)}. Its body is not kept any more."
            summary = {"number": key.number, "status": state, "is_kept": False, **_code(Code(code) if code else None)}
            return _Found(kind, state, summary, _about(view, key.number), opening)
    return None


def _audit_row(view: StoreView, what: str) -> _Found | None:
    seq = _number_of(what.removeprefix(_OF_AUDIT)) if what.startswith(_OF_AUDIT) else None
    row = view.upkeep.audit_row(seq) if seq is not None else None
    if row is None:
        return None
    cause = view.upkeep.audit_row(row["cause"]) if "cause" in row else None
    return _Found("audit", "", {"seq": row["seq"]}, [cause, row] if cause else [row], f"This is row {row['seq']} of the audit.")


def _row(view: StoreView, what: str) -> _Found | None:
    number = _number_of(what)
    audit = _about(view, number) if number is not None else ()
    return _Found("row", "", {"number": number}, audit, "The audit names this number.") if audit else None


_FINDERS: Sequence[Callable[[StoreView, str], _Found | None]] = (
    _call,
    _interaction,
    _instance,
    _session,
    _capability,
    _forgotten,
    _audit_row,
    _row,
)


def _about(view: StoreView, number: int) -> Sequence[AuditRow]:
    return view.upkeep.audit_about(number=number, instance_id=None, limit=AUDIT_ROWS)


def _code(code: Code | None) -> JsonObject:
    return {"error_code": code} if code is not None else {}


def _because(code: Code | None) -> str:
    return f", because {CODE_WORDS.get(code, code)}" if code is not None else ""


def _sentence(row: AuditRow) -> str:
    words = EVENT_WORDS.get(row["event"], row["event"])
    because = f" ({CODE_WORDS.get(row['code'], row['code'])})" if "code" in row else ""
    times = f" {row['count']} times" if row["event"] == "command.refused" and "count" in row else ""
    return f"{row['at']}: {words}{times}{because}; {_SPEAKER_WORDS[row['speaker']]} set this off by {row['command']}."


def _seqs(row: AuditRow) -> list[int]:
    return [row["seq"], *([row["cause"]] if "cause" in row else [])]
