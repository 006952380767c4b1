"""A command line that `lineup` cannot take: one failure, with a pointer to the argument and what it has to be, without what was typed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum, EnumType
from itertools import pairwise
from pathlib import Path

import typer

from hosts.output import USAGE, Failure

_KINDS: dict[object, str] = {bool: "a flag", float: "a number", int: "a whole number", Path: "a path"}
_OPTION = re.compile(r"--?[A-Za-z][A-Za-z0-9-]{0,30}")  # what else stood in its place may be anything a person wrote
_TYPED = re.compile(r"\s*(\([^)]*\)|'[^']*'|\"[^\"]*\"|:.*)")


def wants_json(arguments: Sequence[str]) -> bool:
    """Say whether --format json was asked for, also when the rest of the line makes no sense."""
    return "--format=json" in arguments or any(pair == ("--format", "json") for pair in pairwise(arguments))


def usage_failure(error: typer.TyperException, arguments: Sequence[str]) -> Failure:
    """What is wrong with a command line, by what the parser says of it; nothing of what was typed."""
    parameter = getattr(error, "param", None)
    option = str(getattr(error, "option_name", None) or "")
    pointer = (option if _OPTION.fullmatch(option) else _as_typed(parameter, arguments)) or "command line"
    message = _TYPED.sub("", error.format_message().splitlines()[0]).strip().rstrip(".:").removesuffix(" for")
    detail = {"pointer": pointer, "expected": _expected(parameter), "hint": "see `lineup --help`"}
    return Failure(USAGE, detail, message=message or "the command was not understood")


def _expected(parameter: object) -> str | None:
    """What an argument or the value of an option has to be; None where no single one is to blame."""
    kind = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
    if isinstance(kind, EnumType):
        members: list[Enum] = list(kind)
        return "one of " + ", ".join(str(one.value) for one in members)
    return _KINDS.get(kind, "text") if kind is not None else None


def _as_typed(parameter: object, arguments: Sequence[str]) -> str | None:
    """The option as it stands on this command line, else as the help names it; an argument by the name the help has for it."""
    names = [*getattr(parameter, "opts", ()), *getattr(parameter, "secondary_opts", ())]
    options = [name for name in names if name.startswith("-")]
    typed = [name for name in options if any(word.partition("=")[0] == name for word in arguments)]
    named = getattr(parameter, "metavar", None) or getattr(parameter, "name", None)
    return next(iter([*typed, *options[:1]]), named.strip("[]").lower() if named else None)
