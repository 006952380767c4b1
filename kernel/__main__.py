"""`python -m kernel serve | doctor | audit`: the kernel's command line, for hosts. JSON on stdout, one JSON line on failure.

    python -m kernel serve --home HOME [--view-fd N] [--app-folder PATH ...] [--idle-seconds S] [--retention-days D]
    python -m kernel doctor
    python -m kernel audit verify|export --home HOME
    python -m kernel restore --home HOME --from FOLDER

Exit codes: 0 ok, 1 refused or broken, 2 usage (the line says how), 8 another kernel holds the home.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import signal
import socket
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

from kernel.launch import execute_early

_early = execute_early() if __name__ == "__main__" and sys.argv[1:2] == ["serve"] else None

if __name__ == "__main__":
    gc.disable()  # until all is imported: none of it is garbage, and to look for some takes a tenth of the time

# All this takes as long to import as the zygote takes to be born: two processes do it side by side.
import trio  # noqa: E402

from kernel import audit, backup, doctor, log  # noqa: E402
from kernel.database import StorageFailed  # noqa: E402
from kernel.home import StoreRefused  # noqa: E402
from kernel.serve import Refused, Settings, serve, tell_refusal  # noqa: E402
from lineup_sdk.protocol.codes import Code  # noqa: E402
from lineup_sdk.protocol.messages import JsonObject  # noqa: E402

EXIT_BROKEN = 1
EXIT_USAGE = 2
EXIT_LOCKED = 8


class _Parser(argparse.ArgumentParser):
    """One whose refusal is the JSON line that every other refusal is. What was typed is not repeated."""

    def __init__(self, **more: Any) -> None:
        super().__init__(exit_on_error=False, **more)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        try:
            return super().parse_known_args(args, namespace)
        except argparse.ArgumentError as error:
            self._refuse(error.argument_name)

    def error(self, message: str) -> NoReturn:
        """End the program; argparse says this of what no single argument is to blame for."""
        del message
        self._refuse(None)

    def _refuse(self, pointer: str | None) -> NoReturn:
        _complain({"code": "usage", "pointer": pointer or "command line", "hint": f"see `{self.prog} --help`"})
        sys.exit(EXIT_USAGE)


def main() -> int:
    """Run one of the kernel's own commands and return its exit code."""
    gc.enable()
    arguments = _parser().parse_args()
    match arguments.command:
        case "serve":
            return _serve(arguments)
        case "doctor":
            return _doctor()
        case "restore":
            return _restore(arguments)
        case _:
            return _audit(arguments)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m kernel")
    commands = parser.add_subparsers(dest="command", required=True)
    serving = commands.add_parser("serve")
    serving.add_argument("--home", type=Path, required=True)
    serving.add_argument("--view-fd", type=_socket, dest="inherited")
    serving.add_argument("--app-folder", type=Path, action="append", default=[])
    serving.add_argument("--idle-seconds", type=_idle_seconds, default=60.0)
    serving.add_argument("--retention-days", type=_days, default=90)
    commands.add_parser("doctor")
    restoring = commands.add_parser("restore")
    restoring.add_argument("--home", type=Path, required=True)
    restoring.add_argument("--from", type=Path, required=True, dest="source")
    auditing = commands.add_parser("audit")
    auditing.add_argument("what", choices=("verify", "export"))
    auditing.add_argument("--home", type=Path, required=True)
    return parser


def _socket(text: str) -> socket.socket:
    """The socket of a descriptor that the launcher passed on."""
    try:
        return socket.socket(fileno=int(text))
    except OSError:
        raise ValueError from None


def _idle_seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds <= 86_400:
        raise ValueError
    return seconds


def _days(text: str) -> int:
    days = int(text)
    if not 1 <= days <= 36_500:
        raise ValueError
    return days


def _serve(arguments: argparse.Namespace) -> int:
    log.open_log()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the launcher's terminal is the launcher's
    inherited: socket.socket | None = arguments.inherited
    if inherited is not None:
        inherited.set_inheritable(False)
    gc.freeze()  # what was imported lives as long as the kernel; a turn makes some thousand short-lived objects
    gc.set_threshold(20_000, 20, 50)
    folders = tuple(folder.absolute() for folder in arguments.app_folder)
    settings = Settings(
        home=arguments.home.absolute(),
        app_folders=folders,
        idle_seconds=arguments.idle_seconds,
        retention_days=arguments.retention_days,
        early=_early,
    )
    os.chdir("/")  # it outlives its launcher and holds no folder of the launcher's
    try:
        trio.run(serve, settings, inherited)
    except Refused as refused:
        _complain({"code": refused.code.value, "hint": refused.hint, **refused.detail})
        if inherited is not None and inherited.fileno() >= 0:
            trio.run(tell_refusal, inherited, refused)
        return EXIT_LOCKED if refused.code is Code.STORE_LOCKED else EXIT_BROKEN
    except BaseException as error:  # the last border: whatever broke, its text stays inside (SPEC 17)
        log.bug(error)
        _complain({"code": _code_of(error), "hint": "start again; what was accepted is kept"})
        return EXIT_BROKEN
    return 0


def _code_of(error: BaseException) -> str:
    if isinstance(error, StorageFailed):
        return error.code.value
    if isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        return _code_of(error.exceptions[0])
    return Code.UNKNOWN.value


def _doctor() -> int:
    diagnosis = trio.run(doctor.examine)
    print(json.dumps(asdict(diagnosis) | {"ok": diagnosis.is_complete}))
    return 0 if diagnosis.is_complete else EXIT_BROKEN


def _restore(arguments: argparse.Namespace) -> int:
    try:
        print(json.dumps(backup.restore(arguments.home, arguments.source)))
    except (backup.BackupFailed, StoreRefused) as refused:
        _complain({"code": refused.code.value, "hint": refused.hint})
        return EXIT_LOCKED if refused.code is Code.STORE_LOCKED else EXIT_BROKEN
    return 0


def _audit(arguments: argparse.Namespace) -> int:
    database = arguments.home / "kernel.db"
    if not os.path.lexists(database):
        _complain({"code": Code.UNAVAILABLE.value, "hint": "nothing was audited yet: no kernel was ever started on this home"})
        return EXIT_BROKEN
    try:
        if arguments.what == "verify":
            report = audit.verify(database)
            print(json.dumps(report.as_json()))
            return 0 if report.ok else EXIT_BROKEN
        for row in audit.read_audit(database):
            print(json.dumps(row.as_json()))
    except audit.AuditUnreadable as error:
        is_full = error.code is Code.STORE_FULL
        hint = "the check reads a copy; free some space" if is_full else "the database cannot be read; see `lineup doctor`"
        _complain({"code": error.code.value, "hint": hint})
        return EXIT_BROKEN
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader went away; say nothing more
    return 0


def _complain(line: JsonObject) -> None:
    print(json.dumps(line), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
