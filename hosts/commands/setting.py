"""What every verb shares: the home and app folders chosen, one question to a running kernel, and failures in the command's words.

Rules:
1. Reading and switching verbs attach as `admin` and never start a kernel (SPEC 2.9); run, demo, agent and call may.
2. Library and link exceptions become a Failure here, once; what is left over is a bug and ends as `unexpected`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import trio
import typer

from hosts.agents.jsonl import DoorClosed
from hosts.homes import Home, HomeRefused
from hosts.launch import Launcher
from hosts.lines import LinesClosed
from hosts.link import KernelUnreachable, LinkLost, Refused, connect, hello
from hosts.output import INTERRUPTED, TIMED_OUT, UNEXPECTED, UNREACHABLE, Exit, Failure, Format
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject, Message

_T = TypeVar("_T")

ANSWER_SECONDS = 30.0

FormatOption = Annotated[Format, typer.Option("--format", help="text for people, json for programs.")]


@dataclass(frozen=True, slots=True)
class Setting:
    """The global options of one run of the command."""

    home: Home
    app_folders: Sequence[Path]

    def launcher(self) -> Launcher:
        """Return a launcher for this home."""
        return Launcher(self.home, self.app_folders)


def setting_of(context: typer.Context) -> Setting:
    """Return the setting the command line was started with."""
    setting = context.find_object(Setting)
    if setting is None:
        raise Failure(UNEXPECTED)
    return setting


def first_cause(error: BaseException) -> BaseException:
    """Unwrap exception groups: the interrupt if one is in it, else the first failure."""
    while isinstance(error, BaseExceptionGroup):
        interrupts = [leaf for leaf in error.exceptions if _holds_interrupt(leaf)]
        error = (interrupts or list(error.exceptions))[0]
    return error


def _holds_interrupt(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(KeyboardInterrupt) is not None
    return isinstance(error, KeyboardInterrupt)


def as_failure(error: BaseException) -> Failure | None:
    """Translate what a verb may run into; None for what is a bug."""
    match error:
        case Failure():
            return error
        case Refused():
            return Failure(error.code, error.detail)
        case DoorClosed() | KernelUnreachable():
            exit_code = Exit.CONFLICT if error.code in (Code.STORE_LOCKED, Code.DOOR_BUSY) else Exit.UNREACHABLE
            return Failure(error.code, error.detail, exit_code=exit_code)
        case LinkLost():
            return Failure(UNREACHABLE, {"hint": "the kernel ended before it answered; whether it did what was asked is not known"})
        case LinesClosed() | BrokenPipeError() | SystemExit():  # typer turns a broken pipe into the last
            return Failure(UNEXPECTED, {}, message="nobody reads the output any more")
        case HomeRefused():
            return Failure(Code.STORE_FOREIGN, {"pointer": "LINEUP_HOME"}, exit_code=Exit.DENIED, message=error.reason)
        case trio.TooSlowError():
            return Failure(TIMED_OUT)
        case KeyboardInterrupt():
            return Failure(INTERRUPTED)
        case _:
            return None


def run_async(work: Callable[[], Awaitable[_T]]) -> _T:
    """Run the async part of a verb. Raises: Failure, or the bug itself."""
    try:
        return trio.run(work)
    except BaseException as error:
        cause = first_cause(error)
        failure = as_failure(cause)
        if failure is None:
            raise
        raise failure from cause


def ask(setting: Setting, *messages: Message) -> list[JsonObject]:
    """Put questions to the running kernel, one after the other, and return the answers. Raises: Failure (also when none runs)."""

    async def work() -> list[JsonObject]:
        answers: list[JsonObject] = []
        async with trio.open_nursery() as nursery:
            with trio.fail_after(ANSWER_SECONDS):
                link = await connect(nursery, setting.home, hello("admin", label="command"))
                try:
                    answers += [await link.request(message) for message in messages]
                except LinkLost:
                    if link.farewell is None:
                        raise
                    raise Failure(link.farewell.code, link.farewell.detail) from None  # the kernel is there: it would not take this
                finally:
                    link.close()
        return answers

    return run_async(work)
