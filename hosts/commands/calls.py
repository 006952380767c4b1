"""Verbs about tool calls: call, calls list, calls show, calls cancel."""

from __future__ import annotations

from typing import Annotated
from uuid import uuid4

import trio
import typer

from hosts.commands.setting import FormatOption, Setting, ask, run_async, setting_of
from hosts.link import HostLink, LinkLost, hello
from hosts.mirror import ENDED_STATUSES
from hosts.output import TIMED_OUT, Exit, Failure, Format, facts, print_note, table, usage, write_data
from hosts.strict_json import JsonRefused, NotJson, read_json, write_json
from hosts.visible import one_line, visible
from kernel.protocol.agent import TOOL_PROGRESS, TOOL_RESULT
from kernel.protocol.host import CallCancel, CallInvoke, CallsList, CallsShow, EnvelopeSent, OutboxAcknowledge
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject

app = typer.Typer(help="List, show and cancel tool calls.", no_args_is_help=False, rich_markup_mode=None)

_GOOD = frozenset({"submitted", "completed"})
_STATES = ("open", "ended", *sorted({"received", "routing", "waiting_for_app", "running"} | ENDED_STATUSES))


def call(
    context: typer.Context,
    tool: Annotated[str, typer.Argument(help="The id of the tool, as in `lineup inventory show`.")],
    args_json: Annotated[str, typer.Option("--args-json", help="The input of the tool, one JSON object.")] = "{}",
    timeout: Annotated[
        float, typer.Option("--timeout", help="Seconds to wait once the kernel has taken the call; 0 waits as long as it takes.", min=0)
    ] = 0,
    call_id: Annotated[str | None, typer.Option("--call-id", help="Use this id; the same id and input never runs twice.")] = None,
    chosen: FormatOption = Format.TEXT,
) -> None:
    """Call a tool with your own hand and wait for its result."""
    setting = setting_of(context)
    invoke = CallInvoke(tool_id=tool, input=_read_input(args_json), call_id=call_id or f"call_{uuid4().hex}")
    result = run_async(lambda: _call(setting, invoke, timeout or float("inf"), show_progress=chosen is Format.TEXT))
    if result.get("status") not in _GOOD:
        raise _ended_badly(result)
    write_data(result, [write_json(result.get("result", {}))], chosen)


def _read_input(args_json: str) -> JsonObject:
    expected = "one JSON object"
    try:
        value = read_json(args_json)
    except NotJson as error:
        raise usage("the input is not JSON", pointer="--args-json", expected=expected, hint="quote it: --args-json '{\"a\": 1}'") from error
    except JsonRefused as error:
        raise usage(f"the input holds what no message may hold: {error.reason}", pointer="--args-json", expected=expected) from error
    if not isinstance(value, dict):
        raise usage("the input is not a JSON object", pointer="--args-json", expected=expected)
    return value


async def _call(setting: Setting, invoke: CallInvoke, timeout_seconds: float, *, show_progress: bool) -> JsonObject:
    """Invoke and wait; the clock starts when the kernel has taken the call.

    After a kernel death the same call_id is invoked again: it is answered or taken up, never run twice (SPEC 6.4).
    """
    launcher = setting.launcher()
    with trio.CancelScope() as waiting:
        async with trio.open_nursery() as nursery:
            while True:
                link = await launcher.attach(nursery, hello("admin", label="command"))
                try:
                    await link.request(invoke)
                    waiting.deadline = min(waiting.deadline, trio.current_time() + timeout_seconds)
                    return await _wait_result(link, invoke, show_progress=show_progress)
                except LinkLost:
                    if link.farewell is not None:
                        raise
                finally:
                    link.close()
    hint = f"the call goes on; see `lineup calls show {invoke.call_id}`"
    raise Failure(TIMED_OUT, {"call_id": invoke.call_id, "hint": hint})


async def _wait_result(link: HostLink, invoke: CallInvoke, *, show_progress: bool) -> JsonObject:
    async for event in link.events:
        if not isinstance(event, EnvelopeSent):
            continue
        payload = event.envelope.get("payload", {})
        is_ours = payload.get("call_id") == invoke.call_id
        if is_ours and event.envelope.get("type") == TOOL_PROGRESS and show_progress:
            print_note(_progress_line(payload))
        link.send(OutboxAcknowledge(message_id=event.envelope["message_id"]))
        if is_ours and event.envelope.get("type") == TOOL_RESULT:
            return dict(payload)
    raise LinkLost


def _progress_line(payload: JsonObject) -> str:
    progress = payload.get("progress", payload)
    percent = progress.get("percent")
    shown = "progress" if percent is None else f"progress {percent:g} %"
    return f"{shown}  {one_line(str(progress.get('message') or ''), 200)}".rstrip()


def _ended_badly(result: JsonObject) -> Failure:
    code = str(result.get("code") or result.get("status"))
    report = result.get("report")
    detail = {"call_id": result.get("call_id"), "status": result.get("status"), **(report if isinstance(report, dict) else {})}
    if result.get("status") == "rejected":
        return Failure(code, detail)
    return Failure(code, detail, exit_code=Exit.TIMED_OUT if code == Code.EXPIRED else Exit.TOOL_FAILED)


@app.command("list")
def list_calls(
    context: typer.Context,
    state: Annotated[str | None, typer.Option("--state", help="open, ended, or one status.")] = None,
    before: Annotated[int | None, typer.Option("--before", help="Only calls older than this number.", min=1)] = None,
    limit: Annotated[int, typer.Option("--limit", help="At most this many.", min=1, max=200)] = 50,
    chosen: FormatOption = Format.TEXT,
) -> None:
    """List calls, newest first."""
    if state is not None and state not in _STATES:
        raise usage("no such state", pointer="--state", expected="one of " + ", ".join(_STATES))
    [value] = ask(setting_of(context), CallsList(state=state, before=before, limit=limit))
    rows = [_row(summary) for summary in value["calls"]]
    lines = table(rows, ("NO", "CALL", "TOOL", "SOURCE", "STATUS", "DONE", "CODE", "UPDATED"))
    more = [f"(more: --before {value['calls'][-1]['number']})"] if value.get("more") and value["calls"] else []
    write_data(value, [*lines, *more], chosen)


def _row(summary: JsonObject) -> tuple[object, ...]:
    names = ("number", "call_id", "tool_id", "source", "status")
    return (*(summary[name] for name in names), _percent(summary), summary.get("error_code"), summary["updated_at"])


def _percent(summary: JsonObject) -> str | None:
    percent = (summary.get("progress") or {}).get("percent")
    return None if percent is None else f"{percent:g} %"


@app.command("show")
def show_call(context: typer.Context, call_id: str, chosen: FormatOption = Format.TEXT) -> None:
    """Show one call whole: input, result, outbox rows."""
    [value] = ask(setting_of(context), CallsShow(call_id=call_id))
    write_data(value, facts(value), chosen)


@app.command("cancel")
def cancel_call(context: typer.Context, call_id: str, chosen: FormatOption = Format.TEXT) -> None:
    """Cancel an open call; the app is told and gets a moment to end tidily."""
    [receipt] = ask(setting_of(context), CallCancel(call_id=call_id))
    write_data(receipt, [f"Asked to cancel {visible(call_id)}."], chosen)
