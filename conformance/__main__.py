"""`python -m conformance TARGET`: judge one worker by every case.

TARGET is an app folder (manifest.json and its files) or a built-in app by its name: the worker is then the real sealed process. With
--command it is that program, on an inherited descriptor; TARGET, if given, only lends its Manifest.
Exit codes: 0 every demand is kept, 1 one is not, 2 usage, 3 this machine cannot seal a process.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import trio

from conformance.case import Case, Verdict
from conformance.cases import all_cases
from conformance.expected import read_expected, surprises
from conformance.report import FORMS
from conformance.runner import Run
from conformance.sealed import SealIncomplete
from conformance.targets import App, Target, TargetInvalid, open_target, read_app

PATIENCE_SECONDS = 10.0


def positive(kind: Callable[[str], float]) -> Callable[[str], float]:
    """What reads an option that is a number above zero."""

    def read(text: str) -> float:
        number = kind(text)
        if not number > 0:
            raise argparse.ArgumentTypeError(f"{text} is not above zero")
        return number

    return read


def parser_of() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m conformance", description="Judge a worker by the clauses of the specification.")
    parser.add_argument("target", nargs="?", metavar="TARGET", help="an app folder, or the name of a built-in app")
    parser.add_argument(
        "--command", metavar="ARGV", help="a program that speaks the wire on the descriptor LINEUP_CHANNEL_FD; it runs unsealed"
    )
    parser.add_argument("--format", choices=sorted(FORMS), default="table")
    parser.add_argument("--case", action="append", default=[], metavar="N", help="this case alone; may be given more than once")
    parser.add_argument("--expected-failures", type=Path, metavar="FILE", help="cases that are known to fail; it may only shrink")
    parser.add_argument(
        "--patience", type=positive(float), default=PATIENCE_SECONDS, metavar="SECONDS", help="how long an answer is waited for"
    )
    parser.add_argument("--list", action="store_true", help="name every case and run none")
    return parser


async def judge(app: App, command: str | None, chosen: frozenset[int] | None, patience: float) -> tuple[Target, list[Verdict]]:
    """Run the cases. Raises: TargetInvalid, SealIncomplete."""
    async with open_target(app, command) as target:
        return target, await Run(target, all_cases(), patience).judge(chosen)


def _chosen(named: Sequence[str], cases: Sequence[Case]) -> frozenset[int] | None:
    if not named:
        return None
    digits = [name.upper().removeprefix("C-") for name in named]
    if no_numbers := [name for name, one in zip(named, digits, strict=True) if not one.isdecimal()]:
        raise TargetInvalid(f"{no_numbers[0]} is no number of a case, such as C-017")
    numbers = frozenset(map(int, digits))
    if unknown := numbers - {case.number for case in cases}:
        raise TargetInvalid(f"no case has the number {min(unknown)}")
    return numbers


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    options = parser_of().parse_args(arguments)
    if options.list:
        print("\n".join(f"{case.name}  {case.clause:<5} {case.demand}" for case in all_cases()))
        return 0
    if options.target is None and not options.command:
        parser_of().error("name a TARGET or a --command")
    try:
        app = App() if options.target is None else read_app(options.target)
        cases = all_cases()
        listed = options.expected_failures
        expected = {} if listed is None else read_expected(listed, {case.name for case in cases})
        target, verdicts = trio.run(judge, app, options.command, _chosen(options.case, cases), options.patience)
    except (ExceptionGroup, SealIncomplete, TargetInvalid, ValueError) as error:
        return refused(error)
    sys.stdout.write(FORMS[options.format](target, verdicts, expected))
    return 1 if surprises(verdicts, expected) else 0


def refused(error: BaseException, program: str = "conformance") -> int:
    """Say why nothing was judged, in one line, JSON unless a person reads it; return the exit code. Raises: a fault of the suite."""
    error = _first(error)
    if isinstance(error, SealIncomplete):
        code, message, exit_code = "sandbox_incomplete", f"this machine cannot seal a process: {error}", 3
    elif isinstance(error, TargetInvalid | ValueError):
        code, message, exit_code = "usage", str(error), 2
    else:
        raise error
    is_read = os.isatty(2)
    print(f"{program}: {message}" if is_read else json.dumps({"code": code, "message": message, "detail": {}}), file=sys.stderr)
    return exit_code


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


if __name__ == "__main__":
    sys.exit(main())
