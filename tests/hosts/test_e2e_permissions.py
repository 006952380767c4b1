"""What the person allows from the command line, with a real kernel and an App that asks (SPEC 7.4, 10)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hosts.commands.permissions import Allow, Deny, decided, find
from hosts.output import Exit, Failure
from tests.hosts.scripted_kernel import consent
from tests.hosts.test_e2e_console import Stage, stage

__all__ = ["stage"]

COPY = {"capability": "clipboard.write", "reason": "To paste it", "arguments": {"text": "copied"}}


def asking(stage: Stage) -> tuple[Any, Any]:
    """A console with an App in front, and an Agent that makes it ask."""
    screen, agent = stage.screen(), stage.agent()
    screen.wait_text("Agent connected")
    screen.enter("/open scribe")
    screen.wait_text("front: Test app scribe")
    return screen, agent


@pytest.mark.clause("10")
def test_what_an_app_asks_for_is_listed_and_answered_by_the_command_and_done_by_the_console(stage: Stage) -> None:
    screen, agent = asking(stage)
    assert stage.run("permissions", "asked") == {"consents": []}
    assert stage.run("permissions", "answer", "--allow", "once", code=3)["code"] == "capability_denied"
    first = agent.call("scribe.copy", {"json": json.dumps(COPY)})
    screen.wait_text("Your consent is asked for")
    [asked] = stage.run("permissions", "asked")["consents"]
    assert (asked["app_scope"], asked["capability"], asked["arguments"]) == ("scribe", "clipboard.write", {"text": "copied"})
    assert stage.run("permissions", "answer", str(asked["number"]), "--allow", "open")["accepted"]
    screen.wait_raw(b"\x1b]52;c;")
    assert json.loads(agent.result(first)["result"]["json"])["status"] == "done"
    assert stage.run("permissions", "list")["permissions"][0]["scope"] == "while_open"
    assert stage.run("permissions", "answer", asked["request_id"], "--allow", "always", code=3)["code"] == "capability_denied"

    stage.run("permissions", "revoke", "scribe", "clipboard.write")
    denied = agent.call("scribe.copy", {"json": json.dumps(COPY)})
    screen.wait_text("Your consent is asked for")
    stage.run("permissions", "answer", "--deny", "always")
    assert json.loads(agent.result(denied)["result"]["json"])["status"] == "denied"
    assert stage.run("permissions", "list")["permissions"][0]["scope"] == "never"


@pytest.mark.clause("7.4")
def test_a_policy_is_set_by_name_and_only_for_what_a_manifest_requests(stage: Stage) -> None:
    stage.screen()
    assert stage.run("policy", "set", "standard-interaction:asker", "--allow")["accepted"]
    assert stage.run("policy", "set", "standard-interaction:asker", "--revoke")["accepted"]
    refused = stage.run("policy", "set", "standard-interaction:fixture", "--allow", code=3)
    assert (refused["code"], refused["detail"]["pointer"]) == ("capability_denied", "/name")
    assert stage.run("policy", "set", "standard-interaction:asker", code=2)["code"] == "usage"


def test_yes_and_no_are_said_in_words_and_only_one_of_them() -> None:
    assert [decided(allow, None) for allow in Allow] == ["once", "while_open", "always"]
    assert [decided(None, deny) for deny in Deny] == ["deny", "never"]
    for allow, deny in ((None, None), (Allow.ONCE, Deny.ONCE)):
        with pytest.raises(Failure) as refused:
            decided(allow, deny)
        assert refused.value.exit_code is Exit.USAGE


def test_a_request_is_named_by_number_or_id_or_not_at_all_while_one_waits() -> None:
    one, two = consent(30), consent(31)
    assert find([one], None) is one
    for name in ("31", "#31", "cap_31"):
        assert find([one, two], name) is two
    for waiting, name, code in (([one, two], None, Exit.USAGE), ([], None, Exit.DENIED), ([one], "9", Exit.DENIED)):
        with pytest.raises(Failure) as refused:
            find(waiting, name)
        assert refused.value.exit_code is code
