"""JSON Merge Patch over trees: the examples of RFC 7396, and the weight that is known without a walk."""

from __future__ import annotations

from typing import Any

import cbor2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.core import merge_patch
from kernel.core.merge_patch import EMPTY, Tree

pytestmark = pytest.mark.clause("9.1")

# RFC 7396, appendix A, as members of an object: (state, patch, result).
EXAMPLES: list[tuple[Any, Any, Any]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"x": ["a", "b"]}, {"x": ["c", "d"]}, {"x": ["c", "d"]}),
    ({"x": {"a": "b"}}, {"x": ["c"]}, {"x": ["c"]}),
    ({"x": {"a": "foo"}}, {"x": None}, {}),
    ({"x": {"a": "foo"}}, {"x": "bar"}, {"x": "bar"}),
    ({"e": 1}, {"a": 1}, {"e": 1, "a": 1}),
    ({"x": [1, 2]}, {"x": {"a": "b", "c": None}}, {"x": {"a": "b"}}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


def value_of(tree: Tree) -> Any:
    return cbor2.loads(merge_patch.encode(tree))


@pytest.mark.parametrize(("state", "patch", "result"), EXAMPLES, ids=str)
def test_the_examples_of_the_rfc(state: Any, patch: Any, result: Any) -> None:
    tree = merge_patch.tree_of(state)
    merge_patch.apply(tree, patch)
    assert value_of(tree) == result


keys = st.text(st.characters(exclude_categories=["Cs"]), max_size=3) | st.sampled_from(["a", "b", "c", "x" * 23, "y" * 24, "ü" * 130])
leaves = st.none() | st.booleans() | st.integers(-300, 70_000) | st.floats(allow_nan=False, allow_infinity=False) | keys
values = st.recursive(leaves | st.lists(leaves, max_size=3), lambda inner: st.dictionaries(keys, inner, max_size=4), max_leaves=6)
objects = st.dictionaries(keys, values, max_size=5)


def plainly(target: Any, patch: Any) -> Any:
    """The RFC's own words as a function."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = plainly(result.get(name), value)
    return result


@settings(max_examples=25)
@given(st.lists(objects, max_size=4))
def test_a_tree_follows_any_patches_and_its_weight_is_known_before_each(patches: list[dict[str, Any]]) -> None:
    tree: Tree = {}
    expected: Any = {}
    weight = EMPTY
    for patch in patches:
        before = merge_patch.encode(tree)
        weight = weight + merge_patch.weigh_change(tree, patch)
        assert merge_patch.encode(tree) == before
        merge_patch.apply(tree, patch)
        expected = plainly(expected, patch)
        assert value_of(tree) == expected
        assert weight == merge_patch.weigh(tree)
        assert weight.size == len(merge_patch.encode(tree))


@settings(max_examples=25)
@given(objects, objects)
def test_a_snapshot_is_read_back_as_the_tree_it_was_in_the_same_order(first: dict[str, Any], second: dict[str, Any]) -> None:
    tree = merge_patch.tree_of(first)
    merge_patch.apply(tree, second)
    again = merge_patch.decode(merge_patch.encode(tree))
    assert merge_patch.encode(again) == merge_patch.encode(tree)
    assert list(again) == list(tree)


@pytest.mark.parametrize("count", [23, 24, 255, 256, 65_535])
def test_the_weight_is_right_where_the_head_of_a_map_grows(count: int) -> None:
    tree: Tree = dict.fromkeys(map(str, range(count)), b"\x00")
    change = merge_patch.weigh_change(tree, {"more": 1})
    before = len(merge_patch.encode(tree))
    merge_patch.apply(tree, {"more": 1})
    assert len(merge_patch.encode(tree)) == before + change.size
    assert change.members == 1
