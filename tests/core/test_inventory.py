"""The Inventory: what is advertised, and revisions that never repeat."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.core.builtin import RUNTIME
from kernel.core.inventory import Enablement, Inventory, PublishedRevision, advertise, difference, publish
from kernel.core.manifest import Manifest, parse_manifest
from kernel.core.schema import digest_of

GOLDEN = Path(__file__).parent.parent / "golden"
VALID: dict[str, Any] = json.loads((GOLDEN / "manifest__valid.json").read_text("utf-8"))["manifest"]


def app(scope: str, *verbs: str, kind: str = "bundled", capability: str = "notification.show", title: str = "Tool") -> Manifest:
    document = deepcopy(VALID)
    pattern = document["tools"][0] | {"title": title}
    target = pattern["target"] | {"app_scope": scope}
    tools = [pattern | {"id": f"{scope}.{verb}", "target": target} for verb in verbs]
    return parse_manifest(document | {"app_scope": scope, "kind": kind, "tools": tools, "requested_capabilities": [capability]})


def by_scope(*manifests: Manifest) -> dict[str, Manifest]:
    return {manifest.app_scope: manifest for manifest in manifests}


CHAT = app("chat", "say", kind="system", capability="clipboard.write")
TASKS = app("tasks", "open", "update")
BOARD = app("board", "open", "add", capability="artifact.save")
ALL = by_scope(TASKS, RUNTIME, CHAT, BOARD)
EVERYTHING = Enablement()


def off(*names: str) -> Enablement:
    return Enablement(frozenset(names))


def tool_ids(inventory: Inventory) -> list[str]:
    return [tool.id for tool in inventory.tools]


@pytest.mark.clause("4.4")
def test_tools_and_capabilities_are_in_one_order_whatever_the_order_of_manifests() -> None:
    inventory = publish(None, "e", ALL, EVERYTHING)
    assert tool_ids(inventory) == ["board.add", "board.open", "chat.say", "runtime.status", "tasks.open", "tasks.update"]
    assert inventory.capabilities == ("artifact.save", "clipboard.write", "notification.show")
    assert publish(None, "e", dict(reversed(ALL.items())), EVERYTHING) == inventory


@pytest.mark.clause("4.4")
def test_agent_sees_the_whole_descriptor_and_no_revision_in_the_content() -> None:
    inventory = publish(None, "e", by_scope(TASKS), EVERYTHING)
    (opened, _) = inventory.content["tools"]
    assert opened["id"] == "tasks.open"
    assert opened["input_schema"] == VALID["tools"][0]["input_schema"]
    assert opened["hints"] == {"read_only": False, "destructive": False, "idempotent": True}
    assert opened.keys() == {
        "id", "version", "title", "description", "handling", "target", "input_schema", "output_schema", "permissions", "hints",
    }  # fmt: skip
    assert inventory.content.keys() == {"tools", "capabilities"}
    assert inventory.digest == digest_of(inventory.content) == advertise(by_scope(TASKS), EVERYTHING).digest


def test_listing_and_dispatch_use_one_snapshot() -> None:
    inventory = publish(None, "e", ALL, off("tasks.update"))
    for tool in inventory.tools:
        assert inventory.tool(tool.id) is tool.descriptor
    assert inventory.tool("tasks.update") is None
    assert inventory.tool("tasks.fly") is None


@pytest.mark.clause("4.5")
def test_disabled_app_takes_its_tools_and_capabilities_away() -> None:
    inventory = publish(None, "e", ALL, off("board"))
    assert tool_ids(inventory) == ["chat.say", "runtime.status", "tasks.open", "tasks.update"]
    assert inventory.capabilities == ("clipboard.write", "notification.show")


@pytest.mark.clause("4.5")
def test_disabled_tool_leaves_the_rest_of_its_app() -> None:
    assert tool_ids(publish(None, "e", by_scope(TASKS), off("tasks.open"))) == ["tasks.update"]


@pytest.mark.clause("4.5")
def test_chat_cannot_be_disabled() -> None:
    assert off("chat").is_enabled("chat")
    assert off("chat").is_enabled("chat", "chat.say")
    assert publish(None, "e", ALL, off("chat")) == publish(None, "e", ALL, EVERYTHING)


def test_tool_of_a_disabled_app_is_off() -> None:
    assert not off("tasks").is_enabled("tasks", "tasks.open")
    assert off("tasks").is_enabled("board", "board.open")
    assert not off("tasks.open").is_enabled("tasks", "tasks.open")
    assert off("tasks.open").is_enabled("tasks")


# --- revisions


@pytest.mark.clause("4.4")
def test_same_content_keeps_its_revision_across_a_restart() -> None:
    first = publish(None, "e", ALL, EVERYTHING)
    assert first.revision == "e.1"
    assert publish(first, "e", ALL, EVERYTHING).revision == "e.1"
    assert publish(first.published, "e", ALL, EVERYTHING).revision == "e.1"


@pytest.mark.clause("4.4")
def test_content_that_returns_gets_a_new_revision() -> None:
    first = publish(None, "e", ALL, EVERYTHING)
    second = publish(first, "e", ALL, off("board"))
    third = publish(second.published, "e", ALL, EVERYTHING)
    assert [second.revision, third.revision] == ["e.2", "e.3"]
    assert third.digest == first.digest


@pytest.mark.clause("4.6")
def test_new_epoch_makes_a_new_revision_of_the_same_content() -> None:
    first = publish(None, "e", ALL, EVERYTHING)
    assert publish(first, "f", ALL, EVERYTHING).revision == "f.2"


def test_changed_descriptor_makes_a_new_revision() -> None:
    first = publish(None, "e", by_scope(TASKS), EVERYTHING)
    assert publish(first, "e", by_scope(app("tasks", "open", "update", title="Other")), EVERYTHING).revision == "e.2"


def test_disabling_what_is_not_there_changes_nothing() -> None:
    first = publish(None, "e", ALL, EVERYTHING)
    assert publish(first, "e", ALL, off("nobody", "tasks.fly")).revision == "e.1"


STEPS = st.lists(
    st.sampled_from(["board", "tasks", "chat", "tasks.open", "board.add", "runtime.status", "restart", "update", "restore"]), max_size=25
)


@pytest.mark.invariant("53")
@settings(max_examples=60, derandomize=True, deadline=None, database=None)
@given(STEPS)
def test_revisions_never_repeat_and_change_exactly_with_the_content(steps: list[str]) -> None:
    epochs = iter(f"epoch{number}" for number in range(100))
    epoch, disabled, manifests = next(epochs), frozenset[str](), ALL
    newest: Inventory | PublishedRevision = publish(None, epoch, manifests, EVERYTHING)
    current = publish(newest, epoch, manifests, EVERYTHING)
    published = {current.revision: current.content}
    for step in steps:
        if step == "restart":
            newest = newest.published if isinstance(newest, Inventory) else newest
        elif step == "update":
            title = "Tool" if manifests is not ALL else "Better tool"
            manifests = ALL if manifests is not ALL else ALL | by_scope(app("tasks", "open", "close", title=title))
        elif step == "restore":
            epoch = next(epochs)
        else:
            disabled ^= {step}
        before, current = current, publish(newest, epoch, manifests, Enablement(disabled))
        newest = current
        is_same = current.content == before.content and current.epoch == before.epoch
        assert (current.revision == before.revision) == is_same
        assert is_same or current.revision not in published
        assert current.number == before.number + (not is_same)
        assert published.setdefault(current.revision, current.content) == current.content


# --- what changed


@pytest.mark.clause("4.4")
def test_difference_names_what_was_added_removed_and_changed() -> None:
    old = publish(None, "e", by_scope(TASKS, CHAT), off("chat.say")).fingerprint()
    new = publish(PublishedRevision("e", 6, ""), "e", by_scope(app("tasks", "open", "close", title="Other"), CHAT), EVERYTHING)
    assert difference(old, new, "tasks.open") == {
        "current": "e.7",
        "added": ["chat.say", "tasks.close"],
        "removed": ["tasks.update"],
        "changed": ["tasks.open"],
        "this_tool": "changed",
    }


@pytest.mark.clause("4.4")
@pytest.mark.parametrize(
    ("tool_id", "fate"),
    [("board.open", "unchanged"), ("tasks.open", "removed"), ("chat.say", "added"), ("tasks.fly", "unknown")],
)
def test_difference_says_what_became_of_the_called_tool(tool_id: str, fate: str) -> None:
    old = publish(None, "e", ALL, off("chat.say")).fingerprint()
    new = publish(None, "f", ALL, off("tasks.open"))
    assert difference(old, new, tool_id)["this_tool"] == fate


def test_against_an_unknown_revision_everything_is_added() -> None:
    new = publish(None, "e", by_scope(TASKS), EVERYTHING)
    assert difference({}, new, "tasks.open") == {
        "current": "e.1", "added": ["tasks.open", "tasks.update"], "removed": [], "changed": [], "this_tool": "added",
    }  # fmt: skip


def test_fingerprint_is_enough_to_find_no_difference() -> None:
    inventory = publish(None, "e", ALL, EVERYTHING)
    stored = json.loads(json.dumps(inventory.fingerprint()))
    answer = difference(stored, inventory, "tasks.open")
    assert (answer["added"], answer["removed"], answer["changed"], answer["this_tool"]) == ([], [], [], "unchanged")
