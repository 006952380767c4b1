"""The SDK is light and alone: what it imports, what it ships, and that digests in Manifests are fresh."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from workers import digests

ROOT = Path(__file__).parents[2]


def imported_packages(source: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found.add(str(node.module).partition(".")[0])
    return found


@pytest.mark.parametrize("source", sorted((ROOT / "sdk/lineup_sdk").rglob("*.py")), ids=lambda p: p.name)
def test_the_sdk_imports_nothing_but_trio_cbor2_and_the_standard_library(source: Path) -> None:
    assert imported_packages(source) - sys.stdlib_module_names <= {"cbor2", "lineup_sdk", "trio"}


@pytest.mark.parametrize("source", sorted((ROOT / "workers/task_dashboard").glob("*.py")), ids=lambda p: p.name)
def test_an_app_imports_nothing_but_the_sdk_trio_and_the_standard_library(source: Path) -> None:
    assert imported_packages(source) - sys.stdlib_module_names <= {"lineup_sdk", "trio"}


def test_the_front_door_loads_nothing_until_it_is_used() -> None:
    program = "import sys, lineup_sdk, lineup_sdk.protocol.messages; print('trio' in sys.modules, lineup_sdk.MiniApp.__name__)"
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout
    assert output.split() == ["False", "MiniApp"]


@pytest.mark.clause("4.1")
def test_the_digests_of_every_manifest_are_fresh() -> None:
    paths = [str(p) for p in (*ROOT.glob("manifests/*.json"), *ROOT.glob("tests/fixtures/apps/*/manifest.json"))]
    assert digests.main(["--check", *paths]) == 0


def test_a_changed_file_makes_its_manifest_stale_until_it_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "app.py").write_text("app = 1\n")
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps({"app_scope": "a", "entry": {"main": "app.py", "files": [{"name": "app.py", "size": 1, "sha256": ""}]}}))
    assert digests.main(["--check", str(path)]) == 1
    assert digests.main([str(path)]) == 0
    assert digests.main(["--check", str(path)]) == 0
    (tmp_path / "app.py").write_text("app = 2\n")
    assert digests.main(["--check", str(path)]) == 1
    assert json.loads(path.read_text())["entry"]["files"][0]["size"] == 8
    assert "stale" in capsys.readouterr().err
