"""Command lines of `lineup` that are nearly right, for every verb there is: each ends with a code of the list and with one line.

    python -m tests.fuzz.command_lines FIRST COUNT     prints one JSON object: how many, how many each exit code had, what was found

Rules:
1. The verbs, their options and arguments are read from the command itself: a new one is fuzzed at once. The n-th line depends on n alone.
2. No kernel runs and none is started: what would begin one says that none can be reached, and what would begin another program begins one
   that fails. Everything before that, and the words afterwards, are the product's.
3. A finding is an exit code that is not of the list, a bug's line, a traceback, more than one line on stderr, or what was typed on it.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from enum import EnumType
from pathlib import Path
from typing import Any

import typer.main

import hosts.cli
from hosts.commands import offline, proving, session
from hosts.launch import Launcher
from hosts.link import KernelUnreachable
from hosts.output import Exit
from tests.fuzz.targets import MARKER

MOST_CHANGES = 3
_ODD = (
    "", " ", "-", "--", "---", "-x", "--no-such", "--help", "--home", "--format", "--format=xml", "json", "=", "--=", "１", "1e999",
    "nan", "inf", "-1", "-0", "0", "00", "1_000", "9" * 40, "1.5", "true", "null", "{", "{}", "[]", '{"a": NaN}', '{"a": 1, "a": 2}',
    "[" * 60, '"\\ud800"', "\udcff", "\u202e", "\U0001f600", "\n", "\t", "%s", "{0}", "~", "/", "..", "/dev/null", "/nowhere/at/all",
    "@", "chat", "call_1", MARKER, f"--{MARKER}", f"--home={MARKER}", f"'{MARKER}'", f'{{"{MARKER}": 1}}', MARKER * 700,
)  # fmt: skip
_PLAUSIBLE: dict[Any, tuple[str, ...]] = {int: ("1", "60"), float: ("1.5", "30"), bool: ("true",), Path: ("a/folder",)}
_TEXTS = ("chat", "a", '{"a": 1}')


_POINTER = re.compile(r'"pointer":"--?[A-Za-z0-9-]+"')  # the name of an option, as it was typed


class _NoKernel:
    """A launcher's attach where no kernel can be had."""

    async def __call__(self, *arguments: object, **more: object) -> object:
        raise KernelUnreachable("kernel_unreachable", {"hint": "start one with `lineup run`"})


@dataclass(frozen=True)
class _Verb:
    """One verb: its words, and what it takes."""

    words: tuple[str, ...]
    parameters: tuple[Any, ...]


def _verbs(group: Any, words: tuple[str, ...] = ()) -> Iterator[_Verb]:
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):
            yield from _verbs(command, (*words, name))
        else:
            yield _Verb((*words, name), tuple(command.params))


_COMMAND = typer.main.get_command(hosts.cli.app)
VERBS = tuple(_verbs(_COMMAND))


def line_of(number: int) -> list[str]:
    """The n-th command line."""
    chance = random.Random(number)
    verb = VERBS[number % len(VERBS)]
    words = [*verb.words, *(word for parameter in verb.parameters for word in _right(parameter, chance))]
    for _ in range(chance.choice((0, 1, 1, 1, 2, MOST_CHANGES))):
        words = _changed(words, len(verb.words), chance)
    return words


def _right(parameter: Any, chance: random.Random) -> list[str]:
    """Words that this parameter may have."""
    kind = parameter.type_descriptor.annotation
    choices = tuple(one.value for one in kind) if isinstance(kind, EnumType) else _PLAUSIBLE.get(kind, _TEXTS)
    value = str(chance.choice(choices))
    if parameter.param_type_name == "argument":
        return [value] * (chance.randrange(1, 3) if parameter.nargs < 0 else 1) if parameter.required or chance.random() < 0.5 else []
    if chance.random() < (0.9 if parameter.required else 0.3):
        option = chance.choice([*parameter.opts, *parameter.secondary_opts])
        return [option] if parameter.is_flag else chance.choice(([option, value], [f"{option}={value}"]))
    return []


def _changed(words: Sequence[str], verb_words: int, chance: random.Random) -> list[str]:
    """One place of it changed; the verb seldom."""
    first = 0 if chance.random() < 0.1 else min(verb_words, len(words))
    place = chance.randrange(first, len(words) + 1)
    before, here, behind = list(words[:place]), list(words[place : place + 1]), list(words[place + 1 :])
    match chance.randrange(6):
        case 0:
            return before + behind
        case 1:
            return before + here * 2 + behind
        case 2 if here:
            return [*before, here[0][: chance.randrange(len(here[0]) + 1)], *behind]
        case 3 if here:
            return [*before, here[0] + chance.choice(_ODD), *behind]
        case 4:
            return [*before, chance.choice(_ODD), *here, *behind]
        case _:
            return [*before, chance.choice(_ODD), *behind]


def _without_kernels() -> None:
    """Rule 2."""

    def run_async(work: object) -> object:
        raise KernelUnreachable("kernel_unreachable", {"hint": "start one with `lineup run`"})

    class Programs:
        """In the place of `subprocess`."""

        DEVNULL, PIPE = subprocess.DEVNULL, subprocess.PIPE

        @staticmethod
        def run(command: Sequence[str], **more: Any) -> subprocess.CompletedProcess[bytes]:
            """One that fails; what is its own to say (`lineup conformance`) is a line."""
            if not more.get("capture_output"):
                sys.stderr.write("a program that fails\n")
            return subprocess.CompletedProcess(command, 1, b"", b"")

        @staticmethod
        def Popen(command: Sequence[str], **more: Any) -> subprocess.Popen[bytes]:  # noqa: N802
            """The same, for real."""
            return subprocess.Popen(["/bin/false"], **more)

    Launcher.attach = _NoKernel()  # type: ignore[method-assign, assignment]
    session.run_async = run_async  # type: ignore[assignment]
    offline.subprocess = proving.subprocess = Programs  # type: ignore[assignment, attr-defined]
    hosts.cli.app = _COMMAND  # type: ignore[assignment] # else the whole tree is built for every line


def judge(words: Sequence[str]) -> tuple[int, str]:
    """Run one command line. Returns its exit code, and what is wrong ("" is nothing)."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as out, tempfile.TemporaryFile("w+", errors="backslashreplace") as err:
        with redirect_stdout(out), redirect_stderr(err):
            code = hosts.cli.run_command(words)
            out.flush()
        err.seek(0)
        return code, _wrong(code, err.read())


def _wrong(code: int, said: str) -> str:
    lines = said.splitlines()
    if code not in tuple(Exit):
        return f"exit code {code} is not of the list"
    if "Traceback" in said or '"place"' in said:
        return f"a bug: {said[-300:]}"
    if code and len(lines) != 1:
        return f"{len(lines)} lines on stderr: {said[:300]}"
    if MARKER in _POINTER.sub("", said):
        return f"what was typed is repeated: {said[:300]}"
    return ""


def run(first: int, count: int) -> dict[str, Any]:
    """Give that many command lines."""
    _without_kernels()
    codes: Counter[str] = Counter()
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="lineup-lines-") as folder:
        for number in range(first, first + count):
            words = ["--home", str(Path(folder) / "home"), *line_of(number)]
            try:
                code, wrong = judge(words)
            except BaseException as error:
                code, wrong = -1, f"{type(error).__name__}: {error}"
            codes[f"exit_{code}"] += 1
            if wrong:
                found[f"line {number}: {' '.join(map(ascii, words[2:]))[:300]}"] = wrong
    return {"done": count, **dict(sorted(codes.items())), "violations": found}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(int(sys.argv[1]), int(sys.argv[2]))) + "\n")
