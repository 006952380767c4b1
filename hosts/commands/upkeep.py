"""Verbs of upkeep: inbox parked|retry|drop, explain, tail, logs."""

from __future__ import annotations

from typing import Annotated

import trio
import typer

from hosts.commands.setting import FormatOption, ask, setting_of
from hosts.output import Format, table, write_data
from hosts.visible import visible
from kernel.protocol.host import InstancesList, LogsRead
from kernel.protocol.host_sessions import SessionsList
from kernel.protocol.host_upkeep import AuditTail, Explain, InboxDrop, InboxParked, InboxRetry
from lineup_sdk.protocol.messages import JsonObject

TAIL_SECONDS = 0.5
MAX_SESSIONS = 200

inbox = typer.Typer(help="Messages that an App could not take: send again or drop.", rich_markup_mode=None)


@inbox.command("parked")
def parked(context: typer.Context, chosen: FormatOption = Format.TEXT) -> None:
    """List parked messages, oldest first."""
    [value] = ask(setting_of(context), InboxParked())
    rows = [
        (r["number"], r["app_scope"], r["topic"], r["delivery_count"], r["crash_count"], r["size"], r["created_at"]) for r in value["rows"]
    ]
    write_data(value, table(rows, ("NO", "APP", "TOPIC", "DELIVERED", "CRASHES", "BYTES", "CREATED")), chosen)


@inbox.command("retry")
def retry(context: typer.Context, number: int, chosen: FormatOption = Format.TEXT) -> None:
    """Send a parked message again, to the App's instance of now."""
    [value] = ask(setting_of(context), InboxRetry(number=number))
    write_data(value, [f"message {number} goes to {visible(str(value['instance_id']))}"], chosen)


@inbox.command("drop")
def drop(context: typer.Context, number: int, chosen: FormatOption = Format.TEXT) -> None:
    """Give a parked message up for good."""
    [value] = ask(setting_of(context), InboxDrop(number=number))
    write_data(value, [f"message {number} is dropped"], chosen)


def explain(context: typer.Context, what: str, chosen: FormatOption = Format.TEXT) -> None:
    """Say why a call, card or instance is as it is, citing audit rows."""
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
    """Show the newest audit rows: what the kernel decided, without content."""
    after: int | None = None
    while True:
        [value] = ask(setting_of(context), AuditTail(after=after))
        for row in value["rows"]:
            write_data(row, [_audit_line(row)], chosen)
            after = row["seq"]
        if not follow:
            return
        trio.run(trio.sleep, TAIL_SECONDS)  # a poll: reads are not decisions and cost the kernel no commit


def _audit_line(row: JsonObject) -> str:
    facts = " ".join(f"{name}={row[name]}" for name in ("number", "instance_id", "code", "count", "cause") if name in row)
    return visible(f"{row['seq']} {row['at']} {row['speaker']} {row['command']} -> {row['event']} {facts}".rstrip())


def logs(context: typer.Context, app: str, chosen: FormatOption = Format.TEXT) -> None:
    """Show what an App wrote: name it by app_scope or instance id."""
    [listed, done] = ask(setting_of(context), InstancesList(), SessionsList(limit=MAX_SESSIONS))
    running = [i["instance_id"] for i in reversed(listed["instances"]) if i["app_scope"] == app]
    # an App that failed runs no more, and just then its last words are wanted
    ended = [s["newest_instance_id"] for s in done["sessions"] if s["app_scope"] == app and "newest_instance_id" in s]
    [value] = ask(setting_of(context), LogsRead(instance_id=next(iter([*running, *ended]), app)))
    write_data(value, [visible(line) for line in str(value["text"]).splitlines()], chosen)
