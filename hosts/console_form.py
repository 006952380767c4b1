"""Answering one question of the Agent or an App in the input line: numbered choices, yes or no, fields one by one (SPEC 7.3). Pure.

Use: `form = open_form(summary)`; `taken = take_line(form, text)` for every line the person enters, until `taken.answer` is one to send.
Rules:
1. An answer is judged by the kernel alone: what it refuses comes back with `refuse`, and the field it names is asked again with its words.
2. A line is taken as it is, so that nothing is changed on its way; only what is a number in JSON becomes one.
3. The answer names what was shown when the form was opened (shown_digest), not what came since.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hosts.visible import one_line
from lineup_sdk.protocol.messages import JsonObject

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_YES, _NO = frozenset({"1", "y", "yes"}), frozenset({"2", "n", "no"})
_FIELD_POINTER = "/answer/fields/"


@dataclass(frozen=True, slots=True)
class Form:
    """A question being answered. position: which field is asked; the number of fields = all were, the person looks it over."""

    interaction: JsonObject
    values: Mapping[str, str] = field(default_factory=dict)  # what was typed, by field
    position: int = 0
    error: str = ""
    is_sent: bool = False

    @property
    def kind(self) -> str:
        """choice | confirm | input."""
        return str(self.interaction["kind"])

    @property
    def fields(self) -> list[JsonObject]:
        """The fields of an input; none of the other kinds."""
        return list(self.interaction["request"].get("fields", ()))

    @property
    def current(self) -> JsonObject | None:
        """The field that is asked now."""
        return self.fields[self.position] if self.position < len(self.fields) else None


@dataclass(frozen=True, slots=True)
class Taken:
    """What a line came to: the form as it is now, and the answer to send when it is complete."""

    form: Form
    answer: JsonObject | None = None


def open_form(interaction: JsonObject) -> Form:
    """Begin; an input begins with what its draft has. A notice has no form: not to be asked for."""
    draft = interaction.get("draft", {}).get("fields", {})
    given = draft if isinstance(draft, dict) else {}
    known = [item["id"] for item in interaction["request"].get("fields", ())]
    return Form(interaction, {ident: str(given[ident]) for ident in known if ident in given})


def can_decline(interaction: JsonObject) -> bool:
    """Choices and inputs may be declined; a confirm is answered with no."""
    return interaction["kind"] in ("choice", "input")


def prompt_of(form: Form) -> str:
    """What stands before the cursor; visible."""
    if form.kind == "choice":
        return "numbers> " if form.interaction["request"]["mode"] == "multi-choice" else "number> "
    if form.kind == "confirm":
        return "y/n> "
    current = form.current
    return "Enter sends> " if current is None else f"{one_line(str(current['label']), 24)}> "


def text_of(form: Form) -> str:
    """What the input line begins with: the value the current field has so far."""
    current = form.current
    return "" if current is None else form.values.get(current["id"], "")


def take_line(form: Form, text: str) -> Taken:
    """Take one entered line."""
    return _TAKERS[form.kind](replace(form, error=""), text)


def back(form: Form) -> Form:
    """Ask the field before again."""
    return replace(form, position=max(form.position - 1, 0), error="")


def refuse(form: Form, code: str, detail: JsonObject) -> Form:
    """Note what the kernel refused: the field it names is asked again, with its words."""
    pointer, expected = str(detail.get("pointer", "")), detail.get("expected")
    words = f"expected {expected}" if expected else code
    named = [place for place, item in enumerate(form.fields) if pointer == _FIELD_POINTER + item["id"]]
    return replace(form, error=words, is_sent=False, position=named[0] if named else form.position)


def draft_of(form: Form) -> JsonObject:
    """What is typed and not sent, as the kernel keeps it for every view; {} when there is nothing."""
    values = _values(form)
    return {"fields": values} if values else {}


def sent(form: Form) -> Form:
    """The answer is on its way."""
    return replace(form, is_sent=True)


def choices_in(request: JsonObject, text: str) -> list[str] | None:
    """The offered ids that a line names by number, with commas or blanks between; None when it names anything else."""
    words = re.split(r"[\s,]+", text.strip())
    if not all(word.isascii() and word.isdecimal() and len(word) < 4 for word in words):
        return None
    numbers = [int(word) for word in words]
    offered = [action["id"] for action in request["actions"]]
    return [offered[number - 1] for number in numbers] if all(1 <= number <= len(offered) for number in numbers) else None


def value_of(item: JsonObject, text: str) -> str | int | float:
    """The value that a line is for a field: a number when it is one, else the text; the kernel says what does not fit."""
    words = text.strip()
    if item["type"] != "number" or not _NUMBER.fullmatch(words):
        return text
    value = json.loads(words) if len(words) < 40 else math.inf
    return value if math.isfinite(value) and abs(value) < 2**53 else text


def _take_choice(form: Form, text: str) -> Taken:
    chosen = choices_in(form.interaction["request"], text)
    if not chosen:
        return Taken(replace(form, error="type the number of what you choose, or /decline"))
    return Taken(form, {"action_ids": chosen})


def _take_confirm(form: Form, text: str) -> Taken:
    word = text.strip().casefold()
    if word not in _YES | _NO:
        return Taken(replace(form, error="type y or n"))
    return Taken(form, {"approved": word in _YES})


def _take_field(form: Form, text: str) -> Taken:
    current = form.current
    if current is None:
        return Taken(form, {"fields": _values(form)})
    values = {ident: value for ident, value in form.values.items() if ident != current["id"]} | ({current["id"]: text} if text else {})
    return Taken(replace(form, values=values, position=form.position + 1))


def _values(form: Form) -> JsonObject:
    return {item["id"]: value_of(item, form.values[item["id"]]) for item in form.fields if item["id"] in form.values}


_TAKERS = {"choice": _take_choice, "confirm": _take_confirm, "input": _take_field}
