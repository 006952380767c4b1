"""Questions to the person: one outcome whoever comes first, whoever asks, wherever they are shown (SPEC 7)."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from kernel.core import limits
from kernel.core.events import Death, NoticePresented, PresentInteraction, RouteCall, WorkerExited
from kernel.core.machines import CallStatus, InstanceState, InteractionStatus
from kernel.core.records import InboxRow, Instance, Interaction, OutboxKind, OutboxRow, Place, TimelineMessage, decode_body
from kernel.protocol import host as h
from kernel.protocol.agent import INTERACTION_ANSWER, INTERACTION_CARD, INTERACTION_DISMISS, InteractionDismissAsked, ToolInvoke
from kernel.protocol.host_interactions import InteractionAnswer, InteractionMove, PolicySet
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.interaction_messages import InteractionPresented, UiCancel, UiGet, UiRequest
from lineup_sdk.protocol.messages import JsonObject
from tests.core.dict_view import MANIFESTS, DictView, manifest_of
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


# ------------------------------------------------------------------------------------ what an answer is


GOOD: list[tuple[str, JsonObject, JsonObject]] = [
    ("choice", {"action_ids": ["green", "red"]}, {"action_ids": ["red", "green"]}),
    ("choice", {"action_ids": ["red", "blue", "green"]}, {"action_ids": ["red", "blue", "green"]}),
    ("choice", {"declined": True}, {"declined": True}),
    ("confirm", {"approved": False}, {"approved": False}),
    ("input", {"fields": {"name": "x"}}, {"fields": [{"id": "name", "text": "x"}]}),
    ("input", {"fields": {"age": 1.5, "name": "\U0001f600" * 10}}, {"fields": [{"id": "name", "text": "\U0001f600" * 10}, {"id": "age", "number": 1.5}]}),
    ("input", {"fields": {"name": "x", "about": "two\nlines"}}, {"fields": [{"id": "name", "text": "x"}, {"id": "about", "text": "two\nlines"}]}),
    ("input", {"declined": True}, {"declined": True}),
]  # fmt: skip


@pytest.mark.clause("7.3")
@pytest.mark.invariant("29")
@pytest.mark.parametrize(("kind", "given", "kept"), GOOD)
def test_a_good_answer_is_kept_in_its_one_form_and_fits_the_output_schema(kind: str, given: JsonObject, kept: JsonObject) -> None:
    world = asking_world(kind)
    assert answer(world, given).code is None
    result = said_to_agent(world)["result"]
    assert result == {"outcome": "answered", "answer": kept}
    assert world.view.descriptor(world.call("c1").descriptor_digest).output_schema.check(result) is None


BAD: list[tuple[str, JsonObject, str]] = [
    ("choice", {}, ""),
    ("choice", {"action_ids": []}, "/action_ids"),
    ("choice", {"action_ids": ["red", "red"]}, "/action_ids"),
    ("choice", {"action_ids": ["yellow"]}, "/action_ids"),
    ("choice", {"action_ids": "red"}, "/action_ids"),
    ("choice", {"action_ids": [1]}, "/action_ids"),
    ("choice", {"action_ids": ["red"], "declined": True}, ""),
    ("choice", {"declined": False}, "/declined"),
    ("choice", {"approved": True}, ""),
    ("confirm", {"approved": 1}, "/approved"),
    ("confirm", {"approved": None}, "/approved"),
    ("confirm", {"declined": True}, "/declined"),
    ("input", {"fields": {}}, "/fields/name"),
    ("input", {"fields": {"name": ""}}, "/fields/name"),
    ("input", {"fields": {"name": "x" * 11}}, "/fields/name"),
    ("input", {"fields": {"name": "two\nlines"}}, "/fields/name"),
    ("input", {"fields": {"name": 5}}, "/fields/name"),
    ("input", {"fields": {"name": "x", "about": "y"}}, "/fields/about"),
    ("input", {"fields": {"name": "x", "age": "36"}}, "/fields/age"),
    ("input", {"fields": {"name": "x", "age": True}}, "/fields/age"),
    ("input", {"fields": {"name": "x", "age": 151}}, "/fields/age"),
    ("input", {"fields": {"name": "x", "age": -0.5}}, "/fields/age"),
    ("input", {"fields": {"name": "x", "shoe": 1}}, "/fields"),
    ("input", {"fields": [["name", "x"]]}, "/fields"),
]


@pytest.mark.clause("7.3")
@pytest.mark.invariant("29")
@pytest.mark.parametrize(("kind", "given", "pointer"), BAD)
def test_a_bad_answer_is_refused_with_its_place_and_the_question_stays_open(kind: str, given: JsonObject, pointer: str) -> None:
    world = asking_world(kind)
    before = world.view.copy()
    refused = answer(world, given)
    assert refused.code is Code.ANSWER_INVALID
    assert refused.detail is not None
    assert refused.detail.pointer == "/answer" + pointer
    assert world.view.tables == before.tables
    assert answer(world).code is None


@pytest.mark.clause("7.3")
def test_single_choice_and_button_take_exactly_one() -> None:
    for mode in ("single-choice", "button"):
        world = World()
        world.boot()
        world.invoke("c1", "interaction.choice", CHOICE | {"mode": mode})
        assert answer(world, {"action_ids": ["red", "blue"]}).code is Code.ANSWER_INVALID
        assert answer(world, {"action_ids": ["red"]}).code is None


@pytest.mark.clause("7.3")
def test_an_answer_that_would_not_fit_a_workers_frame_is_refused() -> None:
    fields = [{"id": f"f{number}", "label": "Text", "type": "textarea"} for number in range(16)]
    world = World()
    world.boot()
    world.invoke("c1", "interaction.input", {"title": "Much", "prompt": "Write.", "fields": fields})
    big = {"fields": {field["id"]: "\u4e2d" * 4_000 for field in fields}}
    assert answer(world, big).code is Code.ANSWER_INVALID
    assert answer(world, {"fields": {field["id"]: "\u4e2d" * 800 for field in fields}}).code is None


def _with(request: JsonObject, **changes: Any) -> JsonObject:
    return deepcopy(request) | changes


def _field(**field: Any) -> JsonObject:
    return _with(INPUT, fields=[{"id": "a", "label": "A", "type": "text"} | field])


@pytest.mark.clause("7.3")
@pytest.mark.parametrize(
    ("kind", "request_", "pointer"),
    [
        ("choice", _with(CHOICE, actions=[]), "/actions"),
        ("choice", _with(CHOICE, actions=[{"id": "a", "label": "A"}, {"id": "a", "label": "B"}]), "/actions"),
        ("choice", _with(CHOICE, mode="many"), "/mode"),
        ("choice", _with(CHOICE, actions=[{"id": f"a{n}", "label": "A"} for n in range(33)]), "/actions"),
        ("confirm", _with(CONFIRM, html="<b>"), "/html"),
        ("confirm", {"title": "Only a title"}, "/prompt"),
        ("notice", _with(NOTICE, title="x" * 201), "/title"),
        ("input", _with(INPUT, fields=[]), "/fields"),
        ("input", _with(INPUT, fields=[{"id": "a", "label": "A", "type": "text"}] * 2), "/fields"),
        ("input", _field(type="password"), "/fields/0/type"),
        ("input", _field(label="Your password:"), "/fields/0"),
        ("input", _field(id="token"), "/fields/0"),
        ("input", _field(minimum=1), "/fields/0"),
        ("input", _field(type="number", max_length=3), "/fields/0"),
        ("input", _field(min_length=4, max_length=3), "/fields/0/min_length"),
        ("input", _field(type="number", minimum=2, maximum=1), "/fields/0/minimum"),
        ("input", _field(max_length=4_001), "/fields/0/max_length"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused_before_any_effect(kind: str, request_: JsonObject, pointer: str) -> None:
    world = World()
    world.boot()
    refused = world.invoke("c1", f"interaction.{kind}", request_)
    assert (refused.code, refused.audit) == (Code.TOOL_INPUT_INVALID, ["call.rejected"])
    assert refused.detail is not None
    assert refused.detail.pointer == "/payload/input" + pointer
    assert world.rows(Interaction) == []


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


# ------------------------------------------------------------------------------------ questions of Apps


def ask(world: World, *, app: str = "asker", request: JsonObject | None = None, **more: Any) -> Outcome:
    return world.tell(f"ins_{app}", UiRequest(request={"kind": "confirm"} | CONFIRM if request is None else request, **more))


@pytest.mark.clause("7.4")
@pytest.mark.invariant("24")
def test_the_owner_of_an_apps_question_is_who_speaks_and_a_parent_call_is_its_own_and_open() -> None:
    world = asking_world()
    world.running("a1", "asker.work")
    world.running("b1", "board.draw", {"x": 1})
    for foreign in ("b1", "c1", "nobodys"):
        assert ask(world, parent_call_id=foreign).code is Code.CALL_NOT_FOUND
    asked = ask(world, parent_call_id="a1")
    assert asked.code is None
    interaction = interaction_of(world, "@asker")
    assert (interaction.owner_app_scope, interaction.owner_instance_id) == ("asker", "ins_asker")
    assert (interaction.source.value, interaction.app_session_id) == ("miniapp_tool", "ses_asker")
    assert interaction.parent_call_number == world.call("a1").number
    world.tell("ins_asker", m.ToolComplete(call_id="a1", result={"ok": True}))
    assert ask(world, parent_call_id="a1").code is Code.CALL_ALREADY_FINAL
    for extra in ({"owner_app_scope": "chat"}, {"interaction_id": "int_mine"}, {"presentation": "modal"}, {"kind": "alert"}):
        assert ask(world, request={"kind": "confirm"} | CONFIRM | extra).code is Code.TOOL_INPUT_INVALID


@pytest.mark.clause("7.4")
@pytest.mark.invariant("25")
def test_a_foreign_question_answers_exactly_as_an_unknown_one() -> None:
    world = asking_world()
    ask(world)
    other = replace(world.instance("ins_asker"), number=world.next_number, instance_id="ins_twin")
    world.view.tables[Instance]["ins_twin"] = other
    world.next_number += 1
    ids = (interaction_of(world, "@asker").interaction_id, interaction_of(world, "c1").interaction_id, "int_of_nobody")
    seen = {
        (done.code, done.detail, tuple(done.audit), tuple(done.sent))
        for ident in ids
        for done in (world.tell("ins_twin", UiGet(interaction_id=ident)), world.tell("ins_twin", UiCancel(interaction_id=ident)))
    }
    assert seen == {(Code.INTERACTION_NOT_FOUND, None, ("command.refused",), ())}


@pytest.mark.clause("6.6")
def test_the_clock_of_the_call_a_question_belongs_to_stands_still_while_any_is_open() -> None:
    world = asking_world()
    world.running("a1", "asker.work")
    world.wait(50_000)
    ask(world, parent_call_id="a1")
    ask(world, parent_call_id="a1")
    assert world.call("a1").held_ms == 10_000
    assert world.pass_time(DAY_MS).audit == ["instance.suspended"]  # the board, which has nothing to do
    world.die("ins_asker")
    revived = world.start("ins_asker")
    assert [message.time_left_ms for _, message in revived.sent if isinstance(message, m.ToolCalled)] == [10_000]
    world.tell("ins_asker", m.ToolAccept(call_id="a1"))
    answer(world, name="@asker")
    assert world.call("a1").deadline is None
    first = next(one for one in world.view.open_interactions() if one.owner_instance_id)
    world.tell("ins_asker", UiCancel(interaction_id=first.interaction_id))
    assert world.view.next_deadline_ms() == world.boottime_ms + 10_000
    assert world.pass_time(9_999).audit == []
    assert world.pass_time(1).audit == ["call.expired"]


@pytest.mark.clause("6.6")
def test_a_call_without_a_clock_has_none_after_a_question_and_one_that_ended_gets_none() -> None:
    world = asking_world()
    world.running("a1", "asker.work")
    world.view.tables[type(world.call("a1"))][world.call("a1").number] = replace(world.call("a1"), deadline=None)
    ask(world, parent_call_id="a1")
    answer(world, name="@asker")
    assert (world.call("a1").deadline, world.call("a1").human_waits) == (None, 0)
    ask(world, parent_call_id="a1")
    world.tell("ins_asker", m.ToolComplete(call_id="a1", result={"ok": True}))
    ended = world.call("a1")
    answer(world, name="@asker")
    assert world.call("a1") == ended


@pytest.mark.clause("7.4")
@pytest.mark.parametrize("outcome", ["answered", "cancelled", "expired"])
def test_the_result_of_an_apps_question_is_in_its_inbox_and_nowhere_else_and_its_acknowledgement_completes_it(outcome: str) -> None:
    world = asking_world()
    outbox, timeline = world.rows(OutboxRow), world.rows(TimelineMessage)
    ask(world, expires_at="2030-01-02T03:05:05Z")
    interaction_id = interaction_of(world, "@asker").interaction_id
    match outcome:
        case "answered":
            done = answer(world, name="@asker")
        case "cancelled":
            done = world.tell("ins_asker", UiCancel(interaction_id=interaction_id))
        case _:
            done = world.pass_time(60_000)
    (delivered,) = [message for _, message in done.sent if isinstance(message, m.InboxDelivered)]
    code = {"answered": {"answer": {"approved": True}}, "cancelled": {"code": "cancelled"}, "expired": {"code": "expired"}}[outcome]
    assert delivered.topic == "interaction.result"
    assert delivered.body == {"interaction_id": interaction_id, "kind": "confirm", "outcome": outcome, **code}
    assert (world.rows(OutboxRow), world.rows(TimelineMessage)) == (outbox, timeline)
    world.tell("ins_asker", m.InboxAcknowledge(message_id=delivered.message_id))
    final = "completed" if outcome == "answered" else outcome
    assert interaction_of(world, "@asker").status.value == final
    value = world.tell("ins_asker", UiGet(interaction_id=interaction_id)).value
    assert value is not None
    assert (value["status"], value["result"]["outcome"]) == (final, outcome)


@pytest.mark.clause("7.4")
def test_an_apps_notice_is_accepted_at_once_too() -> None:
    world = asking_world()
    done = ask(world, request={"kind": "notice"} | NOTICE)
    (delivered,) = [message for _, message in done.sent if isinstance(message, m.InboxDelivered)]
    assert delivered.body["outcome"] == "accepted"


@pytest.mark.clause("7.4")
def test_an_apps_questions_survive_its_crash_and_end_with_its_instance() -> None:
    world = asking_world()
    ask(world)
    world.die("ins_asker")
    assert interaction_of(world, "@asker").status is InteractionStatus.PRESENTED
    for _ in range(limits.MAX_CRASHES_IN_WINDOW):
        world.die("ins_asker")
    assert world.instance("ins_asker").state is InstanceState.FAILED
    ended = interaction_of(world, "@asker")
    assert (ended.status, ended.error_code) == (InteractionStatus.FAILED, Code.APP_CRASHED)
    assert world.rows(InboxRow) == []
    assert interaction_of(world, "c1").status is InteractionStatus.PRESENTED

    world = asking_world()
    ask(world)
    world.say(PERSON, h.AppClose(instance_id="ins_asker"))
    world.say(KERNEL, WorkerExited(instance_id="ins_asker", life=1, death=Death.KILLED))
    assert interaction_of(world, "@asker").status is InteractionStatus.CANCELLED
    assert answer(world, {"approved": True}, name="@asker").code is Code.INTERACTION_ALREADY_FINAL


@pytest.mark.clause("7.4")
def test_a_policy_taken_back_counts_at_once_and_ends_what_is_open() -> None:
    world = asking_world()
    ask(world)
    old_channel = world.worker("ins_asker")
    revoked = world.say(PERSON, PolicySet(name="standard-interaction:asker", allowed=False))
    assert revoked.audit == ["policy.revoked", "interaction.cancelled", "inbox.stored"]
    assert interaction_of(world, "@asker").error_code is Code.CAPABILITY_DENIED
    for message in (UiRequest(request={"kind": "confirm"} | CONFIRM), UiGet(interaction_id=interaction_of(world, "@asker").interaction_id)):
        assert world.say(old_channel, message).code is Code.CAPABILITY_DENIED
    assert world.say(PERSON, PolicySet(name="standard-interaction:asker", allowed=False)).audit == []
    for name in ("standard-interaction:board", "standard-interaction:", "anything"):
        assert world.say(PERSON, PolicySet(name=name, allowed=True)).code is Code.CAPABILITY_DENIED


@pytest.mark.clause("8.2")
def test_answering_an_apps_own_question_is_an_act_of_the_person_on_that_app() -> None:
    world = asking_world()
    ask(world)
    assert world.tell("ins_asker", m.LifecycleRequestForeground()).code is Code.LIFECYCLE_DENIED
    answer(world, name="@asker")
    assert world.tell("ins_asker", m.LifecycleRequestForeground()).code is None


@pytest.mark.clause("7.4")
def test_an_expiry_has_to_be_an_instant() -> None:
    world = asking_world()
    for text in ("tomorrow", "2030-01-02T03:05:05", "2030-13-02T03:05:05Z"):
        assert ask(world, expires_at=text).code is Code.TOOL_INPUT_INVALID
    assert ask(world, expires_at="2000-01-01T00:00:00Z").code is None
    assert world.pass_time().audit == ["interaction.expired", "inbox.stored"]


@pytest.mark.clause("16")
def test_a_question_is_refused_when_its_result_would_have_no_place_in_the_inbox() -> None:
    world = asking_world()
    view: DictView = world.view
    for number in range(limits.MAX_INBOX_ROWS - 1):
        row = InboxRow(
            number=world.next_number,
            message_id=f"seeded_{number}",
            app_scope="asker",
            conversation_id=view.conversation_id,
            instance_id="ins_asker",
            topic="asker.note",
            body_cbor=b"\xa0",
            created_at=world.now,
        )
        view.tables[InboxRow][row.number] = row
        world.next_number += 1
    assert ask(world).code is None
    assert ask(world).code is Code.LIMIT_EXCEEDED
