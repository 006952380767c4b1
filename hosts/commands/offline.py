"""Verbs that need no running kernel: audit verify, audit export, doctor, version.

Rules:
1. The kernel's own program does the work as `python -m kernel …` and answers in JSON on stdout; hosts never open the database.
2. Its output is passed on as it came for JSON, line by line for an export, so that a long audit needs no memory here.
"""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import version as version_of
from typing import Any

import typer

from hosts.commands.setting import FormatOption, setting_of
from hosts.homes import Home
from hosts.launch import KERNEL_PROGRAM
from hosts.output import UNEXPECTED, Exit, Failure, Format, facts, print_data, table, write_data
from hosts.strict_json import NotJson, read_json
from lineup_sdk.protocol.limits import WIRE_VERSION

audit = typer.Typer(help="Check or export the audit chain.", rich_markup_mode=None)


def _kernel_command(*arguments: str) -> list[str]:
    return [*KERNEL_PROGRAM, *arguments]


def run_offline(*arguments: str) -> dict[str, Any]:
    """Run an offline mode of the kernel and return its JSON answer. Raises: Failure with the kernel's own code."""
    done = subprocess.run(_kernel_command(*arguments), stdin=subprocess.DEVNULL, capture_output=True, check=False)
    answer = _json_object(done.stdout)
    if answer is None:
        raise _offline_failure(done.stderr, done.returncode)
    return answer


def _json_object(text: bytes) -> dict[str, Any] | None:
    try:
        value = read_json(text.decode(errors="replace"))
    except NotJson:
        return None
    return value if isinstance(value, dict) else None


def _offline_failure(stderr: bytes, returncode: int) -> Failure:
    last = stderr.splitlines()[-1:] or [b""]
    words = _json_object(last[0]) or {}
    code = str(words.pop("code", UNEXPECTED))
    return Failure(code, words or {"reason": f"the kernel program ended with {returncode}"})


def verify_audit(home: Home) -> dict[str, Any]:
    """Return the verdict on the audit chain of a home. Raises: Failure when it cannot be read."""
    return run_offline("audit", "verify", "--home", str(home.folder))


@audit.command("verify")
def audit_verify(context: typer.Context, chosen: FormatOption = Format.TEXT) -> None:
    """Check the audit chain from its first row to its head, and the head against the file kept beside it."""
    value = verify_audit(setting_of(context).home)
    write_data(value, facts(value), chosen)
    if not value.get("ok"):
        problems = len(value.get("problems", []))
        raise Failure("audit_broken", {"problems": problems}, exit_code=Exit.UNEXPECTED, message="the audit chain does not hold")


@audit.command("export")
def audit_export(context: typer.Context, chosen: FormatOption = Format.JSON) -> None:
    """Write every audit row as one JSON object a line; it has no other form."""
    del chosen
    command = _kernel_command("audit", "export", "--home", str(setting_of(context).home.folder))
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        if process.stdout is None or process.stderr is None:
            raise Failure(UNEXPECTED)
        for line in process.stdout:
            print_data(line.decode().rstrip("\n"))
        stderr = process.stderr.read()
    if process.returncode:
        raise _offline_failure(stderr, process.returncode)


def doctor(chosen: FormatOption = Format.TEXT) -> None:
    """Check this machine: every layer of the sandbox and what the kernel needs."""
    value = run_offline("doctor")
    layers = value.get("layers", [])
    rows = [("ok" if layer["ok"] else "MISSING", layer["name"], layer.get("detail"), layer.get("hint")) for layer in layers]
    others = {name: field for name, field in value.items() if name != "layers"}
    write_data(value, [*table(rows, ("STATE", "LAYER", "DETAIL", "HINT")), *facts(others)], chosen)
    if not value.get("ok"):
        missing = [layer["name"] for layer in layers if not layer["ok"]]
        raise Failure("sandbox_incomplete", {"layers": missing, "hint": "see the hints above"}, exit_code=Exit.UNEXPECTED)


def version(chosen: FormatOption = Format.TEXT) -> None:
    """Say which version this is."""
    value = {
        "lineup": version_of("lineup-runtime"),
        "sdk": version_of("lineup-sdk"),
        "wire": WIRE_VERSION,
        "python": platform.python_version(),
    }
    write_data(value, [f"{name} {number}" for name, number in value.items()], chosen)
