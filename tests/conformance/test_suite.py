"""The suite itself: its cases, its generator, its command, its reports, and the list of failures that may only shrink."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from conformance import chaos, inputs
from conformance.__main__ import main, parser_of
from conformance.cases import all_cases
from kernel.core.schema import compile_schema
from tests.conformance.plain_app import plain_app

CASES = all_cases()


def test_there_are_over_a_hundred_numbered_cases_over_many_clauses() -> None:
    assert len(CASES) == len({case.number for case in CASES}) >= 100
    assert len({case.clause for case in CASES}) >= 30
    assert all(first.number < second.number for first, second in pairwise(CASES))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_says_in_one_sentence_what_it_demands_and_needs_only_cases_that_are(case: Any) -> None:
    assert case.demand[0].isupper() or case.demand[0].isdigit() or case.demand.split()[0] in {"hello", "lifecycle.started", "tool.ended"}
    assert case.demand.endswith(".")
    assert case.kind
    assert set(case.needs) <= {other.number for other in CASES} - {case.number}


def test_no_two_cases_demand_the_same() -> None:
    assert len({case.demand for case in CASES}) == len(CASES)


# --- inputs from schemas

_LEAVES = st.one_of(
    st.builds(lambda low, more: {"type": "string", "minLength": low, "maxLength": low + more}, st.integers(0, 20), st.integers(0, 300)),
    st.builds(lambda low, more: {"type": "integer", "minimum": low, "maximum": low + more}, st.integers(-50, 50), st.integers(0, 99)),
    st.builds(lambda low, more: {"type": "number", "minimum": low, "maximum": low + more}, st.integers(-5, 5), st.floats(0, 9)),
    st.sampled_from([{"type": "boolean"}, {"type": "string"}, {"type": "integer"}, {"type": "string", "enum": ["a", "b"]}]),
)
_NAMES = st.sampled_from(["a", "b", "c"])


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties, "required": [n for n in required if n in properties]}


_SCHEMAS = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.builds(_object, st.dictionaries(_NAMES, inner, max_size=3), st.lists(_NAMES, unique=True)),
        st.builds(lambda items, most: {"type": "array", "items": items, "maxItems": most}, inner, st.integers(0, 5)),
    ),
    max_leaves=6,
)


@pytest.mark.clause("4.3")
@given(st.dictionaries(_NAMES, _SCHEMAS, max_size=3), st.lists(_NAMES, unique=True))
def test_every_generated_input_fits_its_schema_for_the_kernel_and_for_an_independent_validator(
    properties: dict[str, Any], required: list[str]
) -> None:
    schema = _object(properties, required)
    compiled, validator = compile_schema(schema), Draft202012Validator(schema)
    made = [inputs.smallest(schema), inputs.fullest(schema), inputs.with_floats(schema), inputs.strange(schema), *inputs.every_enum(schema)]
    for value in made:
        assert compiled.check(value) is None
        assert validator.is_valid(value)


# --- the command


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An app folder whose worker answers ping 0 with 1: C-022 fails, C-021 passes."""
    return _written(tmp_path_factory.mktemp("app"), "from of_the_wire import TakesZeroForNothing\n\napp = TakesZeroForNothing()\n")


def _written(parent: Path, code: str) -> Path:
    app = plain_app(code)
    for name, data in app.files.items():
        (parent / name).write_bytes(data)
    (parent / "manifest.json").write_text(json.dumps(app.manifest))
    (parent / "conformance.json").write_text(json.dumps(app.scenarios))
    return parent


def _main(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def _chaos(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = chaos.main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_table_names_what_broke_and_the_run_fails(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _main(capsys, folder, "--case", "21", "--case", "C-022", "--patience", "2")
    assert code == 1
    assert out.startswith("plain: sealed\n")
    assert "ok   C-021 16" in out
    assert "FAIL C-022 16" in out
    assert "broken clauses: 16" in out


def test_json_holds_every_case_that_was_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _main(capsys, folder, "--case", "22", "--case", "176", "--format", "json", "--patience", "2")
    document = json.loads(out)
    assert code == 1
    assert document["is_sealed"] is True
    assert document["counts"] == {"failed": 1, "not applicable": 1}
    assert [(row["case"], row["status"]) for row in document["cases"]] == [("C-022", "failed"), ("C-176", "not applicable")]


def test_junit_has_a_failure_and_a_skip_with_its_reason(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = _main(capsys, folder, "--case", "22", "--case", "176", "--format", "junit", "--patience", "2")
    suite = ET.fromstring(out)
    assert suite.get("failures") == "1"
    assert [skipped.get("message") for skipped in suite.iter("skipped")] == ["not the system App"]
    assert [row.get("classname") for row in suite.iter("testcase")] == ["clause 16", "clause 9.3"]


def test_a_failure_that_is_expected_does_not_fail_the_run(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "known").write_text("# known\nC-022  it cannot count\n")
    code, out, _ = _main(capsys, folder, "--case", "22", "--expected-failures", tmp_path / "known", "--patience", "2")
    assert code == 0
    assert "(expected: it cannot count)" in out


def test_an_expected_failure_that_passes_fails_the_run(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "known").write_text("C-021  long ago\n")
    code, out, _ = _main(capsys, folder, "--case", "21", "--expected-failures", tmp_path / "known")
    assert code == 1
    assert "C-021 is expected to fail and is passed: take its line out" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nobody-has-this",), "no folder with a manifest.json"),
        (("chat", "--case", "9999"), "no case has the number 9999"),
        (("chat", "--case", "x"), "no number of a case"),
        (("chat", "--expected-failures", "/nowhere"), "cannot be read"),
        (("--command", "/nowhere/worker"), "No such file"),
        (("--command", " "), "the command is empty"),
    ],
)
def test_what_cannot_be_judged_is_said_in_one_line(arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = _main(capsys, *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("requested_capabilities", [{}]),
        ("tools", [[]]),
        ("tools", [{"id": []}]),
        ("tools", {}),
        ("kind", []),
        ("subscriptions", [{"topic": []}]),
    ],
    ids=str,
)
def test_a_manifest_of_another_form_fails_its_case_and_blocks_the_others(
    member: str, value: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = _written(tmp_path, "from good_worker import app\n")
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, member: value}))
    code, out, _ = _main(capsys, folder, "--format", "json")
    assert code == 1
    failed = [row["case"] for row in json.loads(out)["cases"] if row["status"] != "blocked"]
    assert failed == ["C-190"]
    code, _, err = _chaos(capsys, folder, "--steps", "1")
    assert code == 2
    assert "does not fit manifest.schema.json" in err


@pytest.mark.parametrize(
    ("scenarios", "said"),
    [
        ({"answer": {}}, "unknown keys ['answer']"),
        ({"answers": {"input": {}}}, "not in its form"),
        ({"answers": {"tool": [], "input": {}}}, "not in its form"),
        ({"messages": [1]}, "not in its form"),
        ({"messages": [{"topic": {}, "body": {}}]}, "not in its form"),
        ({"ends_open": [{}]}, "not in its form at /ends_open/0"),
        ({"inputs": []}, "not in its form at /inputs"),
        ({"answers": {"tool": "plain.echo", "input": {"text": ""}, "result": 5}}, "not in its form at /answers/result"),
    ],
)
def test_a_scenario_file_in_another_form_is_refused(
    scenarios: dict[str, Any], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = _written(tmp_path, "from good_worker import app\n")
    (folder / "conformance.json").write_text(json.dumps(scenarios))
    code, _, err = _main(capsys, folder)
    assert code == 2
    assert said in err


@pytest.mark.parametrize(
    ("scenarios", "said"),
    [
        ({"stays_open": {"tool": "plain.watch", "input": {}}}, "/stays_open: the Manifest has no tool plain.watch"),
        ({"left_out": {"plain.watch": "why"}}, "/left_out/plain.watch: the Manifest has no tool"),
        ({"answers": {"tool": "plain.echo", "input": {"text": 5}}}, "/answers: the input schema of plain.echo does not admit it at /text"),
        ({"inputs": {"plain.echo": {}}}, "/inputs/plain.echo: the input schema of plain.echo does not admit it at /"),
        ({"ends_open": [{"topic": "plain.gone", "body": {}}]}, "/ends_open/0: the Manifest does not subscribe to plain.gone"),
        ({"answers": {"tool": "plain.echo", "input": {"text": ""}, "before": [{"tool": "x.y", "input": {}}]}}, "/answers/before/0: the"),
    ],
    ids=lambda part: next(iter(part)) if isinstance(part, dict) else "",
)
def test_a_scenario_that_no_kernel_would_play_is_the_fault_of_its_file(
    scenarios: dict[str, Any], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = _written(tmp_path, "from good_worker import app\n")
    (folder / "conformance.json").write_text(json.dumps(scenarios))
    code, out, err = _main(capsys, folder)
    assert (code, out) == (2, "")
    assert said in err
    assert _chaos(capsys, folder)[0] == 2


@pytest.mark.parametrize(
    ("lines", "said"), [("C-999  gone\n", "C-999 is no case"), ("C-021  one\nC-021  two\n", "C-021 stands there twice")]
)
def test_an_expected_failure_that_could_never_be_taken_out_is_refused(
    lines: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "known").write_text(lines)
    code, _, err = _main(capsys, "chat", "--expected-failures", tmp_path / "known")
    assert code == 2
    assert said in err


def test_what_a_command_started_ends_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "held")
    reading = os.open(tmp_path / "held", os.O_RDONLY | os.O_NONBLOCK)
    script = tmp_path / "worker.sh"
    script.write_text(f"sleep 600 > {tmp_path / 'held'} &\nsleep 600\n")
    try:
        _main(capsys, "--command", f"sh {script}", "--case", "1", "--patience", "0.5")
        poll = select.poll()
        poll.register(reading, select.POLLIN)
        assert poll.poll(10_000) == [(reading, select.POLLHUP)]  # nobody holds the other end
    finally:
        os.close(reading)


@pytest.mark.parametrize(("option", "value"), [("--patience", "0"), ("--patience", "nan"), ("--steps", "0"), ("--seconds", "-1")])
def test_a_number_that_is_not_above_zero_is_refused(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        (main if option == "--patience" else chaos.main)(["chat", option, value])
    assert f"{value} is not above zero" in capsys.readouterr().err


def test_the_list_names_every_case(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _main(capsys, "--list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == [case.name for case in CASES]


@pytest.mark.parametrize("verb", ["conformance", "chaos"])
def test_the_lineup_command_passes_arguments_and_exit_code_on(verb: str) -> None:
    command = [sys.executable, "-m", "hosts.cli", verb, "nobody-has-this", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    told = json.loads(done.stderr)
    assert told["code"] == "usage"
    assert "no folder with a manifest.json" in told["message"]


def test_the_lineup_command_has_every_option_of_the_suite() -> None:
    for verb, parser in (("conformance", parser_of()), ("chaos", chaos.parser_of())):
        shown = subprocess.run([sys.executable, "-m", "hosts.cli", verb, "--help"], capture_output=True, text=True, check=True).stdout
        assert [option for action in parser._actions for option in action.option_strings[-1:] if option not in shown] == []


def test_the_lineup_command_says_in_one_line_that_nothing_is_named() -> None:
    done = subprocess.run([sys.executable, "-m", "hosts.cli", "conformance"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert json.loads(done.stderr)["detail"]["pointer"] == "TARGET"
