"""The capability gateway: what is refused before anybody is asked, one grant for one use, standing answers, unknown ends (SPEC 10)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any

import pytest

from kernel.core import events
from kernel.core.capability_catalog import (
    CATALOG,
    KNOWN_UNSUPPORTED,
    MAX_CLIPBOARD_LENGTH,
    MAX_FILE_NAME_LENGTH,
    MAX_NOTICE_BODY_LENGTH,
    MAX_NOTICE_TITLE_LENGTH,
)
from kernel.core.capability_records import CapabilityRequest, ConsentScope, Permission
from kernel.core.decision import Origin, Speaker
from kernel.core.limits import (
    HOST_ACTION_MS,
    MAX_CAPABILITY_REASON,
    MAX_INBOX_ROWS,
    MAX_OPEN_CAPABILITY_REQUESTS,
    MAX_OPEN_CAPABILITY_REQUESTS_OF_INSTANCE,
)
from kernel.core.machines import CAPABILITY_OPEN, CapabilityStatus, InboxState, InstanceState, PermissionState
from kernel.core.records import InboxRow, Source, Switch, decode_body
from kernel.core.surface_effects import SendToView
from kernel.protocol import host as h
from kernel.protocol import host_capabilities as hc
from kernel.protocol.agent import ToolInvoke
from lineup_sdk.protocol import capability_messages as c
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject
from tests.core.dict_view import MANIFESTS, DictView, manifest_of
from tests.core.world import AGENT, KERNEL, PERSON, Outcome, World

ASKED_FOR = ["clipboard.write", "notification.show", "microphone", "camera", "clipboard.read", "file.pick", "telepathy"]
TEXT = {"text": "hello"}
NOTICE = {"title": "Done", "body": "The drawing is ready"}


@dataclass
class Desk(World):
    """A World with an App in front that may ask for things, and views that can do them. It keeps every frame to a host, in order."""

    frames: list[tuple[str, m.Message]] = field(default_factory=list)

    def say(self, origin: Origin, command: object) -> Outcome:
        outcome = super().say(origin, command)
        for effect in outcome.effects:
            if isinstance(effect, SendToView):
                self.frames.append((effect.view_id, effect.message))
        return outcome

    @property
    def executed(self) -> list[tuple[str, str]]:
        """(view, request id) of every frame that asks a host to act."""
        return [(view_id, message.request_id) for view_id, message in self.frames if isinstance(message, hc.CapabilityExecute)]

    def attach(self, view_id: str, *providers: str) -> None:
        assert self.say(view(view_id), events.ViewAttached(providers=frozenset(providers))).code is None

    def leave(self, view_id: str) -> Outcome:
        return self.say(view(view_id), events.ViewLeft())

    def ask(self, capability: str = "clipboard.write", arguments: JsonObject | None = None, reason: str = "to paste it", **more: Any) -> Outcome:
        """The worker of board asks."""
        asked = c.CapabilityRequest(capability=capability, reason=reason, arguments=TEXT if arguments is None else arguments, **more)
        return self.tell(self.current("board").instance_id, asked)

    def asked(self, *args: Any, **more: Any) -> str:
        outcome = self.ask(*args, **more)
        assert outcome.code is None and outcome.value is not None, outcome
        return str(outcome.value["request_id"])

    def request(self, request_id: str) -> CapabilityRequest:
        found = self.view.capabilities.request(request_id)
        assert found is not None
        return found

    def answer(self, request_id: str, decision: str, by: str = "view-1") -> Outcome:
        shown = self.request(request_id).shown_digest.hex()
        return self.say(view(by), hc.ConsentAnswer(request_id=request_id, decision=decision, shown=shown))

    def report(self, request_id: str, status: str = "done", by: str = "view-1", reason: str | None = None) -> Outcome:
        return self.say(view(by), hc.ProviderResult(request_id=request_id, status=status, reason=reason))

    def results(self) -> list[JsonObject]:
        """The bodies of every capability.result there ever was."""
        return [decode_body(row.body_cbor) for row in self.rows(InboxRow) if row.topic == "capability.result"]

    def status(self, request_id: str) -> CapabilityStatus:
        return self.request(request_id).status


def view(view_id: str) -> Origin:
    return Origin(speaker=Speaker.VIEW, source=Source.PERSON, view_id=view_id)


def manifests(**changes: Any) -> dict[str, Any]:
    return MANIFESTS | {"board": manifest_of("board", **({"requested_capabilities": ASKED_FOR} | changes))}


MANIFESTS_HERE = manifests()


def desk(*, views: bool = True, app: bool = True) -> Desk:
    world = Desk(view=DictView(MANIFESTS_HERE))
    world.boot()
    if views:
        world.attach("view-1", "clipboard.write", "notification.show")
    if app:
        world.running("c0", "board.open")
    return world


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
    assert outcome.audit == ["command.refused"] and outcome.puts == []
    assert world.frames == [] and world.rows(CapabilityRequest) == []


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
    assert mismatch is not None and mismatch.pointer == f"/{name}"


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
    assert asked.audit == ["capability.asked"] and world.frames == []
    answered = world.answer(request_id, "once")
    assert answered.audit == ["capability.granted"]
    [grant] = [record for record in answered.puts if isinstance(record, CapabilityRequest)]
    assert grant.status is CapabilityStatus.GRANTED and grant.provider_view_id == "view-1" and grant.scope is ConsentScope.ONCE
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
    assert world.executed == [] and world.rows(Permission) == []
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


# --------------------------------------------------------------------------------- unknown


@pytest.mark.clause("10")
@pytest.mark.invariant("52")
def test_a_host_that_leaves_before_it_answered_leaves_an_unknown_end_and_no_other_is_asked() -> None:
    world = desk()
    world.attach("view-2", "clipboard.write")
    first, second = world.asked(), world.asked()
    world.answer(first, "once")
    world.answer(second, "once", by="view-2")
    world.leave("view-1")
    assert world.status(first) is CapabilityStatus.UNKNOWN
    assert world.status(second) is CapabilityStatus.GRANTED
    assert len(world.executed) == 2
    assert [(one["status"], one["code"]) for one in world.results()] == [("unknown", "unknown")]


@pytest.mark.clause("10")
@pytest.mark.clause("12")
@pytest.mark.invariant("52")
def test_what_a_dead_kernel_granted_is_unknown_and_what_it_asked_is_asked_still() -> None:
    world = desk()
    granted, asked = world.asked(), world.asked("notification.show", NOTICE)
    world.answer(granted, "once")
    frames = list(world.frames)
    world.boot()
    assert world.status(granted) is CapabilityStatus.UNKNOWN
    assert world.status(asked) is CapabilityStatus.ASKED
    assert world.frames == frames
    world.boot()
    assert world.frames == frames and [one["status"] for one in world.results()] == ["unknown"]
    world.start(world.current("board").instance_id)
    world.attach("view-1", "notification.show")
    world.answer(asked, "once")
    assert world.executed[-1] == ("view-1", asked)


@pytest.mark.clause("10")
def test_a_yes_that_was_written_and_never_sent_is_not_sent_by_the_next_start() -> None:
    world = desk()
    request_id = world.asked()
    shown = world.request(request_id).shown_digest.hex()
    world.only(view("view-1"), hc.ConsentAnswer(request_id=request_id, decision="once", shown=shown))  # its frame never left
    world.boot()
    assert world.executed == []
    assert world.status(request_id) is CapabilityStatus.UNKNOWN


@pytest.mark.clause("10")
def test_attached_views_are_of_one_run() -> None:
    world = desk()
    world.boot()
    world.start(world.current("board").instance_id)
    assert world.ask().code is Code.CAPABILITY_UNSUPPORTED


# --------------------------------------------------------------------------------- standing answers


@pytest.mark.clause("10")
def test_always_spares_the_next_question_and_each_use_has_a_grant_of_its_own() -> None:
    world = desk()
    first = world.asked()
    world.answer(first, "always")
    outcome = world.ask()
    assert outcome.value is not None and outcome.value["status"] == "granted"
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
    world.say(PERSON, h.AppClose(instance_id=instance_id, cancel_calls=True))
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
        world.say(PERSON, h.AppClose(instance_id=instance_id, cancel_calls=True))
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


# --------------------------------------------------------------------------------- the call it belongs to


@pytest.mark.clause("6.6")
@pytest.mark.clause("10")
@pytest.mark.parametrize("decision", ["once", "deny"])
def test_the_time_in_which_the_person_is_asked_is_not_the_calls(decision: str) -> None:
    world = desk()
    world.running("c1", "board.peek")
    limit = world.call("c1").deadline
    assert limit is not None
    left = limit.at_ms - world.boottime_ms
    world.wait(1_000)
    request_id = world.asked(parent_call_id="c1")
    assert world.call("c1").deadline is None
    world.pass_time(3_600_000)
    assert world.call("c1").error_code is None
    world.answer(request_id, decision)
    resumed = world.call("c1").deadline
    assert resumed is not None and resumed.at_ms - world.boottime_ms == left - 1_000
    if decision == "once":  # the host's time is machine time
        world.wait(500)
        world.report(request_id)
        assert world.call("c1").deadline == resumed


@pytest.mark.clause("10")
def test_a_parent_call_is_an_own_open_one_and_a_foreign_id_answers_as_an_unknown_one() -> None:
    world = desk()
    world.running("n1", "notes.open")
    world.running("c1", "board.peek")
    world.tell(world.current("board").instance_id, m.ToolFail(call_id="c1", reason="no"))
    world.say(PERSON, h.FocusRaise(instance_id=world.current("board").instance_id))
    foreign, unknown = world.ask(parent_call_id="n1"), world.ask(parent_call_id="nobody")
    assert (foreign.code, foreign.detail) == (unknown.code, unknown.detail) == (Code.CALL_NOT_FOUND, foreign.detail)
    assert world.ask(parent_call_id="c1").code is Code.CALL_ALREADY_FINAL


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


# --------------------------------------------------------------------------------- the trace


@pytest.mark.clause("10")
@pytest.mark.invariant("52")
def test_every_frame_to_a_host_has_an_earlier_durable_grant_of_its_own() -> None:
    """A crash at each point of each story: a host is asked at most once a request, and only for what is granted on disk by then."""
    steps = ("ask", "answer", "report", "leave", "boot", "revoke", "due")
    beginning = desk()
    for order in permutations(steps, 3):
        world = replace(beginning, view=beginning.view.copy(), frames=[])
        waiting = [world.asked()]
        for step in order:
            durable = {one.request_id for one in world.rows(CapabilityRequest) if one.scope is not None}
            before = len(world.executed)
            act(world, step, waiting)
            now = {one.request_id for one in world.rows(CapabilityRequest) if one.scope is not None}
            for _, request_id in world.executed[before:]:
                assert request_id in now - durable  # granted in the very turn that asked the host, and in no other
        asked_hosts = [request_id for _, request_id in world.executed]
        assert len(asked_hosts) == len(set(asked_hosts))
        for request in world.rows(CapabilityRequest):
            assert (request.status in CAPABILITY_OPEN) == (request.arguments_cbor is not None)
        ended = [one.request_id for one in world.rows(CapabilityRequest) if one.status not in CAPABILITY_OPEN]
        assert sorted(result["request_id"] for result in world.results()) == sorted(ended)


def act(world: Desk, step: str, waiting: list[str]) -> None:
    newest = waiting[-1]
    match step:
        case "ask":
            outcome = world.ask()
            if outcome.value is not None:
                waiting.append(outcome.value["request_id"])
        case "answer":
            world.answer(newest, "always")
        case "report":
            world.report(newest)
        case "leave":
            world.leave("view-1")
        case "boot":
            world.boot()
            world.start(world.current("board").instance_id)
            world.attach("view-1", "clipboard.write")
        case "revoke":
            world.say(PERSON, hc.PermissionsRevoke(app_scope="board", capability="clipboard.write"))
        case "due":
            world.pass_time(HOST_ACTION_MS)
