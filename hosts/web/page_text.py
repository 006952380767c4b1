"""What goes to a page: the kernel's own words as JSON, with the tree of every Markdown text beside it.

Rules:
1. Nothing is taken out and nothing is judged: a page gets the summaries as a console does, and `tree` more.
2. A summary is copied before it gets its tree: the mirror of the view holds the same object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hosts.web.markdown import Trees
from kernel.protocol.agent import MESSAGE_TEXT
from lineup_sdk.protocol.messages import JsonObject


class PageText:
    """Adds trees, from one store of them for all pages."""

    def __init__(self, trees: Trees) -> None:
        self._trees = trees

    def of_state(self, state: JsonObject) -> JsonObject:
        """A snapshot's state."""
        return self.of_value(state)

    def of_changes(self, changes: list[JsonObject]) -> list[JsonObject]:
        """The changes of a delta."""
        return [{**change, "value": self._with_tree(_WHAT.get(change["kind"]), change["value"])} for change in changes]

    def of_value(self, value: JsonObject) -> JsonObject:
        """The value of a reply: lists of summaries are known by their names."""
        return {name: self._list(name, member) for name, member in value.items()}

    def _list(self, name: str, member: Any) -> Any:
        text_of = _WHAT.get(name.removesuffix("s"))
        if text_of is None or type(member) is not list:
            return member
        return [self._with_tree(text_of, summary) for summary in member]

    def _with_tree(self, text_of: Callable[[JsonObject], str | None] | None, summary: Any) -> Any:
        if text_of is None or type(summary) is not dict:
            return summary
        text = text_of(summary)
        return summary if text is None else {**summary, "tree": self._trees.of(text)}


def _text_of_message(summary: JsonObject) -> str | None:
    text = summary.get("text")
    return text if summary.get("type") == MESSAGE_TEXT and type(text) is str else None


def _text_of_question(summary: JsonObject) -> str | None:
    request = summary.get("request")
    if type(request) is not dict:
        return None
    text = request.get("message", request.get("prompt"))
    return text if type(text) is str else None


_WHAT: Mapping[str, Callable[[JsonObject], str | None]] = {"interaction": _text_of_question, "message": _text_of_message}
