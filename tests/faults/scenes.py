"""Short runs of Apps, of the guest that holds them and of a host's providers, for forced_each: `-m tests.faults.scenes NAME`.

Rules:
1. Nothing here holds the marker: it can only come out of a forced exception. So whatever a scene prints is judged whole.
2. It prints what leaves the process: every outcome and message to the kernel. A worker's stderr is the App's own log, which the person may
   read (SPEC 2.10); it is put aside.
"""

from __future__ import annotations

import hashlib
import io
import json
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import trio

from hosts.providers import Providers, save_into
from kernel.protocol.host_capabilities import CapabilityExecute
from lineup_sdk.channel import Channel, ChannelClosed
from lineup_sdk.protocol.limits import MAX_FRAME_BYTES, MAX_WORKER_FRAME_BYTES
from lineup_sdk.protocol.messages import Chunk, Welcome, to_frame
from lineup_sdk.testing import FakeKernel, app_file
from tests.processes.written_app import FIXTURE
from workers.launcher import guest

ROOT = Path(__file__).resolve().parents[2]
KEEPER = ROOT / "tests" / "processes" / "apps" / "keeper.py"
SECONDS = 3.0
_APP = b"class A:\n    async def serve(self, channel, welcome):\n        print('up')\napp = A()\n"
LINE = {"color": "#2563eb", "width": 4, "points": [0.1, 0.2, 0.5, 0.5], "order": 1}


async def _outcome(kernel: FakeKernel, tool_id: str, given: dict[str, Any]) -> None:
    call = await kernel.call(tool_id, given)
    print(await call.wait_outcome(), call.progress)


def _shipped(scope: str, folder: str, **more: Any) -> FakeKernel:
    manifest = json.loads((ROOT / "manifests" / f"{scope}.json").read_bytes())
    return FakeKernel(import_module(f"workers.{folder}.app").app, manifest=manifest, **more)


async def fixture() -> None:
    """Every way a tool ends, and messages."""
    async with FakeKernel(app_file(FIXTURE / "app.py")) as kernel:
        for verb, given in (
            ("echo", {"text": "x"}),
            ("remember", {"value": "v"}),
            ("report", {"percents": [1, 2]}),
            ("fail", {"reason": "no"}),
            ("raise", {"text": "x"}),
            ("bad_output", {"mend": False}),
            ("meddle", {"call_id": "none", "how": "get"}),
            ("print", {"text": "x"}),
        ):
            await _outcome(kernel, f"fixture.{verb}", given)
        await kernel.deliver("fixture.note", {"text": "x"})
        await kernel.deliver("fixture.go", {"wrong": 1})
        await kernel.ping()
        print(kernel.refusals, kernel.saved_state)
        await kernel.crash()
        await kernel.revive()
        await kernel.stop()


async def keeper() -> None:
    """A surface and bytes of its own."""
    async with FakeKernel(app_file(KEEPER)) as kernel:
        for order in (
            {"do": "open_surface"},
            {"do": "update", "patch": {"a": 1}},
            {"do": "read"},
            {"do": "put", "seed": 1, "size": 90_000},
            {"do": "get", "artifact_id": "none"},
        ):
            await _outcome(kernel, "keeper.run", {"json": json.dumps(order)})


async def whiteboard() -> None:
    """Boards that are opened, submitted by a tool and by the person."""
    async with _shipped("whiteboard", "whiteboard") as kernel:
        for board_id in ("b1", "b2"):
            call = await kernel.call("whiteboard.open", {"board_id": board_id, "title": "Plan"})
            await kernel.wait_until(lambda board_id=board_id: board_id in kernel.surface.state.get("boards", {}))  # type: ignore[misc]
            await kernel.patch_surface({"boards": {board_id: {"strokes": {"s": LINE}}}})
            await kernel.surface_event("submit", {"board_id": board_id}) if board_id == "b2" else None
            await _outcome(kernel, "whiteboard.submit", {"board_id": board_id})
            print(call.outcome)


async def dashboard() -> None:
    """A task that is opened, updated and cancelled by the person."""
    async with _shipped("task-dashboard", "task_dashboard") as kernel:
        call = await kernel.call("task-dashboard.open", {"task_id": "t1", "title": "Build"})
        await kernel.wait_until(lambda: bool(kernel.surface.state))
        await _outcome(kernel, "task-dashboard.update", {"task_id": "t1", "state": "running"})
        await (await kernel.surface_event("cancel", {"task_id": "t1"})).wait_acknowledged()
        print(call.outcome, kernel.refusals)


async def interact() -> None:
    """The system App, told of a message and of a refused one."""
    async with _shipped("chat", "interact", context={"mode": "im"}) as kernel:
        entry = {"number": 1, "message_id": "m", "direction": "in", "type": "lineup.v1.message.text", "text": "x", "folded": False}
        await kernel.tell_timeline({"kind": "message", "value": entry})
        await kernel.surface_event("send", {"text": "hello", "key": "k"})
        await kernel.surface_event("mode", {"mode": "video"})
        await kernel.wait_until(lambda: bool(kernel.surface.state))
        print(kernel.sent_texts, kernel.refusals)


async def guest_lives() -> None:
    """The guest from its hello to its end, with this process in the place of the sealed one."""
    for source in (_APP, b"import nothing_of_this_name\n"):
        ours, theirs = socket.socketpair()
        channel = Channel(ours, max_in_bytes=MAX_WORKER_FRAME_BYTES, max_out_bytes=MAX_FRAME_BYTES)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_speak, channel, source)
            _REAL.write(f"{await guest._live(theirs.detach())!r}\n")
            nursery.cancel_scope.cancel()
        sys.modules.pop("app", None)


async def _speak(channel: Channel, source: bytes) -> None:
    file = {"name": "app.py", "size": len(source), "sha256": hashlib.sha256(source).hexdigest()}
    with suppress(ChannelClosed):
        channel.send(to_frame(Welcome(wire=1, epoch="e", context={"app_scope": "a"}, source={"entry": "app.py", "files": [file]})))
        channel.send(to_frame(Chunk(of="app.py", data=source, last=True)))
        await channel.drain()
        while True:
            for frame in await channel.receive():
                if frame["type"] != "log.write":
                    _REAL.write(f"{frame}\n")


async def providers() -> None:
    """A host that saves an artifact, twice of that name."""

    async def read(_: str) -> bytes:
        return b"bytes"

    with tempfile.TemporaryDirectory() as folder:
        able = Providers({"artifact.save": save_into(Path(folder))})
        for number in range(2):
            arguments = {"artifact_id": "a", "name": "a.txt", "size": 5, "sha256": hashlib.sha256(b"bytes").hexdigest()}
            asked = {"request_id": f"r{number}", "capability": "artifact.save", "arguments": arguments, "app_scope": "a", "title": "A"}
            print(await able.run(CapabilityExecute(**asked, deadline_ms=1000), read))


SCENES: dict[str, Callable[[], Awaitable[None]]] = {
    one.__name__: one for one in (dashboard, fixture, guest_lives, interact, keeper, providers, whiteboard)
}
GUEST_RUN = "guest_run"  # the guest as the zygote starts it: it ends the process
_REAL = sys.stdout


async def _bounded(name: str) -> None:
    with trio.move_on_after(SECONDS):
        await SCENES[name]()


def main() -> None:
    """Run one scene, however far it comes, with its stderr put aside."""
    globals()["_REAL"] = sys.stdout
    sys.stderr = io.StringIO()
    if sys.argv[1] == GUEST_RUN:
        guest.run(socket.socketpair()[0].detach())
    try:
        trio.run(_bounded, sys.argv[1])
    except BaseException as error:  # the App ended by it; its traceback is the App's log
        print(type(error).__name__)
    finally:
        sys.stdout, sys.stderr = _REAL, sys.__stderr__


if __name__ == "__main__":
    main()
