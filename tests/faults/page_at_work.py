"""The web host with a page on it that does a little of everything, for forced_each: a line that begins with `web`.

The host is a process of its own, forked from this one; the page is a WebSocket by hand. What the host says on stderr is kept and judged;
what it tells the page is the person's own, and is dropped. A host that breaks takes its page with it: then the page is over too.
"""

from __future__ import annotations

import os
import re
import select
import signal
from collections.abc import Callable
from contextlib import suppress

import trio

from tests.web.raw_page import Closed, RawPage, Refused, attached, wait_change

START_SECONDS = 30.0
PAGE_SECONDS = 20.0
END_SECONDS = 15.0
_READY = re.compile(rb"READY (http://\S+?)/#token=(\S+)")


def run_web(run: Callable[[], None]) -> None:
    """Run this, a web host, in a process of its own; be its page; end it, whatever it does."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(writing, 1)
        run()
        os._exit(0)
    os.close(writing)
    pidfd = os.pidfd_open(pid)
    if (ready := _until_ready(reading)) is not None:
        trio.run(_be_page, ready[1].decode(), ready[2].decode())
    for number in (signal.SIGTERM, signal.SIGKILL):
        signal.pidfd_send_signal(pidfd, number)
        if select.select([pidfd], [], [], END_SECONDS)[0]:
            break
    os.waitpid(pid, 0)
    os.close(pidfd)
    os.close(reading)


def _until_ready(reading: int) -> re.Match[bytes] | None:
    said = b""
    while select.select([reading], [], [], START_SECONDS)[0] and (data := os.read(reading, 4096)):
        said += data
        if (found := _READY.search(said)) is not None and said.endswith(b"\n"):
            return found
    return None


async def _be_page(origin: str, token: str) -> None:
    with trio.move_on_after(PAGE_SECONDS), suppress(Closed, Refused, OSError):
        async with attached(origin, token) as page:
            await _work(page)


async def _work(page: RawPage) -> None:
    await page.ask("message.send", text="hello")
    await page.ask("kernel.status")
    await page.send_text("no JSON")
    opened = await page.ask("app.open", app_scope="task-dashboard")
    surface = await wait_change(page, "surface", instance_id=opened["value"]["instance_id"])
    await page.op("surface.mount", surface_id=surface["surface_id"])
    await page.op("artifact", artifact_id="none")
