"""Questions to the person: one outcome whoever comes first, whoever asks, wherever they are shown (SPEC 7)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from kernel.core.events import Death, NoticePresented, PresentInteraction, RouteCall, WorkerExited
from kernel.core.machines import CallStatus, InstanceState, InteractionStatus
from kernel.core.records import InboxRow, Instance, Interaction, OutboxKind, OutboxRow, Place, TimelineMessage, decode_body
from kernel.protocol import host as h
from kernel.protocol.agent import (
    INTERACTION_ANSWER,
    INTERACTION_CARD,
    INTERACTION_DISMISS,
    InteractionDismissAsked,
    ToolCancelAsked,
    ToolInvoke,
)
from kernel.protocol.host_interactions import InteractionAnswer, InteractionMove, PolicySet
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.interaction_messages import InteractionPresented
from lineup_sdk.protocol.messages import JsonObject
from tests.core.dict_view import MANIFESTS, manifest_of
from tests.core.stories import interaction_of, world_of
from tests.core.world import AGENT, DEMO, KERNEL, PERSON, Outcome, World, envelope

NOTICE = {"title": "Done", "message": "The report is there."}
CHOICE = {
    "title": "Colours",
    "prompt": "Which ones?",
    "mode": "multi-choice",
    "actions": [{"id": "red", "label": "Red"}, {"id": "blue", "label": "Blue"}, {"id": "green", "label": "Green"}],
}
CONFIRM = {"title": "Send?", "prompt": "Send the report.", "approve_label": "Send it"}
INPUT = {
    "title": "Who?",
    "prompt": "Say who you are.",
    "fields": [
        {"id": "name", "label": "Name", "type": "text", "required": True, "max_length": 10},
        {"id": "about", "label": "About", "type": "textarea", "min_length": 2},
        {"id": "age", "label": "Age", "type": "number", "minimum": 0, "maximum": 150},
    ],
}
ANSWERS: dict[str, tuple[JsonObject, JsonObject]] = {
    "choice": (CHOICE, {"action_ids": ["blue"]}),
    "confirm": (CONFIRM, {"approved": True}),
    "input": (INPUT, {"fields": {"name": "Ada", "age": 36}}),
}
DAY_MS = 24 * 3600 * 1000


def asking_world(kind: str = "choice", **more: Any) -> World:
    """A world in which the Agent's question c1 is presented."""
    world = world_of({"instances": [{"app": "board"}, {"app": "asker"}]})
    world.say(PERSON, PolicySet(name="standard-interaction:asker", allowed=True))
    assert world.invoke("c1", f"interaction.{kind}", ANSWERS[kind][0], **more).code is None
    return world


def answer(world: World, given: JsonObject | None = None, *, name: str = "c1", view_id: str = "view-1-console") -> Outcome:
    interaction = interaction_of(world, name)
    said = ANSWERS[interaction.kind.value][1] if given is None else given
    message = InteractionAnswer(interaction_id=interaction.interaction_id, answer=said, shown_digest=interaction.shown_digest.hex())
    return world.say(replace(PERSON, view_id=view_id), message)


def dismiss(world: World, call_id: str = "c1", *, by: Any = AGENT) -> Outcome:
    outer = envelope(f"dismiss_{world.turns}", INTERACTION_DISMISS)
    return world.say(by, InteractionDismissAsked(envelope=outer, interaction_id=None, call_id=call_id))


def finals(world: World) -> list[OutboxRow]:
    return [row for row in world.rows(OutboxRow) if row.kind is OutboxKind.FINAL]


def said_to_agent(world: World) -> JsonObject:
    payload: JsonObject = decode_body(finals(world)[-1].envelope_cbor)["payload"]
    return payload


# ------------------------------------------------------------------------------------ one outcome


def expire(world: World) -> Outcome:
    return world.pass_time()


def fail(world: World) -> Outcome:
    return world.say(PERSON, h.AppDisable(name="interaction.choice"))


Ending = Callable[[World], Outcome]
OUTCOMES: dict[Ending, tuple[InteractionStatus, CallStatus, Code | None, str]] = {
    answer: (InteractionStatus.SUBMITTED, CallStatus.SUBMITTED, None, "answered"),
    dismiss: (InteractionStatus.CANCELLED, CallStatus.CANCELLED, Code.CANCELLED, "cancelled"),
    expire: (InteractionStatus.EXPIRED, CallStatus.EXPIRED, Code.EXPIRED, "expired"),
    fail: (InteractionStatus.FAILED, CallStatus.FAILED, Code.APP_DISABLED, "failed"),
}


def due_world() -> World:
    """The question's time is over at this very instant, and nobody has looked yet."""
    world = asking_world(expires_at="2030-01-02T03:05:05Z")
    world.wait(60_000)
    return world


@pytest.mark.clause("7.3")
@pytest.mark.invariant("22")
@pytest.mark.invariant("23")
@pytest.mark.parametrize("crash_after", [None, 0, 1, 2, 3])
def test_of_four_endings_at_one_instant_the_first_counts_in_every_order_and_over_a_crash_at_any_point(crash_after: int | None) -> None:
    start = due_world()
    for order in permutations(OUTCOMES):
        world = start.copy()
        for position, ending in enumerate(order):
            if crash_after == position:
                world.boot()
            outcome = ending(world)
            if position == 0:
                assert outcome.code is None
                ended, call, rows = interaction_of(world, "c1"), world.call("c1"), finals(world)
                status, call_status, code, word = OUTCOMES[ending]
                assert (ended.status, call.status, call.error_code) == (status, call_status, code)
                assert len(rows) == 1
                assert said_to_agent(world)["result"]["outcome"] == word
            elif ending in {answer, dismiss}:
                assert outcome.code is Code.INTERACTION_ALREADY_FINAL, order
        assert (interaction_of(world, "c1"), world.call("c1"), finals(world)) == (ended, call, rows), order


@pytest.mark.clause("7.3")
@pytest.mark.invariant("31")
def test_what_expired_while_the_kernel_was_down_expires_once_at_its_start() -> None:
    world = asking_world(expires_at="2030-01-02T03:05:05Z")
    world.wait(DAY_MS)
    world.boot()
    assert world.pass_time().audit == ["call.expired", "interaction.expired"]
    world.boot()
    assert world.pass_time().audit == []
    assert len(finals(world)) == 1


@pytest.mark.clause("6.6")
@pytest.mark.clause("7.3")
def test_caps_never_touch_a_question_to_the_person() -> None:
    world = asking_world()
    assert interaction_of(world, "c1").deadline is None
    assert world.invoke("c2", "interaction.confirm", CONFIRM, expires_at="2031-01-02T03:04:05Z").code is None
    world.pass_time(364 * DAY_MS)
    assert [interaction_of(world, name).status for name in ("c1", "c2")] == [InteractionStatus.PRESENTED] * 2
    world.pass_time(DAY_MS)
    assert [interaction_of(world, name).status for name in ("c1", "c2")] == [InteractionStatus.PRESENTED, InteractionStatus.EXPIRED]


@pytest.mark.clause("7.3")
@pytest.mark.invariant("23")
@pytest.mark.parametrize("ending", OUTCOMES)
def test_the_acknowledgement_completes_what_was_submitted_in_both_and_nothing_else(ending: Ending) -> None:
    world = due_world()
    ending(world)
    world.say(AGENT, h.OutboxAcknowledge(message_id=finals(world)[0].message_id))
    status, call_status, _, _ = OUTCOMES[ending]
    is_submitted = status is InteractionStatus.SUBMITTED
    assert interaction_of(world, "c1").status is (InteractionStatus.COMPLETED if is_submitted else status)
    assert world.call("c1").status is (CallStatus.COMPLETED if is_submitted else call_status)


@pytest.mark.clause("7.3")
def test_a_question_dismissed_before_it_was_opened_is_never_opened() -> None:
    world = World()
    world.boot()
    revision = world.view.inventory.revision
    world.only(AGENT, ToolInvoke(envelope=None, call_id="c1", tool_id="interaction.choice", inventory_revision=revision, input=CHOICE))
    assert dismiss(world).code is None
    world.say(KERNEL, RouteCall(number=world.call("c1").number))
    assert world.call("c1").status is CallStatus.CANCELLED
    assert world.rows(Interaction) == []
    assert said_to_agent(world)["result"] == {"outcome": "cancelled"}


# ------------------------------------------------------------------------------------ presented, and what a crash leaves


@pytest.mark.clause("7.2")
@pytest.mark.invariant("27")
def test_a_notice_is_accepted_once_after_its_card_is_durable_wherever_the_kernel_dies() -> None:
    world = World()
    world.boot()
    world.invoke("c0", "interaction.notice", NOTICE)
    assert interaction_of(world, "c0").status is InteractionStatus.SUBMITTED
    for steps in range(4):
        world = World()
        world.boot()
        revision = world.view.inventory.revision
        first = ToolInvoke(envelope=None, call_id="c1", tool_id="interaction.notice", inventory_revision=revision, input=NOTICE)
        commands: list[Any] = [first]
        for _ in range(steps + 1):
            done = world.only(AGENT if commands[0] is first else KERNEL, commands[0])
            follow = [effect.command for decision in done.decisions for effect in decision.effects if hasattr(effect, "command")]
            commands = follow or commands
        world.boot()
        assert interaction_of(world, "c1").status is InteractionStatus.SUBMITTED, steps
        assert len(finals(world)) == 1
        assert [message.type for message in world.rows(TimelineMessage)] == [INTERACTION_CARD]
        assert said_to_agent(world)["result"] == {"outcome": "accepted"}


@pytest.mark.clause("12")
@pytest.mark.invariant("22")
def test_a_question_that_was_only_opened_is_presented_at_the_next_start_with_one_card() -> None:
    world = asking_world()
    interaction = interaction_of(world, "c1")
    world.view.tables[Interaction][interaction.interaction_id] = replace(interaction, status=InteractionStatus.PENDING)
    world.view.tables[TimelineMessage].clear()
    world.boot()
    world.boot()
    assert interaction_of(world, "c1").status is InteractionStatus.PRESENTED
    assert len(world.rows(TimelineMessage)) == 1


def test_presenting_or_accepting_what_ended_or_never_was_changes_nothing() -> None:
    world = asking_world()
    answer(world)
    interaction_id = interaction_of(world, "c1").interaction_id
    for command in (PresentInteraction, NoticePresented):
        for ident in (interaction_id, "int_of_nobody"):
            done = world.say(KERNEL, command(interaction_id=ident))
            assert (done.puts, done.audit) == ([], [])


@pytest.mark.clause("7.2")
def test_chat_is_told_of_a_card_while_it_lives_and_nobody_waits_for_it() -> None:
    chat = manifest_of("notes", app_scope="chat", kind="system", tools=[], subscriptions=[])
    for state, told in ((InstanceState.BACKGROUND, True), (InstanceState.SUSPENDED, False), (InstanceState.STARTING, False)):
        world = asking_world()
        world.view.reopen(MANIFESTS | {"chat": chat})
        board = world.instance("ins_board")
        made = replace(board, number=world.next_number, instance_id="ins_chat", app_scope="chat", state=state)
        world.view.tables[Instance]["ins_chat"] = made
        world.next_number += 1
        asked = world.invoke("c2", "interaction.confirm", CONFIRM)
        card = InteractionPresented(
            interaction_id=interaction_of(world, "c2").interaction_id, kind="confirm", title="Send?", place="inline"
        )
        assert asked.sent == ([("ins_chat", card)] if told else [])
        assert answer(world, name="c2").code is None


# ------------------------------------------------------------------------------------ where it is


@pytest.mark.clause("7.2")
@pytest.mark.invariant("26")
def test_a_question_of_the_agent_reaches_no_app_starts_nothing_and_moves_nothing() -> None:
    for kind, (request, given) in ANSWERS.items():
        world = world_of({"instances": [{"app": "board"}, {"app": "notes", "state": "suspended"}], "focus": ["board"]})
        before = world.view.copy()
        steps = [world.invoke("c1", f"interaction.{kind}", request), answer(world, given)]
        assert [effect for step in steps for effect in (*step.sent, *step.processes)] == []
        assert world.view.tables[Instance] == before.tables[Instance]
        assert world.view.focus() == before.focus()
        assert world.rows(InboxRow) == []


@pytest.mark.clause("7.2")
@pytest.mark.invariant("28")
def test_over_an_app_then_in_the_timeline_then_the_app_closed_it_is_still_pending_and_answered_once() -> None:
    world = world_of({"instances": [{"app": "board", "state": "foreground"}], "focus": ["board"]})
    world.invoke("c1", "interaction.choice", CHOICE)
    shown = interaction_of(world, "c1")
    assert shown.place is Place.MODAL
    assert shown.app_session_id == "ses_board"
    moved = world.say(PERSON, InteractionMove(interaction_id=shown.interaction_id, place="inline"))
    assert (moved.value, moved.audit) == ({"place": "inline"}, ["interaction.moved"])
    world.say(PERSON, h.AppClose(instance_id="ins_board"))
    world.say(KERNEL, WorkerExited(instance_id="ins_board", life=1, death=Death.KILLED))
    still = interaction_of(world, "c1")
    assert still == replace(shown, place=Place.INLINE)
    assert answer(world, view_id="view-2-web").code is None
    assert answer(world, view_id="view-1-console").code is Code.INTERACTION_ALREADY_FINAL
    assert interaction_of(world, "c1").answered_by_view == "view-2-web"
    assert len(finals(world)) == 1
    gone = world.say(PERSON, InteractionMove(interaction_id=shown.interaction_id, place="modal"))
    assert gone.code is Code.INTERACTION_ALREADY_FINAL


@pytest.mark.clause("7.2")
@pytest.mark.parametrize(
    ("wish", "in_front", "place"),
    [
        ("default", True, Place.MODAL),
        ("default", False, Place.INLINE),
        ("inline", True, Place.INLINE),
        ("modal", True, Place.MODAL),
        ("modal", False, Place.INLINE),
    ],
)
def test_presentation_is_a_wish_and_no_part_of_what_is_shown(wish: str, in_front: bool, place: Place) -> None:
    world = world_of({"instances": [{"app": "board", "state": "foreground"}], "focus": ["board"] if in_front else []})
    world.invoke("c1", "interaction.choice", CHOICE)
    world.invoke("c2", "interaction.choice", CHOICE | {"presentation": wish})
    assert interaction_of(world, "c2").place is place
    assert interaction_of(world, "c2").shown_digest == interaction_of(world, "c1").shown_digest
    moved = world.say(PERSON, InteractionMove(interaction_id=interaction_of(world, "c2").interaction_id, place=wish))
    assert (moved.value, moved.audit) == ({"place": place.value}, [])


@pytest.mark.clause("7.2")
def test_card_and_answer_stay_in_the_timeline_as_ordinary_history() -> None:
    for kind, words in (("choice", "Blue"), ("confirm", "Send it"), ("input", "Name: Ada; Age: 36")):
        world = asking_world(kind)
        answer(world)
        card, said = world.rows(TimelineMessage)
        interaction_id = interaction_of(world, "c1").interaction_id
        assert (card.type, card.author.value) == (INTERACTION_CARD, "agent")
        assert decode_body(card.body_cbor)["interaction_id"] == interaction_id
        assert (said.type, said.author.value) == (INTERACTION_ANSWER, "person")
        assert decode_body(said.body_cbor) == {
            "interaction_id": interaction_id,
            "title": ANSWERS[kind][0]["title"],
            "text": words,
        }


# ------------------------------------------------------------------------------------ who may


@pytest.mark.clause("7.2")
@pytest.mark.invariant("25")
def test_nobody_but_the_asker_dismisses_and_nobody_but_a_view_answers() -> None:
    world = asking_world()
    assert dismiss(world, by=DEMO).code is Code.INTERACTION_NOT_FOUND
    assert dismiss(world, "nobodys").code is Code.INTERACTION_NOT_FOUND
    world.running("c2", "board.draw", {"x": 1})
    assert dismiss(world, "c2").code is Code.INTERACTION_NOT_FOUND
    interaction = interaction_of(world, "c1")
    said = InteractionAnswer(interaction_id=interaction.interaction_id, answer={}, shown_digest=interaction.shown_digest.hex())
    for speaker in (AGENT, KERNEL, world.worker("ins_board")):
        assert world.say(speaker, said).code is Code.CAPABILITY_DENIED
    assert interaction_of(world, "c1") == interaction


@pytest.mark.clause("7.2")
def test_a_question_can_name_no_instance_and_no_other_scope() -> None:
    world = asking_world()
    assert world.invoke("c2", "interaction.confirm", CONFIRM, instance_id="ins_board").code is Code.APP_INSTANCE_NOT_FOUND
    assert world.invoke("c3", "interaction.confirm", CONFIRM, app_scope="board").code is Code.APP_SCOPE_MISMATCH


@pytest.mark.clause("6.7")
def test_who_cancels_a_question_is_told_what_ends_it_instead() -> None:
    world = asking_world()
    asked = world.say(AGENT, ToolCancelAsked(envelope=None, call_id="c1"))
    by_person = world.say(PERSON, h.CallCancel(call_id="c1"))
    assert {asked.code, by_person.code} == {Code.USE_DISMISS}
    assert asked.detail is not None
    assert by_person.detail is not None
    assert "interaction.dismiss" in str(asked.detail.hint)
    assert "interaction.dismiss" not in str(by_person.detail.hint)
