"""An Agent as a process of its own, joined to a door by two pipes: what it can do is what any Agent can do.

Rules:
1. The demo Agent is started with nothing but its pipes; it knows no home, no socket, no network.
2. When the door ends, the Agent's input ends: it reads to the end and leaves.
"""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from typing import IO
from uuid import uuid4

import trio

from hosts.agents.agent_lines import Stamps
from hosts.agents.demo import INTERACTIVE, LANGUAGE
from hosts.agents.jsonl import MAX_LINE_BYTES, Door
from hosts.lines import LineReader, LineWriter
from hosts.view import Attaching

DEMO_PROGRAM = (sys.executable, "-P", "-m", "hosts.agents.demo")


def stamps() -> Stamps:
    """Return the real clock and id source of a door."""
    return Stamps(
        new_message_id=lambda: f"msg_{uuid4().hex}",
        now=lambda: datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    )


def start_demo_agent(language: str, *, is_interactive: bool = False) -> subprocess.Popen[bytes]:
    """Start the demo Agent with pipes: for a person at a page, or with its claims on stderr. language: en or zh."""
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    arguments = [LANGUAGE, language, *([INTERACTIVE] if is_interactive else [])]
    return subprocess.Popen([*DEMO_PROGRAM, *arguments], stdin=pipe, stdout=pipe, stderr=nothing if is_interactive else pipe)


def demo_door(kernel: Attaching, agent: subprocess.Popen[bytes]) -> Door:
    """Return the door of the demo Agent; `run_door` serves it."""
    to_agent = LineWriter(_fd(agent.stdin))
    return Door(kernel, LineReader(_fd(agent.stdout), MAX_LINE_BYTES), to_agent, to_agent, stamps(), is_demo=True)


async def run_door(door: Door, agent: subprocess.Popen[bytes]) -> None:
    """Serve until the Agent is done. Raises: as Door.run."""
    try:
        await door.run()
    finally:
        if agent.stdin is not None:
            agent.stdin.close()


def claims_of(agent: subprocess.Popen[bytes]) -> LineReader:
    """Return the reader of what the Agent says on stderr."""
    return LineReader(_fd(agent.stderr), MAX_LINE_BYTES)


async def wait_agent(agent: subprocess.Popen[bytes]) -> int:
    """Wait until the Agent has ended; returns its exit code."""
    return await trio.to_thread.run_sync(agent.wait, abandon_on_cancel=True)


async def end_agent(agent: subprocess.Popen[bytes]) -> None:
    """End it now, and let go of its pipes."""
    agent.kill()
    for stream in (agent.stdin, agent.stdout, agent.stderr):
        if stream is not None:
            stream.close()
    await wait_agent(agent)


def _fd(stream: IO[bytes] | None) -> int:
    if stream is None:
        raise OSError("the pipe is missing")
    return stream.fileno()
