"""Opens a zygote on a machine that refuses one system call, and tells what the kernel side was told. Arguments: call error argument.

argument: `-` any; `limits` only when the process sets a limit of its own; else the value of the first argument. None: a whole machine.
"""

from __future__ import annotations

import errno
import json
import sys

import psutil
import pyseccomp
import trio

from kernel.spares import spawn_ready
from kernel.zygote import SandboxIncomplete, Zygote


def refuse(call: str, error: str, argument: str) -> None:
    rules = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    match argument:
        case "-":
            conditions = []
        case "limits":
            conditions = [pyseccomp.Arg(1, pyseccomp.EQ, 6), pyseccomp.Arg(2, pyseccomp.NE, 0)]  # RLIMIT_NPROC, a new value
        case value:
            conditions = [pyseccomp.Arg(0, pyseccomp.EQ, int(value, 0))]
    rules.add_rule(pyseccomp.ERRNO(getattr(errno, error)), call, *conditions)
    rules.load()


async def main() -> None:
    try:
        async with trio.open_nursery() as nursery:
            zygote = await Zygote.open(nursery)
            ready = await spawn_ready(zygote)
            ready.channel.close()
            await ready.process.wait_exited()
            zygote.close()
            await zygote.wait_dead()
            print(json.dumps({"complete": True}))
    except* SandboxIncomplete as group:
        missing = group.exceptions[0]
        children = len(psutil.Process().children(recursive=True))
        print(json.dumps({"layer": missing.layer, "reason": missing.reason, "hint": missing.hint, "children": children}))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        refuse(*sys.argv[1:])
    trio.run(main)
