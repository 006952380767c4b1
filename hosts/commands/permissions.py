"""Verbs about what Apps may have hosts do: permissions list, revoke, reset (SPEC 10)."""

from __future__ import annotations

from typing import Annotated

import typer

from hosts.commands.setting import FormatOption, ask, setting_of
from hosts.output import Format, table, usage, write_data
from hosts.visible import visible
from kernel.protocol.host_capabilities import PermissionsList, PermissionsReset, PermissionsRevoke

permissions = typer.Typer(help="What Apps may do outside of themselves without a question; take it back.", rich_markup_mode=None)

_COUNTS = {True: "yes", False: "no: the App has changed"}


@permissions.command("list")
def list_permissions(context: typer.Context, chosen: FormatOption = Format.TEXT) -> None:
    """List your standing answers: always, while open, never."""
    [value] = ask(setting_of(context), PermissionsList())
    rows = [
        (p["app_scope"], p["capability"], p["scope"].replace("_", " "), _COUNTS[p["counts"]], p["granted_at"], p.get("instance_id"))
        for p in value["permissions"]
    ]
    write_data(value, table(rows, ("APP", "CAPABILITY", "ANSWER", "COUNTS", "GIVEN", "INSTANCE")), chosen)


@permissions.command("revoke")
def revoke(context: typer.Context, app: str, capability: str, chosen: FormatOption = Format.TEXT) -> None:
    """Take one answer back, at once; what is under way by it ends. The App has to ask again."""
    [value] = ask(setting_of(context), PermissionsRevoke(app_scope=app, capability=capability))
    write_data(value, [f"{visible(app)} has to ask again for {visible(capability)}"], chosen)


@permissions.command("reset")
def reset(
    context: typer.Context,
    app: Annotated[str | None, typer.Argument(help="The App; without it, every one (then with --all).")] = None,
    every: Annotated[bool, typer.Option("--all", help="Of every App.")] = False,
    chosen: FormatOption = Format.TEXT,
) -> None:
    """Take all answers back, of one App or of all."""
    if (app is None) != every:
        raise usage("name an App, or say --all", pointer="APP", expected="an app_scope, or --all")
    [value] = ask(setting_of(context), PermissionsReset(app_scope=app))
    write_data(value, [f"{value['revoked']} answer(s) taken back"], chosen)
