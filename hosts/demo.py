"""`lineup demo`: the whole path once, in a temporary home, and every claim of the Agent read back from the kernel.

Order, with the reason for each step:
1. a temporary home and a kernel of its own: a demonstration never touches a person's state;
2. the demo Agent as a process of its own, joined to a door by two pipes: what it can do is what any Agent can do;
3. each line it writes on stderr is a claim; the kernel's own record (calls.show) is printed beside it and must agree;
4. the kernel is stopped and the audit chain verified from the closed database;
5. the home is removed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import trio

from hosts.agents.process import claims_of, demo_door, run_door, start_demo_agent, wait_agent
from hosts.commands.offline import verify_audit
from hosts.headless import Headless, open_headless
from hosts.homes import Home
from hosts.launch import Launcher
from hosts.lines import LineTooLong
from hosts.output import print_data
from hosts.strict_json import read_json
from hosts.visible import visible
from lineup_sdk.protocol.messages import JsonObject

DEMO_SECONDS = 120.0
SETTLE_SECONDS = 10.0

_EXPECTED = {"asked": "completed", "opened": "completed", "refused": "rejected", "updated": "completed"}


async def run_demo(app_folders: Sequence[Path], language: str) -> int:
    """Run the demonstration and return how many of its checks failed. language: in which its Agent speaks, en or zh."""
    print_data("This is a demonstration. The Agent is a fixed script (python -m hosts.agents.demo), not a model.")
    with tempfile.TemporaryDirectory(prefix="lineup-demo-") as folder:
        home = Home(Path(folder) / "home")
        launcher = Launcher(home, app_folders)
        try:
            with trio.fail_after(DEMO_SECONDS):
                async with open_headless(launcher, "demo") as host:
                    failed = await _play(launcher, host, language)
                    await host.stop_kernel()
                    await host.wait_ended()
                await launcher.wait_gone()
                failed += await _check_audit(home)
        finally:
            with trio.CancelScope(shield=True):
                await launcher.end_started()
    print_data(f"{'All claims agree with the kernel.' if not failed else f'{failed} check(s) FAILED.'} The temporary home is removed.")
    return failed


async def _play(launcher: Launcher, host: Headless, language: str) -> int:
    status = await host.status()
    print_data(f"kernel {visible(str(status['kernel_version']))} up; inventory revision {visible(str(status['revision']))}")
    failed = 0
    async with trio.open_nursery() as nursery:
        with start_demo_agent(language) as agent:
            nursery.start_soon(run_door, demo_door(launcher, agent), agent)
            claims = claims_of(agent)
            while (line := await claims.read_line()) is not None:
                failed += await _check_claim(host, line)
            code = await wait_agent(agent)  # its stderr is closed: it is ending
        nursery.cancel_scope.cancel()
    return failed + _report(code == 0, f"the Agent process ended with exit code {code}", "")


async def _check_claim(host: Headless, line: bytes | LineTooLong) -> int:
    claim = {} if isinstance(line, LineTooLong) else read_json(line.decode())
    if claim.get("claim") == "said":
        return await _check_said(host, claim["text"])
    result = claim["result"]
    with trio.move_on_after(SETTLE_SECONDS):  # the acknowledgement of the row is on its way while the Agent already claims
        await host.wait_call(result["call_id"], result["status"])
    call = await host.show_call(result["call_id"])
    same = call["status"] == result["status"] and (call.get("result") or None) == (result.get("result") or None)
    same = same and call["status"] == _EXPECTED[claim["claim"]] and call.get("error_code") == result.get("code")
    final = [row for row in call["outbox"] if row["kind"] == "final"]
    return _report(same and len(final) == 1, f"{call['tool_id']} {_said(result)}", f"kernel: {_said(call)}, {len(final)} final row")


async def _check_said(host: Headless, text: str) -> int:
    message = await host.wait_until(lambda mirror: next((m for m in mirror.timeline() if m["text"] == text), None))
    return _report(
        message["author"] == "demo", f"said: {visible(text)}", f"kernel: message {message['number']} of the {message['author']} Agent"
    )


def _said(record: JsonObject) -> str:
    code = record.get("code") or record.get("error_code")
    outcome = record["status"] if code is None else f"{record['status']} {code}"
    return visible(str(outcome))


async def _check_audit(home: Home) -> int:
    verdict = await trio.to_thread.run_sync(verify_audit, home)
    return _report(bool(verdict.get("ok")), "the audit chain holds", f"audit verify: {verdict.get('rows')} rows")


def _report(is_good: bool, claim: str, kernel_says: str) -> int:
    mark = "ok  " if is_good else "FAIL"
    print_data(f"{mark} {claim}" + (f"  |  {kernel_says}" if kernel_says else ""))
    return 0 if is_good else 1
