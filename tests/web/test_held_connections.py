"""Connections to the port of the web host that never become a request (THREATS 3.6)."""

from __future__ import annotations

import socket

import pytest
import trio
from trio.testing import MockClock

from hosts.web.connection import Connection
from tests.web.web_host import WebHost

SECONDS = 60

HELD = {
    "nothing": b"",
    "half a head": b"GET / HTTP/1.1\r\nHost",
    "a length and no body": b"POST / HTTP/1.1\r\nHost: %(name)b\r\nContent-Length: 9\r\n\r\n",
    "pieces that never come": b"POST / HTTP/1.1\r\nHost: %(name)b\r\nTransfer-Encoding: chunked\r\n\r\n",
    "HTTP/2 that says no more": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]),
    "a page, and no more": b"GET / HTTP/1.1\r\nHost: %(name)b\r\n\r\n",
}


def test_nobody_holds_a_connection_without_a_request(host: WebHost) -> None:
    """There are 128 of them, and every page needs one."""
    name = f"127.0.0.1:{host.port}".encode()
    held = {}
    for what, data in HELD.items():
        held[what] = socket.create_connection(("127.0.0.1", host.port), timeout=SECONDS)
        held[what].sendall(data % {b"name": name} if b"%(name)b" in data else data)
    for what, sock in held.items():
        with sock:
            assert _is_let_go(sock), what


def _is_let_go(sock: socket.socket) -> bool:
    try:
        while sock.recv(65536):
            pass
    except ConnectionResetError:
        pass
    except TimeoutError:
        return False
    return True


class SlowPeer:
    """A stream whose peer takes so many bytes a second, by the test's clock."""

    def __init__(self, bytes_a_second: int) -> None:
        self._speed = bytes_a_second
        self.socket, self._other_end = socket.socketpair()
        self.receive_some = self.send_eof = self.aclose = None
        self.taken = bytearray()

    async def send_all(self, data: memoryview) -> None:
        await trio.sleep(len(data) / self._speed)
        self.taken += data

    def close(self) -> None:
        self.socket.close()
        self._other_end.close()


@pytest.mark.clause("9.4")
async def test_who_takes_an_artifact_slowly_gets_all_of_it_and_who_takes_nothing_is_cut(autojump_clock: MockClock) -> None:
    artifact = bytes(range(256)) * 4096 + b"end"
    slow = SlowPeer(bytes_a_second=8192)  # more than two minutes
    await Connection(slow).send_all(artifact)  # type: ignore[arg-type]  # what of a stream it uses
    assert slow.taken == artifact
    stalled = SlowPeer(bytes_a_second=1)
    with pytest.raises(trio.BrokenResourceError):
        await Connection(stalled).send_all(artifact)  # type: ignore[arg-type]
    assert not stalled.taken
    assert stalled.socket.fileno() == -1
    slow.close()
    stalled.close()
