"""An App's own questions: only with the person's policy, only its own, the result to its inbox alone (SPEC 7.4)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kernel.core import limits
from kernel.core.events import Death, WorkerExited
from kernel.core.machines import InstanceState, InteractionStatus
from kernel.core.records import InboxRow, Instance, OutboxRow, TimelineMessage
from kernel.protocol import host as h
from kernel.protocol.host_interactions import PolicySet
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.interaction_messages import UiCancel, UiGet, UiRequest
from lineup_sdk.protocol.messages import JsonObject
from tests.core.dict_view import DictView
from tests.core.stories import interaction_of
from tests.core.test_interactions import CONFIRM, DAY_MS, NOTICE, answer, asking_world
from tests.core.world import KERNEL, PERSON, Outcome, World


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
