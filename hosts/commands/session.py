"""Verbs that hold a session: run, desktop, console, stop, agent, demo."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import trio
import typer

from hosts.agents.jsonl import MAX_LINE_BYTES, Door
from hosts.agents.process import stamps
from hosts.commands.setting import ANSWER_SECONDS, FormatOption, run_async, setting_of
from hosts.homes import MAX_RETENTION_DAYS, language_of
from hosts.lines import LineReader, LineWriter
from hosts.link import connect, hello
from hosts.output import Exit, Failure, Format, usage, write_data
from kernel.protocol.host import KernelStop

LOOPBACK = "127.0.0.1"

SaveFolderOption = Annotated[
    Path | None, typer.Option("--save-folder", help="Where Apps may save files you allow; default: saved, in the home.")
]


OpenOption = Annotated[bool, typer.Option("--open/--no-open", help="Open the browser.")]
DemoOption = Annotated[bool, typer.Option("--demo", help="Start the demo Agent too: a fixed script, no network.")]


class Language(StrEnum):
    """What the demo Agent speaks."""

    ENGLISH = "en"
    CHINESE = "zh"


LanguageOption = Annotated[
    Language | None,
    typer.Option("--language", help="In which the demo Agent speaks; default: that of your locale. The page asks your browser."),
]
RetentionOption = Annotated[
    int | None,
    typer.Option(
        "--retention-days",
        min=1,
        max=MAX_RETENTION_DAYS,
        help="Keep texts so many days (90); remembered for this home, taken by the next kernel that starts.",
    ),
]
BindOption = Annotated[str, typer.Option("--bind", help="Listen on another address of this machine; plain HTTP, for a network you trust.")]


def run(
    context: typer.Context,
    open_page: OpenOption = True,
    demo: DemoOption = False,
    language: LanguageOption = None,
    bind: BindOption = LOOPBACK,
    retention_days: RetentionOption = None,
) -> None:
    """Open the page in the browser: talk to the Agent, use apps, answer what is asked."""
    raise typer.Exit(_serve(context, bind, language, opens_browser=open_page, is_demo=demo, retention_days=retention_days))


def desktop(context: typer.Context, demo: DemoOption = False, language: LanguageOption = None) -> None:
    """Open the page in a window of its own (Chromium), else in the browser."""
    raise typer.Exit(_serve(context, LOOPBACK, language, is_window=True, is_demo=demo))


def _serve(
    context: typer.Context,
    bind: str,
    language: Language | None,
    *,
    opens_browser: bool = True,
    is_window: bool = False,
    is_demo: bool = False,
    retention_days: int | None = None,
) -> Exit:
    from hosts.web.address import AddressRefused, parse_address  # the server takes a while to import; the other verbs do without
    from hosts.web.host import Wish, run_web

    setting = setting_of(context)
    try:
        wish = Wish(
            address=parse_address(bind),
            opens_browser=opens_browser,
            is_window=is_window,
            is_demo=is_demo,
            language=language or language_of(os.environ),
            environ=os.environ,
        )
        if retention_days is not None:
            setting.home.keep_retention_days(retention_days)
        return run_async(lambda: run_web(setting.launcher(), wish))
    except AddressRefused as refused:
        raise usage("this address is not taken", pointer="--bind", expected=refused.hint) from refused


def console(context: typer.Context, save_folder: SaveFolderOption = None) -> None:
    """Open the console in this terminal: talk to the Agent, watch and steer calls and apps."""
    if not (os.isatty(0) and os.isatty(1)):
        raise usage(
            "console needs a terminal",
            pointer="stdin, stdout",
            expected="a terminal",
            hint="without one use `lineup ps`, `lineup calls list`, `lineup call`, `lineup agent`",
        )
    from hosts.console import run_console  # rich takes a while to import; the other verbs do without

    setting = setting_of(context)
    folder = (save_folder or setting.home.folder / "saved").absolute()
    code = run_async(lambda: run_console(setting.launcher(), folder))
    raise typer.Exit(code)


def stop(context: typer.Context, chosen: FormatOption = Format.TEXT) -> None:
    """End the kernel of this home; open calls are kept and go on at the next start."""
    setting = setting_of(context)

    async def work() -> None:
        async with trio.open_nursery() as nursery:
            with trio.fail_after(ANSWER_SECONDS):
                link = await connect(nursery, setting.home, hello("admin", label="command"))
                await link.request(KernelStop())
                await link.wait_lost()

    run_async(work)
    write_data({"stopped": True}, ["The kernel has stopped."], chosen)


def agent(
    context: typer.Context,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="At the end of input wait for the results of all calls.")] = True,
    receipts: Annotated[bool, typer.Option("--receipts", help="Write receipts and notes to stdout, between the envelopes.")] = False,
    demo: Annotated[bool, typer.Option("--demo", help="Mark this Agent as the demo one; it gives way to a real one.")] = False,
) -> None:
    """Be the door of an Agent: lineup.v1 envelopes, one JSON object a line, on stdin and stdout."""
    setting = setting_of(context)
    sink = LineWriter(sys.stdout.fileno())
    notes = sink if receipts else LineWriter(sys.stderr.fileno())
    door = Door(setting.launcher(), LineReader(sys.stdin.fileno(), MAX_LINE_BYTES), sink, notes, stamps(), is_demo=demo)
    run_async(lambda: door.run(wait_for_results=wait))


def demo(context: typer.Context, language: LanguageOption = None) -> None:
    """Show the whole path once, in a temporary home: an Agent process, a durable kernel, a sealed app. Then clean up."""
    from hosts.demo import run_demo

    setting = setting_of(context)
    failed = run_async(lambda: run_demo(setting.app_folders, language or language_of(os.environ)))
    if failed:
        message = "what the Agent said and what the kernel holds differ"
        raise Failure("demo_failed", {"failed": failed}, exit_code=Exit.UNEXPECTED, message=message)
