"""Verbs that hold a session: run, stop, agent, demo."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated
from uuid import uuid4

import trio
import typer

from hosts.agents.jsonl import MAX_LINE_BYTES, Door, Stamps
from hosts.commands.setting import ANSWER_SECONDS, FormatOption, run_async, setting_of
from hosts.lines import LineReader, LineWriter
from hosts.link import connect, hello
from hosts.output import Exit, Failure, Format, usage, write_data
from kernel.protocol.host import KernelStop

SaveFolderOption = Annotated[
    Path | None, typer.Option("--save-folder", help="Where Apps may save files you allow; default: saved, in the home.")
]


def run(context: typer.Context, save_folder: SaveFolderOption = None) -> None:
    """Open the console: talk to the Agent, watch and steer calls and apps."""
    if not (os.isatty(0) and os.isatty(1)):
        raise usage(
            "run needs a terminal",
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


def stamps() -> Stamps:
    """Return the real clock and id source of a door."""
    return Stamps(
        new_message_id=lambda: f"msg_{uuid4().hex}",
        now=lambda: datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    )


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


def demo(context: typer.Context) -> None:
    """Show the whole path once, in a temporary home: an Agent process, a durable kernel, a sealed app. Then clean up."""
    from hosts.demo import run_demo

    setting = setting_of(context)
    failed = run_async(lambda: run_demo(setting.app_folders))
    if failed:
        message = "what the Agent said and what the kernel holds differ"
        raise Failure("demo_failed", {"failed": failed}, exit_code=Exit.UNEXPECTED, message=message)
