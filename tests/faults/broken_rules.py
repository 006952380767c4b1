"""The broken kernels: for each promise what is patched in memory so that it does not hold any more (broken_kernels.py judges them).

    broken()["16"]       patches of the kernel that writes two results of a call

Rule: a patch takes away one rule of the kernel, or makes it do the one thing that it must not; what is told by then is only what a real
kernel of that kind would tell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kernel import store
from kernel.agent_port import AgentPort
from kernel.core import commands, instances, interaction_forms, surfaces
from kernel.core import interactions as core_interactions
from kernel.core.capability_records import CapabilityRequest
from kernel.core.decision import AuditEntry, Decision, PumpOutbox, Rejected, SendToWorker
from kernel.core.machines import CallStatus, CapabilityStatus, InteractionStatus
from kernel.core.records import (
    AppSession,
    FocusStack,
    InboxRow,
    Instance,
    Interaction,
    Key,
    OutboxKind,
    OutboxRow,
    PublishedInventory,
    Source,
    TimelineMessage,
    ToolCall,
    decode_body,
    encode_body,
    key_digest,
)
from kernel.core.schema import Schema
from kernel.core.surface_effects import SendToView
from kernel.core.surface_records import Surface
from kernel.protocol.host_capabilities import CapabilityExecute
from kernel.store import Store
from kernel.store_view import StoreView
from kernel.turns import Turns
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol.interaction_messages import InteractionPresented
from tests.faults.breaking import REAL, Patch, and_, changed, instead, with_, without
from tests.model import kernel as model_kernel
from tests.trace import Framed

_SEQ = 10_000_000  # numbers of records that a broken kernel makes up


# --------------------------------------------------------------------------------- A, B: inbox and calls


def _effects_before_the_commit(turns: Turns, batch: Any) -> list[Any]:
    turns._store.begin()
    for turn in batch:
        outcome, decision, _ = turns._decide(turn)
        turns._release(outcome, decision)
    turns._store.commit()
    return []


def of_another(view: Any, origin: Any, command: Any) -> Any:
    """Whatever App asks for its messages gets those of another that has some."""
    for instance in view.current_instances():
        if instance.instance_id != origin.instance_id and view.inbox_rows(instance.instance_id, 0, 1):
            row = view.inbox_rows(instance.instance_id, 0, 1)[0]
            named = replace(command, message_id=row.message_id) if isinstance(command, m.InboxAcknowledge) else command
            return replace(origin, instance_id=instance.instance_id, app_scope=instance.app_scope, life=instance.life), named
    return origin, command


def _of_the_owner(view: Any, origin: Any, command: Any) -> Any:
    call = view.call_by_id(command.call_id)
    instance = view.instance(call.instance_id) if call is not None and call.instance_id else None
    return (replace(origin, instance_id=instance.instance_id, life=instance.life) if instance is not None else origin), command


def _of_the_life_of_now(view: Any, origin: Any, command: Any) -> Any:
    instance = view.instance(origin.instance_id)
    return (replace(origin, life=instance.life) if instance is not None else origin), command


def _progress_again() -> list[Patch]:
    kept: dict[int, OutboxRow] = {}

    def decide(view: Any, origin: Any, stamp: Any, command: Any) -> Decision:
        try:
            decision = REAL(view, origin, stamp, command)
        except Rejected:
            call = view.call_by_id(command.call_id) if isinstance(command, m.ToolProgress) else None
            row = kept.get(call.number) if call is not None else None
            if row is None:
                raise
            again = replace(row, number=stamp.first_number, message_id=f"again-{stamp.first_number}")
            return Decision(puts=(again,), audit=(AuditEntry(event="call.progress"),), numbers_used=1)
        kept.update({one.call_number: one for one in decision.puts if isinstance(one, OutboxRow) and one.kind is OutboxKind.PROGRESS})
        return decision

    return [(commands, "decide", decide)]


def _second_final(decision: Decision, view: Any, origin: Any, stamp: Any, command: Any) -> Decision:
    finals = [one for one in decision.puts if isinstance(one, OutboxRow) and one.kind is OutboxKind.FINAL]
    number = stamp.first_number + decision.numbers_used
    more = [replace(one, number=number, message_id=f"second-{number}") for one in finals[:1]]
    return and_(decision, *more)._replace(numbers_used=decision.numbers_used + len(more))


def _twice(decision: Decision, kind: type) -> Decision:
    sent = [one for one in decision.effects if isinstance(one, SendToWorker) and isinstance(one.message, kind)]
    return decision._replace(effects=(*decision.effects, *sent))


_MAY_DELIVER = (
    "AppMessageReceived", "DeliverCalls", "DeliverMessages", "RouteCall", "ToolInvoke", "inbox.acknowledge", "inbox.subscribe",
    "lifecycle.started", "tools.subscribe",
)  # fmt: skip
_OF_CALLS = ("tool.accept", "tool.complete", "tool.fail", "tool.cancel", "tool.progress", "tools.get")


def _without_guard(sql: str) -> list[Patch]:
    """The schema holds this promise a second time; a kernel that broke it would have made its tables without that."""
    real = Store.begin

    def begin(store: Store) -> None:
        real(store)
        store._db.run(sql)

    return [(Store, "begin", begin)]


def _taken_again(decision: Decision, view: Any, origin: Any, stamp: Any, command: Any) -> Decision:
    """What comes again is taken again."""
    if any(isinstance(one, Key) for one in decision.puts):
        return decision
    digest = key_digest("message", view.conversation_id, command.envelope.message_id)
    return and_(decision, Key(digest=digest, content_digest=command.envelope.digest, number=stamp.first_number))


# --------------------------------------------------------------------------------- C: questions


def _ask_by_another(view: Any, origin: Any, command: Any) -> Any:
    asked = view.interaction(command.interaction_id)
    owner = view.instance(asked.owner_instance_id) if asked is not None and asked.owner_instance_id else None
    if owner is None:
        return origin, command
    grants = origin.grants | {commands.name_of(command)}
    return replace(origin, instance_id=owner.instance_id, app_scope=owner.app_scope, life=owner.life, grants=grants), command


def _answer_again() -> list[Patch]:
    def decide(view: Any, origin: Any, stamp: Any, command: Any) -> Decision:
        try:
            return REAL(view, origin, stamp, command)
        except Rejected:
            asked = view.interaction(command.interaction_id) if commands.name_of(command) == "interaction.answer" else None
            if asked is None or asked.status is not InteractionStatus.SUBMITTED:
                raise
            changed = replace(
                asked, result_cbor=encode_body({"outcome": "answered", "answer": {"approved": False}}), answered_by_view="late"
            )
            return Decision(puts=(changed,), audit=(AuditEntry(event="interaction.submitted", number=asked.number),))

    return [(commands, "decide", decide)]


def _any_choice(kind: Any, request: Any, answer: Any) -> Any:
    return answer if kind.value == "choice" else _REAL_CHECK_ANSWER(kind, request, answer)


def _on_the_board(decision: Decision, view: Any, origin: Any, stamp: Any, command: Any) -> Decision:
    board = view.current_instance("board")
    asked = next((one for one in decision.puts if isinstance(one, Interaction)), None)
    if board is None or asked is None:
        return decision
    message = InteractionPresented(interaction_id=asked.interaction_id, kind=asked.kind.value, title="T", place="inline")
    return decision._replace(effects=(*decision.effects, SendToWorker(instance_id=board.instance_id, life=board.life, message=message)))


def _accepted_at_once(decision: Decision, view: Any, origin: Any, stamp: Any, command: Any) -> Decision:
    return without(decision, TimelineMessage)


def _moved_and_answered(decision: Decision, view: Any, origin: Any, stamp: Any, command: Any) -> Decision:
    return with_(decision, Interaction, lambda one: replace(one, request_cbor=encode_body({"title": "Another"})))


# --------------------------------------------------------------------------------- D, E, F: outbox, instances, isolation


def _skip_rows(port: Any, door: Any) -> None:
    for row in door.rows.take(256):
        if row.number % 2:
            port._put_row(door, row)


def _other_bytes(counter: list[int]) -> Callable[[Any, Any, Any], None]:
    def put_row(port: Any, door: Any, row: Any) -> None:
        counter[0] += 1
        body = {**decode_body(row.envelope_cbor), "created_at": f"2030-01-02T03:04:{counter[0] % 60:02}Z"}
        _REAL_PUT_ROW(port, door, replace(row, envelope_cbor=encode_body(body)))

    return put_row


def _made_up_row(port: Any, door: Any, row: Any) -> None:
    made_up = {**decode_body(row.envelope_cbor), "message_id": f"made-up-{row.number}"}
    _REAL_PUT_ROW(port, door, replace(row, message_id=made_up["message_id"], envelope_cbor=encode_body(made_up)))


def _by_its_receiver(view: Any, origin: Any, command: Any) -> Any:
    row = view.outbox_row(command.message_id)
    return (replace(origin, source=row.destination) if row is not None else origin), command


def _id_of_old(decision: Decision, view: Any, origin: Any, stamp: Any, command: Any) -> Decision:
    made = next((one for one in decision.audit if one.event == "instance.created"), None)
    return decision._replace(audit=(*decision.audit, *([made] if made else [])))


def _close_the_session(decision: Decision, view: Any, origin: Any, stamp: Any, command: Any) -> Decision:
    instance = view.instance(origin.instance_id)
    session = view.open_session(instance.app_scope) if instance is not None else None
    return and_(decision, replace(session, closed_at=stamp.now)) if isinstance(session, AppSession) else decision


def _crowded_context(real: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel of the model gives no welcome; a broken one that tells its worker who the person is does."""

    def come_up(kernel: Any, instance_id: str) -> Any:
        origin = real(kernel, instance_id)
        if origin is not None:
            context = {"app_scope": "a", "instance_id": "i", "conversation_id": "c", "app_version": "1", "state": "starting", "person": "p"}
            welcome = m.Welcome(wire=1, epoch="e1", context=context, source={})
            kernel.trace.add(Framed(instance_id=instance_id, app_scope=origin.app_scope, life=origin.life, message=welcome))
        return origin

    return come_up


# --------------------------------------------------------------------------------- G, H: surfaces, capabilities, inventory, audit


def _executed_unasked(decision: Decision, view: Any, origin: Any, stamp: Any, command: Any) -> Decision:
    asked = next((one for one in decision.puts if isinstance(one, CapabilityRequest) and one.status is CapabilityStatus.ASKED), None)
    if asked is None:
        return decision
    execute = CapabilityExecute(
        request_id=asked.request_id, capability=asked.capability, app_scope="notes", title="N", deadline_ms=1, arguments={}
    )
    shown = [SendToView(view_id=one.view_id, message=execute) for one in view.capabilities.views()]
    return decision._replace(effects=(*decision.effects, *shown))


def _older_revision(decision: Decision, view: Any, origin: Any, stamp: Any, command: Any) -> Decision:
    return with_(decision, PublishedInventory, lambda one: replace(one, number=0))


def _new_inventory(decision: Decision, view: Any, origin: Any, stamp: Any, command: Any) -> Decision:
    now = view.inventory
    fingerprint = encode_body(now.fingerprint())
    return and_(decision, PublishedInventory(number=now.number + 1, epoch=now.epoch, digest=now.digest, fingerprint_cbor=fingerprint))


def _any_mount(view: Any, origin: Any, surface_id: str, mount_epoch: int) -> Any:
    return surfaces._require_open(view, surface_id)


def _said(code: str) -> Callable[..., Any]:
    real = Turns._decide

    def decide(turns: Turns, turn: Any) -> Any:
        outcome, decision, seq = real(turns, turn)
        return (outcome._replace(code=code) if outcome.code is not None else outcome), decision, seq

    return decide


_REAL_CHECK_ANSWER = interaction_forms.check_answer
_REAL_PUT_ROW = AgentPort._put_row
_real_due_calls, _real_next_deadline = StoreView.due_calls, StoreView.next_deadline_ms
_FAR_MS = 30 * 3_600_000


def broken() -> dict[str, list[Patch]]:
    """Every broken kernel, by the promise that it breaks."""
    inbox_rows = StoreView.inbox_rows
    return {
        "01": [(Turns, "_commit", _effects_before_the_commit)],
        "02": [(StoreView, "inbox_rows", lambda view, *rest: list(inbox_rows(view, *rest))[::-1])],
        "03": changed("inbox.acknowledge", lambda decision, *_: without(decision, InboxRow)),
        "04": changed("AppMessageReceived", _taken_again),
        "05": instead(("inbox.list", "inbox.acknowledge"), of_another),
        "06": changed("ToolInvoke", lambda decision, *_: decision._replace(audit=())),
        "07": changed("InertMessage", lambda decision, *_: decision._replace(effects=(PumpOutbox(destination=Source.AGENT),))),
        "08": [(core_interactions, "MAX_OPEN_INTERACTIONS", 10_000)],
        "09": changed(_MAY_DELIVER, lambda decision, *_: _twice(decision, m.ToolCalled)),
        "10": changed(
            "outbox.acknowledge", lambda decision, *_: with_(decision, ToolCall, lambda one: replace(one, status=CallStatus.CANCELLED))
        ),
        "11": instead("ToolInvoke", lambda view, origin, command: (origin, replace(command, inventory_revision=view.inventory.revision))),
        "12": [(Schema, "check", lambda schema, value: None)],
        "13": changed("ToolInvoke", _started_anyway),
        "14": [(Schema, "check", lambda schema, value: None)],
        "15": changed("tool.complete", lambda decision, *_: without(decision, OutboxRow)),
        "16": [*changed(("tool.complete", "tool.fail"), _second_final), *_without_guard("DROP INDEX IF EXISTS outbox_row_final")],
        "17": instead(_OF_CALLS, _of_the_owner),
        "18": _progress_again(),
        "19": [
            (StoreView, "due_calls", lambda view, now, limit: _real_due_calls(view, now + _FAR_MS, limit)),
            (StoreView, "next_deadline_ms", lambda view: 0),
        ],
        "20": changed("ToolCancelAsked", _completed_for_the_agent),
        "21": instead((*_OF_CALLS, "inbox.acknowledge", "state.save", "surface.open"), _of_the_life_of_now),
        "22": _answer_again(),
        "23": changed("interaction.answer", lambda decision, *_: without(decision, ToolCall, OutboxRow)),
        "24": changed(
            "ui.request", lambda decision, *_: with_(decision, Interaction, lambda one: replace(one, owner_instance_id="another"))
        ),
        "25": instead(("ui.get", "ui.cancel"), _ask_by_another),
        "26": changed("PresentInteraction", _on_the_board),
        "27": changed("PresentInteraction", _accepted_at_once),
        "28": changed("interaction.move", _moved_and_answered),
        "29": [(interaction_forms, "check_answer", _any_choice)],
        "31": changed("interaction.move", _expired_by_a_move),
        "32": [(AgentPort, "_send_rows", _skip_rows)],
        "33": [(AgentPort, "_put_row", _other_bytes([0]))],
        "34": [(AgentPort, "_put_row", _made_up_row)],
        "35": instead("outbox.acknowledge", _by_its_receiver),
        "36": changed("Booted", lambda decision, *_: without(decision, Instance)),
        "37": changed(("focus.raise", "app.open"), lambda decision, *_: without(decision, FocusStack)),
        "38": changed(("app.open", "ToolInvoke", "RouteCall", "AppMessageReceived", "Booted"), _id_of_old),
        "39": changed("lifecycle.started", lambda decision, *_: decision._replace(audit=())),
        "40": changed("tool.complete", _close_the_session),
        "41": [(instances, "MAX_CRASHES_IN_WINDOW", 99)],
        "43": [(model_kernel.ModelKernel, "come_up", _crowded_context(model_kernel.ModelKernel.come_up))],
        "49": [(surfaces, "_require_mount", _any_mount)],
        "51": changed(
            ("surface.patch", "surface.update"),
            lambda decision, *_: with_(decision, Surface, lambda one: replace(one, version=one.version + 5)),
        ),
        "52": changed("capability.request", _executed_unasked),
        "53": changed(("app.disable", "app.enable"), _older_revision),
        "54": changed("tool.complete", _new_inventory),
        "55": [(store, "hash_row", lambda previous, fields: bytes(32))],
        "56": [(Store, "_admit_word", lambda store, word: None), *changed("state.save", _talking_audit)],
        "57": [(Turns, "_decide", _said("nonsense"))],
    }


def _started_anyway(decision: Decision, view: Any, origin: Any, stamp: Any, command: Any) -> Decision:
    is_refused = any(isinstance(one, ToolCall) and one.status is CallStatus.REJECTED for one in decision.puts)
    return and_(decision, FocusStack(instance_ids=view.focus().instance_ids)) if is_refused else decision


def _completed_for_the_agent(decision: Decision, view: Any, origin: Any, stamp: Any, command: Any) -> Decision:
    return with_(decision, ToolCall, lambda one: replace(one, status=CallStatus.SUBMITTED, result_cbor=encode_body({"ok": True})))


def _expired_by_a_move(decision: Decision, view: Any, origin: Any, stamp: Any, command: Any) -> Decision:
    result = encode_body({"outcome": "expired"})
    return with_(decision, Interaction, lambda one: replace(one, status=InteractionStatus.EXPIRED, result_cbor=result))


def _talking_audit(decision: Decision, view: Any, origin: Any, stamp: Any, command: Any) -> Decision:
    return decision._replace(audit=(*decision.audit, AuditEntry(event="the whole state that was saved")))
