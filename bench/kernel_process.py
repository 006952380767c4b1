"""One real kernel on a home of its own on disk, and an admin connection to it.

Rules:
1. The home stands on a disk (/var/tmp, unlike many /tmp), or in memory to see a call without its fdatasyncs; it is removed at the end.
2. An app is a copy of bench/app under another scope, so that there are as many workers as asked for.
3. Nothing of the kernel is changed for the measurement; `module` names another entry point only for counting.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.lines import LineProcess
from kernel.protocol.host import HostHello, KernelStop
from lineup_sdk.protocol.framing import FrameReader, encode_frame
from lineup_sdk.protocol.limits import MAX_FRAME_BYTES, WIRE_VERSION
from lineup_sdk.protocol.messages import Message, to_frame
from workers.digests import with_digests

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 30.0
STOP_SECONDS = 10.0
DISK = "/var/tmp"
MEMORY = "/dev/shm"


def write_app(folder: Path, scope: str) -> Path:
    """Copy bench/app under another scope and return its folder."""
    target = folder / scope
    target.mkdir()
    source = ROOT / "bench" / "app"
    (target / "app.py").write_text((source / "app.py").read_text().replace('"bench.calc"', f'"{scope}.calc"'))
    text = (source / "manifest.json").read_text().replace('"bench"', f'"{scope}"').replace('"bench.calc"', f'"{scope}.calc"')
    manifest = with_digests(json.loads(text), target)
    (target / "manifest.json").write_text(json.dumps(manifest))
    return target


class Admin:
    """The person's connection, blocking: one request, one reply."""

    def __init__(self, home: Path) -> None:
        self._sock = socket.socket(socket.AF_UNIX)
        self._sock.settimeout(START_SECONDS)
        self._sock.connect(str(home / "run" / "kernel.sock"))
        self._reader = FrameReader(MAX_FRAME_BYTES)
        self._last_id = 0
        pairing = (home / "run" / "pairing").read_text().strip()
        self._send(to_frame(HostHello(wire=WIRE_VERSION, role="admin", pairing=pairing, label="bench")))
        self._receive("welcome")

    def ask(self, message: Message) -> dict[str, Any]:
        """Send one request and return its value or receipt."""
        self._last_id += 1
        self._send(to_frame(message, self._last_id))
        reply = self._receive("reply")
        value: dict[str, Any] = reply.get("value") or reply.get("receipt") or {}
        return value

    def close(self) -> None:
        """Leave."""
        self._sock.close()

    def _send(self, frame: dict[str, Any]) -> None:
        self._sock.sendall(encode_frame(frame, MAX_FRAME_BYTES))

    def _receive(self, kind: str) -> dict[str, Any]:
        while True:
            frame = self._reader.next_frame()
            if frame is not None and frame["type"] == kind:
                return frame
            if frame is None:
                data = self._sock.recv(65_536)
                if not data:
                    raise SystemExit("the kernel ended while the bench spoke with it")
                self._reader.feed(data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A kernel that serves."""

    home: Path
    process: subprocess.Popen[str]
    admin: Admin
    start_micros: int  # from exec to the first welcome

    @contextmanager
    def agent(self, tools: Sequence[str]) -> Iterator[LineProcess]:
        """An Agent process on the door."""
        command = [sys.executable, "-m", "bench.agent", str(self.home / "run" / "kernel.sock"), *tools]
        with LineProcess.start(command, ROOT) as agent:
            yield agent


@contextmanager
def kernel(scopes: Sequence[str], *, module: str = "kernel", disk: str = DISK) -> Iterator[Running]:
    """Run a kernel with one copy of the app a scope; stop it and remove its home afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="lineup-bench-", dir=disk))
    try:
        home = folder / "home"
        apps = [write_app(folder, scope) for scope in scopes]
        with (folder / "kernel.log").open("w") as log:
            process, began = _launch(home, apps, module, log)
            try:
                admin = _wait_ready(home, process)
                yield Running(home=home, process=process, admin=admin, start_micros=(time.perf_counter_ns() - began) // 1000)
                admin.ask(KernelStop())
                admin.close()
                process.wait(STOP_SECONDS)
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
    finally:
        shutil.rmtree(folder)


def _launch(home: Path, apps: Sequence[Path], module: str, log: Any) -> tuple[subprocess.Popen[str], int]:
    folders = [word for app in apps for word in ("--app-folder", str(app))]
    began = time.perf_counter_ns()
    process = subprocess.Popen([sys.executable, "-m", module, "serve", "--home", str(home), *folders], cwd=ROOT, stderr=log, text=True)
    return process, began


def _wait_ready(home: Path, process: subprocess.Popen[str]) -> Admin:
    until = time.monotonic() + START_SECONDS
    while True:
        try:
            return Admin(home)
        except (FileNotFoundError, ConnectionRefusedError):
            if process.poll() is not None:
                raise SystemExit(f"the kernel did not start: exit code {process.returncode}") from None
            if time.monotonic() > until:
                raise SystemExit("the kernel did not start in time") from None
            time.sleep(0.001)
