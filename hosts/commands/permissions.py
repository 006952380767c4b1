"""Verbs about what Apps may have hosts do: permissions asked, answer, list, revoke, reset (SPEC 10); and policy set (SPEC 7.4).

Rules:
1. An answer is given to the question as it stands at that moment: the kernel refuses it for any other.
2. Whoever answers says yes or no in words; there is no answer by default.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from hosts.commands.setting import FormatOption, ask, setting_of
from hosts.output import Failure, Format, table, usage, write_data
from hosts.visible import one_line, visible
from kernel.protocol.host_capabilities import ConsentAnswer, ConsentsList, PermissionsList, PermissionsReset, PermissionsRevoke
from kernel.protocol.host_interactions import PolicySet
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject

permissions = typer.Typer(help="What Apps may do outside of themselves without a question; take it back.", rich_markup_mode=None)

policy = typer.Typer(help="What you allow Apps by name.", rich_markup_mode=None)


class Allow(StrEnum):
    """For how long a yes is."""

    ONCE = "once"
    OPEN = "open"
    ALWAYS = "always"


class Deny(StrEnum):
    """For how long a no is."""

    ONCE = "once"
    ALWAYS = "always"


_YES = {Allow.ONCE: "once", Allow.OPEN: "while_open", Allow.ALWAYS: "always"}
_NO = {Deny.ONCE: "deny", Deny.ALWAYS: "never"}

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


@permissions.command("asked")
def asked(context: typer.Context, chosen: FormatOption = Format.TEXT) -> None:
    """List what Apps ask you for and wait for, oldest first."""
    [value] = ask(setting_of(context), ConsentsList())
    write_data(value, table([_row(one) for one in value["consents"]], ("NO", "REQUEST", "APP", "CAPABILITY", "YES FOR", "REASON")), chosen)


def _row(one: JsonObject) -> tuple[object, ...]:
    scopes = " ".join(str(scope).replace("while_open", "open") for scope in one["scopes"])
    return (one["number"], one["request_id"], one["app_scope"], one["capability"], scopes, one_line(str(one["reason"]), 60))


@permissions.command("answer")
def answer(
    context: typer.Context,
    request: Annotated[str | None, typer.Argument(metavar="[ID]", help="Its id or number; not needed while one waits.")] = None,
    allow: Annotated[Allow | None, typer.Option("--allow", help="Yes: once, while the App is open, always.")] = None,
    deny: Annotated[Deny | None, typer.Option("--deny", help="No: this once, or always.")] = None,
    chosen: FormatOption = Format.TEXT,
) -> None:
    """Say yes or no to what an App asks you for."""
    setting, decision = setting_of(context), decided(allow, deny)
    [value] = ask(setting, ConsentsList())
    shown = find(value["consents"], request)
    [receipt] = ask(setting, ConsentAnswer(request_id=str(shown["request_id"]), decision=decision, shown=str(shown["shown"])))
    said = "Allowed" if allow is not None else "Refused"
    write_data(receipt, [f"{said}: {visible(str(shown['app_title']))}, {visible(str(shown['title']))}"], chosen)


def decided(allow: Allow | None, deny: Deny | None) -> str:
    """The decision in the options. Raises: Failure (usage) without exactly one of them."""
    if allow is not None and deny is None:
        return _YES[allow]
    if deny is not None and allow is None:
        return _NO[deny]
    raise usage("say yes or no", pointer="--allow", expected="--allow once|open|always, or --deny once|always")


def find(waiting: Sequence[JsonObject], name: str | None) -> JsonObject:
    """The request that is meant: by id or number, or the only one. Raises: Failure (usage, capability_denied)."""
    word = (name or "").removeprefix("#")
    found = [one for one in waiting if name is None or word in (str(one["number"]), one["request_id"])]
    if len(found) == 1:
        return found[0]
    hint = "see `lineup permissions asked`"
    if name is None and found:
        raise usage(f"{len(found)} requests wait", pointer="ID", expected="the id or number of one of them", hint=hint)
    raise Failure(Code.CAPABILITY_DENIED, {"pointer": "ID", "expected": "a request that waits", "hint": hint})


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


@policy.command("set")
def set_policy(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Such as standard-interaction:APP: that App may ask you questions of its own.")],
    allow: Annotated[bool, typer.Option("--allow/--revoke", help="Allow it, or no longer.")],
    chosen: FormatOption = Format.TEXT,
) -> None:
    """Allow an App what its Manifest requests, from its next start on; or take it back, at once."""
    [receipt] = ask(setting_of(context), PolicySet(name=name, allowed=allow))
    write_data(receipt, [f"{visible(name)} is {'allowed' if allow else 'not allowed'}"], chosen)
