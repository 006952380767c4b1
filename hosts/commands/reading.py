"""Verbs about what is there: ps, inventory show, app list, app enable, app disable."""

from __future__ import annotations

import typer

from hosts.commands.setting import FormatOption, ask, setting_of
from hosts.output import Format, table, write_data
from hosts.visible import one_line, visible
from kernel.protocol.host import AppDisable, AppEnable, AppsList, InstancesList, InventoryShow, KernelStatus
from lineup_sdk.protocol.messages import JsonObject

inventory = typer.Typer(help="What the Agent can call.", rich_markup_mode=None)
app = typer.Typer(help="List apps; switch an app or one tool on or off.", rich_markup_mode=None)


def ps(context: typer.Context, chosen: FormatOption = Format.TEXT) -> None:
    """List the instances of apps and what the kernel says of itself."""
    value, status = ask(setting_of(context), InstancesList(), KernelStatus())
    focus = value.get("focus", [])
    rows = [
        (i["instance_id"], i["app_scope"], i["app_version"], i["state"], i["open_calls"], _place(i, focus), i.get("error"), i["started_at"])
        for i in value["instances"]
    ]
    lines = table(rows, ("INSTANCE", "APP", "VERSION", "STATE", "OPEN", "FOCUS", "ERROR", "STARTED"))
    agent = "no Agent" if not status["agent"].get("connected") else "demo Agent" if status["agent"].get("demo") else "Agent connected"
    kernel = f"kernel {status['kernel_version']}, inventory {status['revision']}, {status['open_calls']} open call(s), {agent}"
    write_data(value | {"kernel": status}, [*lines, visible(kernel)], chosen)


def _place(instance: JsonObject, focus: list[str]) -> str | None:
    if instance["instance_id"] not in focus:
        return None
    return "front" if focus[-1] == instance["instance_id"] else f"{len(focus) - focus.index(instance['instance_id'])}."


@inventory.command("show")
def inventory_show(context: typer.Context, chosen: FormatOption = Format.TEXT) -> None:
    """Show the inventory as the Agent sees it."""
    [value] = ask(setting_of(context), InventoryShow())
    rows = [_tool_row(tool) for tool in value["tools"]]
    revision = visible(str(value["inventory_revision"]))
    lines = [f"revision: {revision}", *table(rows, ("TOOL", "HANDLING", "TITLE", "DESCRIPTION"))]
    write_data(value, lines, chosen)


def _tool_row(tool: JsonObject) -> tuple[object, ...]:
    return (_tool_id(tool), tool.get("handling"), tool.get("title"), one_line(str(tool.get("description", "")), 60))


def _tool_id(tool: JsonObject) -> str:
    return str(tool.get("tool_id") or tool.get("id"))


@app.command("list")
def app_list(context: typer.Context, chosen: FormatOption = Format.TEXT) -> None:
    """List the apps and their tools."""
    [value] = ask(setting_of(context), AppsList())
    rows: list[tuple[object, ...]] = []
    for entry in value["apps"]:
        rows.append((entry["app_scope"], entry["version"], entry["kind"], _switch(entry), entry["title"]))
        rows.extend((f"  {_tool_id(tool)}", None, "tool", _switch(tool), tool["title"]) for tool in entry["tools"])
    write_data(value, table(rows, ("NAME", "VERSION", "KIND", "STATE", "TITLE")), chosen)


def _switch(entry: JsonObject) -> str:
    return "on" if entry["enabled"] else "off"


@app.command("enable")
def app_enable(context: typer.Context, name: str, chosen: FormatOption = Format.TEXT) -> None:
    """Switch an app (by app_scope) or one tool (by id) on."""
    [value] = ask(setting_of(context), AppEnable(name=name))
    write_data(value, [f"{visible(name)} is on; inventory revision {visible(str(value['revision']))}"], chosen)


@app.command("disable")
def app_disable(context: typer.Context, name: str, chosen: FormatOption = Format.TEXT) -> None:
    """Switch an app or one tool off; its open calls end as failed."""
    [value] = ask(setting_of(context), AppDisable(name=name))
    write_data(value, [f"{visible(name)} is off; inventory revision {visible(str(value['revision']))}"], chosen)
