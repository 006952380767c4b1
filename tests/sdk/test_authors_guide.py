"""The examples of docs/authors.md and sdk/README.md are written to a folder as they stand, and work."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kernel.core.manifest import parse_manifest
from lineup_sdk.testing import FakeKernel, app_file
from workers import digests

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```\w+ file=([\w.]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def write_examples(page: Path, folder: Path) -> set[str]:
    blocks = _BLOCK.findall(page.read_text())
    for name, text in blocks:
        (folder / name).write_text(text)
    return {name for name, _ in blocks}


def run_pytest(folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), str(folder)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize(("page", "passed"), [("docs/authors.md", 3), ("sdk/README.md", 1)])
def test_the_tests_of_a_page_pass_as_they_are_printed(page: str, passed: int, tmp_path: Path) -> None:
    write_examples(ROOT / page, tmp_path)
    run = run_pytest(tmp_path)
    assert run.returncode == 0, run.stdout
    assert f"{passed} passed" in run.stdout


@pytest.mark.clause("4.1")
def test_the_manifest_of_the_guide_is_taken_by_the_kernel_after_its_digests_are_written(tmp_path: Path) -> None:
    assert write_examples(ROOT / "docs/authors.md", tmp_path) >= {"app.py", "manifest.json", "mend.py", "tidy.py"}
    path = tmp_path / "manifest.json"
    assert digests.main([str(path)]) == 0
    manifest = parse_manifest(json.loads(path.read_bytes()))
    assert manifest.entry is not None
    assert manifest.entry.files[0].size == (tmp_path / "app.py").stat().st_size


async def test_a_refused_result_is_mended_as_the_guide_says(tmp_path: Path) -> None:
    write_examples(ROOT / "docs/authors.md", tmp_path)
    schema = {"type": "object", "additionalProperties": False}
    tool = {"id": "counter.report", "input_schema": schema, "output_schema": schema}
    manifest = {"app_scope": "counter", "version": "1.0.0", "tools": [tool], "subscriptions": []}
    async with FakeKernel(app_file(tmp_path / "mend.py"), manifest=manifest, is_valid=lambda s, v: v.get("text") != "a draft") as kernel:
        assert await (await kernel.call("counter.report", {})).result() == {"text": "short"}
        assert kernel.log == [("log", "warning: tool_output_invalid at /result\n")]


async def test_a_tidy_handler_is_told_of_the_cancel_request_as_the_guide_says(tmp_path: Path) -> None:
    write_examples(ROOT / "docs/authors.md", tmp_path)
    async with FakeKernel(app_file(tmp_path / "tidy.py")) as kernel:
        call = await kernel.call("counter.watch", {})
        await call.wait_running()
        await kernel.cancel(call)
        outcome = await call.wait_outcome()
        assert (outcome.status, outcome.reason) == ("cancelled", "stopped_watching")
        assert call.is_cancel_seen
        assert kernel.saved_state == {"watched": True}
