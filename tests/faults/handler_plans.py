"""Which run forces which `except` handlers, and why a few need none (SPEC 17, INV-56).

Rules:
1. A handler belongs to the first row whose beginning its name has. What no row names belongs to no run, and the test says so.
2. EXPLAINED names single handlers: one that is new in such a file is not explained by its neighbours.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tests.faults import canary_acts as acts
from tests.faults.forced_kernel import Act
from tests.faults.marked import MARK

Line = list[str]

# Only begun while a kernel starts, or by its other commands.
_AT_START = ("kernel.core.manifest", "kernel.core.schema _require_json", "kernel.zygote _hear", "kernel.zygote start")

# Served by a kernel whose people, Agent and Apps do these acts.
SERVED: dict[str, tuple[tuple[str, ...], tuple[Act, ...]]] = {
    "artifacts": (("kernel.artifact",), (acts.keep, acts.draw)),
    "backup": (
        (
            *("kernel.backup _begin", "kernel.backup _copy_database", "kernel.backup make"),
            *("kernel.database backup_steps", "kernel.serve _back_up"),
        ),
        (acts.back_up,),
    ),
    "storage": (("kernel.core.machines", "kernel.store reopen", "kernel.turns _drain"), (acts.report,)),
    "deciders": (
        ("kernel.core", "kernel.turns _decide", "lineup_sdk.protocol"),
        (acts.report, acts.park_a_message, acts.draw, acts.go_through_sessions, acts.let_an_app_ask),
    ),
    "doors": (
        ("kernel.agent_port", "kernel.host_port", "kernel.listener", "kernel.protocol", "lineup_sdk.channel"),
        (acts.go_through_sessions, acts.draw, acts.report, acts.park_a_message),
    ),
    "workers": (
        ("kernel.spares", "kernel.supervisor", "kernel.worker_port", "kernel.zygote"),
        (acts.report, acts.keep, acts.interrupt, acts.end_the_zygote, acts.back_up),
    ),
}

# Programs and scenes, one process a handler.
_SCENES = {
    "hosts.providers": ("providers",),
    "lineup_sdk.": ("fixture", "keeper", "interact"),
    "workers.interact": ("interact",),
    "workers.launcher.guest run": ("guest_run",),
    "workers.launcher.guest": ("guest_lives",),
    "workers.launcher.stdio": ("guest_lives",),
    "workers.task_dashboard": ("dashboard",),
    "workers.whiteboard": ("whiteboard",),
}

_LAUNCHER = "it runs before there is an App or content in the process, with its streams on /dev/null, and tells layers by fixed words"
_TESTING = "it runs in the test of an App's author: the text is that of his own App, told to himself"
EXPLAINED = {
    "hosts.commands.backup restore Failure": "the failure is what the kernel's own program said on its error line, judged where it says it",
    "hosts.commands.interactions ask_person Failure": "only who answers by hand in a terminal comes to it; code and detail are shown",
    "hosts.launch _last_words ValueError": "only a kernel that died without a word brings it here, and it drops what it took",
    "hosts.view _provide (LinkLost, Refused)": "only a view that acted for an App comes to it, and it drops what it took",
    "hosts.view _read_artifact Refused": "only a view that saves a file for an App comes to it, and it says one fixed word",
    "hosts.web.keeper _join_another (KernelUnreachable, Refused, HomeRefused)": "only a host whose kernel is gone for good comes to it, and"
    " it drops what it took",
    "hosts.web.page_providers _act trio.Cancelled": "only a page that acts for an App comes to it, and it tells the page an id of ours",
    "lineup_sdk.artifacts _give_up ChannelClosed": "only an upload that is cut off in the middle comes to it, and it drops what it took",
    "lineup_sdk.testing.kernel __aenter__ BaseException": _TESTING,
    "lineup_sdk.testing.life _answer Refused": _TESTING,
    "lineup_sdk.testing.life _begin_artifact Refused": _TESTING,
    "lineup_sdk.testing.life _flush ChannelClosed": _TESTING,
    "lineup_sdk.testing.life _read ChannelClosed": _TESTING,
    "lineup_sdk.testing.life _read ProtocolViolation": _TESTING,
    "lineup_sdk.testing.life _serve Exception": _TESTING,
    "lineup_sdk.testing.life _take_chunk Refused": _TESTING,
    "lineup_sdk.testing.rules check Refused": _TESTING,
    "workers.launcher.birth _prove_empty_root OSError": _LAUNCHER,
    "workers.launcher.birth _prove_imports ModuleNotFoundError": _LAUNCHER,
    "workers.launcher.forkserver _become_worker BaseException": _LAUNCHER,
    "workers.launcher.forkserver _spawn OSError": _LAUNCHER,
    "workers.launcher.linux known_capabilities OSError": _LAUNCHER,
    "workers.launcher.seal _prove_descriptors OSError": _LAUNCHER,
    "workers.launcher.seal _prove_filter OSError": _LAUNCHER,
    "workers.launcher.seal _prove_landlock PermissionError": _LAUNCHER,
    "workers.launcher.seal _prove_limits BlockingIOError": _LAUNCHER,
    "workers.launcher.steps run_step (OSError, NotProved, ImportError)": _LAUNCHER,
    "workers.launcher.syscalls compile_filter RuntimeError": _LAUNCHER,
}


def served(names: set[str], run: str) -> set[str]:
    """The handlers of one run of SERVED."""
    before = [start for other in list(SERVED)[: list(SERVED).index(run)] for start in SERVED[other][0]]
    not_here = (*_AT_START, *before)
    return {name for name in names if name.startswith(SERVED[run][0]) and not name.startswith(not_here)} - set(EXPLAINED)


def scene_lines(name: str) -> list[Line]:
    """The scenes that come to a handler, none when it belongs to no scene."""
    found = next((scenes for start, scenes in _SCENES.items() if name.startswith(start)), ())
    return [["tests.faults.scenes", scene] for scene in found]


def kernel_lines(name: str, folder: Path) -> list[Line]:
    """The commands of the kernel's own program that come to a handler."""
    home = str(folder / f"{MARK}-{{n}}")
    if not name.startswith("kernel."):
        return []
    if name.startswith(("kernel.doctor", "kernel.zygote start")):
        return [["kernel", "doctor"]]
    restore = ["kernel", "restore", "--home", home, "--from", str(folder / f"backup-{MARK}")]
    if name.startswith("kernel.backup"):
        return [restore]  # in a process that served before, the home would be locked
    if name.startswith("kernel.home app_folders"):
        return [["kernel", "serve", "--home", home, "--app-folder", str(folder)]]
    return [
        ["kernel", "serve", "--home", home, "--idle-seconds", "0"],
        ["kernel", "audit", "verify", "--home", home],
        ["kernel", "audit", "export", "--home", home],
        restore,
        ["kernel", "serve", "--home", home, "--view-fd", "0"],
    ]


def host_lines(name: str, folder: Path, home: Path) -> list[Line]:
    """The verbs that come to a handler of a host; home has a running kernel, a host that needs none gets a home of its own."""
    shared, own = ["hosts.cli", "--home", str(home)], ["hosts.cli", "--home", str(folder / f"{MARK}-{{n}}")]
    call = ("call", "runtime.status", "--args-json")
    stdin = f"<{folder / 'stdin'}"
    table: dict[str, Sequence[Line]] = {
        "hosts.agents.demo": ([stdin, "hosts.agents.demo"],),
        "hosts.agents": ([stdin, *shared, "agent", "--no-wait"],) * 3,  # the other part may be at the one door
        "hosts.commands.calls": ([*shared, *call, json.dumps({"x": MARK})], [*shared, "call", "runtime.status"]),
        "hosts.commands.offline": ([*shared, "audit", "verify"],),
        "hosts.commands.session _serve": (["web", *shared, "run", "--no-open"],),
        "hosts.console": (["pty", *shared, "console"],),
        "hosts.homes create": ([*own, "call", "runtime.status"],),
        "hosts.homes keep_retention_days": (["web", *own, "run", "--no-open", "--retention-days", "7"],),
        "hosts.homes retention_days": ([*own, "call", "runtime.status"],),
        "hosts.launch": ([*own, "call", "runtime.status"],),
        "hosts.lines": ([stdin, *shared, "agent", "--no-wait"], ["pty", *shared, "console"]),
        "hosts.terminal": (["pty", *shared, "console"],),
        "hosts.view": (["pty", *shared, "console"],),
        "hosts.web.demo": (["web", *shared, "run", "--no-open", "--demo"],),
        "hosts.web.": (["web", *shared, "run", "--no-open"],),
        "hosts.": ([*shared, "ps"], [*shared, *call, json.dumps({"x": 1})], ["pty", *shared, "console"]),
    }
    return list(next((lines for start, lines in table.items() if name.startswith(start)), ()))
