"""A surface as text: bounded, and unable to steer a terminal."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kernel.core import merge_patch
from kernel.text_surface import MAX_LINES, MAX_WIDTH, render

pytestmark = pytest.mark.clause("9.2")


def text_of(state: dict[str, Any]) -> str:
    return render(merge_patch.tree_of(state))


def test_a_state_is_an_outline() -> None:
    boards = {"b1": {"status": "open", "strokes": {"s1": {}, "s2": {}}}}
    state = {"title": "Plan", "done": True, "left": 2.5, "boards": boards, "tags": [1, 2]}
    assert text_of(state).splitlines() == [
        "title: Plan",
        "done: yes",
        "left: 2.5",
        "boards:",
        "  b1:",
        "    status: open",
        "    strokes: 2 members",
        "tags: list of 2",
    ]
    assert text_of({}) == ""
    assert text_of({"none": {}, "one": {"a": {"b": {"c": 1}}}}).splitlines()[0] == "none: empty"


def test_it_has_so_many_lines_of_so_many_characters_whatever_the_state_weighs() -> None:
    wide = {f"{n:03}-{'k' * 500}": "v" * 5_000 for n in range(500)}
    deep: dict[str, Any] = {f"a{n}": {f"b{m}": {f"c{k}": k for k in range(50)} for m in range(50)} for n in range(50)}
    for state in (wide, deep):
        lines = text_of(state).splitlines()
        assert len(lines) <= MAX_LINES
        assert max(map(len, lines)) <= MAX_WIDTH
        assert "…" in lines[-1]


def test_its_cost_does_not_grow_with_the_state() -> None:
    def seconds(strokes: int) -> float:
        tree = merge_patch.tree_of({"boards": {"b": {"strokes": {f"s{n}": {"points": [0.5] * 40} for n in range(strokes)}}}})
        return min(_timed(tree) for _ in range(20))

    assert seconds(20_000) < 20 * seconds(20) + 0.001


def _timed(tree: merge_patch.Tree) -> float:
    began = time.perf_counter()
    render(tree)
    return time.perf_counter() - began


HOSTILE = "\x1b]0;title\x07\x9b31m\u202eevil\u2066\u200b\r\nnext: yes\u2028\ud7ff"


def test_nothing_of_it_steers_a_terminal_or_turns_the_direction_of_writing() -> None:
    text = text_of({HOSTILE: HOSTILE, "plain": "日本語 é"})
    first, second = text.splitlines()
    assert first.startswith("\\u001b]0;title\\u0007\\u009b31m\\u202eevil\\u2066\\u200b\\u000d\\u000anext: yes\\u2028")
    assert second == "plain: 日本語 é"
    assert all(one.isprintable() for one in first + second)
