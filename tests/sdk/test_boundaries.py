"""The SDK is light and alone: what it imports, what it ships, and that digests in Manifests are fresh."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from workers import digests

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("module", ["lineup_sdk.app", "lineup_sdk.testing"])
def test_the_sdk_loads_nothing_but_trio_cbor2_and_the_standard_library(module: str) -> None:
    program = f"import json, sys; import {module}; print(json.dumps([[n, getattr(m, '__file__', None)] for n, m in sys.modules.items()]))"
    loaded = json.loads(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout)
    tops = {name.partition(".")[0] for name, file in loaded if file and ("site-packages" in file or str(ROOT) in file)}
    trio_needs = {"attr", "attrs", "outcome", "sniffio", "sortedcontainers", "idna", "exceptiongroup", "_cffi_backend", "cffi"}
    by_name = {"__main__", "_virtualenv"}
    assert {t for t in tops if not t.startswith(("__editable__", "_editable_"))} - trio_needs - by_name == {"cbor2", "lineup_sdk", "trio"}


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
