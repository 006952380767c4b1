"""`lineup run --demo`: the demo Agent beside the page, labelled as a demo everywhere, without a network.

Rules:
1. It is a process of its own behind an ordinary door; it gives way to a real Agent, and then it is over.
2. It ends with the host. What it had begun stays in the kernel, like the calls of any Agent.
"""

from __future__ import annotations

import trio

from hosts.agents.jsonl import DoorClosed
from hosts.agents.process import demo_door, end_agent, run_door, start_demo_agent
from hosts.lines import LinesClosed
from hosts.link import KernelUnreachable, Refused
from hosts.output import print_note
from hosts.view import Attaching


async def run_demo_agent(kernel: Attaching, language: str) -> None:
    """Run it until it gives way, dies, or the host ends. language: en or zh."""
    agent = start_demo_agent(language, is_interactive=True)
    try:
        await run_door(demo_door(kernel, agent), agent)
        print_note("The demo Agent is over.")
    except* (DoorClosed, Refused):
        print_note("The demo Agent is over: another Agent is connected.")
    except* (KernelUnreachable, LinesClosed):
        print_note("The demo Agent is over.")
    finally:
        with trio.CancelScope(shield=True):
            await end_agent(agent)
