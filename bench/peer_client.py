"""The peer's Agent: the official SDK's stdio client, driven as bench/agent.py is. Standard library and mcp only.

A line on stdin is `{"do": "sequential" | "concurrent" | "launch", "count": N, "width": W}`; the answer is one line
`{"micros": [one a call], "seconds": of all}`. End of input ends it. The first line it writes names versions and the server's pid.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters  # type: ignore[import-not-found, unused-ignore]  # of another environment

ARGUMENTS = {"a": 1, "b": 2, "mode": "fast", "note": "hello world, small note"}
SERVER = StdioServerParameters(command=sys.executable, args=[str(Path(__file__).with_name("peer_server.py"))])


async def call(client: Client) -> int:
    """Make one call and return its microseconds."""
    began = time.perf_counter_ns()
    result = await client.call_tool("calc", ARGUMENTS)
    took = time.perf_counter_ns() - began
    if result.structured_content != {"sum": 3}:
        raise SystemExit(f"the peer answered {result}")
    return took // 1000


async def run(client: Client, order: dict[str, Any]) -> dict[str, Any]:
    """Carry out one line."""
    micros: list[int] = []
    began = time.perf_counter()
    if order["do"] == "launch":
        micros = [await launch() for _ in range(order["count"])]
    elif order["do"] == "sequential":
        micros = [await call(client) for _ in range(order["count"])]
    else:

        async def caller() -> None:
            for _ in range(order["count"] // order["width"]):
                micros.append(await call(client))

        await asyncio.gather(*[caller() for _ in range(order["width"])])
    return {"micros": micros, "seconds": time.perf_counter() - began}


async def launch() -> int:
    """Start a server of its own and make the first call; its microseconds from the start."""
    began = time.perf_counter_ns()
    async with Client(SERVER) as client:
        await call(client)
        return (time.perf_counter_ns() - began) // 1000


def server_pid() -> int:
    """The one child of this process."""
    return int(Path("/proc/self/task").joinpath(str(_main_thread()), "children").read_text().split()[0])


def _main_thread() -> int:
    return int(Path("/proc/self/stat").read_text().split()[0])


async def main() -> None:
    """Serve stdin until its end."""
    async with Client(SERVER) as client:
        await call(client)
        print(json.dumps({"pid": server_pid(), "versions": {"mcp": version("mcp")}}), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps(await run(client, json.loads(line))), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
