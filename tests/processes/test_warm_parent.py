"""What a warm parent forks finds all made as what is executed does: so tests that start forks judge the program itself."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.processes.warm_parent import WarmParent

MODULE = "tests.processes.found_at_start"
SECONDS = 60
EXECUTED, FORKED = "executed", "forked"


@pytest.fixture(scope="module")
def parent() -> Iterator[WarmParent]:
    with closing(WarmParent(MODULE)) as made:
        yield made


def start(parent: WarmParent, way: str, words: list[str], **more: Any) -> subprocess.Popen[Any]:
    if way == FORKED:
        return parent.popen(words, **more)
    return subprocess.Popen([sys.executable, "-m", MODULE, *words], **more)


def told(parent: WarmParent, way: str, *words: str, code: int = 7, **more: Any) -> dict[str, Any]:
    """What one says that was started so, on its stdout."""
    environ = os.environ | {"LINEUP_HOME": "/nowhere", "TERM": "dumb"}
    more = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environ, **more}
    with start(parent, way, [str(code), *words], stdout=subprocess.PIPE, **more) as popen:
        out, _ = popen.communicate(b"", SECONDS)
    assert popen.returncode == code
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"start_new_session": True},
        {"process_group": 0},
        {"stdin": subprocess.DEVNULL, "stderr": subprocess.STDOUT},
        {"stdin": None, "stderr": None},
    ],
    ids=lambda how: " ".join(how) or "plain",
)
def test_a_fork_finds_what_an_executed_one_finds(parent: WarmParent, how: dict[str, Any], tmp_path: Path) -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader), os.fdopen(writer):
        executed, forked = (
            told(parent, way, "a word", os.fsdecode(b"\xff"), "", pass_fds=[writer, reader], **how) for way in (EXECUTED, FORKED)
        )
    assert forked["found"] == executed["found"]
    assert forked["found"]["parent"] == os.getpid()
    assert forked["found"]["arguments"] == ["7", "a word", os.fsdecode(b"\xff"), ""]


def test_a_fork_finds_a_terminal_where_it_is_given_one(parent: WarmParent) -> None:
    master, terminal = pty.openpty()
    try:
        executed, forked = (told(parent, way, stdin=terminal, stderr=terminal) for way in (EXECUTED, FORKED))
    finally:
        os.close(master)
        os.close(terminal)
    assert forked["found"] == executed["found"]
    assert [stream[-1] for stream in forked["found"]["streams"]] == [True, False, True]


def test_a_fork_begins_in_the_folder_it_is_given_and_draws_lots_of_its_own(parent: WarmParent, tmp_path: Path) -> None:
    one, two = (told(parent, FORKED, cwd=tmp_path) for _ in range(2))
    assert one["found"]["folder"] == str(tmp_path)
    assert [a == b for a, b in zip(one["lots"], two["lots"], strict=True)] == [False, False]


def test_a_fork_that_a_signal_ends_says_so(parent: WarmParent) -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader), os.fdopen(writer, "wb") as full:
        os.set_blocking(writer, False)
        full.raw.write(b"x" * (1 << 20))  # type: ignore[attr-defined] # its print waits for room
        os.set_blocking(writer, True)
        forked = parent.popen(["0"], stdout=writer, stdin=subprocess.DEVNULL)
        assert forked.poll() is None
        forked.kill()
        assert forked.wait(SECONDS) == -signal.SIGKILL


def test_an_environment_that_only_an_interpreter_reads_is_refused(parent: WarmParent) -> None:
    with pytest.raises(AssertionError, match="rule 4"):
        parent.popen(["0"], env=os.environ | {"PYTHONHASHSEED": "1"})
