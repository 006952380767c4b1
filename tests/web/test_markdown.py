"""Markdown as a tree: what is drawn, what stays text, and that no text holds the host up (SPEC 11.1, THREATS T-A3)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hosts.web.markdown import MAX_CELLS, MAX_KEPT, MAX_LINES, MAX_MARKS, MAX_NESTING, Trees

TAGS = frozenset(
    "p h1 h2 h3 h4 h5 h6 em strong del code pre blockquote ul ol li hr br table thead tbody tr th td a img-artifact".split()  # noqa: SIM905
)
ATTRIBUTES = {"a": {"href"}, "img-artifact": {"artifact_id", "alt"}, "ol": {"start"}}


def tree(text: str) -> list[Any]:
    nodes = Trees().of(text)
    for node in nodes:
        require_node(node)
    return nodes


def require_node(node: Any) -> None:
    """Every node is text or [tag, attributes, *nodes] of the tables."""
    if isinstance(node, str):
        return
    tag, attributes, *children = node
    assert tag in TAGS, tag
    assert set(attributes) <= ATTRIBUTES.get(tag, set()), node
    for child in children:
        require_node(child)


def text_of(nodes: list[Any]) -> str:
    return "".join(node if isinstance(node, str) else text_of(node[2:]) for node in nodes)


def hrefs(nodes: list[Any]) -> Iterator[str]:
    for node in nodes:
        if not isinstance(node, str):
            if node[0] == "a":
                yield node[1]["href"]
            yield from hrefs(node[2:])


@pytest.mark.clause("11.1")
def test_what_people_write_becomes_the_tags_for_it() -> None:
    assert tree("# A\n\nb *c* **d** ~~e~~ `f`\\\ng\nh") == [
        ["h1", {}, "A"],
        [
            "p",
            {},
            "b ",
            ["em", {}, "c"],
            " ",
            ["strong", {}, "d"],
            " ",
            ["del", {}, "e"],
            " ",
            ["code", {}, "f"],
            ["br", {}],
            "g",
            "\n",
            "h",
        ],
    ]
    assert tree("- a\n  1. b\n\n> c\n\n---\n\n```x\nd <b>\n```") == [
        ["ul", {}, ["li", {}, "a", ["ol", {}, ["li", {}, "b"]]]],
        ["blockquote", {}, ["p", {}, "c"]],
        ["hr", {}],
        ["pre", {}, ["code", {}, "d <b>\n"]],
    ]
    assert tree("3. c") == [["ol", {"start": 3}, ["li", {}, "c"]]]
    head, body = tree("|a|b|\n|-|-|\n|1|2|")[0][2:]
    assert head == ["thead", {}, ["tr", {}, ["th", {}, "a"], ["th", {}, "b"]]]
    assert body == ["tbody", {}, ["tr", {}, ["td", {}, "1"], ["td", {}, "2"]]]


HTML = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "a <b onclick=x>b</b>",
    "<!-- c -->",
    "<svg/onload=alert(1)>",
    "&lt;b&gt;",
)


@pytest.mark.parametrize("text", HTML)
def test_html_stays_text(text: str) -> None:
    nodes = tree(text)
    assert text_of(nodes).strip() == text.replace("&lt;b&gt;", "<b>")
    assert {node[0] for node in nodes if not isinstance(node, str)} <= {"p"}


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "java&#10;script:alert(1)",
        "&#106;avascript:alert(1)",
        "data:text/html,<script>x</script>",
        "vbscript:x",
        "file:///etc/passwd",
        "//evil.example",
        "/ws",
        "#token",
        "blob:x",
        "http:evil",
    ],
)
def test_a_link_to_anything_but_the_web_or_mail_is_text_with_its_address(address: str) -> None:
    nodes = tree(f"[click](<{address}>)")
    assert list(hrefs(nodes)) == []
    assert "click" in text_of(nodes)


def test_links_to_the_web_and_to_mail_are_links() -> None:
    nodes = tree("[a](https://e.example/?a=b&c#d) <http://e.example> [m](mailto:a@e.example) [x]\n\n[x]: HTTPS://e.example")
    assert list(hrefs(nodes)) == ["https://e.example/?a=b&c#d", "http://e.example", "mailto:a@e.example", "HTTPS://e.example"]


def test_an_address_cannot_turn_its_reading_direction() -> None:
    assert list(hrefs(tree("[a](https://e.example/\u202etxt.exe)"))) == ["https://e.example/%E2%80%AEtxt.exe"]


def test_an_image_is_an_artifact_of_ours_or_text() -> None:
    assert tree("![a *b*](artifact:sha256_1)") == [["p", {}, ["img-artifact", {"artifact_id": "sha256_1", "alt": "a *b*"}]]]
    for source in ("https://evil.example/pixel.png", "data:image/png;base64,AA", "//evil.example/x", "/a/ticket", "javascript:x"):
        nodes = tree(f"![seen]({source})")
        assert nodes == [["p", {}, f"seen ({source})"]]


def test_what_would_steer_or_hide_is_shown() -> None:
    assert text_of(tree("pay \u202eevil\u2066 now\u200b \x1b[31m `\u202e`")) == "pay <U+202E>evil<U+2066> now<U+200B> ␛[31m <U+202E>"
    assert text_of(tree("👩\u200d💻 é 中文 مرحبا")) == "👩\u200d💻 é 中文 مرحبا"


def depth(nodes: list[Any]) -> int:
    return 1 + max((depth(node[2:]) for node in nodes if not isinstance(node, str)), default=0)


HUGE = {
    "quotes": "> " * 8_000 + "x",
    "lists": "".join("  " * level + "- a\n" for level in range(120)),
    "brackets": "[" * 16_000,
    "images": "![a" * 5_400,
    "emphasis": "*_" * 8_000,
    "ticks": "".join("`" * count + " " for count in range(1, 170)),
    "cells": "|a" * 500 + "\n" + "|-" * 500 + "\n" + "|\n" * 5_000,
    "lines": "a\n" * 8_000,
    "links": "[[a](b)" * 2_300,
    "references": "[a]: " * 3_200,
    "comments": "<!--" * 4_000,
    "at the limit of marks": "*a " * (MAX_MARKS - 1),
    "at the limit of lines": "- a\n" * (MAX_LINES - 1),
    "at the limit of cells": "|a" * 50 + "|\n" + "|-" * 50 + "|\n" + "|a\n" * (MAX_CELLS // 52 - 3),
    "long": "word " * 13_000,
}


@pytest.mark.parametrize("name", HUGE)
def test_no_text_is_deep_or_grows_out_of_bounds(name: str) -> None:
    text = HUGE[name]
    nodes = tree(text)
    assert depth(nodes) <= 2 * MAX_NESTING
    assert len(json.dumps(nodes)) <= 12 * (len(text) + MAX_CELLS)


def test_a_text_is_read_once_and_the_oldest_are_forgotten() -> None:
    trees = Trees()
    first = trees.of("a *b*")
    assert trees.of("a *b*") is first
    for number in range(MAX_KEPT):
        trees.of(f"text {number}")
    assert trees.of("a *b*") is not first
