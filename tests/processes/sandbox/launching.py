"""A process that launches a zygote with three workers and two spares, tells their numbers, and waits to be killed."""

from __future__ import annotations

import json

import psutil
import trio

from kernel.zygote import Zygote
from tests.processes.sandbox.cage import capture, open_spares


async def main() -> None:
    async with trio.open_nursery() as nursery:
        zygote = await Zygote.open(nursery)
        async with open_spares(zygote, 2):
            for _ in range(3):
                await capture(zygote)
            workers = []
            while len(workers) < 5:
                await trio.lowlevel.checkpoint()
                workers = [c.pid for c in psutil.Process().children(recursive=True) if c.name() == "lineup-worker"]
            print(json.dumps({"pids": [zygote.pid, zygote.inner_pid, *workers]}), flush=True)
            await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(main)
