"""Listeners that should hear nothing: TCP and UDP on one port of loopback, and the names a browser looked up, out of its own net-log."""

from __future__ import annotations

import json
import re
import socket
import threading
from pathlib import Path
from typing import Any
from uuid import uuid4

SECONDS = 60.0
_PATH = re.compile(rb"^[A-Z]+ /([^ ?]*)")
# Kinds of events that are a look-up of a name, and not a mere mention of it.
_LOOK_UPS = re.compile(r"^(HOST_RESOLVER_MANAGER_(JOB|REQUEST)|HOST_RESOLVER_DNS_TASK|HOST_RESOLVER_SYSTEM_TASK|DNS_TRANSACTION)")


class Canary:
    """One port. `hits` are what came by TCP: the path of a request, else what the first bytes were; `packets` counts what came by UDP."""

    def __init__(self) -> None:
        self.hits: list[str] = []
        self.packets = 0
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._tcp.getsockname()[1]
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", self.port))
        self._came = threading.Condition()
        for listen in (self._listen, self._hear):
            threading.Thread(target=listen, daemon=True).start()

    @property
    def address(self) -> str:
        """As it stands in an address."""
        return f"127.0.0.1:{self.port}"

    def _listen(self) -> None:
        while True:
            try:
                peer, _ = self._tcp.accept()
            except OSError:
                return
            threading.Thread(target=self._take, args=(peer,), daemon=True).start()

    def _take(self, peer: socket.socket) -> None:
        """One connection counts before it said anything; what it says first names it."""
        with self._came:
            number = len(self.hits)
            self.hits.append("connected")
            self._came.notify_all()
        with peer:
            peer.settimeout(SECONDS)
            try:
                data = peer.recv(65536)
                path = _PATH.match(data)
                with self._came:
                    self.hits[number] = path[1].decode() if path else f"bytes {data[:4].hex()}"
                    self._came.notify_all()
                body = (
                    b""
                    if path is None
                    else b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\nAccess-Control-Allow-Origin: *\r\n\r\n"
                )
                peer.sendall(body)
            except OSError:
                return

    def _hear(self) -> None:
        while True:
            try:
                data, _ = self._udp.recvfrom(65536)
            except OSError:
                return
            with self._came:
                self.packets += 1
                self.hits += [data.decode()] if data.startswith(b"mark-") else []
                self._came.notify_all()

    def settle(self) -> None:
        """Wait until all that was on its way when this was called is counted: a connection and a packet of our own come after it."""
        mark = f"mark-{uuid4().hex}"
        with socket.create_connection(("127.0.0.1", self.port)) as own:
            own.sendall(f"GET /{mark} HTTP/1.1\r\n\r\n".encode())
            with self._came:
                assert self._came.wait_for(lambda: mark in self.hits, SECONDS)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
            own.sendto(f"mark-udp-{mark}".encode(), ("127.0.0.1", self.port))
            with self._came:
                assert self._came.wait_for(lambda: f"mark-udp-{mark}" in self.hits, SECONDS)
                self.packets -= 1
        with self._came:
            self.hits[:] = [hit for hit in self.hits if not hit.startswith("mark-")]

    def wait_hits(self, paths: set[str]) -> None:
        """Wait until all of these were asked for."""
        with self._came:
            assert self._came.wait_for(lambda: paths <= set(self.hits), SECONDS), sorted(paths - set(self.hits))

    def close(self) -> None:
        """Listen no longer."""
        for listener in (self._tcp, self._udp):
            listener.close()


def looked_up(net_log: Path, suffix: str) -> set[str]:
    """The names with this ending that a browser looked up, after it was closed."""
    log: dict[str, Any] = json.loads(net_log.read_text("utf-8"))
    kinds = {number: name for name, number in log["constants"]["logEventTypes"].items() if _LOOK_UPS.match(name)}
    name = re.compile(rf"[\w.-]*{re.escape(suffix)}")
    told = (json.dumps(event.get("params", {})) for event in log["events"] if event["type"] in kinds)
    return {found for text in told for found in name.findall(text)}
