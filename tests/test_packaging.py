"""What is installed is what is stated: requirement lists, locks, wheels; and no file tells where it was written."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from email.parser import Parser
from itertools import pairwise
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]
RUNTIME: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
SDK: dict[str, Any] = tomllib.loads((ROOT / "sdk" / "pyproject.toml").read_text("utf-8"))
LOCKS = (ROOT / "requirements.lock", ROOT / "requirements-bench.lock", ROOT / "requirements-fuzz.lock")

# This machine itself, addresses and names that stand for nobody (RFC 2606, RFC 5737), and what a program fills in.
NOWHERE = re.compile(r"(127\.0\.0\.1|0\.0\.0\.0|localhost|\[::1)(:.*)?|(.*\.)?example(\..*)?|203\.0\.113\.\d+|\{.*")
LINKS_ARE_ALLOWED_TO = {"json-schema.org", "keepachangelog.com", "semver.org", "trio.readthedocs.io", "www.apache.org", "www.w3.org"}
_NAME = re.compile(r"^([A-Za-z0-9._-]+)")
_PIN = re.compile(r"^([a-z0-9._-]+)(?:\[[a-z,]+\])?==(\S+) \\$")
_HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}( \\)?$")


def names_of(requirements: list[str]) -> set[str]:
    found = [_NAME.match(line) for line in requirements if line.strip() and not line.startswith("#")]
    return {match[1].lower().replace("_", "-") for match in found if match}


def stated_names() -> set[str]:
    lists = [RUNTIME["project"]["dependencies"], *RUNTIME["project"]["optional-dependencies"].values(), SDK["project"]["dependencies"]]
    builds = [RUNTIME["build-system"]["requires"], SDK["build-system"]["requires"], ["editables"]]
    return set().union(*map(names_of, lists + builds)) - {SDK["project"]["name"]}


def pins_of(lock: Path) -> dict[str, str]:
    return {match[1]: match[2] for line in lock.read_text("utf-8").splitlines() if (match := _PIN.match(line))}


def files_of_the_tree() -> Iterator[Path]:
    generated = {"__pycache__", "build", "dist", "node_modules"}
    for top in sorted(ROOT.iterdir()):
        if top.name in generated or (top.name.startswith(".") and top.name not in {".ci", ".gitignore"}):
            continue
        inside = sorted(top.rglob("*")) if top.is_dir() else [top]
        yield from (path for path in inside if path.is_file() and not generated & set(path.relative_to(ROOT).parts))


def test_requirements_are_the_third_party_names_of_both_projects_and_what_builds_them() -> None:
    assert names_of((ROOT / "requirements.in").read_text("utf-8").splitlines()) == stated_names()


def test_every_stated_name_is_pinned() -> None:
    assert stated_names() <= {name.replace("_", "-") for name in pins_of(LOCKS[0])}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_every_line_of_a_lock_is_a_pin_a_hash_or_a_reason(lock: Path) -> None:
    """So no line names a host, an index, a path or a version range."""
    lines = lock.read_text("utf-8").splitlines()
    assert [line for line in lines if not (_PIN.match(line) or _HASH.match(line) or re.match(r"^(    )?#", line))] == []
    assert not re.search(r"://|--index-url|--find-links|--trusted-host", lock.read_text("utf-8"))


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_every_pin_of_a_lock_has_a_hash(lock: Path) -> None:
    lines = lock.read_text("utf-8").splitlines()
    following = [after for line, after in pairwise(lines) if _PIN.match(line)]
    assert following
    assert [line for line in following if not _HASH.match(line)] == []


@pytest.mark.parametrize("lock", LOCKS[1:], ids=lambda path: path.name)
def test_what_measures_and_fuzzes_runs_on_the_versions_that_we_run_on(lock: Path) -> None:
    ours = pins_of(LOCKS[0])
    assert {name: version for name, version in pins_of(lock).items() if ours.get(name, version) != version} == {}


def test_both_projects_have_one_version_and_the_runtime_asks_for_exactly_this_sdk() -> None:
    assert RUNTIME["project"]["version"] == SDK["project"]["version"]
    assert f"{SDK['project']['name']}=={SDK['project']['version']}" in RUNTIME["project"]["dependencies"]


def wheel_of(project: Path, folder: Path) -> ZipFile:
    """Build a wheel as `pip install` would, without any index."""
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, "-w", str(folder), str(project)], check=True, timeout=120)
    [wheel] = folder.glob("*.whl")
    return ZipFile(wheel)


def metadata_of(wheel: ZipFile) -> tuple[str, set[str]]:
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    headers = Parser().parsestr(wheel.read(name).decode())
    return headers["Name"], names_of([text for text in headers.get_all("Requires-Dist", []) if "extra ==" not in text])


def test_the_wheel_of_the_sdk_holds_the_wire_for_every_language_and_its_types(tmp_path: Path) -> None:
    with wheel_of(ROOT / "sdk", tmp_path) as wheel:
        held, (name, needs) = set(wheel.namelist()), metadata_of(wheel)
    package = ROOT / "sdk" / "lineup_sdk"
    there = {str(path.relative_to(ROOT / "sdk")) for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    vectors = {f"lineup_sdk/protocol/vectors/{path.name}" for path in (package / "protocol" / "vectors").iterdir()}
    assert {path for path in held if ".dist-info/" not in path} == there
    assert {"lineup_sdk/py.typed", "lineup_sdk/protocol/wire.cddl", "lineup_sdk/protocol/manifest.schema.json"} | vectors <= held
    assert len(vectors) >= 4
    assert any(path.endswith(".dist-info/licenses/LICENSE") for path in held)
    assert (name, needs) == ("lineup-sdk", {"cbor2", "trio"})


def test_the_wheel_of_the_runtime_holds_schema_manifests_and_launcher_and_no_test(tmp_path: Path) -> None:
    with wheel_of(ROOT, tmp_path) as wheel:
        held, (name, _) = set(wheel.namelist()), metadata_of(wheel)
        [entry_points] = [wheel.read(path).decode() for path in held if path.endswith("entry_points.txt")]
    manifests = {f"manifests/{path.name}" for path in (ROOT / "manifests").glob("*.json")}
    assert manifests
    assert manifests | {"kernel/schema.sql", "workers/launcher/zygote.py", "workers/task_dashboard/app.py"} <= held
    tops = {path.partition("/")[0] for path in held if ".dist-info/" not in path}
    assert tops == {"conformance", "hosts", "kernel", "manifests", "workers"}
    assert any(path.endswith(".dist-info/licenses/LICENSE") for path in held)
    assert name == "lineup-runtime"
    assert "lineup = hosts.cli:main" in entry_points


def test_no_file_tells_where_it_was_written_or_points_to_a_host_that_is_not_a_standard() -> None:
    """Home folders, the path of this checkout, and links: the project speaks of itself only."""
    homes = re.compile(r"(?<![\w.])/(?:Users|home|mnt|root|srv|work)/[\w.-]+")
    links = re.compile(r"https?://([^/\s\"'<>)\]\\]+)")
    found: list[str] = []
    for path in files_of_the_tree():
        text = path.read_bytes().decode("utf-8", "replace")
        name = path.relative_to(ROOT)
        found += [f"{name}: {place}" for place in homes.findall(text)]
        found += [f"{name}: {host}" for host in links.findall(text) if host not in LINKS_ARE_ALLOWED_TO and not NOWHERE.fullmatch(host)]
        if len(ROOT.parts) > 2 and path != Path(__file__) and re.search(rf"{re.escape(str(ROOT))}(?![\w-])", text):
            found.append(f"{name}: the path of this checkout")
    assert found == []


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md"])
def test_every_path_that_a_document_names_exists(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    linked = {target.partition("#")[0] for target in re.findall(r"\]\(([^):]+)\)", text)}
    quoted = set(re.findall(r"`((?:\.ci|bench|conformance|docs|hosts|kernel|manifests|sdk|tests|workers)/[\w./-]*)`", text))
    assert sorted(path for path in linked | quoted if path and not (ROOT / path).exists()) == []


def test_decision_records_are_numbered_without_a_gap_short_and_say_how_they_would_be_found_wrong() -> None:
    records = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [path.name[:5] for path in records] == [f"{number:04}-" for number in range(1, len(records) + 1)]
    assert records
    for path in records:
        text = path.read_text("utf-8")
        assert len(text.splitlines()) <= 40, path.name
        heads = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
        assert heads == ["Context", "Decision", "What we gave up", "How we would know it was wrong"], path.name
