"""The import contracts of pyproject.toml hold, and they bite: each arrow that points up turns them red."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINT_IMPORTS = Path(sys.executable).with_name("lint-imports")
LINTED = ("conformance", "hosts", "kernel", "sdk/lineup_sdk", "workers")


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{folder}:{folder / 'sdk'}", "COLUMNS": "200"}
    command = [str(LINT_IMPORTS), "--no-cache", "--no-logo"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree in which a test may add one file; it takes it away again."""
    folder = tmp_path_factory.mktemp("house")
    shutil.copy(ROOT / "pyproject.toml", folder)
    for name in LINTED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_every_contract_holds() -> None:
    run = lint_imports(ROOT)
    assert run.returncode == 0, run.stdout + run.stderr
    assert " 0 broken" in run.stdout


def test_a_copy_of_the_tree_is_what_the_copy_is_linted_by(house: Path) -> None:
    """Else the tests below would look at the tree itself and see nothing of what they add."""
    assert lint_imports(house).returncode == 0
    (house / "kernel" / "wal.py").rename(house / "kernel" / "moved.py")
    try:
        assert lint_imports(house).returncode == 1
    finally:
        (house / "kernel" / "moved.py").rename(house / "kernel" / "wal.py")


@pytest.mark.parametrize(
    "package", [*LINTED[:3], "kernel/core", "kernel/protocol", *LINTED[3:], "sdk/lineup_sdk/protocol", "workers/launcher"]
)
def test_a_new_file_without_a_floor_is_refused(house: Path, package: str) -> None:
    novel = house / package / "novel.py"
    novel.write_text("")
    try:
        run = lint_imports(house)
    finally:
        novel.unlink()
    assert run.returncode == 1
    assert "novel" in run.stdout


@pytest.mark.parametrize(
    ("package", "line", "contract"),
    [
        ("conformance", "import hosts.link", "The suite stands on the SDK"),
        ("conformance", "import kernel.core.records", "Nobody sees inside the kernel"),
        ("conformance", "import workers.whiteboard.app", "The suite stands on the SDK"),
        ("hosts/commands", "import kernel.core.records", "Nobody sees inside the kernel"),
        ("hosts/commands", "import lineup_sdk.app", "Kernel and hosts take from the SDK"),
        ("kernel/core", "import kernel.store", "The floors of the kernel"),
        ("kernel/core", "import logging", "What decides and what names messages"),
        ("kernel/core", "import os", "What decides and what names messages"),
        ("kernel/core", "import time", "What decides and what names messages"),
        ("kernel/core", "import trio", "What decides and what names messages"),
        ("kernel/protocol", "import socket", "What decides and what names messages"),
        ("kernel/protocol", "import kernel.core.decision", "The floors of the kernel"),
        ("kernel", "import lineup_sdk.app", "Kernel and hosts take from the SDK"),
        ("kernel", "import workers.launcher.seal", "The launcher is executed, never imported"),
        ("kernel", "import hosts.link", "Hosts and conformance are nobody's library"),
        ("sdk/lineup_sdk/protocol", "import random", "What decides and what names messages"),
        ("sdk/lineup_sdk", "import pydantic", "An app's author installs trio and cbor2"),
        ("workers/task_dashboard", "import kernel.protocol.agent", "Nobody sees inside the kernel"),
        ("workers/task_dashboard", "import workers.launcher.linux", "Apps know neither each other nor the launcher"),
    ],
)
def test_an_arrow_that_points_up_is_refused(house: Path, package: str, line: str, contract: str) -> None:
    novel = house / package / "novel.py"
    novel.write_text(f"{line}\n")
    try:
        run = lint_imports(house)
    finally:
        novel.unlink()
    broken = [text for text in run.stdout.splitlines() if text.startswith(contract) and " BROKEN" in text]
    assert run.returncode == 1
    assert broken, run.stdout
