"""Verbs `conformance TARGET` and `chaos APP`: the suite is a program of its own, run here with the same arguments.

Rules:
1. No kernel and no home is touched. What the program says and its exit code are passed on: 0 all is kept, 1 something is not, 2 usage,
   3 this machine cannot seal a process.
"""

from __future__ import annotations

import subprocess
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from hosts.output import usage


class Form(StrEnum):
    """What the suite writes."""

    TABLE = "table"
    JSON = "json"
    JUNIT = "junit"


class ChaosForm(StrEnum):
    """What a report of chaos is written as."""

    TABLE = "table"
    JSON = "json"


TargetArgument = Annotated[str | None, typer.Argument(metavar="TARGET", help="An app folder, or the name of a built-in app.")]
FormOption = Annotated[Form, typer.Option("--format", help="table for people, json and junit for programs.")]


def conformance(
    target: TargetArgument = None,
    command: Annotated[
        str | None, typer.Option("--command", metavar="ARGV", help="A program that speaks the wire; it runs unsealed.")
    ] = None,
    chosen: FormOption = Form.TABLE,
    case: Annotated[list[str] | None, typer.Option("--case", metavar="N", help="This case alone; more than once for more.")] = None,
    expected_failures: Annotated[Path | None, typer.Option("--expected-failures", metavar="FILE", help="Known failures.")] = None,
    patience: Annotated[float | None, typer.Option(metavar="SECONDS", min=0.1, help="How long an answer is waited for.")] = None,
    is_list: Annotated[bool, typer.Option("--list", help="Name every case and run none.")] = False,
) -> int:
    """Judge an app's worker by every clause it has to keep. Raises: Failure (usage)."""
    if not (target or command or is_list):
        raise usage("nothing is named that could be judged", pointer="TARGET", expected="an app folder, a built-in app, or --command")
    options = [*(["--command", command] if command else []), *(part for one in case or [] for part in ("--case", one))]
    options += ["--expected-failures", str(expected_failures)] if expected_failures else []
    options += ["--patience", str(patience)] if patience is not None else []
    options += ["--list"] if is_list else []
    return _run("conformance", *([target] if target else []), "--format", chosen, *options)


def chaos(
    app: Annotated[str, typer.Argument(metavar="APP", help="An app folder, or the name of a built-in app.")],
    seed: Annotated[int | None, typer.Option(help="The same seed is the same trouble.")] = None,
    seconds: Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="For so long.")] = 10.0,
    steps: Annotated[int | None, typer.Option(min=1, help="So many acts, instead of --seconds.")] = None,
    chosen: Annotated[ChaosForm, typer.Option("--format", help="table for people, json for programs.")] = ChaosForm.TABLE,
) -> int:
    """Put an app under kill, delay, duplicate and reorder, and say what broke."""
    options = ["--seed", str(seed)] if seed is not None else []
    options += ["--steps", str(steps)] if steps is not None else []
    return _run("conformance.chaos", app, "--format", chosen, "--seconds", str(seconds), *options)


def _run(program: str, *arguments: str) -> int:
    return subprocess.run([sys.executable, "-P", "-m", program, *arguments], check=False).returncode
