"""The command line of the kernel's own program, which hosts execute: what cannot be understood is one JSON line and exit code 2."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

LONG = "/tmp/" + "x" * 5_000


def run(*arguments: str) -> tuple[int, str, dict[str, object]]:
    done = subprocess.run([sys.executable, "-P", "-m", "kernel", *arguments], capture_output=True, text=True, timeout=60, check=False)
    lines = done.stderr.splitlines()
    assert len(lines) == 1, lines
    return done.returncode, done.stdout, json.loads(lines[0])


@pytest.mark.parametrize(
    ("arguments", "pointer"),
    [
        ([], "command line"),
        (["marker"], "command"),
        (["serve"], "command line"),
        (["serve", "--home", "marker", "--marker"], "command line"),
        (["serve", "--home", "marker", "--view-fd", "marker"], "--view-fd"),
        (["serve", "--home", "marker", "--view-fd", "77"], "--view-fd"),
        (["serve", "--home", "marker", "--view-fd", "0"], "--view-fd"),
        (["serve", "--home", "marker", "--idle-seconds", "-1"], "--idle-seconds"),
        (["serve", "--home", "marker", "--retention-days", "0"], "--retention-days"),
        (["audit", "marker", "--home", "marker"], "what"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_one_json_line_with_its_place(arguments: list[str], pointer: str) -> None:
    code, out, line = run(*arguments)
    assert (code, out, line["code"], line["pointer"]) == (2, "", "usage", pointer)
    assert line["hint"]
    assert "marker" not in json.dumps(line)


def test_a_home_whose_path_is_too_long_is_refused_in_words() -> None:
    code, _, line = run("serve", "--home", LONG)
    assert (code, line["code"]) == (1, "store_foreign")
    assert "File name too long" in str(line["hint"])


def test_a_home_that_no_kernel_ever_had_has_nothing_audited_yet(tmp_path: Path) -> None:
    code, _, line = run("audit", "verify", "--home", str(tmp_path))
    assert (code, line["code"]) == (1, "unavailable")
    assert "nothing was audited yet" in str(line["hint"])
    assert list(tmp_path.iterdir()) == []
