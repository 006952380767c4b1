"""Markdown as a tree: what Agents, Apps and persons write becomes nodes a page can draw, never markup (SPEC 11.1, THREATS T-A3).

A node is text, or [tag, attributes, *nodes]. Rules:
1. Tags and attributes are of the tables here; HTML in the text stays text.
2. A link goes to http, https or mailto. An image is an artifact of ours or stays text, with its address to be read.
3. Characters that could steer or hide what is drawn (bidi controls, control characters, invisible ones) become visible signs.
4. A text is read once: trees are kept by their text, the oldest go first.
5. Reading takes time in the square of the marks and the cells of a table, whoever wrote them: a text with too many stays one paragraph,
   or has no tables. (Measured at the limits: 50 ms; without them 16 KB of text held the host for 3.5 s.)
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from hosts.visible import visible

Node = Any  # str | [tag, attributes, *nodes]: mypy knows no recursive list that json.dumps takes

ARTIFACT = "artifact:"
MAX_KEPT = 2_000
MAX_KEPT_CHARACTERS = 4 * 1024 * 1024
MAX_LINK_LENGTH = 2_000
MAX_NESTING = 24  # levels of blocks and spans; what is deeper stays text
MAX_MARKS = 2_500
MAX_LINES = 4_000
MAX_CELLS = 5_000

_MARKS = re.compile(r"[*_~`\[\]!<|&\\]")

_LINK = re.compile(r"(https?://|mailto:)[^\s\x00-\x20]+", re.IGNORECASE)
_TAGS = frozenset(
    "p h1 h2 h3 h4 h5 h6 em strong del code pre blockquote ul ol li hr br table thead tbody tr th td".split()  # noqa: SIM905
)
_RENAMED = {"s": "del"}


def _shown(text: str) -> str:
    return visible(text, keep_newlines=True)


class Trees:
    """Keeps the trees of the texts it was asked for."""

    def __init__(self) -> None:
        self._reader = _reader(["strikethrough", "table"])
        self._tableless = _reader(["strikethrough"])
        self._kept: OrderedDict[str, list[Node]] = OrderedDict()
        self._characters = 0

    def of(self, text: str) -> list[Node]:
        """Return the nodes of a text."""
        nodes = self._kept.get(text)
        if nodes is None:
            nodes = self._kept[text] = self._read(text)
            self._characters += len(text)
            self._drop_old()
        self._kept.move_to_end(text)
        return nodes

    def _read(self, text: str) -> list[Node]:
        lines = text.split("\n")
        if len(lines) > MAX_LINES or sum(1 for _ in _MARKS.finditer(text)) > MAX_MARKS:
            return [["p", {}, _shown(text)]]
        cells = max(line.count("|") + 1 for line in lines) * len(lines)
        reader = self._reader if cells <= MAX_CELLS else self._tableless
        return list(_nodes(SyntaxTreeNode(reader.parse(text)).children))

    def _drop_old(self) -> None:
        while len(self._kept) > MAX_KEPT or self._characters > MAX_KEPT_CHARACTERS:
            oldest, _ = self._kept.popitem(last=False)
            self._characters -= len(oldest)


def _reader(extras: list[str]) -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False, "maxNesting": MAX_NESTING}).enable(extras)
    reader.validateLink = lambda url: True  # type: ignore[method-assign]  # noqa: ARG005 - rule 2 is decided in the tree, where it can be read
    return reader


def _nodes(children: Iterable[SyntaxTreeNode]) -> Iterable[Node]:
    for child in children:
        yield from _SPECIAL.get(child.type, _element)(child)


def _element(node: SyntaxTreeNode) -> Iterable[Node]:
    tag = _RENAMED.get(node.tag, node.tag)
    if tag not in _TAGS:
        return [_shown(node.content), *_nodes(node.children)] if node.content else list(_nodes(node.children))
    attributes = {"start": int(node.attrs["start"])} if tag == "ol" and "start" in node.attrs else {}
    return [[tag, attributes, *_nodes(node.children)]]


def _paragraph(node: SyntaxTreeNode) -> Iterable[Node]:
    return _nodes(node.children) if node.hidden else _element(node)


def _inline(node: SyntaxTreeNode) -> Iterable[Node]:
    return _nodes(node.children)


def _text(node: SyntaxTreeNode) -> Iterable[Node]:
    return [_shown(node.content)] if node.content else []


def _code(node: SyntaxTreeNode) -> Iterable[Node]:
    code = ["code", {}, _shown(node.content)]
    return [code if node.type == "code_inline" else ["pre", {}, code]]


def _break(node: SyntaxTreeNode) -> Iterable[Node]:
    return ["\n"] if node.type == "softbreak" else [["br", {}]]


def _link(node: SyntaxTreeNode) -> Iterable[Node]:
    href = str(node.attrs.get("href", ""))
    inside = list(_nodes(node.children))
    if len(href) <= MAX_LINK_LENGTH and _LINK.fullmatch(href) and _shown(href) == href:
        return [["a", {"href": href}, *inside]]
    return [*inside, f" ({_shown(href)})"] if href else inside


def _image(node: SyntaxTreeNode) -> Iterable[Node]:
    source, alternative = str(node.attrs.get("src", "")), _shown(node.content)
    if source.startswith(ARTIFACT):
        return [["img-artifact", {"artifact_id": _shown(source.removeprefix(ARTIFACT))[:128], "alt": alternative}]]
    return [f"{alternative} ({_shown(source)})" if source else alternative]


_SPECIAL: dict[str, Callable[[SyntaxTreeNode], Iterable[Node]]] = {
    "code_block": _code,
    "code_inline": _code,
    "fence": _code,
    "hardbreak": _break,
    "html_block": _text,
    "html_inline": _text,
    "image": _image,
    "inline": _inline,
    "link": _link,
    "paragraph": _paragraph,
    "softbreak": _break,
    "text": _text,
}
