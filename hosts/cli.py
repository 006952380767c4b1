"""The `lineup` command: global options, the verbs of hosts/commands, and the one place where failures become a line and an exit code.

Rules:
1. Exit codes: 0 ok, 1 unexpected, 2 usage, 3 denied, 4 kernel unreachable, 5 tool failed, 6 timed out or expired, 8 conflict,
   130 interrupted (hosts.output).
2. Bad arguments are failures like all others: one line, with a pointer to the argument; what was typed is not repeated.
3. A bug gives its kind and place, never its text: that may quote what a person wrote.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Sequence
from enum import Enum, EnumType
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer

from hosts.commands import backup, calls, interactions, offline, permissions, proving, reading, session, sessions, upkeep
from hosts.commands.setting import Setting, as_failure, first_cause
from hosts.homes import choose_home
from hosts.output import UNEXPECTED, USAGE, Exit, Failure, print_failure, usage

app = typer.Typer(
    name="lineup",
    help="LineUp Runtime: one Agent, sealed apps, a durable kernel between them.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    no_args_is_help=False,
)

app.command("run")(session.run)
app.command("desktop")(session.desktop)
app.command("console")(session.console)
app.command("stop")(session.stop)
app.command("demo")(session.demo)
app.command("agent")(session.agent)
app.command("call")(calls.call)
app.add_typer(calls.app, name="calls")
app.command("ps")(reading.ps)
app.add_typer(reading.inventory, name="inventory")
app.add_typer(reading.app, name="app")
app.command("open")(sessions.open_app)
app.add_typer(sessions.sessions, name="sessions")
app.command("answer")(interactions.answer)
app.add_typer(interactions.interactions, name="interactions")
app.add_typer(offline.audit, name="audit")
app.command("doctor")(offline.doctor)
app.command("conformance")(proving.conformance)
app.command("chaos")(proving.chaos)
app.add_typer(upkeep.inbox, name="inbox")
app.add_typer(permissions.permissions, name="permissions")
app.add_typer(permissions.policy, name="policy")
app.command("backup")(backup.backup)
app.command("restore")(backup.restore)
app.command("explain")(upkeep.explain)
app.command("tail")(upkeep.tail)
app.command("logs")(upkeep.logs)
app.command("version")(offline.version)

HomeOption = Annotated[
    str | None,
    typer.Option("--home", metavar="<path>", help="Where state is kept; default LINEUP_HOME, else the XDG state folder."),
]
AppFolderOption = Annotated[list[Path] | None, typer.Option("--app-folder", hidden=True, help="More apps for a kernel started now.")]

_STREAMS = (("stdin", os.O_RDONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w"))
_KINDS: dict[object, str] = {bool: "a flag", float: "a number", int: "a whole number", Path: "a path"}
_OPTION = re.compile(r"--?[A-Za-z][A-Za-z0-9-]{0,30}")  # what else stood in its place may be anything a person wrote
_TYPED = re.compile(r"\s*(\([^)]*\)|'[^']*'|\"[^\"]*\"|:.*)")


@app.callback()
def choose(
    context: typer.Context,
    home: HomeOption = None,
    app_folder: AppFolderOption = None,
) -> None:
    """Take the options that stand before the verb."""
    if home == "":
        raise usage("no folder is named", pointer="--home", expected="a path", hint="leave the option out for the home of LINEUP_HOME")
    context.obj = Setting(choose_home(Path(home) if home is not None else None, os.environ), tuple(app_folder or ()))


def wants_json(arguments: Sequence[str]) -> bool:
    """Say whether --format json was asked for, also when the rest of the line makes no sense."""
    return "--format=json" in arguments or any(pair == ("--format", "json") for pair in pairwise(arguments))


def _usage_failure(error: typer.TyperException, arguments: Sequence[str]) -> Failure:
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


def _bug_failure(error: BaseException) -> Failure:
    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = f"{Path(place[0].filename).name}:{place[0].lineno}" if place else "unknown"
    return Failure(UNEXPECTED, {"kind": type(error).__name__, "place": where})


def run_command(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        code = app(args=list(arguments), prog_name="lineup", standalone_mode=False)
    except typer.TyperException as error:
        failure = _usage_failure(error, arguments)
    except typer.Abort:
        failure = Failure("interrupted_by_person", exit_code=Exit.INTERRUPTED)
    except BaseException as error:  # the border of the program: everything that ends it becomes one line
        cause = first_cause(error)
        failure = as_failure(cause) or _bug_failure(cause)
    else:
        return code if isinstance(code, int) else Exit.OK
    print_failure(failure, as_json=wants_json(arguments))
    return failure.exit_code


def _open_missing_streams() -> None:
    """Fill the numbers 0, 1, 2 that the caller closed: else a socket gets one, and what is printed goes into it.

    The stand-in for stdout takes nothing, so that data is never lost in silence.
    """
    for fd, (name, flags, mode) in enumerate(_STREAMS):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, flags)
            if opened != fd:
                os.dup2(opened, fd)
                os.close(opened)
            setattr(sys, name, open(fd, mode, encoding="utf-8"))  # noqa: SIM115 - lives as long as the program


def main() -> None:
    """Entry point of the `lineup` command."""
    _open_missing_streams()
    code = run_command(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # the interpreter flushes once more at its end
    sys.exit(int(code))


if __name__ == "__main__":
    main()
