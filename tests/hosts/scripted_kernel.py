"""A small kernel for the tests of the hosts: it speaks the host channel truthfully and lets a test decide what happens.

It is no simulation of the real one: calls end when the test says so. Run as a program it takes the arguments of `python -m kernel serve`
after a mode: serve, locked, corrupt, silent (ends without a word), killed-once, killed (by a signal, before it greets).
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trio

from lineup_sdk.channel import Channel, ChannelClosed
from lineup_sdk.protocol.limits import MAX_FRAME_BYTES

PAIRING = "pairing-secret"
CONVERSATION = "conv_main"
NOW = "2026-11-30T12:00:00.000Z"


def app(scope: str = "task-dashboard", title: str = "Task Dashboard") -> dict[str, Any]:
    tools = [{"tool_id": f"{scope}.open", "title": "Show a task", "enabled": True}]
    return {
        "app_scope": scope,
        "version": "0.1.0",
        "kind": "bundled",
        "title": title,
        "description": "Tasks.",
        "enabled": True,
        "tools": tools,
    }


def call(number: int, status: str = "running", **more: Any) -> dict[str, Any]:
    return {
        "number": number, "call_id": f"call_{number}", "tool_id": "task-dashboard.open", "title": "Show a task",
        "app_scope": "task-dashboard", "source": "agent", "status": status, "cancel": "none", "attempts": 0, "created_at": NOW,
        "updated_at": NOW,
    } | more  # fmt: skip


def instance(instance_id: str = "inst_1", **more: Any) -> dict[str, Any]:
    return {
        "instance_id": instance_id, "app_scope": "task-dashboard", "title": "Task Dashboard", "app_version": "0.1.0", "state": "foreground",
        "open_calls": 0, "started_at": NOW,
    } | more  # fmt: skip


def message(number: int, text: str, author: str = "agent", **more: Any) -> dict[str, Any]:
    is_out = author == "person"
    return {
        "number": number, "message_id": f"msg_{number}", "direction": "out" if is_out else "in", "author": author,
        "type": "lineup.v1.message.text", "text": text, "state": "pending" if is_out else "received", "created_at": NOW,
    } | more  # fmt: skip


def question(number: int = 20, kind: str = "choice", request: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    asked = request or {
        "title": "Colour", "prompt": "Which?", "mode": "single-choice",
        "actions": [{"id": "red", "label": "Red"}, {"id": "blue", "label": "Blue"}],
    }  # fmt: skip
    return {
        "number": number, "interaction_id": f"int_{number}", "kind": kind, "source": "agent_tool", "owner_app_scope": "chat",
        "request": asked, "shown_digest": f"digest {number}", "place": "inline", "status": "presented", "created_at": NOW,
        "updated_at": NOW,
    } | more  # fmt: skip


def surface(scope: str = "task-dashboard", **more: Any) -> dict[str, Any]:
    return {
        "surface_id": f"srf_{scope}", "app_scope": scope, "app_session_id": f"ses_{scope}", "title": "Task Dashboard",
        "container": "isolated", "version": 1, "is_open": True, "text": "tasks:\n  t1: running",
    } | more  # fmt: skip


def consent(number: int = 30, **more: Any) -> dict[str, Any]:
    return {
        "number": number, "request_id": f"cap_{number}", "capability": "clipboard.write", "title": "Replace what is on the clipboard",
        "app_scope": "task-dashboard", "app_title": "Task Dashboard", "instance_id": "inst_1", "reason": "To paste it",
        "arguments": {"text": "copied"}, "scopes": ["once", "while_open", "always"], "shown": f"shown {number}", "status": "asked",
        "created_at": NOW,
    } | more  # fmt: skip


def empty_state() -> dict[str, Any]:
    return {
        "calls": [], "instances": [], "focus": [], "messages": [], "apps": [app()], "revision": "epoch.1",
        "interactions": [], "surfaces": [], "consents": [],
        "agent": {"connected": False, "demo": False}, "kernel": {"version": "0.1.0", "epoch": "epoch"},
    }  # fmt: skip


@dataclass(eq=False)
class Peer:
    """One connection."""

    channel: Channel
    role: str = ""
    seq: int = 0
    providers: tuple[str, ...] = ()

    def send(self, frame: dict[str, Any]) -> None:
        with suppress(ChannelClosed):  # a host that is gone is seen by the reader
            self.channel.send(frame)
            self.channel.flush()


@dataclass
class ScriptedKernel:
    """See the head of the file. `received` holds every frame after hello as (role, frame)."""

    home: Path
    state: dict[str, Any] = field(default_factory=empty_state)
    received: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    refuse: dict[str, dict[str, Any]] = field(default_factory=dict)  # request type -> receipt fields
    values: dict[str, dict[str, Any]] = field(default_factory=dict)  # request type -> value
    rows: list[dict[str, Any]] = field(default_factory=list)  # not acknowledged yet
    peers: list[Peer] = field(default_factory=list)
    is_stopped: bool = False
    _changed: trio.Event = field(default_factory=trio.Event)
    _scope: trio.CancelScope = field(default_factory=trio.CancelScope)

    # --- what a test does

    def commit(self, *changes: dict[str, Any]) -> None:
        for change in changes:
            self._apply(change["kind"], change["value"])
        for peer in self.peers:
            if peer.role == "view":
                peer.seq += 1
                peer.send({"type": "delta", "seq": peer.seq, "changes": list(changes)})

    def _apply(self, kind: str, value: Any) -> None:
        lists = {
            "call": ("calls", "number"), "message": ("messages", "number"), "instance": ("instances", "instance_id"),
            "interaction": ("interactions", "interaction_id"), "surface": ("surfaces", "surface_id"), "consent": ("consents", "request_id"),
        }  # fmt: skip
        if kind not in lists:
            self.state[kind] = value
            return
        name, key = lists[kind]
        self.state[name] = [entry for entry in self.state[name] if entry[key] != value[key]] + [value]

    def send_row(self, envelope: dict[str, Any], role: str = "agent") -> None:
        self.rows.append(envelope)
        for peer in self.peers:
            if peer.role == role:
                peer.send({"type": "envelope", "envelope": envelope})

    def die(self) -> None:
        """End without a word, as after kill -9."""
        self._scope.cancel()

    def stop(self, code: str = "cancelled") -> None:
        """End with a goodbye."""
        self.is_stopped = True
        for peer in self.peers:
            peer.send({"type": "goodbye", "code": code})
        self.die()

    async def wait_received(self, type_: str, count: int = 1) -> dict[str, Any]:
        while True:
            found = [frame for _, frame in self.received if frame["type"] == type_]
            if len(found) >= count:
                return found[count - 1]
            await self._changed.wait()

    async def wait_peers(self, role: str, count: int = 1) -> None:
        while sum(peer.role == role for peer in self.peers) < count:
            await self._changed.wait()

    # --- the channel

    async def serve(self, *, view: socket.socket | None = None, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Listen until stop() or die()."""
        run = self.home / "run"
        run.mkdir(mode=0o700, parents=True, exist_ok=True)
        (run / "pairing").write_text(PAIRING)
        path = run / "kernel.sock"
        path.unlink(missing_ok=True)
        listener = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_STREAM)
        with listener, self._scope:
            await listener.bind(str(path))
            listener.listen(16)
            async with trio.open_nursery() as nursery:
                if view is not None:
                    nursery.start_soon(self._serve_one, view, False)
                task_status.started()
                while True:
                    accepted, _ = await listener.accept()
                    nursery.start_soon(self._serve_one, socket.socket(fileno=accepted.detach()), True)

    async def _serve_one(self, sock: socket.socket, needs_pairing: bool) -> None:
        peer = Peer(Channel(sock, max_in_bytes=MAX_FRAME_BYTES, max_out_bytes=MAX_FRAME_BYTES))
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(peer.channel.run_flusher)
                frames = await peer.channel.receive()
                if not self._open(peer, frames.pop(0), needs_pairing):
                    await peer.channel.drain()
                    nursery.cancel_scope.cancel()
                    return
                while True:
                    for frame in frames:
                        self.received.append((peer.role, frame))
                        self._answer(peer, frame)
                    self._tell()
                    frames = await peer.channel.receive()
        except* ChannelClosed:
            pass
        finally:
            if peer in self.peers:
                self.peers.remove(peer)
            peer.channel.close()
            self._tell()

    def _open(self, peer: Peer, hello: dict[str, Any], needs_pairing: bool) -> bool:
        code = None
        if hello["wire"] != 1:
            code = "unsupported_version"
        elif needs_pairing and hello["role"] != "agent" and hello.get("pairing") != PAIRING:
            code = "capability_denied"
        elif hello["role"] == "agent" and any(other.role == "agent" for other in self.peers):
            code = "door_busy"
        if code is not None:
            peer.send({"type": "goodbye", "code": code})
            return False
        peer.role = hello["role"]
        peer.providers = tuple(hello.get("providers") or ())
        self.peers.append(peer)
        self.state["kernel"]["providers"] = list(peer.providers)
        welcome = {"wire": 1, "epoch": "epoch", "view_id": "view_1", "conversation_id": CONVERSATION, "revision": self.state["revision"]}
        peer.send({"type": "welcome"} | welcome)
        if peer.role == "view":
            peer.send({"type": "snapshot", "seq": 0, "state": self.state})
        if peer.role == "agent":
            for row in self.rows:
                peer.send({"type": "envelope", "envelope": row})
        return True

    def _answer(self, peer: Peer, frame: dict[str, Any]) -> None:
        type_ = frame["type"]
        if type_ == "outbox.acknowledge":
            self.rows = [row for row in self.rows if row["message_id"] != frame["message_id"]]
        elif type_ == "envelope.submit":
            refusal = self.refuse.get(type_)
            receipt = {"message_id": frame["envelope"].get("message_id"), "accepted": refusal is None}
            peer.send({"type": "receipt"} | receipt | (refusal or {}))
        elif type_ in self.refuse:
            peer.send({"type": "reply", "id": frame["id"], "receipt": {"accepted": False, "at": NOW} | self.refuse[type_]})
        elif type_ in self.values:
            peer.send({"type": "reply", "id": frame["id"], "value": self.values[type_]})
        else:
            peer.send({"type": "reply", "id": frame["id"], "receipt": {"accepted": True, "at": NOW}})
        if type_ == "kernel.stop":
            self.stop()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


# --- as a program, in place of `python -m kernel`


def _say_goodbye(view: socket.socket, code: str) -> None:
    channel_bytes = Channel(view, max_in_bytes=MAX_FRAME_BYTES, max_out_bytes=MAX_FRAME_BYTES)
    channel_bytes.send({"type": "goodbye", "code": code, "detail": {"hint": "restore a backup"}})

    async def send() -> None:
        await channel_bytes.drain()

    trio.run(send)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=("serve", "locked", "corrupt", "silent", "killed-once", "killed"))
    parser.add_argument("verb")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--view-fd", type=int)
    parser.add_argument("--app-folder", type=Path, action="append")
    parser.add_argument("--retention-days", type=int)
    options = parser.parse_args()
    with (options.home / "launches").open("a") as launches:
        launches.write(f"{os.getpid()}\n")
    view = socket.socket(fileno=options.view_fd)
    is_first = len((options.home / "launches").read_text().splitlines()) == 1
    if options.mode == "killed" or (options.mode == "killed-once" and is_first):
        os.kill(os.getpid(), signal.SIGKILL)
    if options.mode == "silent":
        print(json.dumps({"code": "sandbox_incomplete", "hint": "no user namespaces"}), file=sys.stderr)
        return 1
    if options.mode == "corrupt":
        _say_goodbye(view, "store_corrupt")
        return 1
    lock = (options.home / "kernel.lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return 8
    if options.mode == "locked":
        return 8
    kernel = ScriptedKernel(options.home)
    kernel.state["kernel"]["pid"] = os.getpid()

    async def serve() -> None:
        await kernel.serve(view=view)

    trio.run(serve)
    return 0


if __name__ == "__main__":
    sys.exit(main())
