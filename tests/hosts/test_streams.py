"""The command with streams that are full, gone or were never given: one line that says so, an exit code, never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_LINEUP = (sys.executable, "-m", "hosts.cli")


def _failure_of(stderr: bytes) -> str:
    [line] = stderr.decode().splitlines()
    return str(json.loads(line)["message"])


def test_output_that_does_not_fit_is_said_in_one_line_and_fails() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*_LINEUP, "version"], stdout=full, stderr=subprocess.PIPE, check=False, timeout=30)
    assert (done.returncode, _failure_of(done.stderr)) == (1, "the output cannot be written: No space left on device")


def test_output_that_nobody_reads_is_said_in_one_line_and_fails() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        done = subprocess.run([*_LINEUP, "version"], stdout=closed, stderr=subprocess.PIPE, check=False, timeout=30)
    assert (done.returncode, _failure_of(done.stderr)) == (1, "nobody reads the output any more")


def test_a_missing_stdout_is_said_in_one_line_and_fails() -> None:
    done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *_LINEUP, "version"], stderr=subprocess.PIPE, check=False, timeout=30)
    assert (done.returncode, _failure_of(done.stderr)) == (1, "the output cannot be written: Bad file descriptor")


@pytest.mark.parametrize("given", ["2>/dev/full", "2>&-"])
def test_a_stderr_that_takes_nothing_changes_neither_data_nor_exit_code(given: str, tmp_path: Path) -> None:
    shell = ["sh", "-c", f'exec "$@" {given}', "sh", *_LINEUP, "--home", str(tmp_path)]
    good = subprocess.run([*shell, "version", "--format", "json"], stdout=subprocess.PIPE, check=False, timeout=30)
    assert (good.returncode, json.loads(good.stdout)["wire"]) == (0, 1)
    assert subprocess.run([*shell, "ps"], stdout=subprocess.DEVNULL, check=False, timeout=30).returncode == 4
