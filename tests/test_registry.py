"""The registry: reads exactly what the Manifests name, and starts with nothing that is not as they say."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import cbor2
import pytest

from kernel.core.builtin import BUILTIN, RUNTIME
from kernel.core.inventory import Enablement, advertise, publish
from kernel.core.manifest import ManifestInvalid
from kernel.registry import MAX_INVENTORY_BYTES, MAX_MANIFEST_BYTES, Registry, SourceFile, load_registry
from lineup_sdk.protocol.framing import encode_frame
from lineup_sdk.protocol.limits import MAX_FRAME_BYTES
from tests.descriptors import open_descriptors

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
        open_before = open_descriptors()
        with pytest.raises(ManifestInvalid) as caught:
            self.load()
        assert open_descriptors() == open_before
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


def _tools(scope: str, count: int, letters: int = 2000) -> list[dict[str, Any]]:
    """As many tools, each with a description of that length."""
    tool = VALID["tools"][0]
    return [
        tool | {"id": f"{scope}.t{n}", "description": "x" * letters, "target": tool["target"] | {"app_scope": scope}} for n in range(count)
    ]


def _size_of(registry: Registry) -> int:
    return len(cbor2.dumps(advertise(registry.manifests, Enablement()).document))


@pytest.mark.clause("4.4")
@pytest.mark.clause("2.1")
def test_tools_that_fill_a_frame_are_admitted_and_told_and_one_more_is_refused(home: Home) -> None:
    bare = _size_of(home.load())
    for number in range(1, 4):
        home.add_app_folder(f"folder{number}", f"app{number}", tools=_tools(f"app{number}", 120))
    registry = home.load()
    per_tool = (_size_of(registry) - bare) // 360
    room = (MAX_INVENTORY_BYTES - _size_of(registry)) // per_tool
    home.add_app_folder("folder4", "app4", tools=_tools("app4", room - 1))
    full = home.load()
    inventory = publish(None, "e" * 12, full.manifests, Enablement())
    assert MAX_INVENTORY_BYTES - _size_of(full) < 3 * per_tool
    payload = {"inventory_revision": inventory.revision, **inventory.content}
    outer = {"type": "lineup.v1.client.inventory", "message_id": "m" * 128, "conversation_id": "c" * 128, "created_at": "t" * 40}
    assert encode_frame({"type": "envelope", "envelope": {**outer, "payload": payload}}, MAX_FRAME_BYTES)
    home.add_app_folder("folder5", "app5", tools=_tools("app5", 3))
    refused = home.refusal()
    assert (refused.pointer, refused.role) == ("/tools", "Manifest of app folder 5")


# --- code of surfaces

SURFACE_FILES = {"surface/a.js": b"let a;\n", "surface/b.js": b"let b;\n", "surface/a.css": b"body {}\n"}


def add_surface_app(home: Home, files: dict[str, bytes] = SURFACE_FILES, surface: dict[str, Any] | None = None) -> Path:
    named = surface or {"version": 1, "scripts": ["surface/a.js", "surface/b.js"], "style": "surface/a.css"}
    listed = [{"name": name, "size": len(data), "sha256": sha256(data).hexdigest()} for name, data in (FILES | files).items()]
    folder = home.add_app_folder("mine", "fixture", entry={"main": "app.py", "files": listed, "surface": named})
    (folder / "surface").mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


@pytest.mark.clause("9.2")
def test_code_of_a_surface_is_kept_apart_and_is_none_of_the_workers(home: Home) -> None:
    add_surface_app(home)
    registry = home.load()
    assert [file.name for file in registry.sources["fixture"]] == list(FILES)
    code = registry.surfaces["fixture"]
    assert (code.version, code.script, code.style) == (1, b"let a;\n\nlet b;\n", b"body {}\n")
    entry = registry.manifests["fixture"].entry
    assert entry is not None
    assert [file.name for file in entry.worker_files] == list(FILES)


@pytest.mark.clause("9.2")
def test_a_surface_without_a_style_has_an_empty_one_and_an_app_without_a_surface_has_no_code(home: Home) -> None:
    add_surface_app(home, {"surface/a.js": b"let a;"}, {"version": 1, "scripts": ["surface/a.js"]})
    home.add_builtin("task-dashboard")
    surfaces = home.load().surfaces
    assert surfaces.keys() == {"fixture"}
    assert surfaces["fixture"].style == b""


@pytest.mark.clause("9.2")
@pytest.mark.invariant("48")
@pytest.mark.parametrize("break_it", ["other bytes", "a link", "no folder", "a folder that is a link"])
def test_code_of_a_surface_that_is_not_as_stated_is_refused(home: Home, break_it: str) -> None:
    folder = add_surface_app(home)
    script = folder / "surface" / "a.js"
    if break_it == "other bytes":
        script.write_bytes(b"let c;\n")
    elif break_it == "a link":
        script.unlink()
        script.symlink_to(folder / "surface" / "b.js")
    else:
        (folder / "surface").rename(folder / "elsewhere")
        if break_it == "a folder that is a link":
            (folder / "surface").symlink_to(folder / "elsewhere")
    error = home.refusal()
    assert error.pointer.startswith("/entry/files/2")
    assert error.role == "Manifest of app folder 1"
