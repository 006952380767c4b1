"""More promises that a trace shows: questions to the person, surfaces, capabilities, isolation. Rules: invariants_of_traces.py."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from kernel.core.capability_records import CapabilityRequest
from kernel.core.decision import Speaker, StartWorker
from kernel.core.machines import CALL_OPEN, INTERACTION_OPEN, CapabilityStatus, InteractionStatus
from kernel.core.records import FocusStack, Interaction, Surface, ToolCall, decode_body
from kernel.protocol.host_capabilities import CapabilityExecute
from kernel.protocol.host_interactions import InteractionAnswer, InteractionMove
from kernel.protocol.host_surfaces import SurfaceEvent, SurfacePatch
from lineup_sdk.protocol import interaction_messages as i
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol import surface_messages as s
from tests.trace import Answered, Decided, Framed, Shown, Trace

_CONTEXT = {"app_scope", "instance_id", "conversation_id", "app_version", "state"}
_KERNEL_ID = re.compile(r"[a-z]+_e[0-9]+_[0-9a-f]{34}")


def check_inv_22(trace: Trace) -> list[str]:
    """An interaction gets its outcome once; after that only the acknowledgement of what was submitted."""
    found: list[str] = []
    for decided, known in trace.known_before(Interaction, "interaction_id"):
        for new in decided.puts_of(Interaction):
            old = known.get(new.interaction_id)
            if old is None or old.status in INTERACTION_OPEN:
                continue
            is_taken = (old.status, new.status) == (InteractionStatus.SUBMITTED, InteractionStatus.COMPLETED)
            if not is_taken or (old.result_cbor, old.answered_by_view) != (new.result_cbor, new.answered_by_view):
                found.append(f"INV-22: {decided.name} changed the outcome of interaction {new.number}")
    return found


def check_inv_23(trace: Trace) -> list[str]:
    """The end of an interactive call, of its interaction and its final row are one decision."""
    found: list[str] = []
    for decided, calls in trace.known_before(ToolCall, "number"):
        for one in decided.puts_of(Interaction):
            call = calls.get(one.call_number)
            if one.call_number is None or one.status in {*INTERACTION_OPEN, InteractionStatus.COMPLETED}:
                continue
            ended = [put for put in decided.puts_of(ToolCall) if put.number == one.call_number and put.status not in CALL_OPEN]
            if not ended and (call is None or call.status in CALL_OPEN):
                found.append(f"INV-23: interaction {one.number} ended without its call")
    return found


def check_inv_24(trace: Trace) -> list[str]:
    """The owner is who spoke on the channel, whatever a request says."""
    found: list[str] = []
    for decided in trace.decided():
        for one in decided.puts_of(Interaction):
            if isinstance(decided.command, i.UiRequest) and one.owner_instance_id != decided.origin.instance_id:
                found.append("INV-24: a question has another owner than its asker")
            if decided.name == "RouteCall" and one.owner_instance_id is not None:
                found.append("INV-24: the Agent's question has an App for owner")
    return found


def check_inv_25(trace: Trace) -> list[str]:
    """An App reads and takes back its own questions only; answers come from views only."""
    found: list[str] = []
    for decided, known in trace.known_before(Interaction, "interaction_id"):
        command, did = decided.command, decided.decision.puts or decided.decision.value
        if isinstance(command, i.UiCancel | i.UiGet) and did:
            one = known.get(command.interaction_id)
            if one is None or one.owner_instance_id != decided.origin.instance_id:
                found.append(f"INV-25: {decided.name} reached a foreign question")
        if isinstance(command, InteractionAnswer) and did and decided.origin.speaker is not Speaker.VIEW:
            found.append("INV-25: an answer came from elsewhere")
    return found


def check_inv_26(trace: Trace) -> list[str]:
    """An interactive call is on no business worker's channel, starts nothing and moves no focus."""
    found: list[str] = []
    asked: set[str] = set()
    for event in trace.events:
        if isinstance(event, Decided):
            opened = [
                one for one in event.puts_of(Interaction) if one.owner_instance_id is None and one.status is InteractionStatus.PENDING
            ]
            asked |= {one.interaction_id for one in opened}
            asked |= {call.call_id for call in event.puts_of(ToolCall) if call.app_scope == "interaction"}
            did = [one for one in event.decision.effects if isinstance(one, StartWorker)] + event.puts_of(FocusStack)
            if (event.name in {"PresentInteraction", "NoticePresented"} and did) or (opened and did):
                found.append("INV-26: a question started something or moved the focus")
        elif isinstance(event, Framed) and event.app_scope != "chat" and _names_in(event) & asked:
            found.append("INV-26: a question is on a business worker's channel")
    return found


def _names_in(event: Framed) -> set[str | None]:
    return {getattr(event.message, "call_id", None), getattr(event.message, "interaction_id", None)}


def check_inv_27(trace: Trace) -> list[str]:
    """A notice is accepted in a later decision than the one that put its card."""
    found: list[str] = []
    for decided, known in trace.known_before(Interaction, "interaction_id"):
        for new in decided.puts_of(Interaction):
            old = known.get(new.interaction_id)
            is_accepted = new.kind.value == "notice" and new.status is InteractionStatus.SUBMITTED
            if is_accepted and (old is None or old.status is not InteractionStatus.PRESENTED):
                found.append("INV-27: a notice was accepted before its card was durable")
    return found


def check_inv_28(trace: Trace) -> list[str]:
    """To move a question changes where it is shown and nothing else of it."""
    found: list[str] = []
    for decided, known in trace.known_before(Interaction, "interaction_id"):
        if isinstance(decided.command, InteractionMove):
            for new in decided.puts_of(Interaction):
                old = known[new.interaction_id]
                moved = replace(old, place=new.place, updated_at=new.updated_at, deadline=new.deadline)  # a boot may have moved that
                if moved != new or len(decided.decision.puts) > 1:
                    found.append("INV-28: a move changed more than the place")
    return found


def check_inv_29(trace: Trace) -> list[str]:
    """Every answer that counted fits its question."""
    found: list[str] = []
    for decided in trace.decided():
        for one in decided.puts_of(Interaction):
            if isinstance(decided.command, InteractionAnswer) and one.status is InteractionStatus.SUBMITTED:
                answer = decode_body(one.result_cbor)["answer"]
                if not _fits(one.kind.value, decode_body(one.request_cbor), answer):
                    found.append(f"INV-29: the answer of interaction {one.number} does not fit")
    return found


def _fits(kind: str, request: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    if answer == {"declined": True}:
        return kind in {"choice", "input"}
    match kind:
        case "choice":
            offered, chosen = [action["id"] for action in request["actions"]], answer["action_ids"]
            in_order = sorted(set(chosen) & set(offered), key=offered.index) == chosen
            return in_order and 1 <= len(chosen) <= (len(offered) if request["mode"] == "multi-choice" else 1)
        case "confirm":
            return answer in ({"approved": True}, {"approved": False}) and type(answer["approved"]) is bool
        case "input":
            asked = {field["id"]: field for field in request["fields"]}
            given = {value["id"]: value for value in answer["fields"]}
            required = {name for name, field in asked.items() if field.get("required")}
            return set(given) <= set(asked) and required <= set(given)
    return False


def check_inv_31(trace: Trace) -> list[str]:
    """A question expires by its own time only, and not before."""
    found: list[str] = []
    for decided, known in trace.known_before(Interaction, "interaction_id"):
        for new in decided.puts_of(Interaction):
            old = known.get(new.interaction_id)
            if new.status is InteractionStatus.EXPIRED and old is not None and old.deadline is not None:
                is_here = old.deadline.boot_id == decided.stamp.boot_id
                if is_here and old.deadline.at_ms > decided.stamp.boottime_ms:
                    found.append(f"INV-31: interaction {new.number} expired too early")
    return found


def check_inv_43(trace: Trace) -> list[str]:
    """What a worker is told of itself is its state and nothing more; nothing it is sent names another instance."""
    found: list[str] = []
    for event in trace.framed():
        if isinstance(event.message, m.ContextChanged) and {field.name for field in fields(event.message)} != {"state"}:
            found.append("INV-43: a context says more than it may")
        if isinstance(event.message, m.Welcome) and set(event.message.context) - {"mode"} != _CONTEXT:
            found.append("INV-43: a welcome says more than it may")
    return found


def seen_by(trace: Trace, app_scope: str) -> list[str]:
    """What an App's channels show, answers too, with the kernel's ids replaced by the order in which they first came."""
    names: dict[str, str] = {}

    def plain(found: re.Match[str]) -> str:
        return names.setdefault(found.group(), f"<{len(names)}>")

    seen: list[str] = []
    for event in trace.events:
        if isinstance(event, Framed) and event.app_scope == app_scope:
            seen.append(f"{event.life} {event.message}")
        elif isinstance(event, Answered) and event.outcome.turn.origin.app_scope == app_scope:
            answer = event.outcome
            seen.append(f"{answer.turn.command} {answer.accepted} {answer.code} {answer.value} {answer.detail}")
    return [_KERNEL_ID.sub(plain, one) for one in seen]


def check_inv_45(with_neighbour: Trace, alone: Trace, app_scope: str) -> list[str]:
    """An App that did the same saw the same, with another App beside it and without."""
    one, other = seen_by(with_neighbour, app_scope), seen_by(alone, app_scope)
    return [] if one == other else [f"INV-45: {app_scope} can tell that it has a neighbour"]


def check_inv_49(trace: Trace) -> list[str]:
    """The kernel's half: only the present mount, by its view and epoch, changes a surface or has an event stored."""
    found: list[str] = []
    for decided, surfaces in trace.known_before(Surface, "surface_id"):
        command = decided.command
        if isinstance(command, SurfaceEvent | SurfacePatch) and decided.decision.puts:
            now = surfaces.get(command.surface_id)
            if now is None or (now.mounted_view_id, now.mount_epoch) != (decided.origin.view_id, command.mount_epoch):
                found.append(f"INV-49: {decided.name} of a stale mount counted")
    return found


def check_inv_51(trace: Trace) -> list[str]:
    """A version is told only after it is durable; versions rise by one; a change was made on the version it changes."""
    found: list[str] = []
    newest: dict[str, int] = {}
    for event in trace.since_restore().events:
        if isinstance(event, Decided):
            for surface in event.puts_of(Surface):
                before = newest.get(surface.app_session_id, surface.version)
                if surface.version not in {before, before + 1}:
                    found.append("INV-51: a surface skipped a version")
                newest[surface.app_session_id] = surface.version
                is_change = isinstance(event.command, s.SurfaceUpdate | SurfacePatch) and surface.version == before + 1
                if is_change and event.command.base_version != before:
                    found.append("INV-51: a change of another version counted")
        elif (
            isinstance(event, Framed)
            and isinstance(event.message, s.SurfaceChanged)
            and event.message.version > max(newest.values(), default=0)
        ):
            found.append("INV-51: a version was told before it was durable")
    return found


def check_inv_52(trace: Trace) -> list[str]:
    """A host acts only on a durable grant, for its one view, once; who was refused has no action at all."""
    found: list[str] = []
    granted: dict[str, str | None] = {}
    executed: set[str] = set()
    for event in trace.events:
        if isinstance(event, Decided):
            for request in event.puts_of(CapabilityRequest):
                if request.status is CapabilityStatus.GRANTED:
                    granted[request.request_id] = request.provider_view_id
        elif isinstance(event, Shown) and isinstance(event.message, CapabilityExecute):
            name = event.message.request_id
            if granted.get(name) != event.view_id:
                found.append("INV-52: a host was asked without a grant that names it")
            if name in executed:
                found.append("INV-52: a grant was used twice")
            executed.add(name)
    return found
