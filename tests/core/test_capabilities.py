"""The capability gateway: what is refused before anybody is asked, one grant for one use, unknown ends (SPEC 10)."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from kernel.core.capability_catalog import (
    CATALOG,
    KNOWN_UNSUPPORTED,
    MAX_CLIPBOARD_LENGTH,
    MAX_FILE_NAME_LENGTH,
    MAX_NOTICE_BODY_LENGTH,
    MAX_NOTICE_TITLE_LENGTH,
)
from kernel.core.capability_records import CapabilityRequest, ConsentScope, Permission
from kernel.core.limits import (
    HOST_ACTION_MS,
    MAX_CAPABILITY_REASON,
    MAX_INBOX_ROWS,
    MAX_OPEN_CAPABILITY_REQUESTS,
    MAX_OPEN_CAPABILITY_REQUESTS_OF_INSTANCE,
    PERSON_ACT_WINDOW_MS,
)
from kernel.core.machines import CapabilityStatus, InstanceState
from kernel.core.records import InboxRow
from kernel.protocol import host as h
from kernel.protocol import host_capabilities as hc
from lineup_sdk.protocol import capability_messages as c
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject
from tests.core.capability_desk import NOTICE, TEXT, desk, view
from tests.core.world import PERSON

# --------------------------------------------------------------------------------- refused before anybody is asked


@pytest.mark.clause("10")
@pytest.mark.invariant("52")
@pytest.mark.parametrize(
    ("capability", "arguments", "code"),
    [
        ("artifact.save", {"artifact_id": "a", "name": "n"}, Code.CAPABILITY_DENIED),  # not in the Manifest
        ("nonsense", {}, Code.CAPABILITY_DENIED),
        ("microphone", {}, Code.CAPABILITY_UNSUPPORTED),
        ("camera", {}, Code.CAPABILITY_UNSUPPORTED),
        ("clipboard.read", {}, Code.CAPABILITY_UNSUPPORTED),
        ("file.pick", {}, Code.CAPABILITY_UNSUPPORTED),
        ("telepathy", {}, Code.CAPABILITY_UNSUPPORTED),  # in the Manifest, in no catalog
        ("clipboard.write", {}, Code.CAPABILITY_DENIED),
        ("clipboard.write", {"text": 1}, Code.CAPABILITY_DENIED),
        ("clipboard.write", {"text": "x", "silent": True}, Code.CAPABILITY_DENIED),
        ("clipboard.write", {"text": ""}, Code.CAPABILITY_DENIED),
        ("notification.show", {"body": "x"}, Code.CAPABILITY_DENIED),
    ],
)
def test_what_manifest_catalog_or_form_refuse_asks_nobody(capability: str, arguments: JsonObject, code: Code) -> None:
    world = desk()
    outcome = world.ask(capability, arguments)
    assert outcome.code is code
    assert outcome.audit == ["command.refused"]
    assert outcome.puts == []
    assert world.frames == []
    assert world.rows(CapabilityRequest) == []


@pytest.mark.clause("10")
def test_what_we_mean_to_have_one_day_is_named_and_is_not_in_the_catalog() -> None:
    assert {"camera", "clipboard.read", "file.pick", "microphone"} == KNOWN_UNSUPPORTED
    assert set(CATALOG) == {"artifact.save", "clipboard.write", "notification.show"}


@pytest.mark.clause("10")
@pytest.mark.parametrize(
    ("capability", "name", "limit"),
    [
        ("artifact.save", "name", MAX_FILE_NAME_LENGTH),
        ("clipboard.write", "text", MAX_CLIPBOARD_LENGTH),
        ("notification.show", "body", MAX_NOTICE_BODY_LENGTH),
        ("notification.show", "title", MAX_NOTICE_TITLE_LENGTH),
    ],
)
def test_arguments_have_limits(capability: str, name: str, limit: int) -> None:
    whole = {"artifact.save": {"artifact_id": "art", "name": "x"}, "clipboard.write": TEXT, "notification.show": NOTICE}[capability]
    check = CATALOG[capability].arguments.check
    assert check(whole | {name: "é" * limit}) is None
    mismatch = check(whole | {name: "é" * (limit + 1)})
    assert mismatch is not None
    assert mismatch.pointer == f"/{name}"


@pytest.mark.clause("10")
def test_the_detail_of_bad_arguments_says_where_and_never_what() -> None:
    detail = desk().ask("clipboard.write", {"text": {"secret": "x"}}).detail
    assert detail is not None
    assert detail.as_json() == {"pointer": "/arguments/text", "expected": "string", "got_type": "object", "got_size": 1}


@pytest.mark.clause("10")
def test_an_app_that_is_not_in_front_gets_no_clipboard_and_may_still_notify() -> None:
    world = desk()
    world.say(PERSON, h.FocusRaise(instance_id="chat"))
    assert world.current("board").state is InstanceState.BACKGROUND
    assert world.ask().code is Code.LIFECYCLE_DENIED
    assert world.ask("notification.show", NOTICE).code is None


@pytest.mark.clause("10")
def test_an_app_that_has_not_started_asks_for_nothing() -> None:
    world = desk(app=False)
    world.invoke("c0", "board.open")
    assert world.current("board").state is InstanceState.STARTING
    assert world.ask("notification.show", NOTICE).code is Code.LIFECYCLE_DENIED


@pytest.mark.clause("10")
def test_without_a_host_that_can_nobody_is_asked() -> None:
    world = desk(views=False)
    assert world.ask().code is Code.CAPABILITY_UNSUPPORTED
    world.attach("view-1", "notification.show")
    assert world.ask().code is Code.CAPABILITY_UNSUPPORTED
    assert world.ask("notification.show", NOTICE).code is None
    world.attach("view-2", "clipboard.write")
    assert world.ask().code is None
    world.leave("view-2")
    assert world.ask().code is Code.CAPABILITY_UNSUPPORTED


@pytest.mark.clause("2.3")
def test_an_older_life_of_the_worker_asks_for_nothing() -> None:
    world = desk()
    old = world.worker(world.current("board").instance_id)
    world.die(world.current("board").instance_id)
    asked = c.CapabilityRequest(capability="clipboard.write", reason="r", arguments=TEXT)
    assert world.say(old, asked).code is Code.APP_INSTANCE_NOT_FOUND


# --------------------------------------------------------------------------------- limits


@pytest.mark.clause("16")
def test_a_reason_is_one_to_three_hundred_characters() -> None:
    world = desk()
    assert world.ask(reason="x" * MAX_CAPABILITY_REASON).code is None
    for reason in ("", "  ", "x" * (MAX_CAPABILITY_REASON + 1)):
        assert world.ask(reason=reason).code is Code.LIMIT_EXCEEDED


@pytest.mark.clause("16")
def test_an_app_has_at_most_so_many_open_requests() -> None:
    world = desk()
    ids = [world.asked() for _ in range(MAX_OPEN_CAPABILITY_REQUESTS_OF_INSTANCE)]
    assert world.ask().code is Code.LIMIT_EXCEEDED
    world.answer(ids[0], "deny")
    assert world.ask().code is None


@pytest.mark.clause("16")
def test_all_apps_together_have_at_most_so_many_open_requests() -> None:
    world = desk()
    template = world.request(world.asked())
    for number in range(1, MAX_OPEN_CAPABILITY_REQUESTS):
        other = replace_request(template, number)
        world.view.tables[CapabilityRequest][other.request_id] = other
    assert len(world.view.capabilities.open_requests()) == MAX_OPEN_CAPABILITY_REQUESTS
    assert world.ask().code is Code.LIMIT_EXCEEDED


def replace_request(template: CapabilityRequest, number: int) -> CapabilityRequest:
    return replace(template, number=10_000 + number, request_id=f"cap_e1_{number}", instance_id=f"ins_e1_{number}")


@pytest.mark.clause("16")
def test_a_request_that_would_have_no_room_for_its_result_is_refused() -> None:
    world = desk()
    instance_id = world.current("board").instance_id
    world.asked()
    for number in range(MAX_INBOX_ROWS - 1):
        row = InboxRow(
            number=50_000 + number,
            message_id=f"m{number}",
            app_scope="board",
            conversation_id=world.view.conversation_id,
            instance_id=instance_id,
            topic="board.note",
            body_cbor=b"\xa0",
            created_at=world.now,
        )
        world.view.tables[InboxRow][row.number] = row
    assert world.ask().code is Code.LIMIT_EXCEEDED


@pytest.mark.clause("16")
def test_a_host_that_does_not_answer_in_time_leaves_an_unknown_end() -> None:
    world = desk()
    request_id = world.asked()
    world.answer(request_id, "once")
    assert world.view.next_deadline_ms() is not None
    world.pass_time(HOST_ACTION_MS - 1)
    assert world.status(request_id) is CapabilityStatus.GRANTED
    world.pass_time(1)
    assert world.status(request_id) is CapabilityStatus.UNKNOWN
    assert world.report(request_id).code is Code.CAPABILITY_DENIED
    assert len(world.executed) == 1
    assert [result["status"] for result in world.results()] == ["unknown"]


# --------------------------------------------------------------------------------- one grant, one use


@pytest.mark.clause("10")
@pytest.mark.invariant("52")
def test_no_frame_leaves_before_the_person_said_yes_and_the_grant_is_written_in_that_turn() -> None:
    world = desk()
    asked = world.ask()
    request_id = asked.value["request_id"] if asked.value else ""
    assert asked.value == {"request_id": request_id, "status": "asked"}
    assert asked.audit == ["capability.asked"]
    assert world.frames == []
    answered = world.answer(request_id, "once")
    assert answered.audit == ["capability.granted"]
    [grant] = [record for record in answered.puts if isinstance(record, CapabilityRequest)]
    assert grant.status is CapabilityStatus.GRANTED
    assert grant.provider_view_id == "view-1"
    assert grant.scope is ConsentScope.ONCE
    execute = hc.CapabilityExecute(
        request_id=request_id, capability="clipboard.write", arguments=TEXT, app_scope="board", title="Board", deadline_ms=HOST_ACTION_MS
    )
    assert world.frames == [("view-1", execute)]


@pytest.mark.clause("10")
def test_the_result_comes_once_as_a_durable_message_and_the_arguments_are_forgotten() -> None:
    world = desk()
    request_id = world.asked()
    world.answer(request_id, "once")
    outcome = world.report(request_id)
    assert outcome.audit == ["capability.done", "inbox.stored"]
    assert outcome.sent_types == ["inbox.delivered"]
    assert world.results() == [{"request_id": request_id, "capability": "clipboard.write", "status": "done"}]
    assert world.request(request_id).arguments_cbor is None
    assert world.report(request_id).code is Code.CAPABILITY_DENIED
    assert world.report(request_id, "failed").code is Code.CAPABILITY_DENIED
    assert len(world.results()) == 1


@pytest.mark.clause("10")
def test_a_host_that_could_not_says_why_in_a_token() -> None:
    world = desk()
    request_id = world.asked()
    world.answer(request_id, "once")
    world.report(request_id, "failed", reason="no_terminal")
    assert world.results() == [{"request_id": request_id, "capability": "clipboard.write", "status": "failed", "reason": "no_terminal"}]


@pytest.mark.clause("10")
@pytest.mark.parametrize("by", ["view-2", ""])
def test_only_the_view_that_was_asked_may_say_how_it_ended(by: str) -> None:
    world = desk()
    world.attach("view-2", "clipboard.write")
    request_id = world.asked()
    world.answer(request_id, "once")
    assert world.report(request_id, by=by).code is Code.CAPABILITY_DENIED
    assert world.status(request_id) is CapabilityStatus.GRANTED
    assert world.report("cap_e1_unknown").code is Code.CAPABILITY_DENIED


@pytest.mark.clause("10")
def test_a_host_cannot_end_what_the_person_has_not_answered() -> None:
    world = desk()
    request_id = world.asked()
    assert world.report(request_id).code is Code.CAPABILITY_DENIED
    assert world.status(request_id) is CapabilityStatus.ASKED


@pytest.mark.clause("10")
@pytest.mark.parametrize("decision", ["deny", "never"])
def test_a_no_is_a_result_and_no_host_hears_of_it(decision: str) -> None:
    world = desk()
    request_id = world.asked()
    world.answer(request_id, decision)
    assert world.results() == [{"request_id": request_id, "capability": "clipboard.write", "status": "denied", "code": "capability_denied"}]
    assert world.executed == []
    again = world.ask()
    assert again.code is (Code.CAPABILITY_DENIED if decision == "never" else None)


@pytest.mark.clause("10")
def test_the_first_answer_counts_whoever_gives_it_and_the_audit_names_the_view() -> None:
    for order in permutations(["once", "deny", "always"]):
        world = desk()
        request_id = world.asked()
        codes = [world.answer(request_id, decision).code for decision in order]
        assert codes == [None, Code.CAPABILITY_DENIED, Code.CAPABILITY_DENIED]
        assert len(world.executed) == (0 if order[0] == "deny" else 1)
        assert world.request(request_id).consent_view_id == "view-1"
        assert len(world.rows(Permission)) == (1 if order[0] == "always" else 0)


@pytest.mark.clause("10")
def test_an_answer_names_what_was_shown() -> None:
    world = desk()
    one, other = world.asked(), world.asked("notification.show", NOTICE)
    stolen = hc.ConsentAnswer(request_id=other, decision="always", shown=world.request(one).shown_digest.hex())
    assert world.say(view("view-1"), stolen).code is Code.ANSWER_INVALID
    assert world.executed == []
    assert world.rows(Permission) == []
    assert world.request(one).shown_digest != world.request(other).shown_digest


@pytest.mark.clause("10")
def test_the_view_that_consented_acts_if_it_can_else_the_newest_that_can() -> None:
    world = desk()
    world.attach("view-2", "clipboard.write")
    world.attach("view-3", "clipboard.write")
    world.attach("view-4")
    for by, actor in (("view-2", "view-2"), ("view-4", "view-3"), ("view-1", "view-1")):
        request_id = world.asked()
        world.answer(request_id, "once", by=by)
        assert world.executed[-1] == (actor, request_id)


@pytest.mark.clause("10")
def test_when_no_host_can_any_more_a_yes_ends_as_failed_and_asks_nobody() -> None:
    world = desk()
    request_id = world.asked()
    world.leave("view-1")
    world.attach("view-2")
    world.answer(request_id, "once", by="view-2")
    assert world.executed == []
    [result] = world.results()
    assert (result["status"], result["code"]) == ("failed", "capability_unsupported")


@pytest.mark.clause("8.2")
@pytest.mark.parametrize("decision", ["once", "deny"])
def test_an_answer_is_an_act_of_the_person_on_that_app_for_five_seconds(decision: str) -> None:
    world = desk()
    board = world.current("board").instance_id
    request_id = world.asked()
    world.say(PERSON, h.FocusRaise(instance_id="chat"))
    world.wait(PERSON_ACT_WINDOW_MS + 1)
    assert world.tell(board, m.LifecycleRequestForeground()).code is Code.LIFECYCLE_DENIED
    world.answer(request_id, decision)
    world.wait(PERSON_ACT_WINDOW_MS)
    assert world.tell(board, m.LifecycleRequestForeground()).code is None
    world.say(PERSON, h.FocusRaise(instance_id="chat"))
    world.wait(1)
    assert world.tell(board, m.LifecycleRequestForeground()).code is Code.LIFECYCLE_DENIED
