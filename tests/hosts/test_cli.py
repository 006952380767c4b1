"""The command line without a kernel: usage, formats, exit codes, one error line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from hosts.agents.jsonl import DoorClosed
from hosts.cli import run_command
from hosts.commands.interactions import _row
from hosts.commands.setting import as_failure
from hosts.homes import HomeRefused, choose_home
from hosts.lines import LinesClosed
from hosts.link import KernelUnreachable, LinkLost, Refused
from hosts.output import Exit, Failure, Format, facts, print_failure, table, write_data
from kernel.protocol.host import Goodbye
from lineup_sdk.protocol.codes import Code


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, dict[str, Any]]:
    code = run_command(arguments)
    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert len(lines) <= 1, "a failure is one line"
    return code, captured.out, json.loads(lines[0]) if lines else {}


@pytest.mark.parametrize(
    "verb",
    [
        "ps", "stop", "inventory show", "app list", "app enable x", "app disable x", "calls list", "calls show c", "calls cancel c",
        "answer", "interactions list", "sessions list", "sessions show s", "sessions show 5", "sessions continue s", "open a",
        "inbox parked", "inbox retry 1", "inbox drop 1", "explain x",
        "tail", "logs a", "backup b",
        "permissions list", "permissions revoke board clipboard.write", "permissions reset board", "permissions reset --all",
    ],
)  # fmt: skip
@pytest.mark.clause("2.9")
def test_verbs_that_need_a_kernel_exit_4_when_none_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path, verb: str) -> None:
    code, out, error = _run(capsys, "--home", str(tmp_path), *verb.split(), "--format", "json")
    assert (code, out, error["code"]) == (4, "", "kernel_unreachable")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "pointer"),
    [
        (["nonsense-marker"], "command line"),
        (["calls", "list", "--nope"], "--nope"),
        (["calls", "list", "--limit", "marker"], "--limit"),
        (["calls", "list", "--limit", "0"], "--limit"),
        (["calls", "list", "--state", "marker"], "--state"),
        (["calls", "show"], "call_id"),
        (["interactions", "list", "--state", "marker"], "--state"),
        (["sessions", "list", "--before", "0"], "--before"),
        (["inbox", "drop", "marker"], "number"),
        (["open"], "app"),
        (["calls", "show", "a", "marker"], "command line"),
        (["call", "tool", "--args-json", "marker"], "--args-json"),
        (["call", "tool", "--args-json", '["marker"]'], "--args-json"),
        (["call", "tool", "--args-json", '{"a": NaN}'], "--args-json"),
        (["call", "tool", "--args-json", '{"marker": 1, "marker": 2}'], "--args-json"),
        (["call", "tool", "--timeout", "-1"], "--timeout"),
        (["permissions", "reset"], "APP"),
        (["permissions", "reset", "board", "--all"], "APP"),
        (["permissions", "revoke", "board"], "capability"),
        (["version", "--format", "marker"], "--format"),
        (["tail", "-f", "--format", "marker"], "--format"),
        (["run", "--retention-days", "0"], "--retention-days"),
        (["run", "--retention-days", "marker"], "--retention-days"),
        (["--home", "", "ps"], "--home"),
        ([], "command line"),
    ],
)
def test_bad_arguments_are_one_json_line_with_a_pointer_and_never_the_value(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], pointer: str
) -> None:
    code, out, error = _run(capsys, "--home", str(tmp_path), *arguments)
    assert (code, out, error["code"], error["detail"]["pointer"]) == (2, "", "usage", pointer)
    assert "marker" not in json.dumps(error)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["call", "tool", "--timeout", "marker"], "a number"),
        (["run", "--retention-days", "marker"], "a whole number"),
        (["version", "--format", "marker"], "one of text, json"),
        (["call"], "text"),
    ],
)
def test_a_bad_argument_is_told_what_is_expected(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], expected: str
) -> None:
    _, _, error = _run(capsys, "--home", str(tmp_path), *arguments)
    assert error["detail"]["expected"] == expected
    assert not error["message"].endswith(" for")


def test_what_stands_where_an_option_should_is_not_repeated(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    _, _, error = _run(capsys, "--home", str(tmp_path), "ps", "--what I wrote to somebody")
    assert error["detail"]["pointer"] == "command line"


def test_a_usage_error_is_json_when_json_was_asked_for_even_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_failure(Failure("usage", {"pointer": "x"}), as_json=True)
    assert json.loads(capsys.readouterr().err)["detail"] == {"pointer": "x"}


def test_version_answers_as_text_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys, "version")
    assert (code, out.split()[0]) == (0, "lineup")
    code, out, _ = _run(capsys, "version", "--format=json")
    assert (code, json.loads(out)["wire"]) == (0, 1)


def test_console_without_a_terminal_says_so_and_names_other_ways(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, error = _run(capsys, "--home", str(tmp_path), "console")
    assert (code, error["code"]) == (2, "usage")
    assert "lineup call" in error["detail"]["hint"]


@pytest.mark.parametrize("address", ["localhost", "8.8.8.8", "10.255.255.1", ""])
def test_an_address_that_is_not_for_the_page_is_refused_before_anything_starts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, address: str
) -> None:
    code, _, error = _run(capsys, "--home", str(tmp_path / "home"), "run", "--no-open", "--bind", address)
    assert (code, error["code"], error["detail"]["pointer"]) == (2, "usage", "--bind")
    assert not (tmp_path / "home" / "run").exists()


@pytest.mark.parametrize(
    ("error", "code", "exit_code"),
    [
        (DoorClosed(Goodbye(code="door_busy")), "door_busy", 8),
        (HomeRefused("no"), "store_foreign", 3),
        (KernelUnreachable("sandbox_incomplete"), "sandbox_incomplete", 4),
        (KernelUnreachable("store_locked"), "store_locked", 8),
        (KeyboardInterrupt(), "interrupted_by_person", 130),
        (LinesClosed(), "unexpected", 1),
        (LinkLost(), "kernel_unreachable", 4),
        (Refused("app_disabled"), "app_disabled", 3),
        (Refused("answer_invalid"), "answer_invalid", 2),
        (Refused("call_already_final"), "call_already_final", 8),
        (Refused("interaction_already_final"), "interaction_already_final", 8),
        (Refused("interaction_not_found"), "interaction_not_found", 2),
        (Refused("capability_denied"), "capability_denied", 3),
        (Refused("door_busy"), "door_busy", 8),
        (Refused("expired"), "expired", 6),
        (Refused("tool_input_invalid"), "tool_input_invalid", 2),
        (trio.TooSlowError(), "timed_out", 6),
    ],
)
def test_each_way_to_fail_has_its_exit_code(error: BaseException, code: str, exit_code: int) -> None:
    failure = as_failure(error)
    assert failure is not None
    assert (failure.code, failure.exit_code) == (code, exit_code)


@pytest.mark.parametrize("code", list(Code))
def test_every_code_of_the_kernel_makes_a_sentence_and_an_exit_code(code: Code) -> None:
    failure = Failure(code)
    assert failure.message
    assert failure.exit_code in set(Exit) - {Exit.OK, Exit.INTERRUPTED}


def test_a_bug_is_one_line_with_its_kind_and_place_and_no_text(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    home = f"{tmp_path}/marker\0"  # no shell can say that: it breaks in a way nothing here expects
    code, _, error = _run(capsys, "--home", home, "ps")
    assert (code, error["code"]) == (1, "unexpected")
    assert set(error["detail"]) == {"kind", "place"}
    assert "marker" not in json.dumps(error)


@pytest.mark.clause("2.8")
def test_a_home_that_others_may_write_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    code, _, error = _run(capsys, "--home", str(tmp_path), "call", "runtime.status")
    assert (code, error["code"]) == (3, "store_foreign")


def test_the_option_wins_over_the_variable_and_the_variable_over_xdg(tmp_path: Path) -> None:
    environ = {"LINEUP_HOME": "/a/home", "XDG_STATE_HOME": "/xdg"}
    assert choose_home(tmp_path, environ).folder == tmp_path
    assert choose_home(None, environ).folder == Path("/a/home")
    assert choose_home(None, {"XDG_STATE_HOME": "/xdg"}).folder == Path("/xdg/lineup")
    assert choose_home(None, {}).folder == Path.home() / ".local/state/lineup"


@pytest.mark.clause("11.2")
def test_a_table_shows_untrusted_cells_safely() -> None:
    lines = table([("a", None), ("\x1b[2J\nrow", "x")], ("ONE", "TWO"))
    assert lines == ["ONE       TWO", "a         -", "␛[2J␊row  x"]


@pytest.mark.clause("2.8")
def test_a_home_whose_path_is_too_long_is_refused_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, error = _run(capsys, "--home", "/tmp/" + "x" * 5_000, "ps", "--format", "json")
    assert (code, error["code"], error["message"]) == (3, "store_foreign", "the home folder cannot be used: File name too long")


def test_measured_numbers_are_rounded_for_the_eye_and_kept_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"start_ms": 12.345678, "processes": [{"cpu_seconds": 0.1234567}]}
    assert facts(value) == ["start_ms: 12.346", 'processes: [{"cpu_seconds":0.123}]']
    write_data(value, facts(value), Format.JSON)
    assert json.loads(capsys.readouterr().out) == value


@pytest.mark.clause("12")
def test_a_full_disk_is_a_conflict_that_says_that_nothing_was_lost_and_what_to_do() -> None:
    failure = Failure(Code.STORE_FULL)
    assert failure.exit_code == Exit.CONFLICT
    assert "nothing was lost" in failure.message
    assert "make room" in failure.detail["hint"]
    assert Failure(Code.STORE_FULL, {"hint": "of the target"}).detail["hint"] == "of the target"


@pytest.mark.clause("7.1")
def test_the_list_of_questions_says_who_asks() -> None:
    asked = {"number": 1, "interaction_id": "int_1", "kind": "confirm", "owner_app_scope": "chat", "status": "pending"}
    said = {source: _row(asked | {"source": source, "request": {"title": "T"}})[3] for source in ("agent_tool", "runtime_policy")}
    assert said == {"agent_tool": "agent", "runtime_policy": "lineup"}
    assert _row(asked | {"source": "miniapp_tool", "owner_app_scope": "board", "request": {"title": "T"}})[3] == "board"
