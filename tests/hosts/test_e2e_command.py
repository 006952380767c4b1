"""The `lineup` command with a real kernel: each verb, each exit code, the door, the demo."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.lineup import run, start

SECONDS = 120


class Command:
    """Runs the command on one home."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environ = os.environ | {"LINEUP_HOME": str(home)}

    def __call__(self, *arguments: str, code: int = 0, stdin: bytes = b"") -> Any:
        """Run; return the JSON of stdout, or of the one error line when it has to fail."""
        done = self.run(*arguments, code=code, stdin=stdin)
        text = done.stdout if code == 0 else done.stderr.splitlines()[-1]
        return json.loads(text)

    def run(self, *arguments: str, code: int = 0, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        done = run(arguments, stdin=stdin, env=self.environ, timeout=SECONDS)
        assert done.returncode == code, done
        return done

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        return start(arguments, stdin=pipe, stdout=pipe, stderr=pipe, env=self.environ)


@pytest.fixture
def lineup(tmp_path: Path) -> Iterator[Command]:
    command = Command(tmp_path / "home")
    yield command
    done = run(["stop"], env=command.environ, timeout=SECONDS)
    assert done.returncode in (0, 4), done.stderr


OPEN = ("call", "task-dashboard.open", "--format", "json", "--args-json", '{"task_id": "t1", "title": "A task"}')


@pytest.mark.clause("2.9")
def test_call_starts_a_kernel_that_the_reading_verbs_then_find(lineup: Command) -> None:
    called = lineup("call", "runtime.status", "--format", "json")
    assert called["status"] == "completed"
    scopes = [instance["app_scope"] for instance in lineup("ps", "--format", "json")["instances"]]
    assert "task-dashboard" not in scopes, "a tool of the kernel's own starts no app"
    listed = lineup("calls", "list", "--format", "json")["calls"]
    assert [call["call_id"] for call in listed] == [called["call_id"]]
    shown = lineup("calls", "show", called["call_id"], "--format", "json")
    assert (shown["status"], shown["result"], shown["source"]) == ("completed", called["result"], "person")
    assert "task-dashboard.open" in [tool["id"] for tool in lineup("inventory", "show", "--format", "json")["tools"]]
    assert lineup("stop", "--format", "json") == {"stopped": True}
    assert lineup("ps", code=4)["code"] == "kernel_unreachable"


def test_audit_and_doctor_work_without_a_kernel_and_audit_also_beside_one(lineup: Command) -> None:
    lineup("call", "runtime.status", "--format", "json")
    assert lineup("audit", "verify", "--format", "json")["ok"] is True
    lineup("stop", "--format", "json")
    verdict = lineup("audit", "verify", "--format", "json")
    exported = lineup.run("audit", "export")
    assert len(exported.stdout.splitlines()) == verdict["rows"]
    assert lineup("doctor", "--format", "json")["ok"] is True


@pytest.mark.clause("6.3")
def test_refusals_have_their_exit_codes(lineup: Command) -> None:
    assert lineup("call", "no.such", code=2)["code"] == "tool_not_advertised"
    bad = lineup("call", "task-dashboard.open", "--args-json", '{"task_id": 5, "title": "x"}', code=2)
    assert (bad["code"], bad["detail"]["pointer"]) == ("tool_input_invalid", "/payload/input/task_id")
    assert lineup("calls", "show", "call_none", code=2)["code"] == "call_not_found"
    assert lineup("app", "disable", "nothing", code=2)["code"] == "tool_not_advertised"
    lineup("app", "disable", "task-dashboard", "--format", "json")
    assert lineup(*OPEN, code=3)["code"] == "app_disabled"
    lineup("app", "enable", "task-dashboard", "--format", "json")


@pytest.mark.clause("6.4")
def test_a_call_id_runs_once_and_its_reuse_for_something_else_is_a_conflict(lineup: Command) -> None:
    first = lineup("call", "runtime.status", "--call-id", "call_once", "--format", "json")
    assert lineup("call", "runtime.status", "--call-id", "call_once", "--format", "json") == first
    assert lineup(*OPEN, "--call-id", "call_once", code=8)["code"] == "call_id_conflict"


@pytest.mark.clause("6.7")
def test_a_call_that_takes_longer_than_the_timeout_goes_on_and_can_be_cancelled(lineup: Command) -> None:
    late = lineup(*OPEN, "--timeout", "2", "--call-id", "call_long", code=6)
    assert (late["code"], late["detail"]["call_id"]) == ("timed_out", "call_long")
    assert lineup("calls", "list", "--state", "open", "--format", "json")["calls"][0]["call_id"] == "call_long"
    assert lineup("calls", "cancel", "call_long", "--format", "json")["accepted"] is True
    ended = lineup(*OPEN, "--call-id", "call_long", code=5)
    assert ended["code"] == "cancelled"
    assert lineup("calls", "cancel", "call_long", code=8)["code"] == "call_already_final"


def _envelope(opened: dict[str, Any], type_: str, message_id: str, payload: dict[str, Any]) -> bytes:
    named = {"type": "lineup.v1." + type_, "message_id": message_id, "conversation_id": opened["conversation_id"]}
    return json.dumps(named | {"created_at": "2026-11-30T12:00:00.000Z", "payload": payload}).encode() + b"\n"


@pytest.mark.clause("11.4")
def test_an_agent_works_through_the_door_and_a_second_one_finds_it_busy(lineup: Command) -> None:
    with lineup.start("agent", "--receipts") as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        opened = json.loads(agent.stdout.readline())
        assert opened["door"] == "open"
        assert lineup("agent", code=8)["code"] == "door_busy"
        payload = {"call_id": "call_a", "tool_id": "runtime.status", "inventory_revision": opened["revision"], "input": {}}
        agent.stdin.write(_envelope(opened, "tool.call", "msg_a", payload))
        agent.stdin.write(b"plain words\n")
        agent.stdin.close()
        lines = [json.loads(line) for line in agent.stdout]
        assert agent.wait(SECONDS) == 0
    results = [line["payload"] for line in lines if line.get("type") == "lineup.v1.tool.result"]
    assert [(result["call_id"], result["status"]) for result in results] == [("call_a", "completed")]
    assert all(line["accepted"] for line in lines if line.get("door") == "receipt")
    assert sum(line.get("door") == "receipt" for line in lines) == 2
    assert lineup("calls", "show", "call_a", "--format", "json")["status"] == "completed"


@pytest.mark.clause("11.4")
def test_the_demo_shows_the_whole_path_and_every_claim_agrees_with_the_kernel(lineup: Command) -> None:
    done = lineup.run("demo")
    lines = done.stdout.decode().splitlines()
    assert "demonstration" in lines[0]
    assert not [line for line in lines if line.startswith("FAIL")]
    for claim in ("task-dashboard.open completed", "rejected inventory_revision_mismatch", "the audit chain holds"):
        assert any(line.startswith("ok") and claim in line for line in lines)
    assert not lineup.home.exists(), "the demo has a home of its own"


def test_what_the_wire_does_not_take_is_the_fault_of_the_argument_not_of_the_kernel(lineup: Command) -> None:
    lineup("call", "runtime.status", "--format", "json")
    assert lineup("calls", "show", "", code=2)["detail"]["pointer"] == "/call_id"
    assert lineup("call", os.fsdecode(b"\xff"), code=2)["code"] == "protocol_violation"
    assert lineup("calls", "list", "--before", str(2**53), code=2)["code"] == "protocol_violation"
    assert lineup("ps", "--format", "json")["instances"]


@pytest.mark.clause("8.4")
def test_apps_are_opened_and_their_sessions_listed_by_number(lineup: Command) -> None:
    lineup("call", "runtime.status", "--format", "json")
    assert lineup("open", "nothing", code=2)["code"] == "app_instance_not_found"
    opened = lineup("open", "task-dashboard", "--format", "json")
    assert lineup("open", "task-dashboard", "--format", "json") == opened
    assert lineup("open", "task-dashboard", "--empty", code=3)["code"] == "lifecycle_denied"
    [session] = [one for one in lineup("sessions", "list", "--format", "json")["sessions"] if one["app_scope"] == "task-dashboard"]
    assert (session["state"], session["instance_id"]) == ("open", opened["instance_id"])
    number = str(session["number"])
    for name in (number, f"#{number}", session["app_session_id"]):
        assert lineup("sessions", "show", name, "--format", "json")["session"]["number"] == session["number"]
    assert lineup.run("sessions", "show", number).stdout == b"(nothing was said while it was in front)\n"
    assert lineup("sessions", "show", "999999", code=2)["code"] == "app_instance_not_found"
    gone_on = lineup("sessions", "continue", number, "--format", "json")
    assert gone_on == {"instance_id": opened["instance_id"], "app_session_id": session["app_session_id"]}
    lineup("app", "disable", "task-dashboard", "--format", "json")
    assert lineup("open", "task-dashboard", code=3)["code"] == "app_disabled"
    assert lineup("interactions", "list", "--format", "json") == {"interactions": [], "more": False}
