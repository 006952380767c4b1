"""The Manifest: read as written, refused with the place, and never quoted."""

from __future__ import annotations

import json
from copy import deepcopy
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

import pytest

from kernel.core.builtin import RUNTIME
from kernel.core.manifest import HOST_VERSION, EntryFile, Handling, Hints, Kind, Manifest, ManifestInvalid, parse_manifest
from lineup_sdk.protocol.codes import Code

GOLDEN = Path(__file__).parent.parent / "golden"
VALID: dict[str, Any] = json.loads((GOLDEN / "manifest__valid.json").read_text("utf-8"))["manifest"]
REFUSED: list[dict[str, Any]] = json.loads((GOLDEN / "manifest__refused.json").read_text("utf-8"))["stories"]


def changed(story: dict[str, Any]) -> dict[str, Any]:
    document = deepcopy(VALID)
    for pointer, value in story.get("set", {}).items():
        holder, key = place(document, pointer)
        holder[key] = value
    for pointer in story.get("remove", []):
        holder, key = place(document, pointer)
        del holder[key]
    return document


def place(document: Any, pointer: str) -> tuple[Any, Any]:
    *steps, last = pointer.split("/")[1:]
    for step in steps:
        document = document[int(step) if isinstance(document, list) else step]
    return document, int(last) if isinstance(document, list) else last


def refusal(document: object, *, builtin: bool = False) -> ManifestInvalid:
    with pytest.raises(ManifestInvalid) as caught:
        parse_manifest(document, builtin=builtin)
    assert caught.value.code is Code.MANIFEST_INVALID
    return caught.value


def with_change(pointer: str, value: object) -> Manifest:
    return parse_manifest(changed({"set": {pointer: value}}))


@pytest.mark.clause("4.1")
def test_valid_manifest_is_read_as_it_is_written() -> None:
    manifest = parse_manifest(VALID)
    assert (manifest.app_scope, manifest.version, manifest.kind) == ("task-dashboard", "1.4.0-rc.1+build.7", Kind.BUNDLED)
    assert (manifest.title, manifest.description) == (VALID["title"], VALID["description"])
    assert (manifest.subscriptions, manifest.requested_capabilities) == (frozenset({"task.changed"}), frozenset({"notification.show"}))
    assert (manifest.host_min_version, manifest.surface_required) == ("0.1.0", False)
    assert manifest.entry is not None
    assert manifest.entry.main == "app.py"
    assert manifest.entry.files == (EntryFile("app.py", 1200, "0" * 62 + "aa"), EntryFile("model.py", 300, "0" * 62 + "bb"))


@pytest.mark.clause("4.2")
def test_valid_tools_are_read_as_they_are_written() -> None:
    opened, announced = parse_manifest(VALID).tools
    assert (opened.id, opened.version, opened.handling, opened.app_scope) == ("task-dashboard.open", 1, Handling.LAUNCH, "task-dashboard")
    assert (opened.requires_foreground, opened.restore_previous_focus) == (True, False)
    assert (opened.permissions, opened.timeout_ms, opened.hints) == (frozenset(), None, Hints(idempotent=True))
    assert opened.input_schema.check({"task_id": "t", "title": "T"}) is None
    assert opened.output_schema.check({"status": "done"}) is not None
    assert (announced.handling, announced.permissions, announced.timeout_ms) == (Handling.OPERATION, frozenset({"notification.show"}), 5000)
    assert (announced.requires_foreground, announced.restore_previous_focus) == (False, True)


@pytest.mark.clause("4.1")
@pytest.mark.parametrize("story", [pytest.param(story, id=story["story"].replace(" ", "-")) for story in REFUSED])
def test_changed_manifest_is_refused_at_the_place_of_the_change(story: dict[str, Any]) -> None:
    assert refusal(changed(story)).pointer == story["refused_at"]


@pytest.mark.clause("3")
def test_bundled_reference_is_read_as_bundled() -> None:
    assert with_change("/kind", "bundled-reference") == parse_manifest(VALID)


def test_installed_is_a_kind_of_its_own() -> None:
    assert with_change("/kind", "installed").kind is Kind.INSTALLED


def test_chat_is_the_system_app() -> None:
    document = changed({"set": {"/app_scope": "chat", "/kind": "system", "/tools": []}})
    assert parse_manifest(document).kind is Kind.SYSTEM


@pytest.mark.clause("4.1")
def test_reserved_scope_is_for_the_built_in_manifests_alone() -> None:
    document = changed({"set": {"/app_scope": "interaction", "/kind": "runtime", "/tools": []}, "remove": ["/entry"]})
    assert refusal(document).pointer == "/app_scope"
    assert parse_manifest(document, builtin=True).kind is Kind.RUNTIME
    assert refusal(VALID, builtin=True).pointer == "/app_scope"


@pytest.mark.clause("4.2")
def test_interactive_tool_stands_in_scope_interaction_and_has_no_clock() -> None:
    tool = changed({"set": {"/tools/0/id": "interaction.confirm", "/tools/0/handling": "interactive"}})["tools"][0]
    tool["target"]["app_scope"] = "interaction"
    document = changed(
        {"set": {"/app_scope": "interaction", "/kind": "runtime", "/tools": [tool]}, "remove": ["/entry", "/requested_capabilities"]}
    ) | {"requested_capabilities": []}
    assert parse_manifest(document, builtin=True).tools[0].handling is Handling.INTERACTIVE
    tool["timeout_ms"] = 1000
    assert refusal(document, builtin=True).pointer == "/tools/0/timeout_ms"


def test_longest_time_is_one_day() -> None:
    assert with_change("/tools/1/timeout_ms", 86_400_000).tools[1].timeout_ms == 86_400_000


def test_schema_near_its_limits_fits_into_a_manifest() -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(5):
        deep = {"type": "object", "properties": {"a": deep}, "additionalProperties": False}
    assert with_change("/tools/0/input_schema", deep).tools[0].input_schema.document == deep


@pytest.mark.parametrize(
    "document",
    [None, [], "text", 1, {}, {"app_scope": "\ud800"}, {"app_scope": b"x"}, {"version": float("nan")}, {1: 2}, object()],
    ids=repr,
)
def test_what_is_no_manifest_at_all_is_refused(document: object) -> None:
    assert refusal(document).reason


def test_bottomless_document_is_refused() -> None:
    endless: dict[str, Any] = {}
    endless["tools"] = endless
    assert refusal(endless).reason == "not JSON: depth"


@pytest.mark.clause("17")
def test_refusal_never_holds_what_came() -> None:
    marker = "marker-7d1f"
    fits_nowhere = marker + "\u202e"
    for story in REFUSED:
        document = changed(story)
        holder, key = place(document, story["refused_at"])
        if (isinstance(holder, list) and key < len(holder)) or (isinstance(holder, dict) and key in holder):
            holder[key] = fits_nowhere
            error = refusal(document)
            assert marker not in str(error)
            assert marker not in error.reason


def test_first_refusal_is_the_same_whatever_the_order_of_keys() -> None:
    wrong = changed({"set": {"/title": 1, "/version": 2, "/kind": 3}})
    assert refusal(wrong).pointer == refusal(dict(reversed(wrong.items()))).pointer == "/kind"


def test_long_unknown_key_is_not_repeated() -> None:
    assert refusal(changed({"set": {"/" + "k" * 65: 1}})).pointer == ""


# --- digests


@pytest.mark.clause("6.1")
@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("/title", "Other"), ("/description", "Other"), ("/handling", "direct"), ("/timeout_ms", 5001), ("/permissions", []),
        ("/hints/idempotent", True), ("/target/requires_foreground", True), ("/input_schema/title", "Other"),
        ("/output_schema/title", "Other"),
    ],
)  # fmt: skip
def test_descriptor_digest_follows_every_part_of_the_descriptor(pointer: str, value: object) -> None:
    before = parse_manifest(VALID).tools
    after = with_change(f"/tools/1{pointer}", value).tools
    assert after[1].digest != before[1].digest
    assert after[0].digest == before[0].digest


def test_descriptor_digest_does_not_follow_what_was_merely_left_out_or_reordered() -> None:
    spelled_out = changed({"set": {"/tools/0/permissions": [], "/tools/0/hints/destructive": False}})
    spelled_out["tools"][0] = dict(reversed(spelled_out["tools"][0].items()))
    assert parse_manifest(spelled_out).tools[0].digest == parse_manifest(VALID).tools[0].digest


def test_bundle_digest_follows_the_files_and_not_their_order() -> None:
    digest = parse_manifest(VALID).bundle_digest
    assert with_change("/entry/files", VALID["entry"]["files"][::-1]).bundle_digest == digest
    assert with_change("/title", "Other").bundle_digest == digest
    for pointer, value in (("/entry/files/0/size", 1201), ("/entry/files/0/sha256", "f" * 64), ("/entry/main", "model.py")):
        assert with_change(pointer, value).bundle_digest != digest


# --- the kernel's own


@pytest.mark.clause("6.9")
def test_kernel_has_its_own_manifest_without_files() -> None:
    (status,) = RUNTIME.tools
    assert (RUNTIME.app_scope, RUNTIME.kind, RUNTIME.entry) == ("runtime", Kind.RUNTIME, None)
    assert (status.id, status.handling) == ("runtime.status", Handling.DIRECT)
    assert status.input_schema.check({}) is None
    answer = {"kernel_version": "0.1.0", "epoch": "e", "apps": 1, "instances": 0, "open_calls": 0}
    assert status.output_schema.check(answer) is None
    for name in answer:
        missing = status.output_schema.check({key: value for key, value in answer.items() if key != name})
        assert missing is not None
        assert missing.pointer == f"/{name}"


@pytest.mark.parametrize("version", ["0.0.9", "0.1.0-rc.10", "0.1.0-rc.2", "0.1.0+build.7", HOST_VERSION])
@pytest.mark.clause("3")
def test_a_manifest_for_this_host_or_an_older_one_is_admitted(version: str) -> None:
    document = VALID | {"host": VALID["host"] | {"min_version": version}}
    assert parse_manifest(document).host_min_version == version


def test_the_version_of_the_host_is_that_of_the_package() -> None:
    assert version_of("lineup-runtime") == HOST_VERSION
