"""The registry: reads exactly what the Manifests name, and starts with nothing that is not as they say."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from kernel.core.builtin import BUILTIN, RUNTIME
from kernel.core.manifest import ManifestInvalid
from kernel.registry import MAX_MANIFEST_BYTES, Registry, SourceFile, load_registry

VALID: dict[str, Any] = json.loads((Path(__file__).parent / "golden" / "manifest__valid.json").read_text("utf-8"))["manifest"]
FILES = {"app.py": b"print('a')\n", "model.py": b"X = 1\n"}


class Home:
    """A folder of built-in apps and further ones, as they lie on disk."""

    def __init__(self, root: Path) -> None:
        self.manifests = root / "manifests"
        self.workers = root / "workers"
        self.root = root
        self.manifests.mkdir()
        self.workers.mkdir()
        self.app_folders: list[Path] = []

    def add_builtin(self, scope: str, **changes: Any) -> None:
        self.write(self.manifests / f"{scope}.json", scope, **changes)
        self.write_files(self.workers / ("interact" if scope == "chat" else scope.replace("-", "_")))

    def add_app_folder(self, name: str, scope: str, **changes: Any) -> Path:
        folder = self.root / name
        self.write_files(folder)
        self.write(folder / "manifest.json", scope, **changes)
        self.app_folders.append(folder)
        return folder

    def write(self, path: Path, scope: str, **changes: Any) -> None:
        entry = {
            "main": "app.py",
            "files": [{"name": name, "size": len(data), "sha256": sha256(data).hexdigest()} for name, data in FILES.items()],
        }
        path.write_text(json.dumps(VALID | {"app_scope": scope, "tools": [], "entry": entry} | changes))

    def write_files(self, folder: Path) -> None:
        folder.mkdir()
        for name, data in FILES.items():
            (folder / name).write_bytes(data)

    def load(self) -> Registry:
        return load_registry(self.manifests, self.workers, self.app_folders)

    def refusal(self) -> ManifestInvalid:
        open_before = os.listdir("/proc/self/fd")
        with pytest.raises(ManifestInvalid) as caught:
            self.load()
        assert os.listdir("/proc/self/fd") == open_before
        assert str(self.root) not in str(caught.value)
        return caught.value


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.mark.clause("4.1")
def test_registry_holds_every_manifest_and_the_verified_bytes(home: Home) -> None:
    home.add_builtin("task-dashboard")
    home.add_builtin("chat", kind="system")
    home.add_app_folder("mine", "fixture")
    (home.workers / "task_dashboard" / "unlisted.py").write_text("never read")
    (home.manifests / "README.md").write_text("not a Manifest")
    registry = home.load()
    assert registry.manifests.keys() == {"runtime", "interaction", "chat", "task-dashboard", "fixture"}
    assert registry.manifests["runtime"] is RUNTIME
    assert registry.sources.keys() == {"chat", "task-dashboard", "fixture"}
    for files in registry.sources.values():
        assert files == tuple(SourceFile(name, data) for name, data in FILES.items())


def test_kernel_alone_is_a_registry(home: Home) -> None:
    assert dict(home.load().manifests) == BUILTIN


def test_what_changes_on_disk_after_the_start_changes_nothing(home: Home) -> None:
    folder = home.add_app_folder("mine", "fixture")
    registry = home.load()
    (folder / "app.py").write_bytes(b"evil()\n")
    assert registry.sources["fixture"][0].data == FILES["app.py"]


@pytest.mark.parametrize(
    ("data", "pointer"),
    [
        (FILES["app.py"] + b"#", "/entry/files/0"),
        (FILES["app.py"][:-1], "/entry/files/0/size"),
        (b"print('b')\n", "/entry/files/0/sha256"),
        (b"", "/entry/files/0/size"),
    ],
    ids=["longer", "shorter", "other bytes", "empty"],
)
def test_source_that_is_not_as_stated_is_refused(home: Home, data: bytes, pointer: str) -> None:
    home.add_builtin("task-dashboard")
    (home.workers / "task_dashboard" / "app.py").write_bytes(data)
    error = home.refusal()
    assert (error.pointer, error.role) == (pointer, "built-in Manifest task-dashboard")


def _leave_out(path: Path) -> None:
    path.unlink()


def _link(path: Path) -> None:
    elsewhere = path.parent.parent / "elsewhere.py"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


REPLACEMENTS = [_leave_out, _link, _pipe, _folder]


@pytest.mark.parametrize("replace", REPLACEMENTS)
def test_source_that_is_no_regular_file_is_refused(home: Home, replace: Callable[[Path], None]) -> None:
    replace(home.add_app_folder("mine", "fixture") / "model.py")
    error = home.refusal()
    assert (error.pointer, error.role) == ("/entry/files/1", "Manifest of app folder 1")


@pytest.mark.parametrize("replace", REPLACEMENTS)
def test_manifest_that_is_no_regular_file_is_refused(home: Home, replace: Callable[[Path], None]) -> None:
    replace(home.add_app_folder("mine", "fixture") / "manifest.json")
    assert home.refusal().pointer == ""


def test_folder_of_sources_behind_a_link_is_refused(home: Home) -> None:
    home.add_builtin("task-dashboard")
    _link(home.workers / "task_dashboard")
    assert home.refusal().role == "built-in Manifest task-dashboard"


def test_app_folder_that_is_not_there_is_refused(home: Home) -> None:
    home.add_app_folder("mine", "fixture")
    home.app_folders.append(home.root / "nowhere")
    assert home.refusal().role == "Manifest of app folder 2"


def test_scope_that_comes_twice_is_refused(home: Home) -> None:
    home.add_builtin("fixture")
    home.add_app_folder("mine", "fixture")
    error = home.refusal()
    assert (error.pointer, error.role) == ("/app_scope", "Manifest of app folder 1")


def test_builtin_manifest_is_named_by_its_scope(home: Home) -> None:
    home.add_builtin("task-dashboard")
    (home.manifests / "task-dashboard.json").rename(home.manifests / "other.json")
    assert home.refusal().pointer == "/app_scope"


@pytest.mark.clause("3")
def test_system_app_does_not_come_from_an_app_folder(home: Home) -> None:
    home.add_app_folder("mine", "chat", kind="system")
    assert home.refusal().pointer == "/kind"


@pytest.mark.clause("3")
def test_installed_app_does_not_come_without_its_bundle(home: Home) -> None:
    home.add_app_folder("mine", "fixture", kind="installed")
    assert home.refusal().pointer == "/kind"


@pytest.mark.clause("4.1")
def test_refusal_inside_a_manifest_keeps_its_pointer(home: Home) -> None:
    home.add_builtin("task-dashboard", title=7)
    error = home.refusal()
    assert (error.pointer, error.role) == ("/title", "built-in Manifest 1")


@pytest.mark.parametrize(
    "text",
    [
        b"", b"{", b"[]", b'{"title": "marker-7d1f", "title": "b"}', b'{"version": NaN}', b'{"version": -Infinity}',
        b'{"version": 1e999}', b'{"title": "marker-7d1f\xff"}', b'\xef\xbb\xbf{"title": "marker-7d1f"}', b'{"title": "\\ud800"}',
        '{"title": "marker-7d1f"}'.encode("utf-16"), b"[" * 100_000, b'{"version": ' + b"9" * 5000 + b"}",
        b'"' + b"x" * MAX_MANIFEST_BYTES + b'"',
    ],
    ids=lambda text: repr(text[:24]),
)  # fmt: skip
def test_manifest_that_is_not_strict_json_is_refused_and_not_quoted(home: Home, text: bytes) -> None:
    (home.add_app_folder("mine", "fixture") / "manifest.json").write_bytes(text)
    assert "marker-7d1f" not in str(home.refusal())


def test_key_that_comes_twice_is_refused_even_with_one_value(home: Home) -> None:
    path = home.add_app_folder("mine", "fixture") / "manifest.json"
    text = path.read_text()
    home.load()
    path.write_text(text.replace('"kind": "bundled"', '"kind": "bundled", "kind": "bundled"'))
    assert "twice" in home.refusal().reason
