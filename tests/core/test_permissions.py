"""Standing answers of the person: how far they go, what they are bound to, how they are taken back (SPEC 4.2, 10)."""

from __future__ import annotations

from typing import Any

import pytest

from kernel.core import events
from kernel.core.capability_records import ConsentScope, Permission
from kernel.core.machines import CapabilityStatus, InboxState, PermissionState
from kernel.core.records import InboxRow, Switch
from kernel.protocol import host as h
from kernel.protocol import host_capabilities as hc
from kernel.protocol.agent import ToolInvoke
from lineup_sdk.protocol.codes import Code
from tests.core.capability_desk import ASKED_FOR, NOTICE, TEXT, Desk, desk, manifests
from tests.core.dict_view import DictView, manifest_of
from tests.core.world import AGENT, KERNEL, PERSON

# --------------------------------------------------------------------------------- standing answers


@pytest.mark.clause("10")
def test_always_spares_the_next_question_and_each_use_has_a_grant_of_its_own() -> None:
    world = desk()
    first = world.asked()
    world.answer(first, "always")
    outcome = world.ask()
    assert outcome.value is not None
    assert outcome.value["status"] == "granted"
    second = outcome.value["request_id"]
    assert outcome.audit == ["capability.granted"]
    assert world.executed == [("view-1", first), ("view-1", second)]
    assert world.request(second).scope is ConsentScope.ALWAYS
    assert world.ask("notification.show", NOTICE).value["status"] == "asked"  # type: ignore[index]


@pytest.mark.clause("10")
def test_while_open_holds_over_a_crash_and_ends_with_the_instance() -> None:
    world = desk()
    world.answer(world.asked(), "while_open")
    instance_id = world.current("board").instance_id
    world.die(instance_id)
    world.start(instance_id)
    assert world.ask().value["status"] == "granted"  # type: ignore[index]
    world.close(instance_id)
    world.die(instance_id, events.Death.KILLED)
    assert [one.state for one in world.rows(Permission)] == [PermissionState.LAPSED]
    world.running("c9", "board.open")
    assert world.ask().value["status"] == "asked"  # type: ignore[index]


@pytest.mark.clause("10")
def test_a_newer_answer_replaces_the_older_one() -> None:
    world = desk()
    one, two = world.asked(), world.asked()
    world.answer(one, "always")
    world.answer(two, "never")
    assert [(p.scope, p.state) for p in world.rows(Permission)] == [
        (ConsentScope.ALWAYS, PermissionState.REPLACED),
        (ConsentScope.NEVER, PermissionState.ACTIVE),
    ]
    assert world.ask().code is Code.CAPABILITY_DENIED


@pytest.mark.clause("10")
def test_revoking_ends_the_open_use_at_once_and_tells_the_app_and_the_host() -> None:
    world = desk()
    request_id = world.asked()
    world.answer(request_id, "always")
    outcome = world.say(PERSON, hc.PermissionsRevoke(app_scope="board", capability="clipboard.write"))
    assert outcome.value == {"revoked": 1}
    assert world.frames[-1] == ("view-1", hc.CapabilityStop(request_id=request_id))
    assert [(one["status"], one["code"]) for one in world.results()] == [("revoked", "capability_denied")]
    assert world.report(request_id).code is Code.CAPABILITY_DENIED
    assert world.ask().value["status"] == "asked"  # type: ignore[index]
    again = world.say(PERSON, hc.PermissionsRevoke(app_scope="board", capability="clipboard.write"))
    assert again.code is Code.CAPABILITY_DENIED


@pytest.mark.clause("10")
def test_a_use_that_was_allowed_once_can_be_taken_back_too() -> None:
    world = desk()
    request_id = world.asked()
    world.answer(request_id, "once")
    assert world.say(PERSON, hc.PermissionsRevoke(app_scope="board", capability="clipboard.write")).code is None
    assert world.status(request_id) is CapabilityStatus.REVOKED


@pytest.mark.clause("10")
def test_a_revoked_never_asks_again() -> None:
    world = desk()
    world.answer(world.asked(), "never")
    world.say(PERSON, hc.PermissionsRevoke(app_scope="board", capability="clipboard.write"))
    assert world.ask().value["status"] == "asked"  # type: ignore[index]


@pytest.mark.clause("10")
def test_reset_takes_back_the_answers_of_one_app_or_of_all() -> None:
    world = desk()
    for capability, arguments in (("clipboard.write", TEXT), ("notification.show", NOTICE)):
        request_id = world.asked(capability, arguments)
        world.answer(request_id, "always")
        world.report(request_id)
    assert world.say(PERSON, hc.PermissionsReset(app_scope="notes")).value == {"revoked": 0}
    assert world.say(PERSON, hc.PermissionsReset(app_scope="board")).value == {"revoked": 2}
    world.answer(world.asked(), "always")
    assert world.say(PERSON, hc.PermissionsReset()).value == {"revoked": 1}
    assert world.view.capabilities.permissions() == []


# --------------------------------------------------------------------------------- bound to the App, and its ends


@pytest.mark.clause("10")
def test_an_update_starts_without_the_consent_of_the_version_before() -> None:
    world = desk()
    request_id = world.asked()
    world.answer(request_id, "always")
    world.report(request_id)
    pending = world.asked("notification.show", NOTICE)
    entry = {"main": "app.py", "files": [{"name": "app.py", "size": 11, "sha256": "bb" * 32}]}
    world.boot(manifests=manifests(entry=entry, version="1.1.0"))
    assert world.status(pending) is CapabilityStatus.CANCELLED  # it was another App that asked
    world.attach("view-1", "clipboard.write")
    world.start(world.current("board").instance_id)
    assert world.ask().value["status"] == "asked"  # type: ignore[index]


@pytest.mark.clause("10")
def test_a_never_holds_for_every_version() -> None:
    world = desk()
    world.answer(world.asked(), "never")
    entry = {"main": "app.py", "files": [{"name": "app.py", "size": 11, "sha256": "bb" * 32}]}
    world.boot(manifests=manifests(entry=entry, version="1.1.0"))
    world.attach("view-1", "clipboard.write")
    world.start(world.current("board").instance_id)
    assert world.ask().code is Code.CAPABILITY_DENIED


@pytest.mark.clause("10")
def test_an_update_that_asks_for_more_stays_off_until_the_person_switches_it_on() -> None:
    world = desk()
    world.boot(manifests=manifests(requested_capabilities=[*ASKED_FOR, "artifact.save"]))
    assert not world.view.enablement.is_enabled("board")
    assert world.call("c0").error_code is Code.APP_DISABLED
    assert "switch.held" in [entry.event for entry in world.view.audit]
    assert world.invoke("c1", "board.open").code is Code.APP_DISABLED
    world.boot()
    assert not world.view.enablement.is_enabled("board")
    world.say(PERSON, h.AppEnable(name="board"))
    world.boot()
    assert world.view.enablement.is_enabled("board")


@pytest.mark.clause("10")
def test_an_update_that_asks_for_less_goes_on_and_what_it_gave_up_counts_as_more_later() -> None:
    world = desk()
    world.boot(manifests=manifests(requested_capabilities=["clipboard.write"]))
    assert world.view.enablement.is_enabled("board")
    world.boot(manifests=manifests())
    assert not world.view.enablement.is_enabled("board")


@pytest.mark.clause("10")
def test_an_app_that_was_off_already_is_not_switched_off_again() -> None:
    world = desk()
    world.say(PERSON, h.AppDisable(name="board"))
    world.boot(manifests=manifests(requested_capabilities=[*ASKED_FOR, "artifact.save"]))
    assert "switch.held" not in [entry.event for entry in world.view.audit]
    assert [one.enabled for one in world.rows(Switch)] == [False]


@pytest.mark.clause("10")
@pytest.mark.parametrize("end", ["close", "fail", "disable"])
def test_a_question_ends_with_its_app(end: str) -> None:
    world = desk()
    request_id = world.asked()
    instance_id = world.current("board").instance_id
    if end == "close":
        world.close(instance_id)
    elif end == "disable":
        world.say(PERSON, h.AppDisable(name="board"))
    else:
        world.die(instance_id, events.Death.VIOLATION)
    if end != "fail":
        assert world.answer(request_id, "always").code is None  # while it closes: a yes that comes too late
        world.die(instance_id, events.Death.KILLED)
    assert world.status(request_id) is CapabilityStatus.CANCELLED
    assert world.executed == []
    assert world.rows(Permission) == []


@pytest.mark.clause("10")
def test_a_host_may_finish_what_it_does_for_an_app_that_is_gone() -> None:
    world = desk()
    request_id = world.asked()
    world.answer(request_id, "once")
    world.die(world.current("board").instance_id, events.Death.VIOLATION)
    assert world.report(request_id).code is None
    assert world.status(request_id) is CapabilityStatus.DONE
    assert world.results() == []


@pytest.mark.clause("5.3")
def test_a_result_waits_for_the_next_life_of_its_app() -> None:
    world = desk()
    request_id = world.asked()
    world.answer(request_id, "once")
    instance_id = world.current("board").instance_id
    world.die(instance_id)
    assert "inbox.delivered" not in world.report(request_id).sent_types
    assert "inbox.delivered" in world.start(instance_id).sent_types
    [row] = [row for row in world.rows(InboxRow) if row.topic == "capability.result"]
    assert row.state is InboxState.DELIVERABLE


# --------------------------------------------------------------------------------- tools that say what they need


def with_permission() -> dict[str, Any]:
    board = manifest_of("board", requested_capabilities=ASKED_FOR)
    tools = [tool.content for tool in board.tools]
    for tool in tools:
        if tool["id"] == "board.peek":
            tool["permissions"] = ["clipboard.write"]
    return manifests(tools=tools)


@pytest.mark.clause("4.2")
def test_a_tool_whose_capability_the_person_refuses_is_not_called() -> None:
    world = Desk(view=DictView(with_permission()))
    world.boot()
    world.attach("view-1", "clipboard.write")
    world.running("c0", "board.open")
    assert world.invoke("c1", "board.peek").code is None  # not refused: consent is asked at the request
    world.answer(world.asked(), "never")
    refused = world.invoke("c2", "board.peek")
    assert refused.code is Code.CAPABILITY_DENIED
    assert world.call("c2").error_code is Code.CAPABILITY_DENIED
    assert world.invoke("c3", "board.once").code is None


@pytest.mark.clause("4.2")
def test_a_no_between_acceptance_and_routing_refuses_the_call() -> None:
    world = Desk(view=DictView(with_permission()))
    world.boot()
    world.attach("view-1", "clipboard.write")
    world.running("c0", "board.open")
    request_id = world.asked()
    invoke = ToolInvoke(envelope=None, call_id="c1", tool_id="board.peek", inventory_revision=world.view.inventory.revision, input={})
    assert world.only(AGENT, invoke).code is None
    world.answer(request_id, "never")
    world.say(KERNEL, events.RouteCall(number=world.call("c1").number))
    assert world.call("c1").error_code is Code.CAPABILITY_DENIED
    assert world.call("c1").delivered_life is None
