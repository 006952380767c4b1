"""Verbs of upkeep: inbox parked|retry|drop, explain, tail, logs."""

from __future__ import annotations

from typing import Annotated

import trio
import typer

from hosts.commands.setting import FormatOption, Setting, ask, run_async, setting_of
from hosts.link import connect, hello
from hosts.output import Format, table, write_data
from hosts.visible import visible
from kernel.protocol.host import InstancesList, LogsRead
from kernel.protocol.host_sessions import SessionsList
from kernel.protocol.host_upkeep import AuditTail, Explain, InboxDrop, InboxParked, InboxRetry
from lineup_sdk.protocol.messages import JsonObject

TAIL_SECONDS = 0.5
MAX_SESSIONS = 200

NumberArgument = Annotated[int, typer.Argument(help="Its number in `lineup inbox parked`.", min=1)]

inbox = typer.Typer(help="Messages that an App could not take: send again or drop.", rich_markup_mode=None)


@inbox.command("parked")
def parked(
    context: typer.Context,
    after: Annotated[int, typer.Option("--after", help="Only those newer than this number.", min=0)] = 0,
    limit: Annotated[int, typer.Option("--limit", help="At most this many.", min=1, max=200)] = 50,
    chosen: FormatOption = Format.TEXT,
) -> None:
    """List parked messages, oldest first."""
    [value] = ask(setting_of(context), InboxParked(after=after, limit=limit))
    rows = [
        (r["number"], r["app_scope"], r["topic"], r["delivery_count"], r["crash_count"], r["size"], r["created_at"]) for r in value["rows"]
    ]
    lines = table(rows, ("NO", "APP", "TOPIC", "DELIVERED", "CRASHES", "BYTES", "CREATED"))
    more = [f"(more: --after {value['rows'][-1]['number']})"] if value["more"] and value["rows"] else []
    write_data(value, [*lines, *more], chosen)


@inbox.command("retry")
def retry(context: typer.Context, number: NumberArgument, chosen: FormatOption = Format.TEXT) -> None:
    """Send a parked message again, to the App's instance of now."""
    [value] = ask(setting_of(context), InboxRetry(number=number))
    write_data(value, [f"message {number} goes to {visible(str(value['instance_id']))}"], chosen)


@inbox.command("drop")
def drop(context: typer.Context, number: NumberArgument, chosen: FormatOption = Format.TEXT) -> None:
    """Give a parked message up for good."""
    [value] = ask(setting_of(context), InboxDrop(number=number))
    write_data(value, [f"message {number} is dropped"], chosen)


def explain(
    context: typer.Context,
    what: Annotated[str, typer.Argument(metavar="ID", help="The id or number of a call, a question, an instance.")],
    chosen: FormatOption = Format.TEXT,
) -> None:
    """Say why a call, a question or an instance is as it is, citing audit rows."""
    [value] = ask(setting_of(context), Explain(what=what))
    write_data(value, [_cited(sentence) for sentence in value["sentences"]], chosen)


def _cited(sentence: JsonObject) -> str:
    seqs = ", ".join(str(seq) for seq in sentence["seqs"])
    return visible(sentence["text"]) + (f" [audit {seqs}]" if seqs else "")


def tail(
    context: typer.Context,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
    chosen: FormatOption = Format.TEXT,
) -> None:
    """Show the newest audit rows: what the kernel decided, without content. As JSON: one object a line."""
    setting = setting_of(context)
    run_async(lambda: _tail(setting, chosen, follow=follow))


async def _tail(setting: Setting, chosen: Format, *, follow: bool) -> None:
    """One link for as long as it goes on; a poll, because reads are not decisions and cost the kernel no commit."""
    async with trio.open_nursery() as nursery:
        link = await connect(nursery, setting.home, hello("admin", label="command"))
        after: int | None = None
        while True:
            rows = (await link.request(AuditTail(after=after)))["rows"]
            for row in rows:
                write_data(row, [_audit_line(row)], chosen)
                after = row["seq"]
            if not follow:
                break
            if not rows:
                await trio.sleep(TAIL_SECONDS)
        link.close()


def _audit_line(row: JsonObject) -> str:
    facts = " ".join(f"{name}={row[name]}" for name in ("number", "instance_id", "code", "count", "cause") if name in row)
    return visible(f"{row['seq']} {row['at']} {row['speaker']} {row['command']} -> {row['event']} {facts}".rstrip())


def logs(
    context: typer.Context,
    app: Annotated[str, typer.Argument(help="An app_scope (its newest instance, gone or not), or the id of an instance.")],
    chosen: FormatOption = Format.TEXT,
) -> None:
    """Show what an app wrote."""
    listed, sessions = ask(setting_of(context), InstancesList(), SessionsList(limit=MAX_SESSIONS))
    alive = [one["instance_id"] for one in listed["instances"] if one["app_scope"] == app]
    # an App that failed runs no more, and just then its last words are wanted
    gone = [one["newest_instance_id"] for one in sessions["sessions"] if one["app_scope"] == app and "newest_instance_id" in one]
    named = [*alive[-1:], *gone, app]
    [value] = ask(setting_of(context), LogsRead(instance_id=named[0]))
    write_data(value, [visible(line) for line in str(value["text"]).splitlines()], chosen)
