"""Verbs `backup PATH` (of the running kernel) and `restore PATH` (of a home without one)."""

from __future__ import annotations

import os
from pathlib import Path

import trio
import typer

from hosts.commands.offline import run_offline
from hosts.commands.setting import FormatOption, Setting, run_async, setting_of
from hosts.link import HostLink, LinkLost, connect, hello
from hosts.output import Failure, Format, facts, usage, write_data
from kernel.protocol.host_upkeep import BackupMade, BackupMake
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject

BACKUP_SECONDS = 3600.0
_NEW_FOLDER = "a folder that is not there yet, in one that is"
_BACKUP_WORDS: dict[str, str] = {
    Code.STORE_CORRUPT: "the backup fails its checks; nothing of this home was changed",
    Code.STORE_NEWER: "the backup was written by a newer version; nothing of this home was changed",
}


def backup(context: typer.Context, path: Path, chosen: FormatOption = Format.TEXT) -> None:
    """Write a backup of the running kernel into a folder that is not there yet."""
    setting = setting_of(context)
    if os.path.lexists(path):
        raise usage("there is something of that name already; it is left as it is", pointer="PATH", expected=_NEW_FOLDER)
    if not os.path.isdir(path.absolute().parent):  # False, too, for a name that no folder can have
        raise usage("there is no folder to put it in", pointer="PATH", expected=_NEW_FOLDER)
    made = run_async(lambda: _backup(setting, path.absolute()))
    write_data(made, facts(made), chosen)


async def _backup(setting: Setting, path: Path) -> JsonObject:
    async with trio.open_nursery() as nursery:
        with trio.fail_after(BACKUP_SECONDS):
            link = await connect(nursery, setting.home, hello("admin", label="command"))
            try:
                await link.request(BackupMake(path=str(path)))
                made = await _wait_made(link)
            finally:
                link.close()
    if not made.accepted:
        words = "the backup cannot be put there" if made.code == Code.LIMIT_EXCEEDED else None
        raise Failure(str(made.code), {**(made.detail or {}), "pointer": "PATH"}, message=words)
    return made.facts or {}


async def _wait_made(link: HostLink) -> BackupMade:
    async for event in link.events:
        if isinstance(event, BackupMade):
            return event
    raise LinkLost


def restore(context: typer.Context, path: Path, chosen: FormatOption = Format.TEXT) -> None:
    """Put a backup in the place of this home's state; no kernel may run. What was there is kept beside it."""
    try:
        answer = run_offline("restore", "--home", str(setting_of(context).home.folder), "--from", str(path.absolute()))
    except Failure as failure:
        raise _of_backup(failure) from failure
    write_data(answer, facts(answer), chosen)


def _of_backup(failure: Failure) -> Failure:
    """What a restore found wrong is the backup's: the database of the home is not even opened."""
    words = _BACKUP_WORDS.get(failure.code)
    detail = {"pointer": "PATH", **failure.detail}
    return failure if words is None else Failure(failure.code, detail, exit_code=failure.exit_code, message=words)
