"""The `lineup` command: global options, the verbs of hosts/commands, and the one place where failures become a line and an exit code.

Rules:
1. Exit codes: 0 ok, 1 unexpected, 2 usage, 3 denied, 4 kernel unreachable, 5 tool failed, 6 timed out or expired, 8 conflict,
   130 interrupted (hosts.output).
2. Bad arguments are failures like all others (misuse.py): one line, with a pointer to the argument; what was typed is not repeated.
3. A bug gives its kind and place, never its text: that may quote what a person wrote.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from hosts.commands import backup, calls, interactions, offline, permissions, proving, reading, session, sessions, upkeep
from hosts.commands.setting import Setting, as_failure, first_cause
from hosts.homes import choose_home
from hosts.misuse import usage_failure, wants_json
from hosts.output import UNEXPECTED, Exit, Failure, print_failure, usage

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


def _bug_failure(error: BaseException) -> Failure:
    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = f"{Path(place[0].filename).name}:{place[0].lineno}" if place else "unknown"
    return Failure(UNEXPECTED, {"kind": type(error).__name__, "place": where})


def run_command(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        code = app(args=list(arguments), prog_name="lineup", standalone_mode=False)
    except typer.TyperException as error:
        failure = usage_failure(error, arguments)
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
