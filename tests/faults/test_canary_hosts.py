"""No word of anybody's is in what the hosts write but the data they show: the verbs and the console, with the marker in every argument
(SPEC 17, INV-56). On stdout a host shows the person what is theirs; error lines, logs and the audit hold none of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from hosts.cli import run_command
from hosts.homes import Home
from tests.faults.canary_judge import telling_files, telling_lines
from tests.faults.marked import MARK
from tests.hosts import lineup
from tests.hosts.screen import SECONDS, DoorAgent, Screen, environ, with_apps
from tests.processes.written_app import ASKER, FIXTURE

pytestmark = [pytest.mark.clause("17"), pytest.mark.invariant("56")]

QUESTIONS = {
    "choice": {"title": MARK, "prompt": MARK, "mode": "single-choice", "actions": [{"id": MARK, "label": MARK}]},
    "confirm": {"title": MARK, "prompt": MARK},
    "input": {"title": MARK, "prompt": MARK, "fields": [{"id": MARK, "label": MARK, "type": "textarea", "required": True}]},
}
ANSWERS = {"choice": ("number>", "type the number", "1"), "confirm": ("y/n>", "y or n", "y"), "input": (f"{MARK}>", "Enter sends>", "")}
# What they say holds no content, not even as data.
CONTENT_FREE = (("audit", "verify"), ("audit", "export"), ("tail",), ("ps",), ("version",))
GOOD = (
    ("call", "fixture.echo", "--args-json", json.dumps({"text": MARK}), "--call-id", MARK),
    ("call", "fixture.print", "--args-json", json.dumps({"text": MARK})),
    *(("calls", *rest) for rest in (("list",), ("show", MARK), ("list", "--format", "json"))),
    *(("app", *rest) for rest in (("list",), ("disable", "fixture"), ("enable", "fixture"))),
    *((word, "list") for word in ("interactions", "permissions", "sessions")),
    ("explain", MARK),
    ("inbox", "parked"),
    ("inventory", "show"),
    ("logs", "fixture"),
    ("open", "whiteboard"),
    ("permissions", "asked"),
    ("permissions", "reset", MARK),
    ("policy", "set", "standard-interaction:asker", "--allow"),
)
FAILS = ("call", "fixture.fail", "--args-json", json.dumps({"reason": "no", "message": MARK}))
BAD = (
    ("call", MARK),
    ("call", "fixture.echo", "--args-json", json.dumps({MARK: MARK})),
    ("call", "fixture.echo", "--args-json", json.dumps({"text": MARK * 2}), "--call-id", MARK),
    ("call", "fixture.echo", "--args-json", MARK),
    ("call", "fixture.echo", "--timeout", MARK),
    ("call", "fixture.raise", "--args-json", json.dumps({"text": MARK})),
    ("call", "fixture.crash", "--args-json", json.dumps({"times": 9})),
    ("call", "fixture.echo", "--args-json", json.dumps({"text": MARK * 9_000})),
    *(("calls", *rest) for rest in (("show", f"{MARK}-none"), ("cancel", MARK), ("cancel", f"{MARK}-none"), ("list", "--state", MARK))),
    *(("app", switch, MARK) for switch in ("disable", "enable")),
    *(("sessions", *rest) for rest in (("show", MARK), ("continue", MARK), ("list", "--before", MARK))),
    *(("interactions", "list", option, MARK) for option in ("--state", "--limit")),
    *(("inbox", word, given) for word in ("retry", "drop") for given in (MARK, "7")),
    *(("permissions", *rest) for rest in (("answer", MARK, "--allow", "once"), ("answer", MARK, "--allow", MARK))),
    ("permissions", "revoke", MARK, MARK),
    ("policy", "set", MARK, "--allow"),
    *((word, f"{MARK}-none") for word in (MARK, "answer", "explain", "logs", "open")),
    ("answer", "1", "--field", f"{MARK}={MARK}"),
    ("agent", MARK),
    ("backup", f"/{MARK}/{MARK}"),
    ("backup", f"/{MARK * 40}"),
    ("restore", f"/{MARK}/{MARK}"),
    ("run", "--no-open", "--bind", MARK),
    ("ps", "--format", MARK),
)


class Said(NamedTuple):
    """What a verb said, and its exit code."""

    words: Sequence[str]
    code: int
    out: str
    errors: str


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / f"home-{MARK}")
    yield made
    lineup.run(["stop"], env=environ(made), timeout=SECONDS)


def said_by(capfd: pytest.CaptureFixture[str], home: Home, words: Sequence[str]) -> Said:
    """Run a verb to its end, in this process."""
    code = run_command(["--home", str(home.folder), *with_apps([ASKER, FIXTURE]), *words])
    return Said(words, code, *capfd.readouterr())


def test_error_lines_of_verbs_logs_and_audit_hold_no_word_of_their_arguments(
    reaping: None, home: Home, capfd: pytest.CaptureFixture[str]
) -> None:
    good = [said_by(capfd, home, words) for words in GOOD]
    bad = [said_by(capfd, home, words) for words in BAD]
    free = [said_by(capfd, home, words) for words in CONTENT_FREE]
    told = json.loads(said_by(capfd, home, FAILS).errors)
    lines = b'%s\n{"type": "%s"}\n\xff%s\n' % ((MARK.encode(),) * 3)
    spoken = lineup.run(["agent", "--no-wait"], stdin=lines, env=environ(home), timeout=SECONDS)
    spoken.check_returncode()
    assert [one.words for one in (*good, *free) if one.code] == []
    assert [one.words for one in bad if not one.code] == []
    assert MARK in "".join(one.out for one in good), "a host shows the person what is theirs"
    errors = [spoken.stderr.decode(), *(one.errors for one in (*good, *bad, *free)), *(one.out for one in free)]
    assert [line for text in errors for line in telling_lines(text)] == []
    assert told["detail"].pop("message") == MARK, "what an App says to whoever called its tool is theirs"
    assert MARK not in json.dumps(told)
    assert [one.words for one in bad if len(one.errors.splitlines()) != 1] == [], "a failure is one line"
    assert said_by(capfd, home, ("stop",)).code == 0
    assert telling_files(home.folder) == []


def test_a_console_that_shows_and_takes_words_writes_none_of_them_down(reaping: None, home: Home, tmp_path: Path) -> None:
    errors = tmp_path / "stderr"
    screen = Screen(home, 140, 40, apps=[ASKER, FIXTURE], errors=errors)
    agent = None
    try:
        screen.wait_text("kernel up")
        agent = DoorAgent(home)
        agent.send("message.text", {"text": MARK})
        agent.send("task.update", {"task_id": MARK, "title": MARK, "state": "running", "summary": MARK})
        screen.wait_text(MARK)
        screen.enter(f"said {MARK}")
        screen.wait_text(f"said {MARK}")
        for command in ("allow", "answer", "cancel", "close", "continue", "deny", "drop", "empty", "front", "logs", "mode", "move"):
            screen.enter(f"/{command} {MARK}")
        for command in ("open", "retry", "session", "why", MARK):
            screen.enter(f"/{command} {MARK}")
        for page in ("apps", "calls", "consent", "parked", "questions", "sessions", "surface", "help", "chat"):
            screen.enter(f"/{page}")
        for kind, (prompt, last, right) in ANSWERS.items():
            call_id = agent.call(f"interaction.{kind}", QUESTIONS[kind])
            screen.wait_text("1 to answer")
            screen.enter("/answer")
            screen.wait_text(prompt)
            screen.enter(MARK)  # what a choice and a confirm refuse
            screen.wait_text(last)
            screen.enter(right)
            assert agent.result(call_id)["result"]["outcome"] == "answered"
            screen.wait_without("to answer")  # else the next wait sees this one
        screen.resize(60, 20)
        screen.wait_text("kernel up")
        screen.enter("/quit")
        assert screen.wait_end() == 0
    finally:
        screen.close()
        if agent is not None:
            agent.close()
    assert MARK.encode() in screen.raw
    assert telling_lines(errors.read_text()) == []
    assert run_command(["--home", str(home.folder), "stop"]) == 0
    assert telling_files(home.folder) == []
