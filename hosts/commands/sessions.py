"""Verbs about App sessions: open, sessions list|show|continue (SPEC 8.4)."""

from __future__ import annotations

from typing import Annotated

import typer

from hosts.commands.setting import FormatOption, Setting, ask, setting_of
from hosts.output import Failure, Format, table, write_data
from hosts.visible import one_line, visible
from kernel.protocol.host_sessions import AppOpen, AppStartEmpty, SessionsContinue, SessionsList, SessionsShow
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject

sessions = typer.Typer(help="What was done in apps, each time from opening to closing.", rich_markup_mode=None)

BeforeOption = Annotated[int | None, typer.Option("--before", help="Only those older than this number.", min=1)]
LimitOption = Annotated[int, typer.Option("--limit", help="At most this many.", min=1, max=200)]


def open_app(
    context: typer.Context,
    app: Annotated[str, typer.Argument(help="Its app_scope, as in `lineup app list`.")],
    empty: Annotated[bool, typer.Option("--empty", help="Start with nothing remembered; for an app that failed.")] = False,
    chosen: FormatOption = Format.TEXT,
) -> None:
    """Open an app and bring it to the front; tries again when it failed."""
    [value] = ask(setting_of(context), AppStartEmpty(app_scope=app) if empty else AppOpen(app_scope=app))
    write_data(value, [f"{visible(app)} is in front"], chosen)


@sessions.command("list")
def list_sessions(context: typer.Context, before: BeforeOption = None, limit: LimitOption = 50, chosen: FormatOption = Format.TEXT) -> None:
    """List App sessions, newest first."""
    [value] = ask(setting_of(context), SessionsList(before=before, limit=limit))
    rows = [_row(one) for one in value["sessions"]]
    more = [f"(more: --before {value['sessions'][-1]['number']})"] if value["more"] and value["sessions"] else []
    write_data(value, [*table(rows, ("NO", "SESSION", "APP", "STATE", "SAID", "ERROR", "OPENED", "CLOSED")), *more], chosen)


def _row(one: JsonObject) -> tuple[object, ...]:
    state = "failed" if one["failed"] else one["state"]
    names = ("number", "app_session_id", "app_scope")
    return (*(one[name] for name in names), state, one["messages"], one.get("error"), one["opened_at"], one.get("closed_at"))


@sessions.command("show")
def show_session(
    context: typer.Context,
    session: Annotated[str, typer.Argument(metavar="ID", help="Its id or number.")],
    before: BeforeOption = None,
    limit: LimitOption = 50,
    chosen: FormatOption = Format.TEXT,
) -> None:
    """Show what was said while the app was in front, oldest first."""
    setting = setting_of(context)
    shown = SessionsShow(app_session_id=_id_of(setting, session), before=before, limit=limit)
    [value] = ask(setting, shown)
    more = [f"(more: --before {value['messages'][0]['number']})"] if value["more"] and value["messages"] else []
    said = [line for message in value["messages"] for line in _said(message)]
    write_data(value, [*more, *(said or ["(nothing was said while it was in front)"])], chosen)


def _said(message: JsonObject) -> list[str]:
    first, *rest = visible(str(message["text"]), keep_newlines=True).split("\n")
    return [f"{message['created_at']} {one_line(str(message['author']), 20)}: {first}", *(f"    {line}" for line in rest)]


@sessions.command("continue")
def continue_session(
    context: typer.Context,
    session: Annotated[str, typer.Argument(metavar="ID", help="Its id or number.")],
    chosen: FormatOption = Format.TEXT,
) -> None:
    """Go on with a closed session: a new one, linked to it, that remembers what it did."""
    setting = setting_of(context)
    [value] = ask(setting, SessionsContinue(app_session_id=_id_of(setting, session)))
    write_data(value, [f"goes on as {visible(str(value['app_session_id']))}"], chosen)


def _id_of(setting: Setting, name: str) -> str:
    """The id of a session that is named by its number; an id is taken as it is."""
    word = name.removeprefix("#")
    if not (word.isascii() and word.isdecimal() and len(word) < 16):
        return name
    [value] = ask(setting, SessionsList(before=int(word) + 1, limit=1))
    found = [one for one in value["sessions"] if one["number"] == int(word)]
    if not found:
        detail = {"pointer": "ID", "expected": "the id or number of an App session", "hint": "see `lineup sessions list`"}
        raise Failure(Code.APP_INSTANCE_NOT_FOUND, detail, message="there is no such App session")
    return str(found[0]["app_session_id"])
