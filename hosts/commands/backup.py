"""Verbs `backup PATH` (of the running kernel) and `restore PATH` (of a home without one)."""

from __future__ import annotations

from pathlib import Path

import trio
import typer

from hosts.commands.offline import run_offline
from hosts.commands.setting import FormatOption, Setting, run_async, setting_of
from hosts.link import HostLink, LinkLost, connect, hello
from hosts.output import Exit, Failure, Format, facts, write_data
from kernel.protocol.host_upkeep import BackupMade, BackupMake
from lineup_sdk.protocol.messages import JsonObject

BACKUP_SECONDS = 3600.0


def backup(context: typer.Context, path: Path, chosen: FormatOption = Format.TEXT) -> None:
    """Write a backup of the running kernel into a folder that is not there yet."""
    setting = setting_of(context)
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
        raise Failure(str(made.code), {"pointer": "PATH", "hint": made.hint}, exit_code=Exit.UNEXPECTED)
    return made.facts or {}


async def _wait_made(link: HostLink) -> BackupMade:
    async for event in link.events:
        if isinstance(event, BackupMade):
            return event
    raise LinkLost


def restore(context: typer.Context, path: Path, chosen: FormatOption = Format.TEXT) -> None:
    """Put a backup in the place of this home's state; no kernel may run. What was there is kept beside it."""
    answer = run_offline("restore", "--home", str(setting_of(context).home.folder), "--from", str(path.absolute()))
    write_data(answer, facts(answer), chosen)
